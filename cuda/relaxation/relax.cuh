/* relax.cuh - the common part of the kernels of red-black relaxation: the layout of a
 * field, arithmetic in the order of the contract, norms and the end of the iteration.
 *
 * Node (i, j) of colour c = (i + j) % 2 lies at [(c (ny+2) + j) pitch + i/2].
 * Operations are rounded one by one, without fused operations, so that every kernel
 * gives the same bits.
 */
#ifndef PS_CUDA_RELAXATION_RELAX_CUH
#define PS_CUDA_RELAXATION_RELAX_CUH

#include <cfloat>
#include <cstdint>
#include <type_traits>

#include "device/rounded.cuh"
#include "relaxation/relax.h"
#include "runtime/launch.cuh"

namespace pysolvers::relaxation {

static constexpr int warp_lanes = 32, relax_threads = 256; /* threads of a block */
static constexpr unsigned full_warp = 0xffffffffu;

/* Two neighbours of one colour in a row, or four in float: at most 16 bytes. */
template <typename T, int N> struct alignas(N * sizeof(T)) Pack {
    T v[N];
};
template <typename T> using Pair = Pack<T, 2>;

using device::minus;
using device::plus;
using device::times;

/* |x| as an integer with the same order; NaN is greater than all numbers. */
__device__ __forceinline__ uint64_t
magnitude(double x)
{
    return static_cast<uint64_t>(__double_as_longlong(x)) & ~(uint64_t(1) << 63);
}

__device__ __forceinline__ uint32_t
magnitude(float x)
{
    return __float_as_uint(x) & ~(uint32_t(1) << 31);
}

__device__ __forceinline__ uint64_t
as_double(uint64_t magnitude)
{
    return magnitude;
}

__device__ __forceinline__ uint64_t
as_double(uint32_t magnitude)
{
    return static_cast<uint64_t>(
        __double_as_longlong(static_cast<double>(__uint_as_float(magnitude))));
}

/* A relaxed node: its residual, its value before and after. */
template <typename T> struct Relaxed {
    T residual, before, after;
};

template <typename T>
__device__ __forceinline__ T
measured(const Relaxed<T> &r, ps_criterion criterion)
{
    return criterion == PS_CRITERION_RESIDUAL ? r.residual
           : criterion == PS_CRITERION_CHANGE ? minus(r.after, r.before)
                                              : r.after;
}

/* The neighbours of a node.
 *
 * A rule relaxes a node. It reads `fields` values at each node. With masks_field,
 * field[0] is the weight; with computes_weight the rule computes the weight instead of
 * reading it. column(p, parity) and line(j) are the numbers of a column i = 2 p + parity
 * and of a row, including those around the interior. relax() is the arithmetic of the
 * contract, operation by operation. */
template <typename T> struct Around {
    T west, east, north, south;
};

/* The norm of many nodes: their greatest magnitude or their sum of squares. commit()
 * combines it with the slot, or stores it as part `place` of the sum. */
template <typename T, int KIND> struct NormAccumulator {
    decltype(magnitude(T(0))) most = 0;

    __device__ __forceinline__ void add(const Relaxed<T> &r, ps_criterion, bool counts)
    {
        const auto own =
            magnitude(KIND == PS_CUDA_NORM_RESIDUAL ? r.residual
                      : KIND == PS_CUDA_NORM_CHANGE ? minus(r.after, r.before)
                                                    : r.after);

        most = counts && own > most ? own : most;
    }
    __device__ __forceinline__ double value() const
    {
        return __longlong_as_double(static_cast<long long>(as_double(most)));
    }
    __device__ __forceinline__ void join(const NormAccumulator &other)
    {
        most = other.most > most ? other.most : most;
    }
    __device__ __forceinline__ void commit(const ps_cuda_norms &norms, int slot,
                                           int64_t) const
    {
        atomicMax(reinterpret_cast<unsigned long long *>(norms.slots + slot),
                  static_cast<unsigned long long>(as_double(most)));
    }
};

template <typename T> struct NormAccumulator<T, PS_CUDA_NORM_NONE> {
    __device__ __forceinline__ void add(const Relaxed<T> &, ps_criterion, bool)
    {
    }
    __device__ __forceinline__ double value() const
    {
        return 0;
    }
    __device__ __forceinline__ void join(const NormAccumulator &)
    {
    }
    __device__ __forceinline__ void commit(const ps_cuda_norms &, int, int64_t) const
    {
    }
};

template <typename T> struct NormAccumulator<T, PS_CUDA_NORM_SUM> {
    double sum = 0;

    __device__ __forceinline__ void add(const Relaxed<T> &r, ps_criterion criterion,
                                        bool counts)
    {
        const double x = measured(r, criterion);

        sum = counts ? fma(x, x, sum) : sum;
    }
    __device__ __forceinline__ double value() const
    {
        return sum;
    }
    __device__ __forceinline__ void join(const NormAccumulator &other)
    {
        sum += other.sum;
    }
    __device__ __forceinline__ void commit(const ps_cuda_norms &norms, int slot,
                                           int64_t place) const
    {
        norms.sums[slot * norms.parts + place] = sum;
    }
};

/* The accumulator of the lane whose index differs in the bits of `step`. */
template <typename T, int KIND>
__device__ __forceinline__ NormAccumulator<T, KIND>
across(const NormAccumulator<T, KIND> &norm, int step)
{
    return {__shfl_xor_sync(full_warp, norm.most, step)};
}

template <typename T>
__device__ __forceinline__ NormAccumulator<T, PS_CUDA_NORM_SUM>
across(const NormAccumulator<T, PS_CUDA_NORM_SUM> &norm, int step)
{
    return {__shfl_xor_sync(full_warp, norm.sum, step)};
}

template <typename T>
__device__ __forceinline__ NormAccumulator<T, PS_CUDA_NORM_NONE>
across(const NormAccumulator<T, PS_CUDA_NORM_NONE> &, int)
{
    return {};
}

/* The sum over a warp, in all lanes. */
template <typename T, int KIND>
__device__ __forceinline__ void
join_lanes(NormAccumulator<T, KIND> &norm)
{
#pragma unroll
    for (int step = warp_lanes / 2; step > 0; step /= 2) {
        norm.join(across(norm, step));
    }
}

/* The sum over a block, in the thread for which the function returns true. All threads
 * call it. */
template <typename T, int KIND>
__device__ __forceinline__ bool
join_block(NormAccumulator<T, KIND> &norm)
{
    constexpr int warps = relax_threads / warp_lanes;
    const int lane = threadIdx.x % warp_lanes, warp = threadIdx.x / warp_lanes;
    __shared__ NormAccumulator<T, KIND> of_warp[warps];

    if (KIND == PS_CUDA_NORM_NONE) {
        return false;
    }
    join_lanes(norm);
    if (lane == 0) {
        of_warp[warp] = norm;
    }
    __syncthreads();
    if (warp == 0) {
        norm = lane < warps ? of_warp[lane] : NormAccumulator<T, KIND>();
        join_lanes(norm);
    }
    return threadIdx.x == 0;
}

/* Whether the norms before this kernel end the iteration. Such a kernel does nothing,
 * except that it writes norms that also end the kernels after it. */
__device__ __forceinline__ bool
has_ended(const ps_cuda_norms &norms)
{
    bool ended = false;

    for (int k = 0; k < norms.watched; k++) {
        const double measure =
            __longlong_as_double(static_cast<long long>(__ldcg(norms.watch + k)));

        ended = ended || !(measure > norms.tolerance && measure <= DBL_MAX);
    }
    if (ended && blockIdx.x == 0 && threadIdx.x == 0) {
        for (int k = norms.first; k < norms.last; k++) {
            norms.slots[k - norms.first] = ~uint64_t(0) >> 1;
        }
    }
    return ended;
}

/* act(kind), where kind is a compile-time constant. */
template <typename Act>
inline ps_status
with_norm(ps_cuda_norm kind, const Act &act)
{
    switch (kind) {
    case PS_CUDA_NORM_RESIDUAL:
        return act(std::integral_constant<int, PS_CUDA_NORM_RESIDUAL>());
    case PS_CUDA_NORM_CHANGE:
        return act(std::integral_constant<int, PS_CUDA_NORM_CHANGE>());
    case PS_CUDA_NORM_SOLUTION:
        return act(std::integral_constant<int, PS_CUDA_NORM_SOLUTION>());
    case PS_CUDA_NORM_SUM:
        return act(std::integral_constant<int, PS_CUDA_NORM_SUM>());
    default:
        return act(std::integral_constant<int, PS_CUDA_NORM_NONE>());
    }
}

} // namespace pysolvers::relaxation

#endif
