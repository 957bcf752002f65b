/* ps_spline.h - batches of cubic splines: the systems of their slopes, the coefficients
 * of their pieces, and their values at points.
 *
 * A spline with n knots x_0 < ... < x_{n-1} is a polynomial on each of n - 1 pieces,
 *
 *   p(x) = sum_q a_q (x - x_i)^q,   x_i <= x < x_{i+1},
 *
 * the first and the last one of which extend to all x outside. A cubic spline is stored
 * as the values y_i and the slopes s_i at its knots, two words per knot; the slopes are
 * the solution of a tridiagonal system (de Boor 1978, ch. IV).
 *
 * Slopes are in the unit H of the line of knots, a power of two near the average length
 * of the pieces: s_i = H p'(x_i). Other polynomials are stored as coefficients in the
 * unit of each piece: with h_i = x_{i+1} - x_i and t = (x - x_i)/h_i,
 *
 *   p(x) = h_i^power (a_0 + a_1 t + a_2 t^2 + ...),
 *
 * or, if a_0 is the sum of the integrals over the pieces before, in the unit of the line,
 *
 *   p(x) = H^power a_0 + h_i^power (a_1 t + a_2 t^2 + ...).
 *
 * Stored numbers are as large as the values, in whatever unit the knots are.
 */
#ifndef PS_SPLINE_H
#define PS_SPLINE_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Condition at an end of a spline: the third derivative is continuous at the second or
 * the last but one knot; the first or second derivative is given; or all derivatives of
 * the spline are periodic. A spline is periodic at both ends or at none. */
#define PS_SPLINE_END_LIST(X)             \
    X(PS_SPLINE_NOT_A_KNOT, "not-a-knot") \
    X(PS_SPLINE_SLOPE, "slope")           \
    X(PS_SPLINE_CURVATURE, "curvature")   \
    X(PS_SPLINE_PERIODIC, "periodic")

/* The value at a point outside the knots: that of the first or last piece, NaN, or that
 * at the point shifted by periods. */
#define PS_SPLINE_OUTSIDE_LIST(X)            \
    X(PS_OUTSIDE_EXTRAPOLATE, "extrapolate") \
    X(PS_OUTSIDE_NAN, "nan")                 \
    X(PS_OUTSIDE_PERIODIC, "periodic")

/* What is wrong with the data of a spline. */
#define PS_SPLINE_FAULT_LIST(X)  \
    X(PS_FAULT_KNOTS, "knots")   \
    X(PS_FAULT_ORDER, "order")   \
    X(PS_FAULT_VALUES, "values") \
    X(PS_FAULT_PERIOD, "period")

#define PS_NAME_(name, text) name,
typedef enum { PS_SPLINE_END_LIST(PS_NAME_) PS_SPLINE_ENDS } ps_spline_end;
typedef enum { PS_SPLINE_OUTSIDE_LIST(PS_NAME_) PS_SPLINE_OUTSIDES } ps_spline_outside;
typedef enum { PS_SPLINE_FAULT_LIST(PS_NAME_) PS_SPLINE_FAULTS } ps_spline_fault;
#undef PS_NAME_

/* Most coefficients of a piece. */
enum { PS_SPLINE_ORDERS = 12 };

/* The systems of the slopes of outer * inner splines. Row i of a spline that is not
 * periodic, with h_i = x_{i+1} - x_i, is
 *
 *   h_i s_{i-1} + 2 (h_{i-1} + h_i) s_i + h_{i-1} s_{i+1}
 *     = 3 h_i (y_i - y_{i-1})/h_{i-1} + 3 h_{i-1} (y_{i+1} - y_i)/h_i
 *
 * with h_i in the unit of the line, but for the rows of the ends. The system of a
 * periodic spline has knots - 1 rows; the last row that is written does not belong to it.
 * Arrays whose data is null are neither read nor written; without y only the matrix is
 * computed, without lower, diag and upper only the rhs. If has_one_matrix is set, which
 * requires knots that all splines share, the matrix and the copy of the knots are those of
 * the first spline and written once. */
struct ps_spline_rows {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    int64_t knots;  /* at least 2 */
    int64_t outer, inner;
    int32_t
        parts; /* neighbours on the inner axis of y that are one series: 2 if complex */
    ps_spline_end end[2];
    ps_input x, y;
    ps_input given[2]; /* derivatives at the ends, one row; null: 0 */
    ps_output lower, diag, upper, rhs;
    ps_output values;     /* copy of y; written if y is read */
    ps_output knots_copy; /* can be null; written with the matrix */
    int32_t has_one_matrix;
    /* Entry f is set to 1 if any knot or value has the fault f: a knot or a value is not
     * finite, the knots do not increase, or y_0 and y_{n-1} of a periodic spline differ
     * by more than 8 eps of the largest value of the series. The other entries are left
     * as they are. */
    int32_t *faults;
};

/* Piecewise polynomials: `order` coefficients per piece, coefficient[q] is a_q; or cubic,
 * by values and slopes, if order is 0: coefficient[0] is y, coefficient[1] is s, which
 * have `knots` rows; power and is_sum are then 0. All coefficient arrays have the same
 * strides. */
typedef struct {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    int64_t knots;  /* at least 2 */
    int64_t outer, inner;
    ps_input x;
    int32_t order;
    int32_t power;  /* between -PS_SPLINE_ORDERS and PS_SPLINE_ORDERS */
    int32_t is_sum; /* whether a_0 is in the unit of the line */
    const void *coefficient[PS_SPLINE_ORDERS];
    ps_stride stride;
} ps_polynomials;

/* Derivatives of order `nu` of polynomials at points, one row of points per spline:
 * value(i) = p^(nu)(at(i)). A point that is NaN gives NaN. */
struct ps_spline_points {
    ps_polynomials from;
    int32_t nu;
    ps_spline_outside outside;
    int64_t points;
    ps_input at;
    ps_output value;
};

/* The coefficients of the derivative of order `nu` >= 0 of polynomials: as many as its
 * degree has, at least one; its power is smaller by nu, and for nu > 0 its a_0 is no sum.
 * Or, for nu = -1, all coefficients of an antiderivative but the constants, and in place
 * of the constant of piece i + 1 the integral over piece i, in place of that of piece 0
 * zero, in the unit of the line: the constants are the sums of these. Its power is larger
 * by 1. */
struct ps_spline_pieces {
    ps_polynomials from;
    int32_t nu;
    int32_t is_absolute; /* write those of powers of x - x_i; nu must be 0 */
    void *coefficient[PS_SPLINE_ORDERS];
    ps_stride stride;
};

/* Number of coefficients of the derivative of order `nu` of polynomials; more than
 * PS_SPLINE_ORDERS: ps_spline_pieces_check() refuses. */
int32_t ps_spline_order(int32_t order, int32_t nu);

/* Check all that the structs alone determine, for all backends. */
ps_status ps_spline_rows_check(const ps_spline_rows *r);
ps_status ps_spline_points_check(const ps_spline_points *p);
ps_status ps_spline_pieces_check(const ps_spline_pieces *p);

#ifdef __cplusplus
}
#endif
#endif
