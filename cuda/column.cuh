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
 *   const ColumnSeat<ROWS> seat(shape, rank);       which rows of which system
 *   Column<Number, ROWS, IS_CLUSTER> column(shape, seat, periodic, meeting, kept, sent);
 *   column.begin();                                 and started() before it meets first
 *   column.eliminate(inner, rows, again, watches);  rows(i) -> Row of row seat.start + i
 *   column.meet(bytes, tell);                       tell(system of the block, Note)
 *   column.substitute(put);                         put(i, x) of row seat.start + i
 *
 * rows is called by whole warps for i = 0 .. ROWS - 1 in this order; what it says of
 * i < seat.pads is not used. Where a pivot needs care, single lanes call again, as rows
 * but for seat.pads <= i only; and put is called for those. inner may be rows, or what is
 * cheaper where seat.pads is 0, so that only i = 0 and i = ROWS - 1 can be ends of the
 * system. lower of row 0 and upper of the last row must be 0 unless the system is
 * periodic. Systems that are not there may have any rows; put is called for them, too.
 */
#ifndef PS_CUDA_COLUMN_CUH
#define PS_CUDA_COLUMN_CUH

#include "cluster.cuh"
#include "column_chunk.cuh"
#include "column_shape.cuh"
#include "column_spans.cuh"

template <typename Number, int ROWS, bool IS_CLUSTER> struct Column {
    const ColumnShape &shape;
    const ColumnSeat<ROWS> &seat;
    const bool periodic;
    const ColumnMeeting<Number> meeting;
    Arrivals *arrivals; /* of the cluster's messages, of two rounds in turn */
    int32_t round = 0;  /* counts the meetings */
    ColumnChunk<Number, ROWS> chunk;
    Segment<Number> own;
    Lanes<Number> parts;
    Note note; /* of the own rows, then of the system */
    Number y_left, y;

    __device__ __forceinline__ Column(const ColumnShape &s, const ColumnSeat<ROWS> &place,
                                      bool is_periodic, void *memory, Number *kept,
                                      Arrivals *others)
        : shape(s), seat(place), periodic(is_periodic), meeting(s, memory),
          arrivals(others), chunk{{}, {}, kept}
    {
    }

    /* Before all else; started() before the first meeting. */
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
            return i >= seat.pads ? row : copy_row<Number>();
        };
        const auto careful_row = [&](int i) {
            return i >= seat.pads ? again(i) : copy_row<Number>();
        };
        Fault fault;

        note.weak = 0;
        if (!(has_no_pads() ? eliminate_quickly(0, inner, watches)
                            : eliminate_quickly(seat.pads, padded, watches))) {
            Careful<Number> careful = {fault};
            own = chunk.eliminate(careful_row, seat.start, seat.pads, careful);
        }
        note.fault = fault.row;
    }

    /* From the own segment to y_left and y; tell(system, note) for each system of the
     * block, by the first block of a cluster. `bytes` more than its messages come. */
    template <typename Tell>
    __device__ __forceinline__ void meet(uint32_t bytes, const Tell &tell)
    {
        const int32_t width = 1 << shape.width;
        const Group group = {seat.part, shape.parts(), seat.column, width};
        Segment<Number> s = own;

        if (shape.width < 5) {
            s = rise(group, [&](auto &inverter) {
                parts.reduce(group, own, seat.start + ROWS - 1, inverter);
                return parts.whole(group, own, has_first_warp() ? shape.first_part : 0);
            });
        }
        if (shape.warps == 1 && !IS_CLUSTER) {
            close(s);
            if (seat.part == 0) {
                tell(seat.column, note);
            }
        }
        else {
            if (IS_CLUSTER && threadIdx.x == 0) {
                arrivals[round & 1].expect(
                    static_cast<uint32_t>(sizeof(ColumnMessage<Number>)) *
                        (shape.blocks << shape.width) +
                    bytes);
            }
            if (seat.part == 0) {
                meeting.put(seat.warp * meeting.pitch + seat.column, s);
                meeting.note[seat.warp * meeting.pitch + seat.column] = note;
            }
            __syncthreads();
            if (seat.warp * 32 < width << shape.lanes) {
                meet_warps(tell);
            }
            __syncthreads();
            const int32_t at = seat.warp * meeting.pitch + seat.column;
            y_left = meeting.y[at];
            y = meeting.y[at + meeting.pitch];
            note.weak = meeting.weak[seat.column];
        }
        round++;
        if (shape.width < 5) {
            const Number last = parts.y.at(y_left, y);
            const Number before = shuffle(all_lanes, last, group.away(-1, seat.part > 0));

            y_left = seat.part > 0 ? before : y_left;
            y = last;
        }
    }

    template <typename Put>
    __device__ __forceinline__ void substitute(const Put &put) const
    {
        chunk.substitute(y_left, y, [&](int i, Number x) {
            if (i >= seat.pads) {
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
        return __all_sync(all_lanes, seat.pads == 0);
    }
    /* Whether row 0 of the system is here. */
    __device__ __forceinline__ bool has_first_block() const
    {
        return seat.block == shape.first_block;
    }
    __device__ __forceinline__ bool has_first_warp() const
    {
        return has_first_block() && seat.warp == shape.first_warp;
    }

    /* Whether all pivots were such that this was right. */
    template <typename Rows>
    __device__ __forceinline__ bool eliminate_quickly(int pads, const Rows &rows,
                                                      bool watches)
    {
        Quick<Number> quick;
        bool weak = false;
        const auto look = [&](int i) {
            const Row<Number> row = rows(i);

            if (watches) {
                weak = weak | !is_dominant(row.lower, row.diag, row.upper);
            }
            return row;
        };
        own = chunk.eliminate(look, seat.start, pads, quick);
        note.weak = weak;
        return quick.was_right();
    }

    /* A level up: reduce(inverter) -> Segment, quickly or with care; then the note of
     * all lanes of the group. */
    template <typename Reduce>
    __device__ __forceinline__ Segment<Number> rise(const Group &group,
                                                    const Reduce &reduce)
    {
        Fault fault = {note.fault};
        Careful<Number> careful = {fault};
        const Segment<Number> s = reduce(careful);

        note.fault = fault.row;
        gather(group);
        return s;
    }

    /* The note of all lanes of a group. */
    __device__ __forceinline__ void gather(const Group &group)
    {
        if (__any_sync(all_lanes, note.fault != Fault::none || note.weak != 0)) {
            Note all = {Fault::none, 0};

#pragma unroll 1
            for (int i = 0; i < group.count; i++) {
                all.fault =
                    min(all.fault, __shfl_sync(all_lanes, note.fault, group.lane_of(i)));
                all.weak |= __shfl_sync(all_lanes, note.weak, group.lane_of(i));
            }
            note = all;
        }
    }

    __device__ __forceinline__ void close(const Segment<Number> &s)
    {
        Fault fault = {note.fault};

        y = close_system(s, periodic, shape.rows - 1, fault);
        y_left = periodic ? y : Number(0);
        note.fault = fault.row;
    }

    /* Row of the last unknown of unit u, of units of so many chunks. */
    __device__ __forceinline__ int32_t last_row_of(int32_t unit, int32_t chunks) const
    {
        return shape.template start_of<ROWS>((unit + 1) * chunks) - 1;
    }

    /* The warps' segments of a system: four a lane. */
    template <typename Tell> __device__ __forceinline__ void meet_warps(const Tell &tell)
    {
        const int32_t lane = threadIdx.x & ((1 << shape.lanes) - 1);
        const int32_t base = (threadIdx.x - lane) % 32;
        const int32_t column = threadIdx.x >> shape.lanes;
        const bool there = column < 1 << shape.width;
        const int32_t safe = there ? column : 0;
        Spans<Number, 4> warps;
        const typename Spans<Number, 4>::Place place(
            shape.warps, has_first_block() ? shape.first_warp : 0, lane, base);

        note = {Fault::none, 0};
        for (int j = 0; j < 4; j++) {
            if (place.unit(j) >= 0) {
                const Note &one = meeting.note[place.unit(j) * meeting.pitch + safe];
                note.fault = min(note.fault, one.fault);
                note.weak |= one.weak;
            }
        }
        const Segment<Number> s = rise(place.group, [&](auto &inverter) {
            return warps.reduce(
                place, [&](int32_t u) { return meeting.get(u * meeting.pitch + safe); },
                [&](int32_t u) {
                    return last_row_of(seat.block * shape.warps + u, shape.parts());
                },
                inverter);
        });
        if (IS_CLUSTER) {
            meet_blocks(s, lane, base, safe, there);
        }
        else {
            close(s);
        }
        warps.substitute(place, y_left, y, [&](int32_t u, Number value) {
            if (there && lane < place.group.count) {
                meeting.y[(u + 1) * meeting.pitch + column] = value;
            }
        });
        if (there && lane == 0) {
            meeting.y[column] = y_left;
            meeting.weak[column] = note.weak != 0;
            if (seat.block == 0) {
                tell(column, note);
            }
        }
    }

    /* The blocks' segments of a system, two a lane; leaves the block's y_left and y. */
    __device__ __forceinline__ void meet_blocks(const Segment<Number> &s, int32_t lane,
                                                int32_t base, int32_t column, bool there)
    {
        ColumnMessage<Number> *const from =
            meeting.messages + (((round & 1) << shape.width) + column) * shape.blocks;
        Arrivals &arrived = arrivals[round & 1];
        Spans<Number, 2> blocks;
        const typename Spans<Number, 2>::Place place(shape.blocks, shape.first_block,
                                                     lane, base);

        for (int to = lane; there && to < shape.blocks; to += 1 << shape.lanes) {
            send(from + seat.block, ColumnMessage<Number>(s, note), arrived, to);
        }
        arrived.wait(round >> 1 & 1);

        for (int j = 0; j < 2; j++) {
            const Note one = from[max(place.unit(j), 0)].note();
            note.fault = min(note.fault, one.fault);
            note.weak |= one.weak;
        }
        close(rise(place.group, [&](auto &inverter) {
            return blocks.reduce(
                place, [&](int32_t u) { return from[u].segment; },
                [&](int32_t u) { return last_row_of(u, shape.warps * shape.parts()); },
                inverter);
        }));

        Number mine = y, before = y_left;
        blocks.substitute(place, y_left, y, [&](int32_t u, Number value) {
            mine = u == seat.block ? value : mine;
            before = u == seat.block - 1 ? value : before;
        });
        y = shuffle(all_lanes, mine, place.lane_of(seat.block));
        before = shuffle(all_lanes, before, place.lane_of(max(seat.block - 1, 0)));
        y_left = seat.block > 0 ? before : y_left;
    }
};

#endif
