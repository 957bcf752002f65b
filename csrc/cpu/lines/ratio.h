/* ratio.h - the Ratio algebra: lines of one matrix that is known before, whose forward
 * elimination and back substitution are recurrences of first order with numbers per row.
 *
 *   u_i = m_i u_{i-1} + f_i d_i      x_i = c_i x_{i+1} + p_i u_i + e_i x_last
 *
 * d is the right-hand side; u and x beyond the ends are known values, or have no weight.
 * 6 operations per row, and no division. Row i of the matrix has the off-diagonals -a_i,
 * -c'_i and the sum s_i; it is eliminated by its sum without a subtraction (Grassmann,
 * Taksar and Heyman 1985), in double:
 *
 *   sigma_i = s_i + a_i sigma_{i-1}/p'_{i-1}     p'_i = sigma_i + c'_i + e'_i
 *
 * with u_i the part of the right-hand side over sigma_i, so that m_i + f_i = 1 and
 * c_i + p_i + e_i = 1 where s_i = 1: u and x are weighted means. Both pairs of words are
 * rounded such that these sums hold in the dtype, so that d, u and x may be stored as
 * differences from a common number; a constant is kept exactly. e_i is the entry of the
 * last row of a periodic line; its row is condensed with the words `bottom`.
 *
 * In float32, u and x are differences from a base (RATIO_RELATIVE). In float64 the sums
 * hold but for rounding, and the recurrences are written for the difference from the
 * row before.
 */
#ifndef PS_CPU_LINES_RATIO_H
#define PS_CPU_LINES_RATIO_H

enum { RATIO_RELATIVE = sizeof(real) == 4 };

/* A row of the matrix: the negative off-diagonals and the sum, which are positive or 0,
 * and the negative entry in the column of the last unknown of a periodic line. */
typedef struct {
    double lower, upper, sum, far;
} ratio_row;

/* The row above: sigma/p and e, and the last row of a periodic line: its negative entry
 * in the column of the next row, and its diagonal. */
typedef struct {
    double share, far, below, bottom;
} ratio_sweep;

/* The words of a row: m, f; c, p; what the last row of a periodic line adds of u_i to its
 * right-hand side; e. */
typedef struct {
    real multiplier, weight, upper, share, bottom, far;
} ratio_words;

/* Two words, of which the first and the sum are given. The larger one is rounded first,
 * so that the sum is also exact in the dtype. */
PS_INLINE void
ratio_pair(double a, double sum, real *first, real *second)
{
    const int first_is_large = a >= sum - a;
    const double large = (real)(first_is_large ? a : sum - a);

    *first = (real)(first_is_large ? large : sum - large);
    *second = (real)(first_is_large ? sum - large : large);
}

/* The start; `last` is the last row if the lines are periodic. */
PS_INLINE ratio_sweep
ratio_begin(ratio_row last)
{
    return (ratio_sweep){.share = 1, .below = last.upper, .bottom = last.sum};
}

PS_INLINE ratio_words
ratio_eliminate(ratio_sweep *s, ratio_row row)
{
    const double above = row.lower * s->share, own = row.sum + above;
    const double far = row.far + row.lower * s->far;
    const double pivot = own + row.upper + row.far + row.lower * s->far;
    ratio_words to;

    s->far = far / pivot;
    s->share = own / pivot;
    ratio_pair(above / own, (1 + above) / own, &to.multiplier, &to.weight);
    ratio_pair(row.upper / pivot, 1 - s->far, &to.upper, &to.share);
    to.bottom = (real)(s->below * s->share);
    to.far = (real)s->far;
    s->bottom += s->below * s->share;
    s->below *= row.upper / pivot;
    return to;
}

/* The words of the last row of a periodic line. */
PS_INLINE ratio_words
ratio_close(const ratio_sweep *s)
{
    ratio_words to = {.bottom = 0, .far = 0};

    ratio_pair(0, 1 / s->bottom, &to.multiplier, &to.weight);
    ratio_pair(0, 1, &to.upper, &to.share);
    return to;
}

/* u of a row from that of the row above; `is_mean`: m + f = 1. */
PS_INLINE vec
ratio_down(vec u, vec d, real m, real f, int is_mean)
{
    return !RATIO_RELATIVE && is_mean ? u + splat(f) * (d - u)
                                      : splat(m) * u + splat(f) * d;
}

/* u of the last row of periodic lines, which has no multiplier: the difference from its
 * right-hand side; `bottom` is what the other rows add to that. */
PS_INLINE vec
ratio_down_last(vec u, vec d, vec bottom, real f)
{
    return RATIO_RELATIVE ? splat(f) * (d + bottom) : u + splat(f) * ((d - u) + bottom);
}

/* x of a row from that of the row below, without the part of the last row. */
PS_INLINE vec
ratio_up(vec x, vec u, real c, real share)
{
    return RATIO_RELATIVE ? splat(c) * x + splat(share) * u : x + splat(share) * (u - x);
}

#endif
