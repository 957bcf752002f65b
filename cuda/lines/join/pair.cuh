/* pair.cuh - the unit of recurrences of first order, x_i = own_i + ratio_i x_(i-1), and the joins
 * of its chunks where each has its own decay; scan.cuh has the scan for a constant one.
 *
 * A chunk adds `sum` to what leaves it and multiplies what enters it by `decay`, the product of its
 * ratios: 2 numbers, 2 operations to join two. Chunks follow each other in ascending or in
 * descending order of their rows, and both recurrences of a factored matrix have the same decays.
 * The chunks of a line in a block are joined over the lanes by shuffles, and over the warps in
 * order; those of neighbouring lines in order through shared memory, and over the blocks of a
 * cluster by messages, of which each block waits for those of the blocks before it.
 */
#ifndef PS_CUDA_LINES_JOIN_PAIR_CUH
#define PS_CUDA_LINES_JOIN_PAIR_CUH

#include "device/cluster.cuh"
#include "lines/join/scan.cuh"

namespace pysolvers::join {

template <typename Real> struct alignas(2 * sizeof(Real)) Pair {
    using word = std::conditional_t<sizeof(Real) == 4, uint64_t, uint4>;
    Real sum, decay;

    static __device__ __forceinline__ Pair identity()
    {
        return {Real(0), Real(1)};
    }
    /* What leaves these rows, from what enters them. */
    __device__ __forceinline__ Real leaving(Real entering) const
    {
        return fma(decay, entering, sum);
    }
    /* The rows of `before`, and then these. */
    __device__ __forceinline__ Pair behind(const Pair &before) const
    {
        return {leaving(before.sum), decay * before.decay};
    }
    /* These rows if `entering` enters them and nothing else does. */
    __device__ __forceinline__ Pair with(Real entering) const
    {
        return {leaving(entering), Real(0)};
    }
};

/* What leaves the units unit(k), k = from, from + step, .. before `to`. */
template <typename Real, typename Unit>
__device__ __forceinline__ Real
through(int32_t from, int32_t to, int32_t step, const Unit &unit, Real entering)
{
#pragma unroll 1
    for (int32_t k = from; k != to; k += step) {
        entering = unit(k).leaving(entering);
    }
    return entering;
}

/* The chunks of a line in a block, one of each thread. */
template <typename Real> struct LinePairs {
    Pair<Real> *of_warps; /* [2][warp], in shared memory */

    /* What enters the chunk of this thread in a recurrence, from what it adds; nothing enters the
     * first one. Called by all threads together. */
    template <bool ASCENDS>
    __device__ __forceinline__ Real entering(const Pair<Real> &own) const
    {
        const LaneScan<ASCENDS> lanes = {static_cast<int>(threadIdx.x) % 32};
        const int32_t warp = static_cast<int32_t>(threadIdx.x) / 32;
        const int32_t warps = static_cast<int32_t>(blockDim.x) / 32;
        Pair<Real> *const totals = of_warps + (ASCENDS ? 0 : warps);
        const Pair<Real> all = lanes.leaving(own);

        if (lanes.rank() == 31) {
            totals[warp] = all;
        }
        __syncthreads();

        const Real before = through(
            ASCENDS ? 0 : warps - 1, warp, ASCENDS ? 1 : -1,
            [&](int32_t k) { return totals[k]; }, Real(0));
        const Real neighbour = lanes.from_before(all.leaving(before), 1);

        return lanes.has_before(1) ? neighbour : before;
    }
};

/* The chunks of neighbouring lines in the blocks of a cluster. */
template <typename Real, int LINES> struct ColumnPairs {
    Pair<Real> *own;       /* [chunk][line], in shared memory */
    Real *back;            /* [chunk][line], the sums in descending order */
    Pair<Real> *of_blocks; /* [2][block][line] */
    Arrivals *arrivals;    /* [2] */
    int32_t chunk, chunks; /* of the block */
    int32_t line, rank, blocks;

    /* Before a barrier of the cluster, by one thread. */
    __device__ __forceinline__ void expect() const
    {
        constexpr uint32_t bytes = LINES * sizeof(Pair<Real>);

        arrivals[0].expect(static_cast<uint32_t>(rank) * bytes);
        arrivals[1].expect(static_cast<uint32_t>(blocks - 1 - rank) * bytes);
    }

    /* As of LinePairs, first in ascending order, then in descending order, with the same
     * decays. */
    template <bool ASCENDS>
    __device__ __forceinline__ Real entering(const Pair<Real> &pair) const
    {
        Pair<Real> *const messages = of_blocks + (ASCENDS ? 0 : blocks * LINES) + line;
        const int32_t first = ASCENDS ? 0 : chunks - 1, last = chunks - 1 - first;
        const int32_t step = ASCENDS ? 1 : -1;
        Pair<Real> before = Pair<Real>::identity();
        Real into_block = 0;

        if (ASCENDS) {
            own[threadIdx.x] = pair;
        }
        else {
            back[threadIdx.x] = pair.sum;
        }
        __syncthreads();
#pragma unroll 1
        for (int32_t k = first; k != chunk; k += step) {
            Pair<Real> one = own[k * LINES + line];

            if (!ASCENDS) {
                one.sum = back[k * LINES + line];
            }
            before = one.behind(before);
        }
        if (blocks > 1) {
            if (chunk == last) {
                const Pair<Real> all = pair.behind(before);

                for (int32_t to = rank + step; to >= 0 && to < blocks; to += step) {
                    send(messages + rank * LINES, all, arrivals[ASCENDS ? 0 : 1],
                         static_cast<unsigned>(to));
                }
            }
            arrivals[ASCENDS ? 0 : 1].wait(0);
            into_block = through(
                ASCENDS ? 0 : blocks - 1, rank, step,
                [&](int32_t k) { return messages[k * LINES]; }, Real(0));
        }
        return before.leaving(into_block);
    }
};

} // namespace pysolvers::join

#endif
