/* ps_rates.h - the rates of an equation on a box, and linear combinations with them, in
 * one pass over the fields. */
#ifndef PS_RATES_H
#define PS_RATES_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Axes of space, of a field with a batch, pairs of axes of space, and results. */
enum { PS_RATES_SPACE = 3, PS_RATES_AXES = 4, PS_RATES_PAIRS = 3, PS_RATES_OUTS = 2 };

/* Values at the nodes of the box: null, or strides along (batch, z, y, x) in elements, 0 or
 * 1 along x. */
typedef struct {
    const void *data;
    int64_t stride[PS_RATES_AXES];
} ps_rates_input;

/* Fields have the contiguous shape size[], with the axes (batch, z, y, x). The nodes of the
 * box begin at begin[] and are count[] along each axis. With y = u + d and the neighbours
 * y- and y+ along an axis of space (x, y, z as 0, 1, 2), at each node of the box
 *
 *   L = source - sum over axes of (lower y- + diag y + upper y+)
 *   M = extra + sum over pairs of axes a < b of mixed D_a D_b y,
 *   D_a y = slope_lower y- + slope_diag y + slope_upper y+
 *   out = line L + part M + own out + change d + base u
 *
 * Off the field a neighbour is the node on the other side if `periodic` is set, otherwise
 * the node itself, whose weight must be 0. Pairs are (x, y), (x, z), (y, z). The values of a
 * slope depend on its own axis only. Null: d, source, extra and each of mixed count as 0,
 * and an out is not written. An out overlaps no other operand. Nodes outside the box are
 * not written. No workspace. */
typedef struct {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    int32_t space;  /* axes of space, 1 to 3: the other ones have length 1 */
    int32_t periodic[PS_RATES_SPACE];
    int64_t size[PS_RATES_AXES], begin[PS_RATES_AXES], count[PS_RATES_AXES];
    const void *u, *d;
    ps_rates_input rows[PS_RATES_SPACE][3], slope[PS_RATES_SPACE][3];
    ps_rates_input mixed[PS_RATES_PAIRS], source, extra;
    void *out[PS_RATES_OUTS];
    double line[PS_RATES_OUTS], part[PS_RATES_OUTS], own[PS_RATES_OUTS],
        change[PS_RATES_OUTS], base[PS_RATES_OUTS];
} ps_rates;

/* PS_BAD_ARGUMENT if the box is not in the field, or a size is out of range. */
ps_status ps_rates_check(const ps_rates *r);

#ifdef __cplusplus
}
#endif
#endif
