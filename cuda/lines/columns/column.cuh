/* column.cuh - the partition method for systems along a strided axis, a chunk of rows
 * in the registers of a thread.
 *
 * Neighbouring threads have neighbouring systems, so that a warp reads whole lines of
 * memory. Each thread eliminates a chunk of consecutive rows of one system. The chunks
 * are joined by the formulas of segment.cuh: those of a warp through shuffles; the
 * warps of a block through shared memory, where the segments are redistributed so that
 * those of one system lie in one warp; the blocks of a cluster through messages. 17
 * operations and one reciprocal per row; no pivoting, for diagonally dominant systems
 * (Wang 1981; Laszlo, Giles and Appleyard 2016). A kernel uses it as follows; every
 * thread executes every step:
 *
 *   const ColumnThreadPlace<ROWS> self(shape, rank);  the rows and the system of a thread
 *   Column<Number, ROWS, IS_CLUSTER> column(shape, self, periodic, memory, kept, arrivals);
 *   column.begin();                                   started() before the first exchange
 *   column.eliminate<MAKES_PADS>(rows, again, watches);    rows(i, follows_pads) -> Row of
 *                                                     row self.start + i
 *   column.join_chunks(bytes, report);                report(system of the block, Note)
 *   column.substitute(put);                           put(i, is_there, x) of row self.start
 *                                                     + i, for i = ROWS - 1 .. 0
 *
 * rows is called by whole warps for i = 0 .. ROWS - 1 in this order. Rows before row 0 of
 * a system that is not periodic, the pads, must be {0, 0, 0, 0} or, with MAKES_PADS, rows of
 * the identity; those of a periodic one are not used, and follows_pads is true if there may
 * be some. If a pivot is outside the range of the fast reciprocal, single lanes call again,
 * which is like rows but called for self.pads <= i only; is_there is true for the same i.
 * lower of row 0 and upper of the last row must be 0 unless the system is periodic. Systems
 * beyond the batch may have any rows; put is called for them as well. put may change x,
 * from which x of the row before is computed.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_CUH
#define PS_CUDA_LINES_COLUMNS_COLUMN_CUH

#include "device/cluster.cuh"
#include "lines/columns/column_shape.cuh"
#include "lines/columns/column_spans.cuh"

namespace pysolvers::columns {

using namespace runtime;

/* Numbers of a thread in shared memory, between those of the other lanes. */
template <typename Number> struct LaneWords {
    Number *const first;

    __device__ __forceinline__ Number &operator[](int i) const
    {
        return first[32 * i];
    }
};

/* A Chunk whose numbers g are in shared memory, so that a thread can have more rows:
 * x_i = g_i - l_i y_left - u_i x_{i+1} for i < ROWS - 1. */
template <typename Number, int ROWS> struct ColumnChunk {
    static constexpr int words =
        (ROWS - 1) * 32 * elements_of_value<Number>; /* of a warp */
    Number l[ROWS - 1], u[ROWS - 1];
    const LaneWords<ValueOf<Number>> g;

    __device__ __forceinline__ explicit ColumnChunk(ElementOf<Number> *kept)
        : g{reinterpret_cast<ValueOf<Number> *>(kept)}
    {
    }

    /* Like that of Chunk. */
    template <typename Rows, typename Inverter>
    __device__ __forceinline__ Segment<Number> eliminate(const Rows &rows, int32_t start,
                                                         int pads, Inverter &inverter)
    {
        Spike<Number> above = left_spike<Number>(), first = own_spike<Number>();

#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            const Row<Number> row = rows(i);

            above = above.below(row, inverter.invert(above.pivot_of(row), start + i));
            g[i] = above.g;
            l[i] = above.l;
            u[i] = above.u;
            if (i >= pads) {
                first = {first.g - first.u * above.g, first.l - first.u * above.l,
                         -(first.u * above.u)};
            }
        }
        return Segment<Number>::closed(first, above, rows(ROWS - 1));
    }

    /* x_i of all rows, from the last to the first: put(i, x). */
    template <typename Put>
    __device__ __forceinline__ void substitute(const ValueOf<Number> &y_left,
                                               ValueOf<Number> y, const Put &put) const
    {
        put(ROWS - 1, y);
#pragma unroll
        for (int i = ROWS - 2; i >= 0; i--) {
            y = Spike<Number>{g[i], l[i], u[i]}.at(y_left, y);
            put(i, y);
        }
    }
};

/* The same in row-sum form. */
template <typename Real, int ROWS>
struct ColumnChunk<BySums<Real>, ROWS>
    : SummedRows<Real, ROWS, const LaneWords<BySums<Real>>> {
    static constexpr int words = (ROWS - 1) * 32;

    __device__ __forceinline__ explicit ColumnChunk(BySums<Real> *kept)
        : SummedRows<Real, ROWS, const LaneWords<BySums<Real>>>{{}, {}, {kept}}
    {
    }
};

/* What gives the ends of the rows of a column from their only segment: here they are a whole
 * system. `writes`: whether this thread stands for the system. */
struct WholeSystem {
    template <typename Number>
    __device__ __forceinline__ Ends<Number>
    close(const Segment<Number> &s, bool periodic, int32_t row,
          [[maybe_unused]] bool writes, BadPivot &bad_pivot) const
    {
        return ends_of_system(s, periodic, row, bad_pivot);
    }
};

/* A segment of a column of the block; `writes`: whether this thread stands for it. */
template <typename Number> struct ColumnUnit {
    Segment<Number> segment;
    bool writes;
};

/* SPAN: warps of a lane that joins them. */
template <typename Number, int ROWS, bool IS_CLUSTER, typename Top = WholeSystem,
          int SPAN = 4>
struct Column {
    const ColumnShape &shape;
    const ColumnThreadPlace<ROWS> &self;
    const bool periodic;
    const ColumnArrays<Number> exchange;
    ClusterRounds rounds; /* one for each exchange */
    ColumnChunk<Number, ROWS> chunk;
    Segment<Number> own;
    Lanes<Number> parts;
    Note note; /* of the rows of this thread, then of the system */
    Ends<Number> ends;
    Top top;
    bool is_definite = false; /* other matrices, of blocks, have a bad pivot */

    __device__ __forceinline__ Column(const ColumnShape &s,
                                      const ColumnThreadPlace<ROWS> &place,
                                      bool is_periodic, void *memory,
                                      ElementOf<Number> *kept, Arrivals *others,
                                      const Top &closing = Top())
        : shape(s), self(place), periodic(is_periodic), exchange(s, memory),
          rounds{others, 0}, chunk(kept), top(closing)
    {
    }

    /* The column whose segment this thread closes, if it takes part in that. */
    __device__ __forceinline__ int32_t closed_column() const
    {
        if (shape.warps == 1 && !IS_CLUSTER) {
            return self.column;
        }
        const int32_t column = threadIdx.x >> shape.lanes;
        return column < 1 << shape.width ? column : 0;
    }

    /* Called first; started() is called before the first exchange. */
    __device__ __forceinline__ void begin() const
    {
        if (IS_CLUSTER) {
            if (threadIdx.x == 0) {
                rounds.init();
            }
            __syncthreads();
            cluster_arrive();
        }
    }
    __device__ __forceinline__ void started() const
    {
        if (IS_CLUSTER) {
            cluster_wait();
        }
    }

    /* With `watches`, the note shows whether all rows are dominant. The warps of steps use
     * one path if they can: code of two paths that run at the same time may exceed the
     * instruction cache, and then takes up to four times as long. So do the others if many
     * of them have pads; if few have, the path without pads is 3 % faster. */
    template <bool MAKES_PADS, typename Rows, typename Again>
    __device__ __forceinline__ void eliminate(const Rows &rows, const Again &again,
                                              bool watches)
    {
        const bool has_pads = shape.chunks() * ROWS != shape.rows;
        const bool has_few_warps = shape.warps * shape.blocks <= 4;
        const auto identity = [&](int i) {
            Row<Number> row = rows(i, false);

            if (!MAKES_PADS && i < self.pads) {
                row.diag = Number(1);
            }
            return row;
        };
        const auto own_rows = [&](int i) { return rows(i, false); };
        const auto padded = [&](int i) {
            const Row<Number> row = rows(i, true);
            return i >= self.pads ? row : copy_row<Number>();
        };
        const auto safe_row = [&](int i) {
            return i >= self.pads ? again(i) : copy_row<Number>();
        };
        BadPivot bad_pivot = {BadPivot::none, is_definite};
        bool is_right;

        note.not_dominant = 0;
        if (!MAKES_PADS && !is_block<Number> && has_no_pads() &&
            !(has_pads && has_few_warps && !periodic)) {
            is_right = eliminate_fast(0, own_rows, watches);
        }
        else if (!periodic || (MAKES_PADS && !has_pads)) {
            is_right = eliminate_fast(0, identity, watches);
        }
        else {
            is_right = eliminate_fast(self.pads, padded, watches);
        }
        if (!is_right) {
            SafeReciprocal<Number> safe_inverter = {bad_pivot};
            own = chunk.eliminate(safe_row, self.start, self.pads, safe_inverter);
        }
        note.bad_pivot = bad_pivot.row;
    }

    /* Compute the ends of the chunk from its segment, through the chunks of a warp, the warps
     * of the block and the blocks of the cluster; report(system, note) is
     * called for each system of the block, by the first block of a cluster. `bytes` is
     * the number of bytes that arrive in addition to the messages. */
    template <typename Report>
    __device__ __forceinline__ void join_chunks(uint32_t bytes, const Report &report)
    {
        using Unit = ColumnUnit<Number>;
        const auto chunks = [&](const Unit &unit, const auto &next) {
            return over_chunks(unit, next);
        };
        const auto warps = [&](const Unit &unit, const auto &next) {
            return over_warps(unit, next, bytes, report);
        };
        const auto close = [&](const Unit &unit) {
            BadPivot bad_pivot = {note.bad_pivot, is_definite};
            const Ends<Number> all =
                top.close(unit.segment, periodic, shape.rows - 1, unit.writes, bad_pivot);

            note.bad_pivot = bad_pivot.row;
            if (is_block<Number> && note.bad_pivot != BadPivot::none) {
                note.not_dominant = 1;
            }
            return all;
        };
        const Unit unit = {own, self.part == 0};

        if constexpr (IS_CLUSTER) {
            ends = through_levels(unit, close, chunks, warps,
                                  [&](const Unit &block, const auto &next) {
                                      return over_blocks(block, next);
                                  });
        }
        else {
            ends = through_levels(unit, close, chunks, warps);
        }
        rounds.round++;
    }

    template <typename Put>
    __device__ __forceinline__ void substitute(const Put &put) const
    {
        chunk.substitute(ends.y_left, ends.y,
                         [&](int i, auto &x) { put(i, i >= self.pads, x); });
    }

  private:
    /* Whether the warp uses the path without pads. If the code of both paths exceeds
     * the instruction cache, all warps use the same path, or only one path exists. */
    __device__ __forceinline__ bool has_no_pads() const
    {
        if (number_traits<Number>::is_complex && ROWS > 8) {
            return ROWS <= 16 && shape.chunks() * ROWS == shape.rows;
        }
        return __all_sync(all_lanes, self.pads == 0);
    }
    /* Whether this block has row 0 of the system. */
    __device__ __forceinline__ bool has_first_block() const
    {
        return self.block == shape.first_block;
    }
    __device__ __forceinline__ bool has_first_warp() const
    {
        return has_first_block() && self.warp == shape.first_warp;
    }

    /* Returns whether all pivots were in the range of the fast reciprocal. */
    template <typename Rows>
    __device__ __forceinline__ bool eliminate_fast(int pads, const Rows &rows,
                                                   bool watches)
    {
        FastReciprocal<Number> fast_inverter;
        bool not_dominant = false;
        const auto checked_rows = [&](int i) {
            const Row<Number> row = rows(i);

            if (watches) {
                not_dominant =
                    not_dominant | !is_dominant(row.lower, row.diag, row.upper);
            }
            return row;
        };
        own = chunk.eliminate(checked_rows, self.start, pads, fast_inverter);
        note.not_dominant = not_dominant;
        if constexpr (is_block<Number>) {
            if (is_definite && !fast_inverter.is_definite) {
                return false;
            }
        }
        return fast_inverter.in_safe_range();
    }

    /* One level up: reduce(inverter) -> Segment; then combine the notes of the lanes of
     * the group. */
    template <typename Reduce>
    __device__ __forceinline__ Segment<Number> reduce_up(const Group &group,
                                                         const Reduce &reduce)
    {
        BadPivot bad_pivot = {note.bad_pivot, is_definite};
        SafeReciprocal<Number> safe_inverter = {bad_pivot};
        const Segment<Number> s = reduce(safe_inverter);

        note.bad_pivot = bad_pivot.row;
        gather(group);
        return s;
    }

    /* Combine the notes of all lanes of a group. */
    __device__ __forceinline__ void gather(const Group &group)
    {
        if (__any_sync(all_lanes,
                       note.bad_pivot != BadPivot::none || note.not_dominant != 0)) {
            Note all = {BadPivot::none, 0};

#pragma unroll 1
            for (int i = 0; i < group.count; i++) {
                all.bad_pivot = min(all.bad_pivot, __shfl_sync(all_lanes, note.bad_pivot,
                                                               group.lane_of(i)));
                all.not_dominant |=
                    __shfl_sync(all_lanes, note.not_dominant, group.lane_of(i));
            }
            note = all;
        }
    }

    /* Row of the last unknown of unit `unit`, for units of `chunks` chunks. */
    __device__ __forceinline__ int32_t last_row_of(int32_t unit, int32_t chunks) const
    {
        return shape.template start_of<ROWS>((unit + 1) * chunks) - 1;
    }

    /* The level of the chunks of a warp. */
    template <typename Next>
    __device__ __forceinline__ Ends<Number> over_chunks(const ColumnUnit<Number> &unit,
                                                        const Next &next)
    {
        const Group group = {self.part, shape.parts(), self.column, 1 << shape.width};
        ColumnUnit<Number> all = unit;

        if (shape.width < 5) {
            all.segment = reduce_up(group, [&](auto &inverter) {
                parts.reduce(group, unit.segment, self.start + ROWS - 1, inverter);
                return parts.whole(group, unit.segment,
                                   has_first_warp() ? shape.first_part : 0);
            });
        }
        const Ends<Number> found = next(all);

        return shape.width < 5 ? ends_of_lane(parts, group, found) : found;
    }

    /* The level of the warps of a block: the segments are redistributed, SPAN to a lane. */
    template <typename Next, typename Report>
    __device__ __forceinline__ Ends<Number> over_warps(const ColumnUnit<Number> &unit,
                                                       const Next &next, uint32_t bytes,
                                                       const Report &report)
    {
        const int32_t width = 1 << shape.width;
        const int32_t at = self.warp * exchange.pitch + self.column;

        if (shape.warps == 1 && !IS_CLUSTER) {
            const Ends<Number> found = next(unit);

            if (self.part == 0) {
                report(self.column, note);
            }
            return found;
        }
        if (IS_CLUSTER && threadIdx.x == 0) {
            rounds.expect(static_cast<uint32_t>(sizeof(ColumnMessage<Number>)) *
                              (shape.blocks << shape.width) +
                          bytes);
        }
        if (self.part == 0) {
            exchange.put(at, unit.segment);
            exchange.note[at] = note;
        }
        __syncthreads();
        if (self.warp * 32 < width << shape.lanes) {
            join_warps(next, report);
        }
        __syncthreads();
        note.not_dominant = exchange.not_dominant[self.column];
        return {exchange.y[at], exchange.y[at + exchange.pitch]};
    }

    /* The threads that redistribute them. */
    template <typename Next, typename Report>
    __device__ __forceinline__ void join_warps(const Next &next, const Report &report)
    {
        const int32_t lane = threadIdx.x & ((1 << shape.lanes) - 1);
        const int32_t base = (threadIdx.x - lane) % 32;
        const int32_t column = threadIdx.x >> shape.lanes;
        const bool there = column < 1 << shape.width;
        const int32_t safe = there ? column : 0;
        Spans<Number, SPAN> warps;
        const typename Spans<Number, SPAN>::Place place(
            shape.warps, has_first_block() ? shape.first_warp : 0, lane, base);

        note = {BadPivot::none, 0};
        for (int j = 0; j < SPAN; j++) {
            if (place.unit(j) >= 0) {
                const Note &one = exchange.note[place.unit(j) * exchange.pitch + safe];
                note.bad_pivot = min(note.bad_pivot, one.bad_pivot);
                note.not_dominant |= one.not_dominant;
            }
        }
        const Segment<Number> s = reduce_up(place.group, [&](auto &inverter) {
            return warps.reduce(
                place, [&](int32_t u) { return exchange.get(u * exchange.pitch + safe); },
                [&](int32_t u) {
                    return last_row_of(self.block * shape.warps + u, shape.parts());
                },
                inverter);
        });
        const Ends<Number> all =
            next(ColumnUnit<Number>{s, there && lane == 0 && self.block == 0});

        warps.substitute(place, all, [&](int32_t u, const ValueOf<Number> &value) {
            if (there && lane < place.group.count) {
                exchange.y[(u + 1) * exchange.pitch + column] = value;
            }
        });
        if (there && lane == 0) {
            exchange.y[column] = all.y_left;
            exchange.not_dominant[column] = note.not_dominant != 0;
            if (self.block == 0) {
                report(column, note);
            }
        }
    }

    /* The level of the blocks of a cluster, two to a lane. */
    template <typename Next>
    __device__ __forceinline__ Ends<Number> over_blocks(const ColumnUnit<Number> &unit,
                                                        const Next &next)
    {
        const int32_t lane = threadIdx.x & ((1 << shape.lanes) - 1);
        const int32_t base = (threadIdx.x - lane) % 32;
        const int32_t column = closed_column();
        const bool there =
            static_cast<int32_t>(threadIdx.x >> shape.lanes) < 1 << shape.width;
        ColumnMessage<Number> *const from =
            exchange.messages + ((rounds.turn() << shape.width) + column) * shape.blocks;
        Spans<Number, 2> blocks;
        const typename Spans<Number, 2>::Place place(shape.blocks, shape.first_block,
                                                     lane, base);

        for (int to = lane; there && to < shape.blocks; to += 1 << shape.lanes) {
            send(from + self.block, ColumnMessage<Number>{unit.segment, PackedNote(note)},
                 rounds.now(), to);
        }
        rounds.wait();

        for (int j = 0; j < 2; j++) {
            const Note one = from[max(place.unit(j), 0)].mark.note();
            note.bad_pivot = min(note.bad_pivot, one.bad_pivot);
            note.not_dominant |= one.not_dominant;
        }
        const Segment<Number> s = reduce_up(place.group, [&](auto &inverter) {
            return blocks.reduce(
                place, [&](int32_t u) { return from[u].unit; },
                [&](int32_t u) { return last_row_of(u, shape.warps * shape.parts()); },
                inverter);
        });
        const Ends<Number> all = next(ColumnUnit<Number>{s, unit.writes});
        ValueOf<Number> mine = all.y, before = all.y_left;

        blocks.substitute(place, all, [&](int32_t u, const ValueOf<Number> &value) {
            mine = u == self.block ? value : mine;
            before = u == self.block - 1 ? value : before;
        });
        mine = shuffle(all_lanes, mine, place.lane_of(self.block));
        before = shuffle(all_lanes, before, place.lane_of(max(self.block - 1, 0)));
        return {self.block > 0 ? before : all.y_left, mine};
    }
};

} // namespace pysolvers::columns

#endif
