/* cavity_rows.cuh - the rows of the half-sweeps of the cavity.
 *
 * A source computes the row of an interior node in two steps. `node` computes a few
 * numbers (`words`) from the fields, by threads in the order of memory; `row` makes the
 * row from these numbers, by threads in the order of the lines. Numbers that are all 0
 * give a row with right-hand side 0. `wall` is the unknown on a wall; `apply_wall` moves
 * the wall value before the first or after the last row of a line to the right-hand
 * side, words[0]. `result` is the value that the sweep stores for the solution x.
 * `along` and `across` are the offsets to the next node of a line and to the next line.
 */
#ifndef PS_CUDA_FLOW_CAVITY_ROWS_CUH
#define PS_CUDA_FLOW_CAVITY_ROWS_CUH

#include "flow/cavity.h"
#include "lines/join/segment.cuh"

namespace pysolvers::flow {

using namespace join;

/* The common part of the two omega sweeps of the ADI scheme: an implicit step with the
 * operator 1 + dt (a delta - nu delta2), where a is the velocity along the lines. The
 * velocities are constant during a step, so dt is reduced where omega is steep. */
struct OmegaStep {
    const double *psi, *omega;
    double step, diffusivity, swirl; /* dt, nu/h^2, +-1/(4 h^2) */
    int64_t along, across;

    __device__ __forceinline__ double local_step(int64_t p) const
    {
        const double *const w = omega + p;
        const double rate = fabs(w[along] - w[-along]) + fabs(w[across] - w[-across]);

        return step / (1 + step * rate);
    }

    static __device__ __forceinline__ Row<double> row(double rhs, double convection,
                                                      double diffusion)
    {
        return {-(diffusion + convection), 1 + 2 * diffusion, convection - diffusion,
                rhs};
    }
};

/* (1 + dt (a delta - nu delta2)) D* = dt (nu lap omega - u omega_x - v omega_y) */
struct OmegaFirst : OmegaStep {
    static constexpr int words = 3;

    __device__ __forceinline__ void node(int64_t p, double *word) const
    {
        const double *const f = psi + p, *const w = omega + p;
        const double local = local_step(p);
        const double diffusion = local * diffusivity, convection = local * swirl;
        const double a = convection * (f[across] - f[-across]);
        const double b = -convection * (f[along] - f[-along]);

        word[0] =
            diffusion * ((w[along] + w[-along]) + (w[across] + w[-across]) - 4 * w[0]) -
            a * (w[along] - w[-along]) - b * (w[across] - w[-across]);
        word[1] = a;
        word[2] = diffusion;
    }

    __device__ __forceinline__ Row<double> row(const double *word) const
    {
        return OmegaStep::row(word[0], word[1], word[2]);
    }

    __device__ __forceinline__ double wall(int64_t) const
    {
        return 0;
    }

    __device__ __forceinline__ void apply_wall(int64_t, int, double *) const
    {
    }

    __device__ __forceinline__ double result(int64_t, double x) const
    {
        return x;
    }
};

/* (1 + dt (a delta - nu delta2)) D = D*, omega + D */
struct OmegaSecond : OmegaStep {
    static constexpr int words = 3;
    const double *half;

    __device__ __forceinline__ void node(int64_t p, double *word) const
    {
        const double local = local_step(p);

        word[0] = half[p];
        word[1] = local * swirl * (psi[p + across] - psi[p - across]);
        word[2] = local * diffusivity;
    }

    __device__ __forceinline__ Row<double> row(const double *word) const
    {
        return OmegaStep::row(word[0], word[1], word[2]);
    }

    __device__ __forceinline__ double wall(int64_t) const
    {
        return 0;
    }

    __device__ __forceinline__ void apply_wall(int64_t, int, double *) const
    {
    }

    __device__ __forceinline__ double result(int64_t p, double x) const
    {
        return omega[p] + x;
    }
};

/* (A + r) p* = (r - B) p + h^2 omega, where A and B are the operators 2 -1 -1 along and
 * across the lines and p is in `half`; r = 2 gives line Jacobi. */
struct Psi {
    static constexpr int words = 1;
    const double *half, *omega;
    double shift, area; /* r, h^2 */
    int64_t along, across;

    __device__ __forceinline__ void node(int64_t p, double *word) const
    {
        const double *const old = half + p;
        const double own = shift == 2 ? 0 : (shift - 2) * old[0];

        word[0] = own + (old[across] + old[-across]) + area * omega[p];
    }

    __device__ __forceinline__ Row<double> row(const double *word) const
    {
        return {-1, 2 + shift, -1, word[0]};
    }

    __device__ __forceinline__ double wall(int64_t) const
    {
        return 0;
    }

    __device__ __forceinline__ void apply_wall(int64_t, int, double *) const
    {
    }

    __device__ __forceinline__ double result(int64_t, double x) const
    {
        return x;
    }
};

/* Line Jacobi for omega: the five-point equations, with the old omega at the neighbours
 * across the line. */
struct JacobiOmega {
    static constexpr int words = 2;
    const double *psi, *omega;
    double swirl; /* +-1/(4 nu) */
    int64_t along, across;

    __device__ __forceinline__ void node(int64_t p, double *word) const
    {
        const double *const f = psi + p, *const w = omega + p;
        const double b = -swirl * (f[along] - f[-along]);

        word[0] = (1 - b) * w[across] + (1 + b) * w[-across];
        word[1] = swirl * (f[across] - f[-across]);
    }

    __device__ __forceinline__ Row<double> row(const double *word) const
    {
        return {-(1 + word[1]), 4, word[1] - 1, word[0]};
    }

    __device__ __forceinline__ double wall(int64_t p) const
    {
        return omega[p];
    }

    __device__ __forceinline__ void apply_wall(int64_t p, int side, double *word) const
    {
        word[0] += (1 - side * word[1]) * omega[p + side * along];
    }

    __device__ __forceinline__ double result(int64_t, double x) const
    {
        return x;
    }
};

/* make(source), where `source` belongs to the kind of sweep of `s`. */
template <typename Make>
inline ps_status
with_source(const ps_cuda_sweep &s, const Make &make)
{
    const double spacing = 1.0 / static_cast<double>(s.nodes - 1);
    const double area = spacing * spacing, sign = s.axis == 0 ? 1 : -1;
    const int64_t along = s.axis == 0 ? 1 : s.nodes, across = s.axis == 0 ? s.nodes : 1;
    const OmegaStep step = {s.psi, s.omega, s.step, s.viscosity / area, sign / (4 * area),
                            along, across};

    switch (s.rows) {
    case PS_SWEEP_OMEGA_FIRST:
        return make(OmegaFirst{step});
    case PS_SWEEP_OMEGA_SECOND:
        return make(OmegaSecond{step, s.half});
    case PS_SWEEP_PSI:
        return make(Psi{s.half, s.omega, s.shift, area, along, across});
    default:
        return make(JacobiOmega{s.psi, s.omega, sign / (4 * s.viscosity), along, across});
    }
}

} // namespace pysolvers::flow

#endif
