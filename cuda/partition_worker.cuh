/* partition_worker.cuh - what a block of the partition kernels does with a tile.
 *
 * It eliminates the tile from shared memory into registers, takes the segments up the
 * levels to wherever the system is closed, comes back with y_left and y, and substitutes.
 */
#ifndef PS_CUDA_PARTITION_WORKER_CUH
#define PS_CUDA_PARTITION_WORKER_CUH

#include "cluster.cuh"
#include "partition.h"

template <typename Number, int ROWS, Top TOP, bool BY_ROW> struct Worker {
    static constexpr bool in_parts = TOP == TOP_SEGMENT || TOP == TOP_KNOWN;
    const Job<Number> &job;
    const Shape &shape;
    Tiles<Number, BY_ROW> tiles;
    Meeting<Number> &meeting;
    uint8_t *skip;             /* of each slot, whether its x is not stored */
    Message<Number> *messages; /* of the blocks of a cluster, of two tiles in turn */
    int round = -1;            /* counts the tiles of the block */
    Levels<Number, ROWS> levels;
    Number y_left, y;

    __device__ __forceinline__ Worker(const Job<Number> &j, void *memory,
                                      TileState &state, Meeting<Number> &place,
                                      uint8_t *not_stored)
        : job(j), shape(j.shape),
          tiles{j.t, j.inputs, j.tiling, static_cast<Number *>(memory), state},
          meeting(place), skip(not_stored),
          messages(reinterpret_cast<Message<Number> *>(
              tiles.memory + (j.tiling.direct ? 4 : 5) * j.tiling.words))
    {
    }

    __device__ __forceinline__ int turn() const
    {
        return round & 1;
    }

    /* What of the batch tile `tile` holds for block `rank` of a cluster. */
    __device__ __forceinline__ Spot spot_of(int64_t tile, int32_t rank) const
    {
        const int64_t systems = job.t.outer * job.t.inner;
        const int64_t group = in_parts ? quotient(tile, shape.blocks) : tile;
        Spot spot;

        spot.block = in_parts ? static_cast<int32_t>(tile - group * shape.blocks) : rank;
        const int32_t chunk = spot.block * shape.warps * shape.lanes;
        const int32_t next = chunk + shape.warps * shape.lanes;
        spot.system = group * job.tiling.systems;
        spot.systems = static_cast<int32_t>(
            min(systems - spot.system, static_cast<int64_t>(job.tiling.systems)));
        spot.begin = max(shape.template start_of<ROWS>(chunk), 0);
        spot.rows = max(shape.template start_of<ROWS>(next), 0) - spot.begin;
        return spot;
    }

    /* Where a row of a slot's system lies in the arrays of a tile. */
    __device__ __forceinline__ int offset_of(int32_t slot, int32_t row,
                                             const Spot &spot) const
    {
        return slot * tiles.system_pitch() + (row - spot.begin) * tiles.row_pitch();
    }

    /* From shared memory to registers. Warps of which no lane has row 0 or pads need
     * not ask for them at every row; what idle lanes read there is of no use. */
    __device__ __forceinline__ void eliminate(const Seat<ROWS> &seat, const Spot &spot)
    {
        const bool is_plain =
            __all_sync(all_lanes, seat.start > 0 || seat.lane >= shape.lanes);
        const int offset = offset_of(
            seat.slot, is_plain ? max(seat.start, spot.begin) : seat.start, spot);
        const int pitch = tiles.row_pitch();
        const Number *const lower = tiles.array(0, turn()) + offset;
        const Number *const diag = tiles.array(1, turn()) + offset;
        const Number *const upper = tiles.array(2, turn()) + offset;
        const Number *const rhs = tiles.array(3, turn()) + offset;
        const bool open = !job.t.periodic;
        const bool ends = open && seat.start + ROWS == shape.rows;
        bool weak = false;

        const auto inner = [&](int i) {
            Row<Number> row = {lower[i * pitch], diag[i * pitch], upper[i * pitch],
                               rhs[i * pitch]};
            if (i == ROWS - 1 && ends) {
                row.upper = Number(0);
            }
            note_weak(row, weak);
            return row;
        };
        const auto any = [&](int i) {
            Row<Number> row = copy_row<Number>();

            if (seat.start + i >= 0) {
                row = {lower[i * pitch], diag[i * pitch], upper[i * pitch],
                       rhs[i * pitch]};
            }
            if (open && seat.start + i == 0) {
                row.lower = Number(0);
            }
            if (i == ROWS - 1 && ends) {
                row.upper = Number(0);
            }
            note_weak(row, weak);
            return row;
        };
        levels.fault = Fault();
        const bool right = is_plain ? levels.eliminate_quickly(seat, 0, inner)
                                    : levels.eliminate_quickly(seat, seat.pads, any);
        if (!right) {
            levels.eliminate_carefully(seat, any);
        }
        levels.weak = weak && seat.lane < shape.lanes;
    }

    /* Moduli of complex numbers cost too much to be computed for nothing. */
    __device__ __forceinline__ void note_weak(const Row<Number> &row, bool &weak) const
    {
        if (!number_traits<Number>::is_complex || job.marks != nullptr) {
            weak = weak | !is_dominant(row.lower, row.diag, row.upper);
        }
    }

    /* x to shared memory, from where the whole tile is stored. */
    __device__ __forceinline__ void substitute(const Seat<ROWS> &seat, const Spot &spot)
    {
        Number *const x = tiles.array(4, turn()) + offset_of(seat.slot, seat.start, spot);

        levels.chunk.substitute(y_left, y, [&](int i, Number value) {
            if (seat.start + i >= 0) {
                x[i * tiles.row_pitch()] = value;
            }
        });
        tiles.written();

        const bool weak = is_weak(seat, spot);
        tiles.store(spot, turn(), __syncthreads_or(weak) ? skip : nullptr);
    }

    /* x to memory, where the systems of a warp lie side by side and fill sectors. */
    __device__ __forceinline__ void substitute_directly(const Seat<ROWS> &seat,
                                                        const Spot &spot) const
    {
        const bool there = seat.slot < spot.systems && !is_weak(seat, spot);
        const int64_t row = job.t.x.row;
        Number *const x =
            tiles.at(job.t.x, spot.system + (there ? seat.slot : 0), seat.start);

        levels.chunk.substitute(y_left, y, [&](int i, Number value) {
            if (there && seat.start + i >= 0) {
                x[i * row] = value;
            }
        });
    }

    __device__ __forceinline__ bool is_weak(const Seat<ROWS> &seat,
                                            const Spot &spot) const
    {
        return job.marks != nullptr && levels.weak && seat.slot < spot.systems;
    }

    /* y of the system and what stands on its left, from its only segment. */
    __device__ __forceinline__ void close(const Segment<Number> &s)
    {
        y = close_system(s, job.t.periodic, shape.rows - 1, levels.fault);
        y_left = job.t.periodic ? y : Number(0);
    }

    /* The same where the segments are those of the blocks of a cluster. */
    __device__ __forceinline__ void
    close_cluster(const Seat<ROWS> &seat, const Spot &spot, const Segment<Number> &s)
    {
        const Group group = seat.units(shape, shape.blocks);
        const bool there = seat.slot < spot.systems;
        const int slot = turn() * job.tiling.systems + (there ? seat.slot : 0);
        Arrivals &others = tiles.state.others[turn()];
        const int i = min(group.i, shape.blocks - 1);
        Message<Number> *const place = messages + slot * shape.blocks;
        Lanes<Number> blocks;

        if (threadIdx.x == 0) {
            others.expect(spot.systems * shape.blocks *
                          static_cast<uint32_t>(sizeof(Message<Number>)));
        }
        if (seat.warp == 0 && group.i < shape.blocks && there) {
            send(place + seat.block, {s, {levels.fault.row, levels.weak}}, others,
                 group.i);
        }
        others.wait(round >> 1 & 1);

        const Message<Number> message = place[i];
        const int32_t next = (i + 1) * shape.warps * shape.lanes;
        levels.fault.row = message.note.fault;
        levels.weak = message.note.weak != 0;
        close(levels.rise(blocks, seat, group, message.segment,
                          shape.template start_of<ROWS>(next) - 1, seat.first_block));
        levels.hand_down(blocks, group, seat.block, y_left, y);
    }

    /* Keep the segment of a part for the coarse system. */
    __device__ __forceinline__ void keep(const Seat<ROWS> &seat, const Spot &spot,
                                         const Segment<Number> &s) const
    {
        if (seat.lane == 0 && seat.warp == 0 && seat.slot < spot.systems) {
            const int64_t at = (spot.system + seat.slot) * shape.blocks + seat.block;
            job.parts.segment[at] = s;
            job.parts.note[at] = {levels.fault.row, levels.weak};
        }
    }

    /* y and y_left of a part from the coarse system. */
    __device__ __forceinline__ void look_up(const Seat<ROWS> &seat, const Spot &spot)
    {
        const bool there = seat.slot < spot.systems;
        const int64_t system = spot.system + (there ? seat.slot : 0);
        const Number *const of_parts = job.parts.y + system * shape.blocks;
        const int32_t left = seat.block > 0 ? seat.block : shape.blocks;

        y = of_parts[seat.block];
        y_left = seat.block > 0 || job.t.periodic ? of_parts[left - 1] : Number(0);
        levels.weak = there && job.marks != nullptr && job.marks[system] != 0;
        if (there && seat.lane == 0 && seat.warp == 0) {
            skip[seat.slot] = levels.weak;
        }
    }

    /* Tell the system's info and mark; keep its x back if it is to be pivoted. */
    __device__ __forceinline__ void tell(const Seat<ROWS> &seat, const Spot &spot) const
    {
        const bool weak = job.marks != nullptr && levels.weak;

        if (seat.lane != 0 || seat.warp != 0 || seat.slot >= spot.systems) {
            return;
        }
        const int64_t system = spot.system + seat.slot;
        skip[seat.slot] = weak;
        if (TOP == TOP_CLUSTER && seat.block != 0) {
            return;
        }
        if (job.t.info != nullptr) {
            job.t.info[system] =
                levels.fault.row == Fault::none ? 0 : levels.fault.row + 1;
        }
        if (job.marks != nullptr) {
            job.marks[system] = weak;
        }
    }

    /* From the segment of the block's rows to its y_left and y. */
    __device__ __forceinline__ void close(const Seat<ROWS> &seat, const Spot &spot,
                                          const Segment<Number> &s)
    {
        if (TOP == TOP_KNOWN) {
            look_up(seat, spot);
            return;
        }
        if (TOP == TOP_CLUSTER) {
            close_cluster(seat, spot, s);
        }
        else {
            close(s);
        }
        tell(seat, spot);
    }

    /* The rest for an eliminated tile. */
    __device__ __forceinline__ void finish(const Seat<ROWS> &seat, const Spot &spot)
    {
        const Segment<Number> s = levels.climb(shape, seat, meeting);

        if (TOP == TOP_SEGMENT) {
            keep(seat, spot, s);
            return;
        }
        close(seat, spot, s);
        levels.descend(shape, seat, y_left, y);
        if (!BY_ROW && job.tiling.direct) {
            substitute_directly(seat, spot);
        }
        else {
            substitute(seat, spot);
        }
    }
};

#endif
