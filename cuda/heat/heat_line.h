/* heat_line.h - lines of one constant matrix as two recurrences of first order.
 *
 * The rows are -a x_{i-1} + (1 + 2a) x_i - a x_{i+1} = b_i. Let q be the smaller root
 * of a q^2 - (1 + 2a) q + a = 0 and p = 1 - q, so that p^2 = q / a. Then
 *
 *   u_i = q u_{i-1} + p b_i        for increasing i, from U = u_{-1}
 *   x_i = q x_{i+1} + p u_i        for decreasing i, from Y = x_rows
 *
 * U and Y follow from the conditions at the ends, x_{-1} = theta x_0 + value and
 * likewise after the last row: they are linear in the x_0 and u_last that U = Y = 0
 * give. All coefficients are positive, so the method is stable for any a. 7 or 8
 * operations per row. A thread has a chunk of rows; 32 chunks are a group. q is rounded
 * first and p is chosen such that q + p is exactly 1, so that a constant solution stays
 * constant.
 */
#ifndef PS_CUDA_HEAT_HEAT_LINE_H
#define PS_CUDA_HEAT_HEAT_LINE_H

#include "runtime/engine.h"

namespace pysolvers::heat {

/* Chunks of a group; the largest numbers of groups of a line and of rows of a chunk. */
enum { HEAT_CHUNKS = 32, HEAT_MOST_GROUPS = 32, HEAT_MOST_ROWS = 33 };

/* The condition at an end of a line: x beyond the end is (theta + theta_by_a / a) * x +
 * take * value, where `value` is that of the side. The right-hand side of the end row
 * is weight * (b + add * value). */
typedef struct {
    double theta, theta_by_a, take, weight, add;
} ps_cuda_heat_end;

/* The constants of lines of `rows` rows in chunks of `chunk` rows. The first `pads`
 * places of the first group are no rows. */
typedef struct {
    double q, p;
    double power, group_power;   /* q^chunk, q^(32 chunk) */
    double spread, group_spread; /* factor from u before a chunk, or a group, to x of its
                                    first row */
    double first_power;          /* power of q from the first row to the second group */
    double first_reach;          /* and to the next chunk */
    /* coefficients of U and Y: for x_0, u_last and the values of the ends */
    double u[4], y[4];
    int32_t pads, first_chunk, groups, chunk;
    int64_t rows;
    ps_cuda_heat_end end[2];
} ps_cuda_heat_line;

/* `single`: for float. */
ps_cuda_heat_line ps_cuda_heat_line_of(double a, const ps_cuda_heat_end end[2],
                                       bool periodic, int64_t rows, int chunk,
                                       bool single);

/* The influence of U, Y and of the boundary values of a group on its chunks and on
 * other groups. */
template <typename Real> struct HeatTable {
    /* [first group, others] */
    Real u[2][HEAT_CHUNKS], x[HEAT_CHUNKS], both[2][HEAT_CHUNKS];
    Real group_u[HEAT_MOST_GROUPS], group_x[HEAT_MOST_GROUPS],
        group_both[HEAT_MOST_GROUPS];
};

/* The constants in the precision of the fields, as parameters of a kernel. */
template <typename Real> struct HeatLine {
    Real q, p;
    Real powers[HEAT_MOST_ROWS]; /* q^(i+1) */
    Real reach[5];               /* q^(chunk 2^k) */
    Real spread, group_power, group_spread, first_power, first_reach;
    Real u[4], y[4];
    Real weight[2], add[2]; /* of the end rows */
    int32_t pads, first_chunk, groups;
    const HeatTable<Real> *table;
};

} // namespace pysolvers::heat

#endif
