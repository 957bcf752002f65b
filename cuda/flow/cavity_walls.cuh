/* cavity_walls.cuh - wall vorticity of the cavity, as blocks of any kernel.
 *
 * omega_w += weight (formula - omega_w), without the corners; the formulas are in
 * ps_cavity_math.h. A wall node reads omega at itself and at the node next to it, and psi at
 * the two nodes next to it. All wall nodes can therefore be computed in parallel.
 */
#ifndef PS_CUDA_FLOW_CAVITY_WALLS_CUH
#define PS_CUDA_FLOW_CAVITY_WALLS_CUH

#include "flow/cavity.h"
#include "ps_cavity_math.h"

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

    return {c->wall, c->nodes, h, c->lid, ps_cavity_wall_weight(c, h), psi, omega};
}

/* The number of blocks that relax all walls. */
inline int64_t
wall_blocks(const Walls &s, int threads)
{
    return 4 * ((s.nodes - 2 + threads - 1) / threads);
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
    const double target =
        ps_cavity_wall(s.formula, s.h, wall == 1 ? s.lid : 0, s.psi[w + inward],
                       s.psi[w + 2 * inward], s.omega[w + inward]);

    s.omega[w] += s.weight * (target - s.omega[w]);
}

} // namespace pysolvers::flow

#endif
