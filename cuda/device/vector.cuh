/* vector.cuh - vectors of COUNT real numbers: the values of blocks (block.cuh), and of matrices
 * that have COUNT right-hand sides each (sides.cuh).
 */
#ifndef PS_CUDA_DEVICE_VECTOR_CUH
#define PS_CUDA_DEVICE_VECTOR_CUH

#include "device/number.cuh"

namespace pysolvers::device {

template <typename Real, int COUNT> struct Vector {
    Real at[COUNT];

    Vector() = default;
    /* All entries are x. */
    __device__ __forceinline__ explicit Vector(Real x)
    {
#pragma unroll
        for (int p = 0; p < COUNT; p++) {
            at[p] = x;
        }
    }
    friend __device__ __forceinline__ Vector operator-(Vector a, const Vector &b)
    {
#pragma unroll
        for (int p = 0; p < COUNT; p++) {
            a.at[p] -= b.at[p];
        }
        return a;
    }
    friend __device__ __forceinline__ Vector operator+(Vector a, const Vector &b)
    {
#pragma unroll
        for (int p = 0; p < COUNT; p++) {
            a.at[p] += b.at[p];
        }
        return a;
    }
};

template <typename Real, int COUNT>
__device__ __forceinline__ Vector<Real, COUNT>
shuffle(unsigned mask, Vector<Real, COUNT> a, int lane)
{
#pragma unroll
    for (int p = 0; p < COUNT; p++) {
        a.at[p] = __shfl_sync(mask, a.at[p], lane);
    }
    return a;
}

} // namespace pysolvers::device

#endif
