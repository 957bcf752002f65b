/* column.cuh - systems along a strided axis, a chunk of rows in the registers of a
 * thread.
 *
 * Neighbouring threads have neighbouring systems, so that a warp reads whole lines of
 * memory; each holds a chunk of consecutive rows of one system. Chunks meet as in
 * levels.cuh: those of a warp through shuffles, the warps of a block through shared
 * memory, where lanes change their places so that the segments of one system lie in one
 * warp, and the blocks of a cluster through messages. How a kernel uses it, every thread
 * taking every step:
 *
 *   const ColumnThreadPlace<ROWS> self(shape, rank);       which rows of which system
 *   Column<Number, ROWS, IS_CLUSTER> column(shape, self, periodic, meeting, kept, sent);
 *   column.begin();                                 and started() before it meets first
 *   column.eliminate(inner, rows, again, watches);  rows(i) -> Row of row self.start + i
 *   column.join_chunks(bytes, tell);                       report(system of the block,
 * Note) column.substitute(put);                         put(i, x) of row self.start + i
 *
 * rows is called by whole warps for i = 0 .. ROWS - 1 in this order; what it says of
 * i < self.pads is not used. Where a pivot needs care, single lanes call again, as rows
 * but for self.pads <= i only; and put is called for those. inner may be rows, or what is
 * cheaper where self.pads is 0, so that only i = 0 and i = ROWS - 1 can be ends of the
 * system. lower of row 0 and upper of the last row must be 0 unless the system is
 * periodic. Systems that are not there may have any rows; put is called for them, too.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_CUH
#define PS_CUDA_LINES_COLUMNS_COLUMN_CUH

#include "device/cluster.cuh"
#include "lines/columns/column_chunk.cuh"
#include "lines/columns/column_shape.cuh"
#include "lines/columns/column_spans.cuh"

namespace pysolvers::columns {

using namespace runtime;

template <typename Number, int ROWS, bool IS_CLUSTER> struct Column {
    const ColumnShape &shape;
    const ColumnThreadPlace<ROWS> &self;
    const bool periodic;
    const ColumnExchange<Number> exchange;
    Arrivals *arrivals; /* of the cluster's messages, of two rounds in turn */
    int32_t round = 0;  /* counts the exchanges */
    ColumnChunk<Number, ROWS> chunk;
    Segment<Number> own;
    Lanes<Number> parts;
    Note note; /* of the own rows, then of the system */
    Number y_left, y;

    __device__ __forceinline__ Column(const ColumnShape &s,
                                      const ColumnThreadPlace<ROWS> &place,
                                      bool is_periodic, void *memory, Number *kept,
                                      Arrivals *others)
        : shape(s), self(place), periodic(is_periodic), exchange(s, memory),
          arrivals(others), chunk{{}, {}, kept}
    {
    }

    /* Before all else; started() before the first exchange. */
    __device__ __forceinline__ void begin() const
    {
        if (IS_CLUSTER) {
            if (threadIdx.x == 0) {
                arrivals[0].init(1);
                arrivals[1].init(1);
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

    /* inner(i) is asked for by warps that have no pads, any(i) by the others. With
     * `watches`, the note tells whether all rows are dominant. */
    template <typename Inner, typename Any, typename Again>
    __device__ __forceinline__ void eliminate(const Inner &inner, const Any &any,
                                              const Again &again, bool watches)
    {
        const auto padded = [&](int i) {
            const Row<Number> row = any(i);
            return i >= self.pads ? row : copy_row<Number>();
        };
        const auto safe_row = [&](int i) {
            return i >= self.pads ? again(i) : copy_row<Number>();
        };
        BadPivot bad_pivot;

        note.not_dominant = 0;
        if (!(has_no_pads() ? eliminate_fast(0, inner, watches)
                            : eliminate_fast(self.pads, padded, watches))) {
            SafeReciprocal<Number> safe_inverter = {bad_pivot};
            own = chunk.eliminate(safe_row, self.start, self.pads, safe_inverter);
        }
        note.bad_pivot = bad_pivot.row;
    }

    /* From the own segment to y_left and y; report(system, note) for each system of the
     * block, by the first block of a cluster. `bytes` more than its messages come. */
    template <typename Report>
    __device__ __forceinline__ void join_chunks(uint32_t bytes, const Report &report)
    {
        const int32_t width = 1 << shape.width;
        const Group group = {self.part, shape.parts(), self.column, width};
        Segment<Number> s = own;

        if (shape.width < 5) {
            s = reduce_up(group, [&](auto &inverter) {
                parts.reduce(group, own, self.start + ROWS - 1, inverter);
                return parts.whole(group, own, has_first_warp() ? shape.first_part : 0);
            });
        }
        if (shape.warps == 1 && !IS_CLUSTER) {
            close(s);
            if (self.part == 0) {
                report(self.column, note);
            }
        }
        else {
            if (IS_CLUSTER && threadIdx.x == 0) {
                arrivals[round & 1].expect(
                    static_cast<uint32_t>(sizeof(ColumnMessage<Number>)) *
                        (shape.blocks << shape.width) +
                    bytes);
            }
            if (self.part == 0) {
                exchange.put(self.warp * exchange.pitch + self.column, s);
                exchange.note[self.warp * exchange.pitch + self.column] = note;
            }
            __syncthreads();
            if (self.warp * 32 < width << shape.lanes) {
                join_warps(report);
            }
            __syncthreads();
            const int32_t at = self.warp * exchange.pitch + self.column;
            y_left = exchange.y[at];
            y = exchange.y[at + exchange.pitch];
            note.not_dominant = exchange.not_dominant[self.column];
        }
        round++;
        if (shape.width < 5) {
            const Number last = parts.y.at(y_left, y);
            const Number before = shuffle(all_lanes, last, group.away(-1, self.part > 0));

            y_left = self.part > 0 ? before : y_left;
            y = last;
        }
    }

    template <typename Put>
    __device__ __forceinline__ void substitute(const Put &put) const
    {
        chunk.substitute(y_left, y, [&](int i, Number x) {
            if (i >= self.pads) {
                put(i, x);
            }
        });
    }

  private:
    /* Whether the warp goes the way without pads. Where the code of both ways is more
     * than the instruction cache holds, all warps go the same, or there is only one. */
    __device__ __forceinline__ bool has_no_pads() const
    {
        if (number_traits<Number>::is_complex && ROWS > 8) {
            return ROWS <= 16 && shape.chunks() * ROWS == shape.rows;
        }
        return __all_sync(all_lanes, self.pads == 0);
    }
    /* Whether row 0 of the system is here. */
    __device__ __forceinline__ bool has_first_block() const
    {
        return self.block == shape.first_block;
    }
    __device__ __forceinline__ bool has_first_warp() const
    {
        return has_first_block() && self.warp == shape.first_warp;
    }

    /* Whether all pivots were such that this was right. */
    template <typename Rows>
    __device__ __forceinline__ bool eliminate_fast(int pads, const Rows &rows,
                                                   bool watches)
    {
        FastReciprocal<Number> fast_inverter;
        bool not_dominant = false;
        const auto look = [&](int i) {
            const Row<Number> row = rows(i);

            if (watches) {
                not_dominant =
                    not_dominant | !is_dominant(row.lower, row.diag, row.upper);
            }
            return row;
        };
        own = chunk.eliminate(look, self.start, pads, fast_inverter);
        note.not_dominant = not_dominant;
        return fast_inverter.in_safe_range();
    }

    /* A level up: reduce(inverter) -> Segment, quickly or with care; then the note of
     * all lanes of the group. */
    template <typename Reduce>
    __device__ __forceinline__ Segment<Number> reduce_up(const Group &group,
                                                         const Reduce &reduce)
    {
        BadPivot bad_pivot = {note.bad_pivot};
        SafeReciprocal<Number> safe_inverter = {bad_pivot};
        const Segment<Number> s = reduce(safe_inverter);

        note.bad_pivot = bad_pivot.row;
        gather(group);
        return s;
    }

    /* The note of all lanes of a group. */
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

    __device__ __forceinline__ void close(const Segment<Number> &s)
    {
        BadPivot bad_pivot = {note.bad_pivot};

        y = close_system(s, periodic, shape.rows - 1, bad_pivot);
        y_left = periodic ? y : Number(0);
        note.bad_pivot = bad_pivot.row;
    }

    /* Row of the last unknown of unit u, of units of so many chunks. */
    __device__ __forceinline__ int32_t last_row_of(int32_t unit, int32_t chunks) const
    {
        return shape.template start_of<ROWS>((unit + 1) * chunks) - 1;
    }

    /* The warps' segments of a system: four a lane. */
    template <typename Report>
    __device__ __forceinline__ void join_warps(const Report &report)
    {
        const int32_t lane = threadIdx.x & ((1 << shape.lanes) - 1);
        const int32_t base = (threadIdx.x - lane) % 32;
        const int32_t column = threadIdx.x >> shape.lanes;
        const bool there = column < 1 << shape.width;
        const int32_t safe = there ? column : 0;
        Spans<Number, 4> warps;
        const typename Spans<Number, 4>::Place place(
            shape.warps, has_first_block() ? shape.first_warp : 0, lane, base);

        note = {BadPivot::none, 0};
        for (int j = 0; j < 4; j++) {
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
        if (IS_CLUSTER) {
            join_blocks(s, lane, base, safe, there);
        }
        else {
            close(s);
        }
        warps.substitute(place, y_left, y, [&](int32_t u, Number value) {
            if (there && lane < place.group.count) {
                exchange.y[(u + 1) * exchange.pitch + column] = value;
            }
        });
        if (there && lane == 0) {
            exchange.y[column] = y_left;
            exchange.not_dominant[column] = note.not_dominant != 0;
            if (self.block == 0) {
                report(column, note);
            }
        }
    }

    /* The blocks' segments of a system, two a lane; leaves the block's y_left and y. */
    __device__ __forceinline__ void join_blocks(const Segment<Number> &s, int32_t lane,
                                                int32_t base, int32_t column, bool there)
    {
        ColumnMessage<Number> *const from =
            exchange.messages + (((round & 1) << shape.width) + column) * shape.blocks;
        Arrivals &arrived = arrivals[round & 1];
        Spans<Number, 2> blocks;
        const typename Spans<Number, 2>::Place place(shape.blocks, shape.first_block,
                                                     lane, base);

        for (int to = lane; there && to < shape.blocks; to += 1 << shape.lanes) {
            send(from + self.block, ColumnMessage<Number>(s, note), arrived, to);
        }
        arrived.wait(round >> 1 & 1);

        for (int j = 0; j < 2; j++) {
            const Note one = from[max(place.unit(j), 0)].note();
            note.bad_pivot = min(note.bad_pivot, one.bad_pivot);
            note.not_dominant |= one.not_dominant;
        }
        close(reduce_up(place.group, [&](auto &inverter) {
            return blocks.reduce(
                place, [&](int32_t u) { return from[u].segment; },
                [&](int32_t u) { return last_row_of(u, shape.warps * shape.parts()); },
                inverter);
        }));

        Number mine = y, before = y_left;
        blocks.substitute(place, y_left, y, [&](int32_t u, Number value) {
            mine = u == self.block ? value : mine;
            before = u == self.block - 1 ? value : before;
        });
        y = shuffle(all_lanes, mine, place.lane_of(self.block));
        before = shuffle(all_lanes, before, place.lane_of(max(self.block - 1, 0)));
        y_left = self.block > 0 ? before : y_left;
    }
};

} // namespace pysolvers::columns

#endif
