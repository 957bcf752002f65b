/* cavity_stencils.h - the parts of an iteration of the cavity that are not lines. */
#ifndef PS_CPU_CAVITY_STENCILS_H
#define PS_CPU_CAVITY_STENCILS_H

#include "ps_cavity.h"

/* Local pseudo-time steps of the interior nodes. */
void ps_cavity_local_steps(const ps_cavity *c, const double *omega, double *step,
                           int threads);

/* omega_w += weight (formula - omega_w) on the walls without the corners; weight is 1
 * for line Jacobi. */
void ps_cavity_relax_walls(const ps_cavity *c, const double *psi, double *omega);

/* Root mean squares of both residuals over the interior nodes. `rows` is scratch memory
 * of 2 * nodes values: the sums of rows are added in the order of the rows, for any
 * number of threads. */
void ps_cavity_residuals(const ps_cavity *c, const double *psi, const double *omega,
                         double *rows, int threads, double *psi_residual,
                         double *omega_residual);

#endif
