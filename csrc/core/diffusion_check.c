/* diffusion_check.c - checks of a ps_diffusion, for all backends. */
#include <math.h>

#include "ps_diffusion.h"

static int
check_axis(const ps_diffusion *d, const ps_diffusion_level *l, int axis)
{
    const int64_t n = l->nodes[axis], first = l->first[axis], end = l->end[axis];

    if (n < 1 || n >= INT32_MAX || first < 0 || first > 1 || end < n - 1 || end > n ||
        first >= end) {
        return 0;
    }
    if (axis >= d->axes) {
        return n == 1 && first == 0 && end == 1;
    }
    return l->conductance[axis] != NULL &&
           (!d->periodic[axis] || (first == 0 && end == n));
}

static int
check_lines(const ps_diffusion *d, const ps_diffusion_level *l)
{
    for (int axis = 0; axis < d->axes; axis++) {
        const ps_factor *const f = &l->line[axis];
        const int inner = axis == 0 ? 1 : 0, outer = axis == 2 ? 1 : 2;

        if (ps_factor_check(f, NULL) != PS_OK || f->store == NULL ||
            f->dtype != d->cycle || f->rows != l->end[axis] - l->first[axis] ||
            f->inner != l->end[inner] - l->first[inner] ||
            f->outer != l->end[outer] - l->first[outer]) {
            return 0;
        }
    }
    return 1;
}

/* Whether the next level has the nodes that ps_diffusion.h states. */
static int
check_next(const ps_diffusion *d, const ps_diffusion_level *l,
           const ps_diffusion_level *c)
{
    for (int axis = 0; axis < PS_DIFFUSION_AXES; axis++) {
        const int64_t n = l->nodes[axis];
        const int64_t coarse = d->periodic[axis] ? (n + 1) / 2 : n / 2 + 1;

        if (c->nodes[axis] != (l->weight[axis] == NULL ? n : coarse) ||
            (l->weight[axis] != NULL && (axis >= d->axes || n < 3))) {
            return 0;
        }
    }
    return 1;
}

static int
check_level(const ps_diffusion *d, const ps_diffusion_level *l)
{
    for (int axis = 0; axis < PS_DIFFUSION_AXES; axis++) {
        if (!check_axis(d, l, axis)) {
            return 0;
        }
    }
    return l->sum != NULL;
}

static int
check_levels(const ps_diffusion *d)
{
    for (int32_t k = 0; k < d->levels; k++) {
        const ps_diffusion_level *const l = &d->level[k];

        if (!check_level(d, l) || !check_lines(d, l) ||
            (k + 1 < d->levels && !check_next(d, l, l + 1))) {
            return 0;
        }
    }
    for (int axis = 0; axis < PS_DIFFUSION_AXES; axis++) {
        if (d->level[0].nodes[axis] != d->system.nodes[axis] ||
            d->level[0].first[axis] != d->system.first[axis] ||
            d->level[0].end[axis] != d->system.end[axis]) {
            return 0;
        }
    }
    return 1;
}

ps_status
ps_diffusion_check(const ps_diffusion *d, int32_t solves)
{
    if (d == NULL || !ps_is_real(d->dtype) || d->x == NULL ||
        (d->axes != 2 && d->axes != PS_DIFFUSION_AXES) ||
        d->periodic[2] * (3 - d->axes) != 0 || !check_level(d, &d->system)) {
        return PS_BAD_ARGUMENT;
    }
    if (solves && ((d->cycle != d->dtype && d->cycle != PS_F32) || d->levels < 1 ||
                   d->levels > PS_DIFFUSION_LEVELS || !check_levels(d) ||
                   d->rhs == NULL || !(d->rtol >= 0) || !(d->ratio >= 0) || d->most < 0 ||
                   d->fields < 0 || d->fields > PS_DIFFUSION_BASIS)) {
        return PS_BAD_ARGUMENT;
    }
    for (int k = 0; solves && k < d->fields; k++) {
        if (d->basis[k] == NULL) {
            return PS_BAD_ARGUMENT;
        }
    }
    return PS_OK;
}
