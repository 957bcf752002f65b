/* staggered_check.c - checks of a ps_staggered, for all backends. */
#include <math.h>

#include "ps_staggered.h"

static int
positive(double value)
{
    return isfinite(value) && value > 0;
}

static int
apart(const double *a, int64_t a_count, const double *b, int64_t b_count)
{
    return a + a_count <= b || b + b_count <= a;
}

ps_status
ps_staggered_check(const ps_staggered *s)
{
    if (s == NULL || s->cells < 4 || s->cells > INT32_MAX / 4) {
        return PS_BAD_ARGUMENT;
    }
    if ((unsigned)s->kernel >= PS_STAGGERED_KERNELS ||
        (unsigned)s->pressure >= PS_PRESSURES || s->stages >> PS_STAGGERED_STAGES != 0) {
        return PS_BAD_ARGUMENT;
    }
    if (!positive(s->reynolds) || !positive(s->tau) || !isfinite(s->dt) || s->dt < 0 ||
        isnan(s->until) || isnan(s->steady) || !(s->gamma <= 1)) {
        return PS_BAD_ARGUMENT;
    }
    if (!isfinite(s->lid) || !isfinite(s->push) || s->push < 0 || !(s->bound > 0) ||
        (s->force_x == NULL) != (s->force_y == NULL) ||
        (s->force_x == NULL && s->push != 0)) {
        return PS_BAD_ARGUMENT;
    }
    if (s->pressure == PS_PRESSURE_SOR && (!positive(s->omega) || s->omega >= 2 ||
                                           s->most_sweeps < 1 || isnan(s->tolerance))) {
        return PS_BAD_ARGUMENT;
    }
    const int64_t staggered = (s->cells + 2) * (s->cells + 2);
    const int64_t centres = s->cells * s->cells;
    const double *const field[] = {s->u, s->v,     s->f,       s->g,      s->p,
                                   s->q, s->clock, s->force_x, s->force_y};
    const int64_t count[] = {staggered, staggered,      staggered, staggered, centres,
                             centres,   PS_CLOCK_COUNT, staggered, staggered};
    const int fields = s->force_x != NULL ? 9 : 7;

    for (int a = 0; a < fields; a++) {
        if (field[a] == NULL) {
            return PS_BAD_ARGUMENT;
        }
        for (int b = 0; b < a; b++) {
            if (!apart(field[a], count[a], field[b], count[b])) {
                return PS_BAD_LAYOUT;
            }
        }
    }
    return PS_OK;
}
