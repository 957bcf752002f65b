/* cavity_stencils.h - what an iteration of the cavity does besides its lines. */
#ifndef PS_CPU_CAVITY_STENCILS_H
#define PS_CPU_CAVITY_STENCILS_H

#include "ps_cavity.h"

/* Local pseudo-time steps of the interior nodes. */
void ps_cavity_local_steps(const ps_cavity *c, const double *omega, double *step,
                           int threads);

/* omega_w += weight (formula - omega_w) on the walls, corners apart; weight is 1 for
 * line Jacobi. */
void ps_cavity_relax_walls(const ps_cavity *c, const double *psi, double *omega);

/* Root mean squares of both residuals over the interior nodes. `rows` is scratch of
 * 2 * nodes values: sums of rows are added in their order, whatever the threads. */
void ps_cavity_residuals(const ps_cavity *c, const double *psi, const double *omega,
                         double *rows, int threads, double *psi_residual,
                         double *omega_residual);

#endif
