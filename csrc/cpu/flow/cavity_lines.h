/* cavity_lines.h - the half-sweeps of the cavity, and their line solves. */
#ifndef PS_CPU_CAVITY_LINES_H
#define PS_CPU_CAVITY_LINES_H

#include "pysolvers.h"

/* Rows of a half-sweep; with diffusion d and convection c they are
 *
 *   -(d + c) x_{i-1} + (e + 2 d) x_i - (d - c) x_{i+1} = rhs
 *
 * OMEGA: (1 + dt (a delta - nu delta2)) D = rhs along the lines, where a is the velocity
 * along them: FIRST computes rhs = dt (nu lap omega - u omega_x - v omega_y) from omega,
 * SECOND reads rhs from half. PSI: (A + r) p* = (r - B) p + h^2 omega, where A and B are
 * the operators 2 -1 -1 along and across the lines and p is in half. JACOBI: the
 * five-point equations, with old values at the neighbours across: psi in half, and omega,
 * whose values on the walls the first and the last row move to their right-hand sides. */
typedef enum {
    PS_ROWS_OMEGA_FIRST,
    PS_ROWS_OMEGA_SECOND,
    PS_ROWS_PSI,
    PS_ROWS_JACOBI_PSI,
    PS_ROWS_JACOBI_OMEGA
} ps_sweep_kind;

/* A half-sweep: all interior lines along one axis, computed from values that the sweep
 * does not change. Fields are [nodes][nodes]; `along` and `across` are the offsets to
 * the next node of a line and to the next line (1 and nodes for lines along x). */
typedef struct {
    int64_t rows; /* of a line, and number of lines: nodes - 2 */
    int64_t along, across;
    ps_sweep_kind kind;
    const double *psi, *omega, *half; /* inputs */
    const double *step;               /* pseudo-time step of every node */
    double *x;                        /* the solution */
    int increment;                    /* add the solution to x instead of storing it */
    /* +1 along x, -1 along y: velocity along the lines = swirl psi_across */
    double swirl;
    double spacing; /* h */
    double viscosity;
    double shift; /* r of Peaceman and Rachford */
} ps_sweep;

/* A sweep along x (axis 0) or y (axis 1) without kind, fields and x. */
ps_sweep ps_sweep_along(int axis, int64_t nodes, double viscosity);

/* Workspace in bytes of the sweeps of a cavity, and a sweep, with the rules of ps_backend
 * for all methods except PS_PARTITION. exec->threads is the number of threads; a sweep is
 * not interrupted. PS_THOMAS, and PS_AUTO without row exchanges, eliminate the rows as
 * they are computed; the other methods read rows that are stored some lines at a time. */
ps_status ps_sweep_work(const ps_sweep *s, const ps_options *options, const ps_exec *exec,
                        size_t *bytes);
ps_status ps_sweep_solve(const ps_sweep *s, const ps_options *options,
                         const ps_exec *exec, ps_report *report);

#endif
