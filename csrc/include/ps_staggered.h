/* ps_staggered.h - time-dependent flow in the lid-driven cavity on a staggered grid.
 *
 *   u_t + (u u)_x + (u v)_y = -p_x + lap u / Re + f_x,  v_t likewise,  u_x + v_y = 0
 *
 * on the unit square, with u = lid on y = 1 and no slip on the other walls, by explicit
 * steps and the projection of Chorin (1968).
 */
#ifndef PS_STAGGERED_H
#define PS_STAGGERED_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "serial" runs on one thread and relaxes one array with interleaved colours; "openmp"
 * divides the rows of every loop among threads; "auto" also computes several SOR
 * iterations in one pass. All give the same bits. A device has "auto" only. */
#define PS_STAGGERED_KERNEL_LIST(X)  \
    X(PS_STAGGERED_AUTO, "auto")     \
    X(PS_STAGGERED_SERIAL, "serial") \
    X(PS_STAGGERED_OPENMP, "openmp")

/* "sor" solves for the pressure in the call; "given": the caller solves between a call
 * with the stage predict and a call with the stage correct. */
#define PS_PRESSURE_LIST(X)       \
    X(PS_PRESSURE_GIVEN, "given") \
    X(PS_PRESSURE_SOR, "sor")

#define PS_STAGGERED_STAGE_LIST(X)       \
    X(PS_STAGGERED_PREDICT, "predict")   \
    X(PS_STAGGERED_PRESSURE, "pressure") \
    X(PS_STAGGERED_CORRECT, "correct")

/* Why a call ended: all steps are done, the time `until` is reached, the change is at
 * most `steady`, the SOR iterations of a step did not reach their tolerance, or the
 * velocity is not finite or exceeds `bound`. */
#define PS_STAGGERED_END_LIST(X)     \
    X(PS_STAGGERED_COUNT, "count")   \
    X(PS_STAGGERED_UNTIL, "until")   \
    X(PS_STAGGERED_STEADY, "steady") \
    X(PS_STAGGERED_SWEEPS, "sweeps") \
    X(PS_STAGGERED_GROWN, "grown")

/* Entries of the clock: time; length of the last step; time after the current step;
 * largest |u_new - u| / dt and |v_new - v| / dt of the last step; largest |u| and |v|,
 * ghosts included; iterations of SOR since time 0; root mean square of the residual of
 * the last of them; steps since time 0. */
#define PS_CLOCK_LIST(X)             \
    X(PS_CLOCK_TIME, "time")         \
    X(PS_CLOCK_DT, "dt")             \
    X(PS_CLOCK_NEXT, "next")         \
    X(PS_CLOCK_CHANGE, "change")     \
    X(PS_CLOCK_U, "u")               \
    X(PS_CLOCK_V, "v")               \
    X(PS_CLOCK_SWEEPS, "sweeps")     \
    X(PS_CLOCK_RESIDUAL, "residual") \
    X(PS_CLOCK_STEPS, "steps")

#define PS_NAME_(name, text) name,
typedef enum {
    PS_STAGGERED_KERNEL_LIST(PS_NAME_) PS_STAGGERED_KERNELS
} ps_staggered_kernel;
typedef enum { PS_PRESSURE_LIST(PS_NAME_) PS_PRESSURES } ps_pressure;
typedef enum { PS_STAGGERED_STAGE_LIST(PS_NAME_) PS_STAGGERED_STAGES } ps_staggered_stage;
typedef enum { PS_STAGGERED_END_LIST(PS_NAME_) PS_STAGGERED_ENDS } ps_staggered_end;
typedef enum { PS_CLOCK_LIST(PS_NAME_) PS_CLOCK_COUNT } ps_clock;
#undef PS_NAME_

/* N x N cells of side h = 1/N. With S = N + 2, element [j*S + i] is
 *
 *   u   at (i h, (j - 1/2) h), 0 <= i <= N; rows 0, N+1 are ghosts, -u, 2 lid - u
 *   v   at ((i - 1/2) h, j h), 0 <= j <= N; columns 0 and N+1 are ghosts, -v
 *
 * and f and g have the same places. Their values on walls are 0 and are not written.
 * p and q have N x N elements: [(j-1)*N + i-1] in the centre of cell (i, j). A step is
 *
 *   predict   dt = tau min(Re h^2/4, h/max|u|, h/max|v|), or `dt`; shortened to end at
 *             `until`, or halved if the rest is less than two steps. With a force, h/max
 *             is the time of a way h from this speed with the acceleration `push`
 *             f = u + dt (lap u/Re - (u u)_x - (u v)_y + f_x),  g likewise
 *             q = (f_x + g_y)/dt
 *   pressure  lap p = q, normal derivative 0 on walls: red-black SOR from the p of the
 *             last step, until the root mean square of the residual is at most
 *             `tolerance`
 *   correct   u = f - dt p_x,  v = g - dt p_y,  clock
 *
 * With the pressure "given", q contains p at the begin of the stage correct; on a device
 * p itself does. The convection is a mixture of central (gamma = 0) and donor-cell (gamma
 * = 1) differences (Hirt, Nichols and Romero 1975). The stage predict changes f, g, q and
 * the entries DT and NEXT of the clock only, so that a step can be repeated if it does
 * not reach the end of the stage correct.
 *
 * On a device f and g are the second halves of u and v: see cuda/flow/staggered.cu. A
 * call with the stage correct, or with none, waits for the end of the steps; a call with
 * the stage predict only does not. */
struct ps_staggered {
    int64_t cells; /* N, 4 or more */
    ps_staggered_kernel kernel;
    ps_pressure pressure;
    uint32_t stages; /* bits 1u << stage */
    double reynolds, tau;
    double gamma;     /* negative: 1.2 dt/h max(max|u|, max|v|), at most 1 */
    double dt;        /* 0: from tau */
    double until;     /* may be infinite */
    double steady;    /* negative: no change ends the call */
    double tolerance; /* negative: exactly most_sweeps iterations */
    double omega;     /* relaxation factor of SOR, 0 < omega < 2 */
    double lid;       /* velocity of the lid */
    double push;      /* largest magnitude of the force; 0 without one */
    double bound;     /* speed above which a solution is unstable; may be infinite */
    int64_t most_sweeps;
    double *u, *v, *p, *f, *g, *q;
    const double *force_x, *force_y; /* at the places of u and v; both null: no force */
    double *clock;                   /* PS_CLOCK_COUNT values */
};

struct ps_staggered_report {
    int64_t steps; /* complete ones */
    ps_staggered_end end;
    double seconds[PS_STAGGERED_STAGES];
    int32_t threads;    /* host threads used; 0 on a device */
    const char *kernel; /* instruction set or kernel of SOR, a static text */
};

/* Check all that the struct alone determines, for all backends. */
ps_status ps_staggered_check(const ps_staggered *s);

#ifdef __cplusplus
}
#endif

#endif
