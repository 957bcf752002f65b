/* shared_differences.cuh - the source of tiles whose right-hand sides are differences of what
 * was copied (differences.cuh): they replace the values before the tile is solved.
 *
 * The values of the rows around a chunk lie in the tile. Warps of a team replace their rows at
 * different times, so that a warp reads the rows beyond its ends before any of them does.
 */
#ifndef PS_CUDA_LINES_SHARED_SHARED_DIFFERENCES_CUH
#define PS_CUDA_LINES_SHARED_SHARED_DIFFERENCES_CUH

#include "lines/differences.cuh"
#include "lines/shared/shared_worker.cuh"

namespace pysolvers::shared {

using lines::Differences;

/* Rounds of the teams of a tile whose ends the lanes of a warp hold at once. */
static constexpr int most_stencil_rounds = 8;

template <typename Number, int ROWS> struct SharedDifferences {
    /* Neighbours of a row on one side; ends of a system. */
    static constexpr int reach = 2, ends = 4;
    const Differences<Number> &by;
    const Number *weight; /* of ends, in shared memory: [end][point] */
    const ps_cuda_shared_shape &shape;
    const SharedThreadPlace &self;

    /* Replace the values of the `systems` systems from the first one of this place on. */
    template <typename Skews>
    __device__ __forceinline__ void make(Number *tile, int systems,
                                         const Skews &skews) const
    {
        const int rounds =
            systems >= self.count ? shape.rounds : (systems + self.step - 1) / self.step;

        tile += (self.first + self.group) * shape.pitch;
        if (shape.warps == 1) {
            make_in_warps(tile, rounds, skews);
        }
        else {
            make_in_teams(tile, rounds, skews);
        }
    }

  private:
    /* The values of the two rows before and after a chunk. */
    struct Neighbours {
        Number before[reach], after[reach];
    };

    template <typename Skews>
    __device__ __forceinline__ void make_in_warps(Number *tile, int rounds,
                                                  const Skews &skews) const
    {
        for (int r = 0; r < rounds; r++) {
            Number *const system = tile + skews.of(self.group + r * self.step);
            const Neighbours around = neighbours_of(system);
            Number end[ends];

#pragma unroll
            for (int k = 0; k < ends; k++) {
                const int which = self.lane + k * shape.width;

                if (which < ends) {
                    end[k] = end_of(system, which);
                }
            }
            __syncwarp();
            replace(system, around);
            __syncwarp();
#pragma unroll
            for (int k = 0; k < ends; k++) {
                const int which = self.lane + k * shape.width;

                if (which < ends) {
                    put_end(system, which, end[k]);
                }
            }
            __syncwarp();
            tile += self.step * shape.pitch;
        }
    }

    /* A lane has one of the four neighbouring rows of its warp, and one of the four ends, of one
     * of at most eight rounds. */
    template <typename Skews>
    __device__ __forceinline__ void make_in_teams(Number *first, int rounds,
                                                  const Skews &skews) const
    {
        const int reaches = 32 * ROWS, own = self.lane / ends, which = self.lane % ends;
        const int32_t begin = shape.rows - (shape.warps - self.warp) * reaches;
        const int32_t stop = begin + reaches;
        const int32_t neighbour =
            which < reach ? begin - reach + which : stop + which - reach;
        const int32_t row = by.row_of(which);
        const bool is_there = own < rounds;
        const bool has_end = is_there && row >= begin && row < stop;
        Number *const of_lane =
            first + (is_there ? own * shape.pitch + skews.of(own) : 0);
        Number value(0), end(0);

        synchronize_team(); /* what the other warps have copied */
        if (is_there) {
            value = of_lane[min(max(neighbour, 0), shape.rows - 1)];
        }
        if (has_end) {
            end = end_of(of_lane, which);
        }
        synchronize_team();
        for (int r = 0; r < rounds; r++) {
            Number *const system = first + r * shape.pitch + skews.of(r);
            const int from = ends * r + (self.lane > 0 ? reach : 0);
            Neighbours around = neighbours_of(system);

#pragma unroll
            for (int k = 0; k < reach; k++) {
                const Number other = __shfl_sync(all_lanes, value, from + k);

                around.before[k] = self.lane == 0 ? other : around.before[k];
                around.after[k] = self.lane == 31 ? other : around.after[k];
            }
            __syncwarp();
            replace(system, around);
            __syncwarp();
        }
        if (has_end) {
            put_end(of_lane, which, end);
        }
        __syncwarp();
    }

    /* The difference in an end, whose points are counted from that end. */
    __device__ __forceinline__ Number end_of(const Number *system, int which) const
    {
        constexpr int together = Differences<Number>::together;
        const int i = which & 1, count = i == 0 ? by.points[0] : by.points[1];
        const Number *const own_weight = weight + i * Differences<Number>::most;
        const bool at_last = which >= Differences<Number>::ends;
        const int step = at_last ? -1 : 1;
        const Number *const from = system + (at_last ? shape.rows - 1 : 0);
        const Number own = from[i * step];
        Number sum(0);

        if (by.first[0] <
            0) { /* of a ring: the points before the end follow the other one */
            const Number before2 = from[(shape.rows + i - 2) * step];
            const Number before = from[(i == 0 ? shape.rows - 1 : 0) * step];
            const Number after = from[(i + 1) * step], after2 = from[(i + 2) * step];

            sum = by.is_even()
                      ? by.template inner<true>(before2, before, own, after, after2)
                      : by.template inner<false>(before2, before, own, after, after2);
        }
        else {
#pragma unroll 1
            for (int k = 0; k < count; k += together) {
#pragma unroll
                for (int q = 0; q < together; q++) {
                    if (k + q < count) {
                        sum += own_weight[k + q] * (from[(k + q) * step] - own);
                    }
                }
            }
        }
        return at_last ? by.sign * sum : sum;
    }

    /* Store an end, and the zeros of pads before the first one, which have been replaced. */
    __device__ __forceinline__ void put_end(Number *system, int which, Number end) const
    {
        system[by.row_of(which)] = end;
        if (which == 0) {
            system[-1] = system[-2] = Number(0);
        }
    }

    /* The values around a chunk; those beyond the system do not count. */
    __device__ __forceinline__ Neighbours neighbours_of(const Number *system) const
    {
        const Number *const before =
            system + (self.start > 0 ? self.start - reach : self.source);
        const Number *const after =
            system + (self.chunk + 1 < self.chunks ? self.source + ROWS : self.source);

        return {{before[0], before[1]}, {after[0], after[1]}};
    }

    /* Replace the rows of the chunk, with those of the ends and with pads, all of which are zeros
     * but for two; ends and pads are corrected after it. */
    __device__ __forceinline__ void replace(Number *system,
                                            const Neighbours &around) const
    {
        if (self.start > -ROWS && by.is_even()) {
            sweep<true>(system + self.source, around);
        }
        else if (self.start > -ROWS) {
            sweep<false>(system + self.source, around);
        }
    }

    template <bool IS_EVEN>
    __device__ __forceinline__ void sweep(Number *row, const Neighbours &around) const
    {
        Number before2 = around.before[0], before = around.before[1];
        Number own = row[0], after = row[1];

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const Number after2 =
                i + 2 < ROWS ? row[i + 2] : around.after[i + 2 < ROWS ? 0 : i + 2 - ROWS];

            row[i] = by.template inner<IS_EVEN>(before2, before, own, after, after2);
            before2 = before;
            before = own;
            own = after;
            after = after2;
        }
    }

    __device__ __forceinline__ void synchronize_team() const
    {
        asm volatile("bar.sync %0, %1;" ::"r"(self.team + 1), "r"(self.chunks)
                     : "memory");
    }
};

/* The source. Weights of ends are in shared memory: a load from the memory of parameters that misses
 * its cache waits behind the copies of tiles. */
template <typename Number> struct SharedSidesOfDifferences {
    Differences<Number> by;

    /* By all threads of a block, before a barrier; the weights. */
    __device__ __forceinline__ const Number *begin() const
    {
        using Weights = Differences<Number>;
        __shared__ Number weight[Weights::ends * Weights::most];

        for (int k = threadIdx.x; k < Weights::ends * Weights::most; k += blockDim.x) {
            weight[k] = by.end[k / Weights::most][k % Weights::most];
        }
        return weight;
    }

    template <int ROWS, typename Skews>
    __device__ __forceinline__ void make(const Number *weight,
                                         const ps_cuda_shared_shape &shape,
                                         const SharedThreadPlace &self, Number *tile,
                                         int systems, const Skews &skews) const
    {
        SharedDifferences<Number, ROWS>{by, weight, shape, self}.make(tile, systems,
                                                                      skews);
    }
};

} // namespace pysolvers::shared

#endif
