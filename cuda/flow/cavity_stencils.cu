/* cavity_stencils.cu - wall vorticity and residuals of the cavity.
 *
 * The order of summation depends on the number of nodes only: one block per row of
 * nodes, then one block over the rows.
 */
#include "flow/cavity.h"
#include "flow/cavity_walls.cuh"
#include "ps_cavity_math.h"
#include "runtime/elements.cuh"

namespace pysolvers::flow {

using namespace runtime;

namespace {

constexpr int block_threads = 256, warp_lanes = 32;

struct RelaxWalls {
    Walls walls;

    __device__ __forceinline__ void operator()() const
    {
        wait_for_last_kernel();
        relax_walls(walls, blockIdx.x);
    }
};

/* Sums of two values over the block, in thread 0. */
__device__ __forceinline__ double2
block_sum(double2 s)
{
    __shared__ double2 part[block_threads / warp_lanes];
    const int lane = static_cast<int>(threadIdx.x) % warp_lanes;

    for (int reach = warp_lanes / 2; reach > 0; reach /= 2) {
        s.x += __shfl_down_sync(~0u, s.x, reach);
        s.y += __shfl_down_sync(~0u, s.y, reach);
    }
    if (lane == 0) {
        part[threadIdx.x / warp_lanes] = s;
    }
    __syncthreads();
    for (int k = 1; threadIdx.x == 0 && k < block_threads / warp_lanes; k++) {
        s.x += part[k].x;
        s.y += part[k].y;
    }
    return s;
}

struct Residuals {
    const double *psi_field;
    const double *omega_field;
    int64_t n;
    double nu;
    double2 *rows;

    __device__ __forceinline__ void operator()() const
    {
        const int64_t j = blockIdx.x + 1;
        const double *const psi = psi_field + j * n, *const w = omega_field + j * n;
        const double inverse = static_cast<double>((n - 1) * (n - 1));
        double2 sum = {0, 0};

        wait_for_last_kernel();
        for (int64_t i = threadIdx.x + 1; i < n - 1; i += block_threads) {
            const ps_cavity_residual r =
                ps_cavity_residual_at(psi + i, w + i, n, inverse, nu);

            sum.x += r.poisson * r.poisson;
            sum.y += r.transport * r.transport;
        }
        sum = block_sum(sum);
        if (threadIdx.x == 0) {
            rows[blockIdx.x] = sum;
        }
    }
};

struct SumOfRows {
    const double2 *rows;
    int64_t count;
    double2 *sums;

    __device__ __forceinline__ void operator()() const
    {
        double2 sum = {0, 0};

        wait_for_last_kernel();
        for (int64_t j = threadIdx.x; j < count; j += block_threads) {
            sum.x += rows[j].x;
            sum.y += rows[j].y;
        }
        sum = block_sum(sum);
        if (threadIdx.x == 0) {
            *sums = sum;
        }
    }
};

} // namespace

ps_status
ps_cuda_cavity_walls(const ps_cuda_walls *w, cudaStream_t stream)
{
    const Walls walls = walls_of(w->c, w->psi, w->omega);

    return for_threads<block_threads>(wall_blocks(walls, block_threads), stream,
                                      RelaxWalls{walls});
}

ps_status
ps_cuda_cavity_residuals(const ps_cavity *c, const double *psi, const double *omega,
                         double *rows, double *sums, cudaStream_t stream)
{
    const int64_t interior = c->nodes - 2;
    const ps_status status = for_threads<block_threads>(
        interior, stream,
        Residuals{psi, omega, c->nodes, c->viscosity, reinterpret_cast<double2 *>(rows)});

    return status != PS_OK ? status
                           : for_threads<block_threads>(
                                 1, stream,
                                 SumOfRows{reinterpret_cast<const double2 *>(rows),
                                           interior, reinterpret_cast<double2 *>(sums)});
}

} // namespace pysolvers::flow
