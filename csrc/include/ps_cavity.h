/* ps_cavity.h - the steady lid-driven cavity in stream function and vorticity.
 *
 *   psi_xx + psi_yy = -omega
 *   u omega_x + v omega_y = nu (omega_xx + omega_yy),   u = psi_y,  v = -psi_x
 *
 * on the unit square, with psi = 0 on all walls, u = lid on y = 1 and no slip on the
 * other walls.
 */
#ifndef PS_CAVITY_H
#define PS_CAVITY_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Vorticity on a wall with the tangential speed U (lid on y = 1, otherwise 0), from the
 * first and second interior node: Thom -2 psi_1/h^2 - 2 U/h (first order), Woods
 * -3 psi_1/h^2 - omega_1/2 - 3 U/h (second order) and Jensen
 * -(8 psi_1 - psi_2)/(2 h^2) - 3 U/h (second order). */
#define PS_WALL_LIST(X)       \
    X(PS_WALL_THOM, "thom")   \
    X(PS_WALL_WOODS, "woods") \
    X(PS_WALL_JENSEN, "jensen")

#define PS_SCHEME_LIST(X)   \
    X(PS_SCHEME_ADI, "adi") \
    X(PS_SCHEME_LINE_JACOBI, "line-jacobi")

/* Direction of the lines of a line-Jacobi iteration: x in even and y in odd iterations,
 * or always x or y. */
#define PS_DIRECTION_LIST(X)               \
    X(PS_DIRECTION_ALTERNATE, "alternate") \
    X(PS_DIRECTION_X, "x")                 \
    X(PS_DIRECTION_Y, "y")

/* Stages of an iteration. ADI computes omega first, line Jacobi psi first. The residual
 * is computed once, after the last iteration. */
#define PS_STAGE_LIST(X)       \
    X(PS_STAGE_OMEGA, "omega") \
    X(PS_STAGE_PSI, "psi")     \
    X(PS_STAGE_WALLS, "walls") \
    X(PS_STAGE_RESIDUAL, "residual")

#define PS_NAME_(name, text) name,
typedef enum { PS_WALL_LIST(PS_NAME_) PS_WALL_COUNT } ps_wall;
typedef enum { PS_SCHEME_LIST(PS_NAME_) PS_SCHEME_COUNT } ps_scheme;
typedef enum { PS_DIRECTION_LIST(PS_NAME_) PS_DIRECTION_COUNT } ps_direction;
typedef enum { PS_STAGE_LIST(PS_NAME_) PS_STAGE_COUNT } ps_stage;
#undef PS_NAME_

/* Node (i, j) has the coordinates (i h, j h), h = 1/(nodes-1), and is element
 * [j*nodes + i] of psi and omega. psi is 0 on the walls; the corners of omega are never
 * read. An iteration runs the stages whose bit (1u << stage) is set in `stages`. */
struct ps_cavity {
    int64_t nodes; /* along each side, walls included; 5 or more */
    ps_scheme scheme;
    ps_wall wall;
    ps_direction direction; /* of line Jacobi */
    uint32_t stages;
    double viscosity, lid;
    double step;        /* ADI: the pseudo-time step */
    int32_t psi_sweeps; /* ADI: Peaceman-Rachford double sweeps per iteration */
    int64_t iteration;  /* iterations completed before this call */
    double *psi, *omega;
};

/* What was done. The residuals are the root mean squares over the interior nodes of
 * lap psi + omega and of nu lap omega - u omega_x - v omega_y after the last iteration;
 * NaN without PS_STAGE_RESIDUAL. A device backend waits for the end of the call, measures
 * the stages of the last iteration, and divides the total time in the same proportions.
 */
struct ps_cavity_report {
    int64_t iterations; /* fewer than `count` if interrupted */
    double psi_residual, omega_residual;
    double seconds[PS_STAGE_COUNT];
    ps_report lines;
};

/* Check all that the struct alone determines, for all backends. */
ps_status ps_cavity_check(const ps_cavity *c);

#ifdef __cplusplus
}
#endif

#endif
