/* levels.cuh - the partition method for systems in registers: chunks of a lane, lanes
 * of a warp, warps of a block.
 *
 * The formulas, their cost and their stability are in segment.cuh. A kernel solves the
 * systems of its block as follows; every thread executes every step:
 *
 *   const ThreadPlace<ROWS> self(shape, block);        the rows of the thread
 *   Levels<Number, ROWS> levels;
 *   levels.eliminate(self, rows);               rows(i) -> Row of row self.start + i
 *   Ends<Number> ends = levels.join_system(shape, self, periodic, shared);
 *   levels.chunk.substitute(ends.y_left, ends.y, put);     put(i, x) of row self.start + i
 *
 * A system that continues in other blocks or devices goes through join_block() and more levels
 * (driver.cuh).
 *
 * Rows are aligned to the end of the system. If self.start + i < 0, rows(i) must be
 * copy_row() and put must do nothing. lower of row 0 and upper of the last row must be
 * 0 unless the system is periodic. Between eliminate and substitute, rows and put are
 * not called, so that the source of rows may be overwritten after a barrier.
 */
#ifndef PS_CUDA_LINES_JOIN_LEVELS_CUH
#define PS_CUDA_LINES_JOIN_LEVELS_CUH

#include "lines/join/exchange.cuh"
#include "lines/join/row_sums.cuh"
#include "lines/join/driver.cuh"

namespace pysolvers::join {

/* The distribution of a system, chosen by the host: lanes * warps * blocks chunks, at
 * least as many as the rows need. A block has several systems, `groups` of them in each
 * of its warps: either one after the other, lanes 0, 1, ... for the first one, or side
 * by side, lanes 0, groups, 2 groups, ... for the first one. Several systems one after
 * the other require warps = blocks = 1; side by side, warps and blocks are at most 32 /
 * groups. */
struct Shape {
    int32_t rows;   /* of a system */
    int32_t lanes;  /* of a warp, with one chunk each; groups * lanes <= 32 */
    int32_t groups; /* systems per warp */
    int32_t warps;  /* per system in a block */
    int32_t blocks; /* per system in its cluster; or tiles of a long system */
    bool side_by_side = false;

    __host__ __device__ __forceinline__ int32_t chunks() const
    {
        return lanes * warps * blocks;
    }
    /* First row of chunk k; negative for the pads before row 0. */
    template <int ROWS> __host__ __device__ __forceinline__ int32_t start_of(int k) const
    {
        const uint32_t behind = static_cast<uint32_t>(chunks() - k) * ROWS;
        return max_of(static_cast<int32_t>(static_cast<uint32_t>(rows) - behind), -ROWS);
    }

  private:
    static __host__ __device__ __forceinline__ int32_t max_of(int32_t a, int32_t b)
    {
        return a > b ? a : b;
    }
};

/* Blocks of the clusters of decay.cuh, at most. */
static constexpr int most_cluster_blocks = 16;

/* The place of a thread. Idle threads, which have no system, have pads only. */
template <int ROWS> struct ThreadPlace {
    int32_t slot;  /* system of the block */
    int32_t lane;  /* of the group; shape.lanes if idle */
    int32_t warp;  /* of the system, in this block */
    int32_t block; /* of the system */
    int32_t start; /* first row of the chunk; negative if it begins with pads */
    int32_t pads;  /* before row 0 of the system, in the chunk that contains it; else 0 */
    int32_t first_lane, first_warp, first_block; /* the place of row 0, in the unit that
                                                    contains it; 0 in other units */
    Group group;        /* the lanes of the system in this warp */
    int32_t which;      /* the index of the system in this warp */
    int32_t unit, side; /* the place of the lane in units() */
    unsigned members;   /* the lanes whose notes belong to the system */

    __device__ __forceinline__ ThreadPlace(const Shape &shape, int32_t in_block)
    {
        const int32_t own = threadIdx.x % 32;
        const int32_t warp_of_block = __shfl_sync(all_lanes, threadIdx.x / 32, 0);

        unit = own / shape.groups;
        side = own % shape.groups;
        warp = warp_of_block % shape.warps;
        which = join(shape, own);
        slot = warp_of_block / shape.warps * shape.groups + which;

        const int32_t in_front = static_cast<int32_t>(
            static_cast<uint32_t>(shape.chunks()) * ROWS - shape.rows);
        const int32_t first = in_front / ROWS, first_unit = first / shape.lanes;

        front_lane = first % shape.lanes;
        front_warp = first_unit % shape.warps;
        first_block = first_unit / shape.warps;
        move(shape, in_block);
    }

    /* The place in a warp of whole systems, one after the other: of lane `of_system` of
     * system `index`, or of an idle thread if `of_system` is shape.lanes. */
    __device__ __forceinline__ ThreadPlace(const Shape &shape, int32_t index,
                                           int32_t of_system)
        : slot(index), lane(of_system), warp(0), block(0), first_lane(0), first_warp(0),
          first_block(0), which(index), front_lane(0), front_warp(0)
    {
        unit = side = 0;
        start = lane < shape.lanes ? shape.template start_of<ROWS>(lane) : -ROWS;
        pads = start <= 0 && start > -ROWS ? -start : 0;
        group = {lane, shape.lanes, which * shape.lanes, 1};
        members = (all_lanes >> (32 - shape.lanes)) << group.base;
    }

    /* Move to another block of the same systems. */
    __device__ __forceinline__ void move(const Shape &shape, int32_t to)
    {
        const int32_t chunk = (to * shape.warps + warp) * shape.lanes + lane;

        block = to;
        start = lane < shape.lanes ? shape.template start_of<ROWS>(chunk) : -ROWS;
        first_warp = block == first_block ? front_warp : 0;
        first_lane = block == first_block && warp == front_warp ? front_lane : 0;
        pads = start <= 0 && start > -ROWS ? -start : 0;
    }

    /* The warps or blocks of the system as units, one per lane; `count` is their
     * number. */
    __device__ __forceinline__ Group units(const Shape &shape, int32_t count) const
    {
        return {unit, count, side, shape.groups};
    }

    /* The lanes of units() of the same side. */
    __device__ __forceinline__ unsigned members_of_side(const Shape &shape) const
    {
        unsigned lanes = 0;

        for (int i = side; i < 32; i += shape.groups) {
            lanes |= 1u << i;
        }
        return lanes;
    }

    /* The place of a system that does not exist: pads only. */
    __device__ __forceinline__ void clear()
    {
        start = -ROWS;
        pads = 0;
    }

  private:
    int32_t front_lane, front_warp; /* of the chunk with row 0 */

    /* Set the group of the thread; returns the index of its system in the warp. */
    __device__ __forceinline__ int32_t join(const Shape &shape, int32_t own)
    {
        if (shape.side_by_side) {
            lane = min(unit, shape.lanes);
            group = {lane, shape.lanes, side, shape.groups};
            members = members_of_side(shape);
            return side;
        }
        const int32_t in_order = own / shape.lanes;
        const int32_t found = in_order < shape.groups ? in_order : 0;

        lane = in_order < shape.groups ? own % shape.lanes : shape.lanes;
        group = {lane, shape.lanes, found * shape.lanes, 1};
        members = shape.groups == 1 ? all_lanes
                                    : (all_lanes >> (32 - shape.lanes)) << group.base;
        return found;
    }
};

/* The exchange of the warps of a block of up to 512 threads: one entry per warp and
 * system. */
template <typename Number>
using WarpExchange = BlockExchange<Segment<Number>, 256 / sizeof(Number)>;

/* IS_FAST: a pivot beyond the range of the fast reciprocal is a bad one. Segments are then not
 * kept for a second reduction with other reciprocals. */
template <typename Number, int ROWS, bool IS_FAST = false> struct Levels {
    Chunk<Number, ROWS> chunk;
    Segment<Number> own;
    Lanes<Number> lanes, warps;
    BadPivot bad_pivot;
    bool not_dominant = false;

    template <typename Rows>
    __device__ __forceinline__ void eliminate(const ThreadPlace<ROWS> &self,
                                              const Rows &rows)
    {
        if (!eliminate_fast(self, self.pads, rows)) {
            eliminate_safe(self, rows);
        }
    }

    /* Returns whether all pivots were in the range of the fast reciprocal. */
    template <typename Rows>
    __device__ __forceinline__ bool eliminate_fast(const ThreadPlace<ROWS> &self,
                                                   int pads, const Rows &rows)
    {
        FastReciprocal<Number> fast_inverter;

        own = chunk.eliminate(rows, self.start, pads, fast_inverter);
        return accepts(fast_inverter);
    }

    template <typename Rows>
    __device__ __forceinline__ void eliminate_safe(const ThreadPlace<ROWS> &self,
                                                   const Rows &rows)
    {
        SafeReciprocal<Number> safe_inverter = {bad_pivot};

        own = chunk.eliminate(rows, self.start, self.pads, safe_inverter);
    }

    /* From the chunks of the systems in this block to y_left and y of the thread, through the
     * lanes of a warp, the warps of the block and the levels `upper`. close(segment), and the
     * levels after those of the block, are called with the segment of the rows in this block
     * in all its lanes, and with bad_pivot and not_dominant of them. Contains a
     * __syncthreads() if shape.warps > 1. */
    template <typename Close, typename... Upper>
    __device__ __forceinline__ auto
    join_block(const Shape &shape, const ThreadPlace<ROWS> &self,
               WarpExchange<Number> &shared, const Close &close, const Upper &...upper)
    {
        return through_levels(
            own, close,
            [&](const Segment<Number> &s, const auto &next) {
                return over_lanes(self, s, next);
            },
            [&](const Segment<Number> &s, const auto &next) {
                return over_warps(shape, self, shared, s, next);
            },
            upper...);
    }

    /* One level up: the segment of a group from those of its units, with bad_pivot and
     * not_dominant. `row` is the row of the last unknown of the unit, `first` the unit
     * that contains the first row of all. */
    __device__ __forceinline__ Segment<Number>
    reduce_up(Lanes<Number> &level, const ThreadPlace<ROWS> &self, const Group &group,
              const Segment<Number> &unit, int32_t row, int32_t first)
    {
        SafeReciprocal<Number> safe_inverter = {bad_pivot};

        FastReciprocal<Number> fast_inverter;

        level.reduce(group, unit, row, fast_inverter);
        if constexpr (IS_FAST) {
            if (!accepts(fast_inverter)) {
                bad_pivot.row = min(bad_pivot.row, row);
            }
        }
        else if (__any_sync(all_lanes, !accepts(fast_inverter))) {
            level.reduce(group, unit, row, safe_inverter);
        }
        gather(self.members);
        return level.whole(group, unit, first);
    }

    /* The note of the unit; take() replaces it by that of another unit. */
    __device__ __forceinline__ Note note() const
    {
        return {bad_pivot.row, not_dominant};
    }
    __device__ __forceinline__ void take(const Note &other)
    {
        bad_pivot.row = other.bad_pivot;
        not_dominant = other.not_dominant != 0;
    }

    /* From the chunks of a system in this warp to y_left and y of the thread; close(segment) as
     * that of join_block(). */
    template <typename Close>
    __device__ __forceinline__ Ends<Number> join_lanes(const ThreadPlace<ROWS> &self,
                                                       const Close &close)
    {
        return over_lanes(self, own, close);
    }

    /* From the chunks of a system in this block, a whole system, to y_left and y of the
     * thread. Without `shared` the system is in one warp. */
    template <typename... Shared>
    __device__ __forceinline__ Ends<Number> join_system(const Shape &shape,
                                                        const ThreadPlace<ROWS> &self,
                                                        bool periodic, Shared &...shared)
    {
        const auto close = [&](const Segment<Number> &s) {
            return ends_of_system(s, periodic, shape.rows - 1, bad_pivot);
        };

        if constexpr (sizeof...(Shared) > 0) {
            return join_block(shape, self, shared..., close);
        }
        else {
            return join_lanes(self, close);
        }
    }

  private:
    /* Whether the pivots are in the range of the fast reciprocal, and good. */
    __device__ __forceinline__ bool accepts(const FastReciprocal<Number> &inverter) const
    {
        if constexpr (is_block<Number>) {
            if (bad_pivot.is_definite && !inverter.is_definite) {
                return false;
            }
        }
        return inverter.in_safe_range();
    }

    /* Combine bad_pivot and not_dominant of all members. */
    __device__ __forceinline__ void gather(unsigned members)
    {
        not_dominant = (__ballot_sync(all_lanes, not_dominant) & members) != 0;
        if (__any_sync(all_lanes, bad_pivot.row != BadPivot::none)) {
            int32_t least = BadPivot::none;

#pragma unroll 1
            for (int i = 0; i < 32; i++) {
                const int32_t row = __shfl_sync(all_lanes, bad_pivot.row, i);
                least = (members >> i & 1u) != 0 ? min(least, row) : least;
            }
            bad_pivot.row = least;
        }
    }

    template <typename Next>
    __device__ __forceinline__ auto over_lanes(const ThreadPlace<ROWS> &self,
                                               const Segment<Number> &s, const Next &next)
    {
        return pass_down(
            next,
            reduce_up(lanes, self, self.group, s, self.start + ROWS - 1, self.first_lane),
            [&](const Ends<Number> &all) {
                return ends_of_lane(lanes, self.group, all);
            });
    }

    template <typename Next>
    __device__ __forceinline__ auto
    over_warps(const Shape &shape, const ThreadPlace<ROWS> &self,
               WarpExchange<Number> &shared, const Segment<Number> &s, const Next &next)
    {
        const auto down = [&](const Ends<Number> &all) {
            return shape.warps > 1 ? ends_of_unit(warps, self.units(shape, shape.warps),
                                                  self.warp, all)
                                   : all;
        };

        return pass_down(next, shape.warps > 1 ? join_warps(shape, self, shared, s) : s,
                         down);
    }

    __device__ __forceinline__ Segment<Number> join_warps(const Shape &shape,
                                                          const ThreadPlace<ROWS> &self,
                                                          WarpExchange<Number> &shared,
                                                          const Segment<Number> &s)
    {
        const Group group = self.units(shape, shape.warps);
        const int at = self.slot * shape.warps, i = min(group.i, shape.warps - 1);

        if (self.lane == 0) {
            shared.unit[at + self.warp] = s;
            shared.note[at + self.warp] = note();
        }
        __syncthreads();

        take(shared.note[at + i]);

        const int32_t next = (self.block * shape.warps + i + 1) * shape.lanes;

        return reduce_up(warps, self, group, shared.unit[at + i],
                         shape.template start_of<ROWS>(next) - 1, self.first_warp);
    }
};

} // namespace pysolvers::join

#endif
