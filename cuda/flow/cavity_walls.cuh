/* cavity_walls.cuh - wall vorticity of the cavity, as blocks of any kernel.
 *
 * omega_w += weight (formula - omega_w), without the corners; the formulas are in
 * ps_cavity.h. A wall node reads omega at itself and at the node next to it, and psi at
 * the two nodes next to it. All wall nodes can therefore be computed in parallel.
 */
#ifndef PS_CUDA_FLOW_CAVITY_WALLS_CUH
#define PS_CUDA_FLOW_CAVITY_WALLS_CUH

#include <math.h>

#include "flow/cavity.h"

namespace pysolvers::flow {

struct Walls {
    ps_wall formula;
    int64_t nodes;
    double h, lid, weight;
    const double *psi;
    double *omega;
};

inline Walls
walls_of(const ps_cavity *c, const double *psi, double *omega)
{
    const double h = 1.0 / static_cast<double>(c->nodes - 1);
    const double weight =
        c->scheme == PS_SCHEME_ADI ? 1 / (1 + 2 * sqrt(c->step * c->viscosity) / h) : 1;

    return {c->wall, c->nodes, h, c->lid, weight, psi, omega};
}

/* The number of blocks that relax all walls. */
inline int64_t
wall_blocks(const Walls &s, int threads)
{
    return 4 * ((s.nodes - 2 + threads - 1) / threads);
}

__device__ __forceinline__ double
wall_value(const Walls &s, double speed, double psi1, double psi2, double omega1)
{
    const double h = s.h;

    switch (s.formula) {
    case PS_WALL_THOM:
        return -2 * psi1 / (h * h) - 2 * speed / h;
    case PS_WALL_WOODS:
        return -3 * psi1 / (h * h) - omega1 / 2 - 3 * speed / h;
    default:
        return -(8 * psi1 - psi2) / (2 * h * h) - 3 * speed / h;
    }
}

/* Block `block` of them: a part of the wall y = 0, y = 1 (the lid), x = 0 or x = 1. */
__device__ __forceinline__ void
relax_walls(const Walls &s, int64_t block)
{
    const int64_t n = s.nodes, last = n - 1, wall = block % 4;
    const int64_t k = block / 4 * blockDim.x + threadIdx.x + 1;
    const bool far = wall % 2 != 0, across_y = wall < 2;
    const int64_t inward = (across_y ? n : 1) * (far ? -1 : 1);
    const int64_t corner = far ? (across_y ? last * n : last) : 0;
    const int64_t w = corner + k * (across_y ? 1 : n);

    if (k >= last) {
        return;
    }
    const double target = wall_value(s, wall == 1 ? s.lid : 0, s.psi[w + inward],
                                     s.psi[w + 2 * inward], s.omega[w + inward]);

    s.omega[w] += s.weight * (target - s.omega[w]);
}

} // namespace pysolvers::flow

#endif
