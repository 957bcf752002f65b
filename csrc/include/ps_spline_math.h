/* ps_spline_math.h - the formulas of ps_spline.h for one row, one piece and one point, in
 * double precision, for the host and for a device.
 */
#ifndef PS_SPLINE_MATH_H
#define PS_SPLINE_MATH_H

#include <math.h>

#include "ps_spline.h"

#ifdef __CUDACC__
#define PS_SPLINE_INLINE static __host__ __device__ inline
#else
#define PS_SPLINE_INLINE static inline
#endif

/* A row of the system: its matrix, and
 *
 *   rhs = weight[0] (y_{a+1} - y_a) + weight[1] (y_{b+1} - y_b) + gain * given,
 *
 * where a and b are piece[0] and piece[1], and `given` is the derivative at the end. */
typedef struct {
    double lower, diag, upper;
    double weight[2], gain;
    int64_t piece[2];
} ps_spline_row;

/* Knot i of one row of knots, float if `is_single`, a constant of the caller. */
PS_SPLINE_INLINE double
ps_spline_knot(const void *x, int is_single, int64_t i)
{
    return is_single ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

/* The row of the first knot, or of the last one if `at_end`. h[0] and h[1] are the
 * lengths of the pieces, that at the end of the spline first.
 *
 * Not-a-knot: p''' is equal on both sides of the second knot, which, with the row of this
 * knot, gives h_1 s_0 + (h_0 + h_1) s_1 = rhs. Two knots give a line, three knots without
 * another condition a parabola. */
PS_SPLINE_INLINE void
ps_spline_end_row(ps_spline_end end, int at_end, int64_t knots, int is_parabola,
                  const double *h, ps_spline_row *row)
{
    const int own = at_end, other = !at_end;
    const double d = h[0] + h[1];
    double beyond = 0; /* the entry of the neighbour */

    row->weight[0] = row->weight[1] = row->gain = 0;
    row->diag = 1;
    if (end == PS_SPLINE_SLOPE) {
        row->gain = 1;
    }
    else if (end == PS_SPLINE_CURVATURE) {
        row->diag = 2 * h[0];
        beyond = h[0];
        row->weight[own] = 3;
        row->gain = (at_end ? 0.5 : -0.5) * h[0] * h[0];
    }
    else if (knots == 2) {
        row->weight[own] = 1 / h[0];
    }
    else if (is_parabola) {
        beyond = 1;
        row->weight[own] = 2 / h[0];
    }
    else {
        row->diag = h[1];
        beyond = d;
        row->weight[own] = (h[0] + 2 * d) * h[1] / (d * h[0]);
        row->weight[other] = h[0] * h[0] / (d * h[1]);
    }
    row->lower = at_end ? beyond : 0;
    row->upper = at_end ? 0 : beyond;
}

/* Subtract the row of a not-a-knot end from the row next to it: the entry of the slope at
 * the end vanishes, and the row is diagonally dominant. All weights are positive. */
PS_SPLINE_INLINE void
ps_spline_eliminate_end(int at_end, const double *h, ps_spline_row *row)
{
    const int own = at_end, other = !at_end;
    const double d = h[0] + h[1];

    row->diag = d;
    row->weight[own] = h[1] * h[1] / (d * h[0]);
    row->weight[other] = (2 * h[0] + 3 * h[1]) * h[0] / (d * h[1]);
    *(at_end ? &row->upper : &row->lower) = 0;
}

/* Row i of the system of a spline with these knots; row n - 1 of a periodic spline is
 * zero but for its diagonal. */
PS_SPLINE_INLINE ps_spline_row
ps_spline_row_of(const ps_spline_rows *r, const void *x, int is_single, int64_t i)
{
    const int64_t n = r->knots, step = r->x.stride.row, last = n - 2;
    const int is_periodic = r->end[0] == PS_SPLINE_PERIODIC;
    const int is_parabola =
        n == 3 && r->end[0] == PS_SPLINE_NOT_A_KNOT && r->end[1] == PS_SPLINE_NOT_A_KNOT;
    ps_spline_row row;
    double h[2];

    row.piece[0] = i - 1;
    row.piece[1] = i;
    if (i == 0) {
        row.piece[0] = is_periodic ? last : 0;
        row.piece[1] = is_periodic || n == 2 ? 0 : 1;
    }
    else if (i == n - 1) {
        row.piece[0] = n == 2 ? 0 : n - 3;
        row.piece[1] = last;
    }
    for (int k = 0; k < 2; k++) {
        h[k] = ps_spline_knot(x, is_single, (row.piece[k] + 1) * step) -
               ps_spline_knot(x, is_single, row.piece[k] * step);
    }
    const double back[2] = {h[1], h[0]};

    if (i == 0 && !is_periodic) {
        ps_spline_end_row(r->end[0], 0, n, is_parabola, h, &row);
        return row;
    }
    if (i == n - 1 && !is_periodic) {
        ps_spline_end_row(r->end[1], 1, n, is_parabola, back, &row);
        return row;
    }
    if (i == n - 1) { /* s_{n-1} is s_0 */
        row.lower = row.upper = row.weight[0] = row.weight[1] = row.gain = 0;
        row.diag = 1;
        return row;
    }
    row.lower = h[1];
    row.diag = 2 * (h[0] + h[1]);
    row.upper = h[0];
    row.weight[0] = 3 * h[1] / h[0];
    row.weight[1] = 3 * h[0] / h[1];
    row.gain = 0;
    if (i == 1 && r->end[0] == PS_SPLINE_NOT_A_KNOT && !is_parabola) {
        ps_spline_eliminate_end(0, h, &row);
    }
    if (i == n - 2 && r->end[1] == PS_SPLINE_NOT_A_KNOT && !is_parabola) {
        ps_spline_eliminate_end(1, back, &row);
    }
    return row;
}

/* Whether the values at the ends of a periodic spline differ. */
PS_SPLINE_INLINE int
ps_spline_is_open(int is_single, double first, double last)
{
    const double eps = is_single ? 1e-6 : 1e-15;

    return !(fabs(first - last) <= eps + eps * fabs(last));
}

/* The piece of a point: the last i with x_i <= at, between 0 and knots - 2. The search
 * starts at the piece that equidistant knots would have there or, if its knot is nearer,
 * at piece `hint`, that of the point before, and doubles its steps. */
PS_SPLINE_INLINE int64_t
ps_spline_find(const ps_polynomials *s, const void *x, int is_single, double at,
               int64_t hint)
{
    const int64_t step = s->x.stride.row, end = s->knots - 1;
    const double first = ps_spline_knot(x, is_single, 0);
    const double length = ps_spline_knot(x, is_single, end * step) - first;
    const double guess = (at - first) * ((double)end / length);
    int64_t low = guess > 0 ? guess < (double)end ? (int64_t)guess : end - 1 : 0;

    if (at >= ps_spline_knot(x, is_single, low * step) &&
        at < ps_spline_knot(x, is_single, (low + 1) * step)) {
        return low;
    }
    if (fabs(at - ps_spline_knot(x, is_single, hint * step)) <
        fabs(at - ps_spline_knot(x, is_single, low * step))) {
        low = hint;
    }
    int64_t high = low + 1, reach = 1;

    if (at >= ps_spline_knot(x, is_single, low * step)) {
        while (high < end && at >= ps_spline_knot(x, is_single, high * step)) {
            low = high;
            high += reach;
            reach *= 2;
        }
        high = high < end ? high : end;
    }
    else {
        do {
            high = low;
            low -= reach;
            reach *= 2;
        } while (low > 0 && at < ps_spline_knot(x, is_single, low * step));
        low = low > 0 ? low : 0;
    }
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        *(at >= ps_spline_knot(x, is_single, middle * step) ? &low : &high) = middle;
    }
    return low;
}

/* A point in its piece. With values and slopes,
 *
 *   value = is_value y_i + weight[0] (y_{i+1} - y_i) + weight[1] s_i + weight[2] s_{i+1},
 *
 * where is_value is 1 for nu = 0 and otherwise 0. With coefficients, weight[0] is the
 * distance from knot i, and weight[1] is added to the value. */
typedef struct {
    int64_t piece;
    double weight[3];
} ps_spline_point;

/* The derivatives of the cubic Hermite polynomials on a piece of length h, at the
 * distance u from its begin. */
PS_SPLINE_INLINE void
ps_spline_weights(double u, double h, int32_t nu, double *weight)
{
    const double t = u / h;

    switch (nu) {
    case 0:
        weight[0] = t * t * (3 - 2 * t);
        weight[1] = u * (1 - t) * (1 - t);
        weight[2] = u * t * (t - 1);
        return;
    case 1:
        weight[0] = 6 * t * (1 - t) / h;
        weight[1] = (1 - t) * (1 - 3 * t);
        weight[2] = t * (3 * t - 2);
        return;
    case 2:
        weight[0] = 6 * (1 - 2 * t) / (h * h);
        weight[1] = (6 * t - 4) / h;
        weight[2] = (6 * t - 2) / h;
        return;
    case 3:
        weight[0] = -12 / (h * h * h);
        weight[1] = weight[2] = 6 / (h * h);
        return;
    default:
        weight[0] = weight[1] = weight[2] = 0;
    }
}

/* Locate a point; `hint` is any piece. */
PS_SPLINE_INLINE ps_spline_point
ps_spline_locate(const ps_spline_points *p, const void *x, int is_single, double at,
                 int64_t hint)
{
    const ps_polynomials *const s = &p->from;
    const int64_t step = s->x.stride.row;
    const double first = ps_spline_knot(x, is_single, 0);
    const double last = ps_spline_knot(x, is_single, (s->knots - 1) * step);
    ps_spline_point point = {0, {NAN, NAN, NAN}};

    if (p->outside == PS_OUTSIDE_PERIODIC) {
        const double rest = fmod(at - first, last - first);

        at = first + (rest < 0 ? rest + (last - first) : rest);
    }
    if (isnan(at) || (p->outside == PS_OUTSIDE_NAN && !(at >= first && at <= last))) {
        return point;
    }
    point.piece = ps_spline_find(s, x, is_single, at, hint);
    const double begin = ps_spline_knot(x, is_single, point.piece * step);

    if (s->order == 0) {
        const double end = ps_spline_knot(x, is_single, (point.piece + 1) * step);

        ps_spline_weights(at - begin, end - begin, p->nu, point.weight);
    }
    else {
        point.weight[0] = at - begin;
        point.weight[1] = 0;
    }
    return point;
}

/* The coefficients of a cubic piece of length h from its values and slopes. */
PS_SPLINE_INLINE void
ps_spline_cubic(const double *y, const double *s, double h, double *a)
{
    const double slope = (y[1] - y[0]) / h;
    const double bend = (s[0] + s[1] - 2 * slope) / h;

    a[0] = y[0];
    a[1] = s[0];
    a[2] = (slope - s[0]) / h - bend;
    a[3] = bend / h;
}

/* (q + nu)! / q! */
PS_SPLINE_INLINE double
ps_spline_factor(int32_t q, int32_t nu)
{
    double factor = 1;

    for (int32_t k = 1; k <= nu; k++) {
        factor *= q + k;
    }
    return factor;
}

/* Replace `order` coefficients by those of the derivative of order nu >= 0, or, for
 * nu = -1, by those of the antiderivative but its constant; return then the integral over
 * the piece of length h, otherwise 0. `a` has PS_SPLINE_ORDERS entries. */
PS_SPLINE_INLINE double
ps_spline_differentiate(double *a, int32_t order, int32_t nu, double h)
{
    double integral = 0;

    if (nu >= 0) {
        for (int32_t q = 0; q == 0 || nu < order - q; q++) {
            a[q] = nu < order - q ? a[q + nu] * ps_spline_factor(q, nu) : 0;
        }
        return 0;
    }
    for (int32_t q = order; q > 0; q--) {
        a[q] = a[q - 1] / q;
        integral = (integral + a[q]) * h;
    }
    a[0] = 0;
    return integral;
}

#endif
