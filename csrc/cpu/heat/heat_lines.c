/* heat_lines.c - the lines of a sweep of the heat solver, and their matrix. */
#include "heat/heat_sweep.h"

#include <stdint.h>

enum { ALIGNMENT = 64 };

/* The unknowns along an axis: nodes *first up to, but without, the returned node. */
static int64_t
unknowns_along(const ps_heat *h, int axis, int64_t *first)
{
    *first = axis < h->axes && h->side[axis][0].kind == PS_HEAT_VALUE;
    return h->nodes[axis] -
           (axis < h->axes && h->side[axis][1].kind == PS_HEAT_VALUE ? 1 : 0);
}

/* Number of values from an aligned address to node i of the first row of w. */
static int64_t
misplaced(const ps_heat *h, int64_t i)
{
    const int64_t size = ps_dtype_size(h->dtype);

    return (int64_t)(((uintptr_t)h->w + (uintptr_t)(i * size)) % ALIGNMENT) / size;
}

ps_heat_sweep
ps_heat_sweep_along(const ps_heat *h, int axis)
{
    const int64_t strides[] = {1, h->nodes[0], h->nodes[0] * h->nodes[1]};
    const int inner = axis == 0 ? 1 : 0, outer = axis == 2 ? 1 : 2;
    ps_heat_sweep s = {
        .h = h,
        .axis = axis,
        .stride = strides[axis],
        .inner_stride = strides[inner],
        .outer_stride = strides[outer],
        .inner_nodes = h->nodes[inner],
        .width = (axis == 0 ? PS_HEAT_ALONG_BYTES : PS_HEAT_ACROSS_BYTES) /
                 (int)ps_dtype_size(h->dtype),
        .theta = 0.5,
    };

    s.rows = unknowns_along(h, axis, &s.first) - s.first;
    s.inner_end = unknowns_along(h, inner, &s.inner_first);
    s.outer_end = unknowns_along(h, outer, &s.outer_first);
    s.inner_start = s.inner_first - (axis == 0 ? 0 : misplaced(h, s.inner_first));
    s.lead = axis == 0 ? misplaced(h, s.first) : 0;
    return s;
}

int64_t
ps_heat_run_bands(const ps_heat_sweep *s)
{
    return (s->inner_end - s->inner_start + s->width - 1) / s->width;
}

int64_t
ps_heat_bands(const ps_heat_sweep *s)
{
    return (s->outer_end - s->outer_first) * ps_heat_run_bands(s);
}

/* The negative off-diagonals, and the sum of the row: all are positive or 0. */
typedef struct {
    double lower, upper, sum;
} row;

static row
row_of(const ps_heat_sweep *s, int64_t i)
{
    const ps_heat_side *const side = s->h->side[s->axis];
    const double r = s->theta * s->h->ratio[s->axis];
    row e = {r, r, 1};

    if (i == 0 && side[0].kind == PS_HEAT_FLUX) {
        e.sum += s->theta * side[0].exchange;
        e.upper = 2 * r;
        e.lower = 0;
    }
    if (i == s->rows - 1 && side[1].kind == PS_HEAT_FLUX) {
        e.sum += s->theta * side[1].exchange;
        e.lower = 2 * r;
        e.upper = 0;
    }
    return e;
}

static void
put(const ps_heat_sweep *s, void *tables, int table, int64_t i, double value)
{
    if (s->h->dtype == PS_F32) {
        ((float *)tables)[table * s->rows + i] = (float)value;
    }
    else {
        ((double *)tables)[table * s->rows + i] = value;
    }
}

/* Two words, of which the first and the sum are given. The larger one is rounded first,
 * so that the sum is also exact in the dtype. */
static void
put_pair(const ps_heat_sweep *s, void *tables, int first, int64_t i, double a, double sum)
{
    const int is_f32 = s->h->dtype == PS_F32;
    const double large = a >= sum - a ? a : sum - a;
    const double rounded = is_f32 ? (float)large : large;

    put(s, tables, first, i, a >= sum - a ? rounded : sum - rounded);
    put(s, tables, first + 1, i, a >= sum - a ? sum - rounded : rounded);
}

/* The Thomas algorithm in double, without subtractions: the pivot of a row is the sum
 * of its upper, its row sum, and the part of its lower that remains after elimination
 * of the previous row. The last row and column of a periodic line are condensed as in
 * thomas.inc. */
void
ps_heat_make_tables(const ps_heat_sweep *s, void *tables)
{
    const int periodic = s->h->side[s->axis][0].kind == PS_HEAT_PERIODIC;
    const int64_t last = s->rows - 1, end = s->rows - periodic;
    const row e = row_of(s, last);
    double share = 1, far = 0, below = e.upper, bottom = e.sum;

    for (int64_t i = 0; i < end; i++) {
        row now = row_of(s, i);
        double wrapped = 0;

        if (periodic && i == 0) {
            wrapped += now.lower;
            now.lower = 0;
        }
        if (periodic && i == end - 1) {
            wrapped += now.upper;
            now.upper = 0;
            below += e.lower;
        }
        const double above = now.lower * share, own = now.sum + above;
        const double pivot = own + now.upper + wrapped + now.lower * far;

        far = (wrapped + now.lower * far) / pivot;
        share = own / pivot;
        put_pair(s, tables, PS_HEAT_MULTIPLIER, i, above / own, (1 + above) / own);
        put_pair(s, tables, PS_HEAT_UPPER, i, now.upper / pivot, 1 - far);
        put(s, tables, PS_HEAT_BOTTOM, i, below * share);
        put(s, tables, PS_HEAT_FAR, i, far);
        bottom += below * share;
        below *= now.upper / pivot;
    }
    if (periodic) {
        put_pair(s, tables, PS_HEAT_MULTIPLIER, last, 0, 1 / bottom);
        put_pair(s, tables, PS_HEAT_UPPER, last, 0, 1);
        put(s, tables, PS_HEAT_BOTTOM, last, 0);
        put(s, tables, PS_HEAT_FAR, last, 0);
    }
}
