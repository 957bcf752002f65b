/* ps_staggered_clock.h - length and end of a step of a ps_staggered, for the memory of
 * the clock: the host's or that of a device.
 */
#ifndef PS_STAGGERED_CLOCK_H
#define PS_STAGGERED_CLOCK_H

#include <math.h>

#include "ps_staggered.h"

#ifdef __CUDACC__
#define PS_STAGGERED_INLINE static __host__ __device__ inline
#else
#define PS_STAGGERED_INLINE static inline
#endif

/* The largest speed, ghosts included. */
PS_STAGGERED_INLINE double
ps_staggered_speed(const ps_staggered *s)
{
    const double u = s->clock[PS_CLOCK_U], v = s->clock[PS_CLOCK_V];

    return u > v ? u : v;
}

/* The time in which the fluid moves by `h` at most: h/speed without a force, otherwise the
 * positive root of speed dt + push dt^2/2 = h. */
PS_STAGGERED_INLINE double
ps_staggered_crossing(const ps_staggered *s, double h)
{
    const double speed = ps_staggered_speed(s);

    return s->push > 0 ? 2 * h / (speed + sqrt(speed * speed + 2 * s->push * h))
                       : h / speed;
}

/* Set the entries DT and NEXT of the clock for the next step. */
PS_STAGGERED_INLINE void
ps_staggered_choose_dt(const ps_staggered *s)
{
    double *const clock = s->clock;
    const double h = 1.0 / (double)s->cells, left = s->until - clock[PS_CLOCK_TIME];
    double dt = s->dt;

    if (dt == 0) {
        const double diffusion = s->reynolds * h * h / 4,
                     convection = ps_staggered_crossing(s, h);

        dt = s->tau * (diffusion < convection ? diffusion : convection);
    }
    if (left <= dt * (1 + 1e-9)) {
        clock[PS_CLOCK_DT] = left;
        clock[PS_CLOCK_NEXT] = s->until;
        return;
    }
    dt = left < 2 * dt ? left / 2 : dt;
    clock[PS_CLOCK_DT] = dt;
    clock[PS_CLOCK_NEXT] = clock[PS_CLOCK_TIME] + dt;
}

/* The share of the donor-cell differences of a step of length DT. */
PS_STAGGERED_INLINE double
ps_staggered_gamma(const ps_staggered *s)
{
    const double own =
        1.2 * s->clock[PS_CLOCK_DT] * (double)s->cells * ps_staggered_speed(s);

    return s->gamma >= 0 ? s->gamma : own < 1 ? own : 1;
}

/* Whether and why a call ends after a complete step. */
PS_STAGGERED_INLINE ps_staggered_end
ps_staggered_judge(const ps_staggered *s)
{
    const double *const clock = s->clock;

    if (!(clock[PS_CLOCK_U] <= s->bound && clock[PS_CLOCK_V] <= s->bound)) {
        return PS_STAGGERED_GROWN;
    }
    if (clock[PS_CLOCK_TIME] >= s->until) {
        return PS_STAGGERED_UNTIL;
    }
    return clock[PS_CLOCK_CHANGE] <= s->steady ? PS_STAGGERED_STEADY : PS_STAGGERED_COUNT;
}

#endif
