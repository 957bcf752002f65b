/* diffusion_transfer.cuh - transfers between a level of ps_diffusion.h and the next one.
 *
 * An interpolated node has the weights of two nodes along each axis in turn, so that a
 * thread reads at most 8 nodes of the next level; the transpose reads 27 nodes of the
 * finer level. All axes are done at once: with two axes a restriction moves 2 words per
 * node of the finer level and an interpolation 3, each in one launch. Composed of copies
 * and sums of products along one axis after the other they would move some 8 and 11, in 6
 * and 7 launches, and need arrays of 1 - weight.
 */
#ifndef PS_CUDA_HEAT_DIFFUSION_TRANSFER_CUH
#define PS_CUDA_HEAT_DIFFUSION_TRANSFER_CUH

#include "heat/diffusion_kernels.cuh"

namespace pysolvers::heat {

/* Two levels, and the weights of the interpolated nodes along each axis; null along an
 * axis with the same nodes. */
template <typename Real, typename Index = int64_t> struct TwoLevels {
    BoxOf<Index> fine, coarse;
    const Real *weight[PS_DIFFUSION_AXES];

    /* Number of interpolated nodes along an axis. */
    __device__ __forceinline__ Index between(int axis) const
    {
        return fine.nodes[axis] - coarse.nodes[axis];
    }

    /* The weight of node `at` along an axis: nodes of the finer level along the axes
     * before it, interpolated ones along it, and nodes of the next level after it. */
    template <int AXIS>
    __device__ __forceinline__ Real weight_at(const Index (&at)[PS_DIFFUSION_AXES]) const
    {
        const Index of_0 = AXIS == 0 ? between(0) : fine.nodes[0];
        const Index of_1 = AXIS == 0   ? coarse.nodes[1]
                           : AXIS == 1 ? between(1)
                                       : fine.nodes[1];

        return weight[AXIS][(at[2] * of_1 + at[1]) * of_0 + at[0]];
    }
};

/* The restriction of `from` along the axes from AXIS on, at nodes of the next level along
 * these axes. */
template <int AXIS, typename Real, typename Index>
__device__ __forceinline__ Real
restricted(const TwoLevels<Real, Index> &two, const Real *from, Index i, Index j, Index k)
{
    if constexpr (AXIS == PS_DIFFUSION_AXES) {
        return from[(k * two.fine.nodes[1] + j) * two.fine.nodes[0] + i];
    }
    else {
        const bool is_coarser = two.weight[AXIS] != nullptr;
        const Index n = two.fine.nodes[AXIS], between = two.between(AXIS);
        const Index c = AXIS == 0 ? i : AXIS == 1 ? j : k;
        const bool wraps =
            c == 0 && two.fine.periodic[AXIS] != 0 && between == two.coarse.nodes[AXIS];
        const Index below = wraps ? between - 1 : c - 1;
        const Index node = !is_coarser ? c : 2 * c < n ? 2 * c : n - 1;
        const auto value = [&](Index m) {
            return restricted<AXIS + 1>(two, from, AXIS == 0 ? m : i, AXIS == 1 ? m : j,
                                        AXIS == 2 ? m : k);
        };
        const auto weight = [&](Index m) {
            return two.template weight_at<AXIS>(
                {AXIS == 0 ? m : i, AXIS == 1 ? m : j, AXIS == 2 ? m : k});
        };
        Real sum = value(node);

        if (is_coarser && below >= 0 && below < between) {
            sum += (Real(1) - weight(below)) * value(2 * below + 1);
        }
        if (is_coarser && c < between) {
            sum += weight(c) * value(2 * c + 1);
        }
        return sum;
    }
}

/* The interpolation of x + t of the next level, or of x if t is null, along the axes up
 * to AXIS, at nodes of the finer level along these axes. */
template <int AXIS, typename Real, typename Index>
__device__ __forceinline__ Real
interpolated(const TwoLevels<Real, Index> &two, const Real *x, const Real *t, Index i,
             Index j, Index k)
{
    if constexpr (AXIS < 0) {
        const Index node = (k * two.coarse.nodes[1] + j) * two.coarse.nodes[0] + i;

        return t != nullptr ? x[node] + t[node] : x[node];
    }
    else {
        const bool is_coarser = two.weight[AXIS] != nullptr;
        const Index m = AXIS == 0 ? i : AXIS == 1 ? j : k;
        const Index lower = m / 2, next = lower + 1;
        const bool is_between = is_coarser && m % 2 != 0 && lower < two.between(AXIS);
        const Index kept = !is_coarser ? m : (m + 1) / 2;
        const auto value = [&](Index c) {
            return interpolated<AXIS - 1>(two, x, t, AXIS == 0 ? c : i, AXIS == 1 ? c : j,
                                          AXIS == 2 ? c : k);
        };

        if (!is_between) {
            return value(kept);
        }
        const Real weight = two.template weight_at<AXIS>(
            {AXIS == 0 ? lower : i, AXIS == 1 ? lower : j, AXIS == 2 ? lower : k});

        return weight * value(lower) +
               (Real(1) - weight) * value(next < two.coarse.nodes[AXIS] ? next : 0);
    }
}

/* The right-hand side of the next level, at its unknown nodes. */
template <typename Real> struct Restriction {
    static constexpr int sums = 0;
    TwoLevels<Real> two;
    const Real *from;
    Real *to;

    __host__ __device__ const NodeBox &nodes() const
    {
        return two.coarse;
    }

    __device__ __forceinline__ auto body() const
    {
        return [this](const NodePlace &p) {
            to[p.node] = restricted<0>(two, from, p.at[0], p.at[1], p.at[2]);
        };
    }
};

/* to += the interpolation of x + t, or of x if t is null. */
template <typename Real> struct Interpolation {
    static constexpr int sums = 0;
    TwoLevels<Real> two;
    const Real *x, *t;
    Real *to;

    __host__ __device__ const NodeBox &nodes() const
    {
        return two.fine;
    }

    __device__ __forceinline__ auto body() const
    {
        return [this](const NodePlace &p) {
            to[p.node] +=
                interpolated<PS_DIFFUSION_AXES - 1>(two, x, t, p.at[0], p.at[1], p.at[2]);
        };
    }
};

} // namespace pysolvers::heat

#endif
