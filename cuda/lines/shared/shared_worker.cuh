/* shared_worker.cuh - the solution of the systems of a tile with one matrix, in place.
 */
#ifndef PS_CUDA_LINES_SHARED_SHARED_WORKER_CUH
#define PS_CUDA_LINES_SHARED_SHARED_WORKER_CUH

#include "lines/shared/shared_copier.cuh"

namespace pysolvers::shared {

/* Solves the systems of tiles. */
template <typename Number, int ROWS> struct SharedWorker {
    const ps_cuda_shared_shape &shape;
    const SharedThreadPlace &self;
    const SharedFactor<Number, ROWS> &factor;
    const Number *level;
    bool periodic;
    Load<Number> *exchange; /* [parity][round][warp of the block] */
    Number *kept;           /* [round][thread] */
    int parity;

    /* Solve the `systems` systems of the tile from the first one of this place on. */
    template <typename Skews>
    __device__ __forceinline__ void solve(Number *tile, int systems, const Skews &skews)
    {
        const int rounds =
            systems >= self.count ? shape.rounds : (systems + self.step - 1) / self.step;

        tile += (self.first + self.group) * shape.pitch;
        if (shape.warps == 1) {
            solve_in_warps(tile, rounds, skews);
        }
        else {
            solve_in_teams(tile, rounds, skews);
        }
    }

  private:
    template <typename Skews>
    __device__ __forceinline__ void solve_in_warps(Number *tile, int rounds,
                                                   const Skews &skews) const
    {
        for (int r = 0; r < rounds; r++) {
            Number *const system = tile + skews.of(self.group + r * self.step);
            Number y;

            factor.substitute(
                system, self,
                through_levels(
                    factor.load(system, self),
                    [&](const Load<Number> &s) {
                        return factor.ends_of_system(s, self.first_lane, shape.width - 1,
                                                     shape.width, periodic);
                    },
                    [&](const Load<Number> &s, const auto &next) {
                        return factor.over_lanes(s, shape.width, self, y, next);
                    }));
            tile += self.step * shape.pitch;
        }
    }

    /* One barrier for all rounds: the lanes of all rounds are reduced before it, and their
     * ends follow after it. The buffers of the exchange alternate: a thread that
     * writes to one has passed a barrier with all threads that have read it. */
    template <typename Skews>
    __device__ __forceinline__ void solve_in_teams(Number *first, int rounds,
                                                   const Skews &skews)
    {
        const int block_warps = blockDim.x / 32;
        Load<Number> *const loads =
            exchange + parity * shape.rounds * block_warps + self.team * shape.warps;
        Number *system = first, *keep = kept + threadIdx.x;
        Load<Number> *team = loads;

        for (int r = 0; r < rounds; r++) {
            Number y;

            through_levels(
                factor.load(system + skews.of(r), self),
                [&](const Load<Number> &s) { factor.publish(s, self, team); },
                [&](const Load<Number> &s, const auto &next) {
                    factor.over_lanes(s, 32, self, y, next);
                });
            *keep = y;
            system += shape.pitch;
            keep += blockDim.x;
            team += block_warps;
        }
        synchronize_team();
        system = first;
        keep = kept + threadIdx.x;
        team = loads;
        for (int r = 0; r < rounds; r++) {
            const int last = shape.warps - 1;
            const Load<Number> of_lane =
                self.lane <= last ? team[self.lane] : Load<Number>{Number(0), Number(0)};
            const Ends<Number> of_warp = through_levels(
                of_lane,
                [&](const Load<Number> &s) {
                    return factor.ends_of_system(s, 0, last, 32, periodic);
                },
                [&](const Load<Number> &s, const auto &next) {
                    return factor.over_warps(s, level, self, next);
                });

            factor.substitute(system + skews.of(r), self,
                              factor.ends_of_lane(*keep, 32, self, of_warp));
            system += shape.pitch;
            keep += blockDim.x;
            team += block_warps;
        }
        parity ^= 1;
    }

    __device__ __forceinline__ void synchronize_team() const
    {
        asm volatile("bar.sync %0, %1;" ::"r"(self.team + 1), "r"(self.chunks)
                     : "memory");
    }
};

} // namespace pysolvers::shared

#endif
