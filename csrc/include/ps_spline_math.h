/* ps_spline_math.h - the formulas of ps_spline.h for one row, one piece and one point, in
 * double precision, for the host and for a device.
 *
 * Knots can be in any unit: distances of 1e-30 or 1e30 in single precision. No power of a
 * distance but the first is formed: rows and slopes are in the unit H of the line of
 * knots, polynomials in t = (x - x_i)/h_i, and a derivative or an integral is divided or
 * multiplied by h_i, or by H, once for each order. H is a power of two, so that it rounds
 * nothing.
 */
#ifndef PS_SPLINE_MATH_H
#define PS_SPLINE_MATH_H

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ps_spline.h"

#ifdef __CUDACC__
#define PS_SPLINE_INLINE static __host__ __device__ inline
#else
#define PS_SPLINE_INLINE static inline
#endif
/* Of the functions for each point, whose results are then in registers. */
#ifdef __GNUC__
#define PS_SPLINE_POINT PS_SPLINE_INLINE __attribute__((always_inline))
#else
#define PS_SPLINE_POINT PS_SPLINE_INLINE
#endif

/* A row of the system: its matrix, and
 *
 *   rhs = weight[0] (y_{a+1} - y_a) + weight[1] (y_{b+1} - y_b),
 *
 * where a and b are piece[0] and piece[1]; ps_spline_given() adds a derivative at an end.
 */
typedef struct {
    double lower, diag, upper;
    double weight[2];
    int64_t piece[2];
} ps_spline_row;

/* Knot i of one row of knots, float if `is_single`, a constant of the caller. */
PS_SPLINE_INLINE double
ps_spline_knot(const void *x, int is_single, int64_t i)
{
    return is_single ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

/* A line of knots. */
typedef struct {
    double first, last; /* knots */
    double density;     /* pieces per length */
    double rate;        /* 1/H: the largest power of two that is at most `density` */
} ps_spline_line;

PS_SPLINE_INLINE ps_spline_line
ps_spline_line_of(const void *x, int is_single, int64_t knots, int64_t step)
{
    const double first = ps_spline_knot(x, is_single, 0);
    const double last = ps_spline_knot(x, is_single, (knots - 1) * step);
    ps_spline_line line = {first, last, (double)(knots - 1) / (last - first), 0};
    uint64_t bits;

    memcpy(&bits, &line.density, sizeof bits);
    bits &= UINT64_C(0x7ff) << 52; /* without sign and fraction */
    memcpy(&line.rate, &bits, sizeof bits);
    line.rate =
        line.rate > 0x1p-1000 ? line.rate < 0x1p1000 ? line.rate : 0x1p1000 : 0x1p-1000;
    return line;
}

/* The row of the first knot, or of the last one if `at_end`. h[0] and h[1] are the
 * lengths of the pieces, that at the end of the spline first, in the unit of the line.
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

    row->weight[0] = row->weight[1] = 0;
    row->diag = 1;
    if (end == PS_SPLINE_CURVATURE) {
        row->diag = 2 * h[0];
        beyond = h[0];
        row->weight[own] = 3;
    }
    else if (end == PS_SPLINE_SLOPE) {
        /* s = rhs */
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

/* Replace one of the first or last two rows, row i, by that of the conditions at the
 * ends, where it differs from the rows inside. h[0] and h[1] are the lengths of its
 * pieces. */
PS_SPLINE_INLINE void
ps_spline_border_row(const ps_spline_rows *r, int64_t i, const double *h,
                     ps_spline_row *row)
{
    const int64_t n = r->knots;
    const int is_periodic = r->end[0] == PS_SPLINE_PERIODIC;
    const int is_parabola =
        n == 3 && r->end[0] == PS_SPLINE_NOT_A_KNOT && r->end[1] == PS_SPLINE_NOT_A_KNOT;
    const double back[2] = {h[1], h[0]};

    if (i == 0 && !is_periodic) {
        ps_spline_end_row(r->end[0], 0, n, is_parabola, h, row);
        return;
    }
    if (i == n - 1 && !is_periodic) {
        ps_spline_end_row(r->end[1], 1, n, is_parabola, back, row);
        return;
    }
    if (i == n - 1) { /* s_{n-1} is s_0 */
        row->lower = row->upper = row->weight[0] = row->weight[1] = 0;
        row->diag = 1;
        return;
    }
    if (i == 1 && r->end[0] == PS_SPLINE_NOT_A_KNOT && !is_parabola) {
        ps_spline_eliminate_end(0, h, row);
    }
    if (i == n - 2 && r->end[1] == PS_SPLINE_NOT_A_KNOT && !is_parabola) {
        ps_spline_eliminate_end(1, back, row);
    }
}

/* Row i of the system of a spline with these knots, a line with this rate; row n - 1 of a
 * periodic spline is zero but for its diagonal. */
PS_SPLINE_INLINE ps_spline_row
ps_spline_row_of(const ps_spline_rows *r, const void *x, int is_single, double rate,
                 int64_t i)
{
    const int64_t n = r->knots, step = r->x.stride.row, last = n - 2;
    const int is_periodic = r->end[0] == PS_SPLINE_PERIODIC;
    int64_t a = i - 1, b = i;

    if (i == 0) {
        a = is_periodic ? last : 0;
        b = is_periodic || n == 2 ? 0 : 1;
    }
    else if (i == n - 1) {
        a = n == 2 ? 0 : n - 3;
        b = last;
    }
    const double h[2] = {rate * (ps_spline_knot(x, is_single, (a + 1) * step) -
                                 ps_spline_knot(x, is_single, a * step)),
                         rate * (ps_spline_knot(x, is_single, (b + 1) * step) -
                                 ps_spline_knot(x, is_single, b * step))};
    ps_spline_row row = {
        h[1], 2 * (h[0] + h[1]), h[0], {3 * h[1] / h[0], 3 * h[0] / h[1]}, {a, b}};

    if (i < 2 || i > n - 3) {
        ps_spline_border_row(r, i, h, &row);
    }
    return row;
}

/* What the derivative `given` at an end adds to the rhs of its row. */
PS_SPLINE_INLINE double
ps_spline_given(const ps_spline_rows *r, const void *x, int is_single, double rate,
                int at_end, double given)
{
    const int64_t step = r->x.stride.row, first = at_end ? (r->knots - 2) * step : 0;

    if (r->end[at_end] == PS_SPLINE_CURVATURE) {
        const double h = ps_spline_knot(x, is_single, first + step) -
                         ps_spline_knot(x, is_single, first);

        return (at_end ? 0.5 : -0.5) * h * given * h;
    }
    return r->end[at_end] == PS_SPLINE_SLOPE ? given / rate : 0;
}

/* Whether the values of a periodic spline differ at the ends: by more than 8 eps of the
 * largest value of the series. `y` points to spline k of its row of splines. The search
 * ends at the first value that is large enough, for equal ends the first one. */
PS_SPLINE_INLINE int
ps_spline_is_open(const ps_spline_rows *r, const void *y, int is_single, int64_t k)
{
    const int64_t step = r->y.stride.row, part = k % r->parts;
    const double eps = is_single ? FLT_EPSILON : DBL_EPSILON;
    const double apart = ps_spline_knot(y, is_single, 0) -
                         ps_spline_knot(y, is_single, (r->knots - 1) * step);
    const double least = fabs(apart) / (8 * eps);

    for (int64_t i = 0; i < r->knots; i++) {
        for (int64_t m = -part; m < r->parts - part; m++) {
            const int64_t at = i * step + m * r->y.stride.inner;

            if (fabs(ps_spline_knot(y, is_single, at)) >= least) {
                return 0;
            }
        }
    }
    return 1;
}

/* The piece of a point: the last i with x_i <= at, between 0 and knots - 2. The search
 * starts at the piece that equidistant knots would have there or, if its knot is nearer,
 * at piece `hint`, that of the point before, and doubles its steps. */
PS_SPLINE_INLINE int64_t
ps_spline_find(const ps_polynomials *s, const void *x, int is_single,
               const ps_spline_line *line, double at, int64_t hint)
{
    const int64_t step = s->x.stride.row, end = s->knots - 1;
    const double guess = (at - line->first) * line->density;
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

/* unit^power for power >= 0, and whether the products with it are in the range of the
 * dtype. */
PS_SPLINE_INLINE double
ps_spline_power(double unit, int32_t power)
{
    double product = 1;

    for (; power > 0; power--) {
        product *= unit;
    }
    return product;
}

PS_SPLINE_INLINE int
ps_spline_is_safe(int is_single, double factor)
{
    return is_single ? factor >= 0x1p-100 && factor <= 0x1p100
                     : factor >= 0x1p-900 && factor <= 0x1p900;
}

/* value * unit^power, one factor after the other: finite if the result is. */
PS_SPLINE_INLINE double
ps_spline_stepwise(double value, double unit, int32_t power)
{
    for (; power > 0; power--) {
        value *= unit;
    }
    for (; power < 0; power++) {
        value /= unit;
    }
    return value;
}

/* A point in its piece. With values and slopes,
 *
 *   value = is_value y_i + weight[0] (y_{i+1} - y_i) + weight[1] s_i + weight[2] s_{i+1},
 *
 * where is_value is 1 for nu = 0 and otherwise 0. With coefficients,
 *
 *   value = weight[2] (a_0 + weight[1] (a_1 t + a_2 t^2 + ...)),   t = weight[0],
 *
 * or the derivative of order nu in t, where weight[1] is 1. Both are then multiplied by
 * unit^power, where power is 0 unless a weight is out of the range of the dtype. */
typedef struct {
    int64_t piece;
    double weight[3], unit;
    int32_t power;
} ps_spline_point;

/* The derivatives of the cubic Hermite polynomials on a piece of length h, at the
 * distance u from its begin; the slopes are in the unit of the line. */
PS_SPLINE_POINT void
ps_spline_weights(double u, double h, double rate, int32_t nu, int is_single,
                  ps_spline_point *point)
{
    double *const weight = point->weight;

    if (nu == 0) {
        const double t = u / h;

        weight[0] = t * t * (3 - 2 * t);
        weight[1] = rate * u * (1 - t) * (1 - t);
        weight[2] = rate * u * t * (t - 1);
        return;
    }
    const double per_length = 1 / h, t = u * per_length;
    double of_values, of_slopes; /* 1/h^nu, and H^-1 h^(1 - nu) */

    switch (nu) {
    case 1:
        weight[0] = 6 * t * (1 - t);
        weight[1] = (1 - t) * (1 - 3 * t);
        weight[2] = t * (3 * t - 2);
        of_values = per_length;
        of_slopes = rate;
        break;
    case 2:
        weight[0] = 6 * (1 - 2 * t);
        weight[1] = 6 * t - 4;
        weight[2] = 6 * t - 2;
        of_values = per_length * per_length;
        of_slopes = rate * per_length;
        break;
    case 3:
        weight[0] = -12;
        weight[1] = weight[2] = 6;
        of_values = per_length * per_length * per_length;
        of_slopes = rate * (per_length * per_length);
        break;
    default:
        weight[0] = weight[1] = weight[2] = 0;
        return;
    }
    if (!ps_spline_is_safe(is_single, of_values) ||
        !ps_spline_is_safe(is_single, of_slopes)) {
        of_values = 1;
        of_slopes = rate * h;
        point->unit = h;
        point->power = -nu;
    }
    weight[0] *= of_values;
    weight[1] *= of_slopes;
    weight[2] *= of_slopes;
}

/* Locate a point among the knots x, whose line is `line`; `hint` is any piece. */
PS_SPLINE_POINT ps_spline_point
ps_spline_locate(const ps_spline_points *p, const void *x, int is_single,
                 const ps_spline_line *line, double at, int64_t hint)
{
    const ps_polynomials *const s = &p->from;
    const int64_t step = s->x.stride.row;
    const int is_inside = at >= line->first && at <= line->last;
    ps_spline_point point = {0, {NAN, NAN, NAN}, 1, 0};

    if (p->outside == PS_OUTSIDE_PERIODIC && !(is_inside && at < line->last)) {
        const double length = line->last - line->first;
        const double rest = fmod(at - line->first, length);

        at = line->first + (rest < 0 ? rest + length : rest);
    }
    if (isnan(at) || (p->outside == PS_OUTSIDE_NAN && !is_inside)) {
        return point;
    }
    point.piece = ps_spline_find(s, x, is_single, line, at, hint);
    const double begin = ps_spline_knot(x, is_single, point.piece * step);
    const double u = at - begin;
    const double h = ps_spline_knot(x, is_single, (point.piece + 1) * step) - begin;

    if (s->order == 0) {
        ps_spline_weights(u, h, line->rate, p->nu, is_single, &point);
        return point;
    }
    const int is_sum = s->is_sum && p->nu == 0;
    const double per_length = 1 / h;
    const double unit = is_sum ? 1 / line->rate : h;
    const double per_unit = is_sum ? line->rate : per_length;
    const int32_t power = s->power - p->nu;
    const double factor = ps_spline_power(power < 0 ? per_unit : unit, abs(power));
    const int is_safe = ps_spline_is_safe(is_single, factor);

    point.weight[0] = u * per_length;
    point.weight[1] = is_sum ? ps_spline_stepwise(1, line->rate * h, s->power) : 1;
    point.weight[2] = is_safe ? factor : 1;
    point.unit = unit;
    point.power = is_safe ? 0 : power;
    return point;
}

/* The coefficients, in t, of a cubic piece of length h in the unit of the line, from its
 * values and slopes. */
PS_SPLINE_INLINE void
ps_spline_cubic(const double *y, const double *s, double h, double *a)
{
    const double change = y[1] - y[0], first = h * s[0], last = h * s[1];

    a[0] = y[0];
    a[1] = first;
    a[2] = (change - first) - (first + last - 2 * change);
    a[3] = first + last - 2 * change;
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

/* Replace the coefficients of polynomials of `order` coefficients by those of the
 * derivative of order nu >= 0, or, for nu = -1, by those of the antiderivative but its
 * constant; return then the integral over the piece, in the unit of the line, otherwise
 * 0. `a` has PS_SPLINE_ORDERS entries, h is the length of the piece in the unit of the
 * line. */
PS_SPLINE_INLINE double
ps_spline_differentiate(const ps_polynomials *s, double *a, int32_t order, int32_t nu,
                        double h)
{
    double integral = 0;

    if (nu >= 0) {
        for (int32_t q = 0; nu > 0 && (q == 0 || nu < order - q); q++) {
            a[q] = nu < order - q ? a[q + nu] * ps_spline_factor(q, nu) : 0;
        }
        return 0;
    }
    if (s->is_sum) {
        a[0] = ps_spline_stepwise(a[0], h, -s->power);
    }
    for (int32_t q = order; q > 0; q--) {
        a[q] = a[q - 1] / q;
        integral += a[q];
    }
    a[0] = 0;
    return ps_spline_stepwise(integral, h, s->power + 1);
}

/* Coefficient q of a polynomial in t as that of (x - x_i)^q; h is the length of the
 * piece. */
PS_SPLINE_INLINE double
ps_spline_absolute(const ps_polynomials *s, double a, int32_t q, double h, double rate,
                   int is_single)
{
    const double unit = s->is_sum && q == 0 ? 1 / rate : h;
    const int32_t power = s->power - q;
    const double factor = ps_spline_power(power < 0 ? 1 / unit : unit, abs(power));

    return ps_spline_is_safe(is_single, factor) ? a * factor
                                                : ps_spline_stepwise(a, unit, power);
}

#endif
