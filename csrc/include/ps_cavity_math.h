/* ps_cavity_math.h - the formulas of ps_cavity.h for one node, for the host and for a device. */
#ifndef PS_CAVITY_MATH_H
#define PS_CAVITY_MATH_H

#include <math.h>

#include "ps_cavity.h"

#ifdef __CUDACC__
#define PS_CAVITY_INLINE static __host__ __device__ inline
#else
#define PS_CAVITY_INLINE static inline
#endif

/* omega on a wall that moves with the given speed, by PS_WALL_LIST; psi1, psi2 and omega1 are
 * values at the first and second interior node. */
PS_CAVITY_INLINE double
ps_cavity_wall(ps_wall wall, double h, double speed, double psi1, double psi2,
               double omega1)
{
    switch (wall) {
    case PS_WALL_THOM:
        return -2 * psi1 / (h * h) - 2 * speed / h;
    case PS_WALL_WOODS:
        return -3 * psi1 / (h * h) - omega1 / 2 - 3 * speed / h;
    default:
        return -(8 * psi1 - psi2) / (2 * h * h) - 3 * speed / h;
    }
}

/* A change of omega on a wall diffuses over the distance sqrt(dt nu) within a step and
 * acts back on the wall through psi with the factor -2 sqrt(dt nu)/h. The weight
 * compensates for this. */
PS_CAVITY_INLINE double
ps_cavity_wall_weight(const ps_cavity *c, double h)
{
    return c->scheme == PS_SCHEME_ADI ? 1 / (1 + 2 * sqrt(c->step * c->viscosity) / h)
                                      : 1;
}

/* The residuals of both equations at a node of rows of n nodes; `inverse` is 1/h^2. */
typedef struct {
    double poisson, transport;
} ps_cavity_residual;

PS_CAVITY_INLINE ps_cavity_residual
ps_cavity_residual_at(const double *psi, const double *w, int64_t n, double inverse,
                      double nu)
{
    const double psi_x = psi[1] - psi[-1], psi_y = psi[n] - psi[-n];
    const double omega_x = w[1] - w[-1], omega_y = w[n] - w[-n];
    const double lap_psi = (psi[1] + psi[-1]) + (psi[n] + psi[-n]) - 4 * psi[0];
    const double lap_omega = (w[1] + w[-1]) + (w[n] + w[-n]) - 4 * w[0];
    const double convection = inverse / 4 * (psi_y * omega_x - psi_x * omega_y);
    ps_cavity_residual r;

    r.poisson = inverse * lap_psi + w[0];
    r.transport = nu * inverse * lap_omega - convection;
    return r;
}

#endif
