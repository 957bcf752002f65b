/* spline_check.c - checks of the structs of ps_spline.h, for all backends. */
#include "ps_spline.h"

static int
is_batch(ps_dtype dtype, int64_t knots, int64_t outer, int64_t inner)
{
    return ps_is_real(dtype) && knots >= 2 && knots < INT32_MAX && outer >= 0 &&
           inner >= 0;
}

ps_status
ps_spline_rows_check(const ps_spline_rows *r)
{
    if (r == NULL || !is_batch(r->dtype, r->knots, r->outer, r->inner)) {
        return PS_BAD_ARGUMENT;
    }
    for (int k = 0; k < 2; k++) {
        if ((unsigned)r->end[k] >= PS_SPLINE_ENDS) {
            return PS_BAD_ARGUMENT;
        }
    }
    if ((r->end[0] == PS_SPLINE_PERIODIC) != (r->end[1] == PS_SPLINE_PERIODIC)) {
        return PS_BAD_ARGUMENT;
    }
    const int has_matrix = r->diag.data != NULL, has_values = r->y.data != NULL;

    if (r->parts < 1 || (has_values && r->inner % r->parts != 0)) {
        return PS_BAD_ARGUMENT;
    }
    if (r->has_one_matrix && (r->x.stride.outer != 0 || r->x.stride.inner != 0)) {
        return PS_BAD_ARGUMENT;
    }
    if (r->x.data == NULL || r->faults == NULL || has_matrix != (r->lower.data != NULL) ||
        has_matrix != (r->upper.data != NULL) || has_values != (r->rhs.data != NULL) ||
        has_values != (r->values.data != NULL)) {
        return PS_BAD_ARGUMENT;
    }
    return PS_OK;
}

static ps_status
check_polynomials(const ps_polynomials *s)
{
    if (!is_batch(s->dtype, s->knots, s->outer, s->inner) || s->order < 0 ||
        s->order > PS_SPLINE_ORDERS || s->x.data == NULL) {
        return PS_BAD_ARGUMENT;
    }
    const int32_t most = s->order == 0 ? 0 : PS_SPLINE_ORDERS;

    if (s->power < -most || s->power > most || (s->order == 0 && s->is_sum)) {
        return PS_BAD_ARGUMENT;
    }
    for (int32_t q = 0; q < (s->order == 0 ? 2 : s->order); q++) {
        if (s->coefficient[q] == NULL) {
            return PS_BAD_ARGUMENT;
        }
    }
    return PS_OK;
}

ps_status
ps_spline_points_check(const ps_spline_points *p)
{
    if (p == NULL || p->nu < 0 || p->points < 0 ||
        (unsigned)p->outside >= PS_SPLINE_OUTSIDES) {
        return PS_BAD_ARGUMENT;
    }
    if (p->points > 0 && (p->at.data == NULL || p->value.data == NULL)) {
        return PS_BAD_ARGUMENT;
    }
    return check_polynomials(&p->from);
}

int32_t
ps_spline_order(int32_t order, int32_t nu)
{
    const int32_t left = (order == 0 ? 4 : order) - nu;

    return left > 1 ? left : 1;
}

ps_status
ps_spline_pieces_check(const ps_spline_pieces *p)
{
    if (p == NULL || p->nu < -1 || (p->is_absolute && p->nu != 0)) {
        return PS_BAD_ARGUMENT;
    }
    const int32_t order = ps_spline_order(p->from.order, p->nu);

    if (order > PS_SPLINE_ORDERS) {
        return PS_BAD_ARGUMENT;
    }
    for (int32_t q = 0; q < order; q++) {
        if (p->coefficient[q] == NULL) {
            return PS_BAD_ARGUMENT;
        }
    }
    return check_polynomials(&p->from);
}
