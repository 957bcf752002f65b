/* heat_lines.c - the lines of a sweep of the heat solver. */
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

/* Number of values from an aligned address to node i of a field that begins at `field`. */
static int64_t
misplaced(const ps_heat *h, const void *field, int64_t i)
{
    const int64_t size = ps_dtype_size(h->dtype);

    return (int64_t)(((uintptr_t)field + (uintptr_t)(i * size)) % ALIGNMENT) / size;
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
        .width = PS_HEAT_BAND_BYTES / (int)ps_dtype_size(h->dtype),
        .theta = 0.5,
    };

    s.rows = unknowns_along(h, axis, &s.first) - s.first;
    s.inner_end = unknowns_along(h, inner, &s.inner_first);
    s.outer_end = unknowns_along(h, outer, &s.outer_first);
    s.inner_start = s.inner_first - (axis == 0 ? 0 : misplaced(h, h->w, s.inner_first));
    /* Rounding errors in float32 depend on `lead`, because blocks of rows begin with
     * chunks. `lead` is therefore that of an aligned field, wherever the field lies. */
    s.lead = axis == 0 ? misplaced(h, NULL, s.first) : 0;
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
