/* cylinder_grid.cuh - the grid, the fields and the numbers of a step of the cylinder. */
#ifndef PS_CUDA_FLOW_CYLINDER_GRID_CUH
#define PS_CUDA_FLOW_CYLINDER_GRID_CUH

#include "device/number.cuh"
#include "flow/cylinder.h"

namespace pysolvers::flow {

using device::with_real;

/* f(Real()) with the type of the fields. */
template <typename Function>
inline ps_status
with_real(const CylinderRun &r, const Function &f)
{
    return with_real(r.c->dtype, f);
}

template <typename Real> struct CylinderGrid {
    int ny, nx;
    int row_0, row_1, column_0, column_1; /* of the body */
    bool free_outlet;                     /* psi at the outlet is an unknown */
    int last;                             /* column of the last unknown psi */

    __device__ __forceinline__ bool in_body(int row, int column) const
    {
        return row >= row_0 && row <= row_1 && column >= column_0 && column <= column_1;
    }
};

template <typename Real>
inline CylinderGrid<Real>
grid_of(const CylinderRun &r)
{
    const ps_cylinder &c = *r.c;
    const int nx = static_cast<int>(c.nx);

    return {static_cast<int>(c.ny),
            nx,
            static_cast<int>(c.rows.first),
            static_cast<int>(c.rows.last),
            static_cast<int>(c.columns.first),
            static_cast<int>(c.columns.last),
            c.steady != 0,
            c.steady != 0 ? nx - 1 : nx - 2};
}

/* Sum over the block of a number of warps, in all threads. The order of the summation
 * depends on the number of threads only. */
__device__ __forceinline__ double
sum_of_block(double value)
{
    __shared__ double part[33];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warps = static_cast<int>(blockDim.x) / 32;

    for (int reach = 16; reach > 0; reach /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, reach);
    }
    if (lane == 0) {
        part[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0;

        for (int k = 0; k < warps; k++) {
            total += part[k];
        }
        part[32] = total;
    }
    __syncthreads();
    value = part[32];
    __syncthreads(); /* `part` can be written again */
    return value;
}

/* The circulation after a step by the method of Adams and Bashforth: `numbers` contains
 * the rate now, `scalars` the circulation and the rate one step before, NaN if unknown.
 */
__device__ __forceinline__ double
new_circulation(const double *numbers, const double *scalars, double dt, double share)
{
    const double rate = numbers[STEP_RATE];
    const double old = isnan(scalars[2]) ? rate : scalars[2];

    return scalars[1] + dt * (rate + share * (rate - old));
}

/* Sum over the warp, in all lanes. */
__device__ __forceinline__ double
sum_of_warp(double value)
{
    for (int reach = 16; reach > 0; reach /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, reach);
    }
    return value;
}

/* The larger one; NaN if one of them is. */
__device__ __forceinline__ void
raise(double &most, double value)
{
    most = value <= most || isnan(most) ? most : value;
}

/* *slot = max(*slot, values of the warp); NaN is the largest. The bits of numbers that
 * are not negative compare as the numbers do. */
__device__ __forceinline__ void
raise_all(double *slot, double value)
{
    for (int reach = 16; reach > 0; reach /= 2) {
        raise(value, __shfl_xor_sync(0xffffffffu, value, reach));
    }
    if (threadIdx.x % 32 == 0) {
        const auto bits = static_cast<unsigned long long>(__double_as_longlong(value));

        atomicMax(reinterpret_cast<unsigned long long *>(slot),
                  bits & 0x7fffffffffffffffull);
    }
}

} // namespace pysolvers::flow

#endif
