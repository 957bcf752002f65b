/* column.cuh - columns of COUNT real numbers: the values of blocks (block.cuh), and of matrices
 * that have COUNT right-hand sides each (sides.cuh).
 */
#ifndef PS_CUDA_DEVICE_COLUMN_CUH
#define PS_CUDA_DEVICE_COLUMN_CUH

#include "device/number.cuh"

namespace pysolvers::device {

template <typename Real, int COUNT> struct Column {
    Real at[COUNT];

    Column() = default;
    /* All entries are x. */
    __device__ __forceinline__ explicit Column(Real x)
    {
#pragma unroll
        for (int p = 0; p < COUNT; p++) {
            at[p] = x;
        }
    }
    friend __device__ __forceinline__ Column operator-(Column a, const Column &b)
    {
#pragma unroll
        for (int p = 0; p < COUNT; p++) {
            a.at[p] -= b.at[p];
        }
        return a;
    }
};

template <typename Real, int COUNT>
__device__ __forceinline__ Column<Real, COUNT>
shuffle(unsigned mask, Column<Real, COUNT> a, int lane)
{
#pragma unroll
    for (int p = 0; p < COUNT; p++) {
        a.at[p] = __shfl_sync(mask, a.at[p], lane);
    }
    return a;
}

} // namespace pysolvers::device

#endif
