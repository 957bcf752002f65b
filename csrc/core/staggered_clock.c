/* staggered_clock.c - length and end of a step of a ps_staggered, for all backends whose
 * clock lies on the host. */
#include "ps_staggered.h"

static double
speed(const ps_staggered *s)
{
    const double u = s->clock[PS_CLOCK_U], v = s->clock[PS_CLOCK_V];

    return u > v ? u : v;
}

void
ps_staggered_choose_dt(const ps_staggered *s)
{
    double *const clock = s->clock;
    const double h = 1.0 / (double)s->cells, left = s->until - clock[PS_CLOCK_TIME];
    double dt = s->dt;

    if (dt == 0) {
        const double diffusion = s->reynolds * h * h / 4, convection = h / speed(s);

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

double
ps_staggered_gamma(const ps_staggered *s)
{
    const double own = 1.2 * s->clock[PS_CLOCK_DT] * (double)s->cells * speed(s);

    return s->gamma >= 0 ? s->gamma : own < 1 ? own : 1;
}

ps_staggered_end
ps_staggered_judge(const ps_staggered *s)
{
    const double *const clock = s->clock;

    if (!(clock[PS_CLOCK_U] <= PS_STAGGERED_BOUND &&
          clock[PS_CLOCK_V] <= PS_STAGGERED_BOUND)) {
        return PS_STAGGERED_GROWN;
    }
    if (clock[PS_CLOCK_TIME] >= s->until) {
        return PS_STAGGERED_UNTIL;
    }
    return clock[PS_CLOCK_CHANGE] <= s->steady ? PS_STAGGERED_STEADY : PS_STAGGERED_COUNT;
}
