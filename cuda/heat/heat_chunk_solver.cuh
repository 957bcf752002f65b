/* heat_chunk_solver.cuh - the recurrences of heat_line.h on a chunk in shared memory.
 *
 * A chunk is processed twice: for its two sums, and again, with its boundary values,
 * for x. Only the rows stay in shared memory while the sums of the chunks are joined. 8
 * operations per row.
 */
#ifndef PS_CUDA_HEAT_HEAT_CHUNK_SOLVER_CUH
#define PS_CUDA_HEAT_HEAT_CHUNK_SOLVER_CUH

#include "heat/heat_teams.cuh"

namespace pysolvers::heat {

/* The constants of a chunk, whose rows are the last of PLACES places. A PLAIN
 * chunk has a row in each place and does not contain the first or the last row of the
 * line. */
template <typename Real, int PLACES> struct HeatChunkSolver {
    using Lane = HeatLane<Real>;
    static constexpr int count = Lane::count, places = PLACES;
    const HeatTeams<Real> &t;
    int pads;
    bool has_first, has_last;

    __device__ __forceinline__ bool is_plain() const
    {
        return pads == 0 && !has_first && !has_last;
    }

    /* The sums of the chunk with boundary values 0. */
    template <bool PLAIN>
    __device__ __forceinline__ HeatLanePairs<Real> reduce(const Lane *place,
                                                          const Lane end[2]) const
    {
        Lane u[places], below = {};
        HeatLanePairs<Real> sums;

        eliminate<PLAIN>(place, end, {}, u);
#pragma unroll
        for (int i = places - 1; i >= 0; i--) {
#pragma unroll
            for (int k = 0; k < count; k++) {
                const Real next = fma(t.q, below.of[k], u[i].of[k]);

                below.of[k] = PLAIN || i >= pads ? next : below.of[k];
            }
        }
#pragma unroll
        for (int k = 0; k < count; k++) {
            sums.of[k] = {u[places - 1].of[k], t.p * below.of[k]};
        }
        return sums;
    }

    /* x of all rows, from the last to the first: put(i, x). */
    template <bool PLAIN, typename Put>
    __device__ __forceinline__ void substitute(const Lane *place, const Lane end[2],
                                               const HeatLanePairs<Real> &in,
                                               const Put &put) const
    {
        Lane u[places], above, below;

#pragma unroll
        for (int k = 0; k < count; k++) {
            above.of[k] = in.of[k].u;
            below.of[k] = in.of[k].x;
        }
        eliminate<PLAIN>(place, end, above, u);
#pragma unroll
        for (int i = places - 1; i >= 0; i--) {
#pragma unroll
            for (int k = 0; k < count; k++) {
                below.of[k] = fma(t.q, below.of[k], t.p * u[i].of[k]);
            }
            if (PLAIN || i >= pads) {
                put(i, below);
            }
        }
    }

  private:
    template <bool PLAIN>
    __device__ __forceinline__ void eliminate(const Lane *place, const Lane end[2],
                                              Lane above, Lane (&u)[places]) const
    {
#pragma unroll
        for (int i = 0; i < places; i++) { /* all rows are read before one is used */
            u[i] = {};
            if (PLAIN || i >= pads) {
                u[i] = place[i * 32];
            }
        }
#pragma unroll
        for (int i = 0; i < places; i++) {
            if (!PLAIN) {
                u[i] = at_end(u[i], end[0], 0, has_first && i == pads);
            }
            if (!PLAIN && i == places - 1) {
                u[i] = at_end(u[i], end[1], 1, has_last);
            }
#pragma unroll
            for (int k = 0; k < count; k++) {
                const Real next = fma(t.q, above.of[k], t.p * u[i].of[k]);

                above.of[k] = PLAIN || i >= pads ? next : above.of[k];
            }
            u[i] = above;
        }
    }

    /* The right-hand side of a row, with the boundary value if the row is the last of
     * the line. */
    __device__ __forceinline__ Lane at_end(Lane b, const Lane &value, int end,
                                           bool is_end) const
    {
#pragma unroll
        for (int k = 0; k < count; k++) {
            const Real whole = (b.of[k] + t.add[end] * value.of[k]) * t.weight[end];

            b.of[k] = is_end ? whole : b.of[k];
        }
        return b;
    }
};

} // namespace pysolvers::heat

#endif
