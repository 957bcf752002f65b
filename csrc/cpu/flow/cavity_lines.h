/* cavity_lines.h - the half-sweeps of the cavity as lines (lines/lines.h). */
#ifndef PS_CPU_CAVITY_LINES_H
#define PS_CPU_CAVITY_LINES_H

#include "lines/lines.h"

typedef struct ps_sweep ps_sweep;

/* Write the rows of `count` nodes, adjacent along x, from offset `p` on to the four words
 * at `row[PS_WORDS]`. */
typedef void ps_sweep_rows(const ps_sweep *s, int64_t p, int count, double *const *row);

/* A half-sweep: all interior lines along one axis, computed from values that the sweep
 * does not change. Fields are [nodes][nodes]; `along` and `across` are the offsets to
 * the next node of a line and to the next line (1 and nodes for lines along x). `walls`
 * is null, or the field whose wall values the first and the last row move to their
 * right-hand sides. */
struct ps_sweep {
    int64_t nodes, along, across;
    ps_sweep_rows *rows;
    const double *psi, *omega, *half; /* inputs */
    const double *step;               /* pseudo-time step of every node */
    const double *walls;
    double *x;     /* the solution */
    int increment; /* add the solution to x instead of storing it */
    /* +1 along x, -1 along y: velocity along the lines = swirl psi_across */
    double swirl;
    double spacing; /* h */
    double viscosity;
    double shift; /* r of Peaceman and Rachford */
};

/* A sweep along x (axis 0) or y (axis 1) without rows, fields and x. */
ps_sweep ps_sweep_along(int axis, int64_t nodes, double viscosity);

/* The lines of `s`, which must outlive them. */
ps_lines ps_sweep_lines(ps_sweep *s);

/* (1 + dt (a delta - nu delta2)) D = rhs along the lines, where a is the velocity along
 * them: `first` computes rhs = dt (nu lap omega - u omega_x - v omega_y) from omega,
 * `second` reads rhs from half. */
ps_sweep_rows ps_omega_first_rows, ps_omega_second_rows;

/* (A + r) p* = (r - B) p + h^2 omega, where A and B are the operators 2 -1 -1 along and
 * across the lines and p is in half. */
ps_sweep_rows ps_psi_rows;

/* Line Jacobi: the five-point equations, with old values at the neighbours across: psi
 * in half, and omega. */
ps_sweep_rows ps_jacobi_psi_rows, ps_jacobi_omega_rows;

#endif
