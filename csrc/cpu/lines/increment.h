/* increment.h - rows given by their sums, solved for the difference of the unknowns from
 * known values.
 *
 * Row i is, with positive a_i, c_i, e_i and the values z_i, from which x_i differs little
 * or at which the row is written,
 *
 *   -a_i x_{i-1} + (s_i + a_i + c_i + e_i) x_i - c_i x_{i+1} - e_i x_last = s_i z_i + f_i
 *
 * where x_last is the last unknown of a periodic system (ring), otherwise e_i is 0. The
 * rows are eliminated by their sums, and no entries of the matrix are subtracted
 * (Grassmann, Taksar and Heyman 1985; Alfa, Xue and Ye 2002):
 *
 *   m_i = a_i / p_{i-1}     sigma_i = s_i + m_i sigma_{i-1}
 *   e_i += m_i e_{i-1}      p_i = sigma_i + c_i + e_i
 *   r_i = f_i + m_i (r_{i-1} - sigma_{i-1} (z_i - z_{i-1}))
 *   d_i = r_i/p_i + c_i/p_i (d_{i+1} + z_{i+1} - z_i) + e_i/p_i (d_last + z_last - z_i)
 *
 * and x_i = z_i + d_i. r_i is what remains of the right-hand side, less sigma_i z_i: only
 * differences of z enter, so that the rounding errors are relative to the differences
 * along the line, whatever the size of a_i and c_i, and a constant z is kept exactly
 * where all f_i are 0. A row of a known value x has z = x and the unit row: r = 0 and
 * sigma = p = 1. 17 operations per row and one division. Stable where all s_i are
 * positive: all pivots are sums of positive terms.
 *
 * The rows of line.h in row-sum form have any right-hand side. It would be c_i
 * (z_{i+1} - z_i) - a_i (z_i - z_{i-1}) + f_i for d_i, whose rounding errors are a_i and
 * c_i times those of z; and they divide three times, because quotients by a reciprocal
 * repeat one rounding error in all rows of a matrix with constant coefficients. Steps of
 * GCEIDD took 1.07 of the time in the mean with three divisions, and up to 1.33.
 */
#ifndef PS_CPU_LINES_INCREMENT_H
#define PS_CPU_LINES_INCREMENT_H

/* The row above in an elimination; lead is 1/p. */
typedef struct {
    vec z, r, sigma, lead, far;
} increment_above;

/* The last row of a ring while the others are eliminated: its entry in the column of the
 * next row, its row sum, z, and the right-hand side less the sum times z. */
typedef struct {
    vec entry, sigma, z, r;
} increment_bottom;

/* d and z of the row below in a substitution. */
typedef struct {
    vec d, z;
} increment_below;

/* The row above of a line that has one with the known value x. */
PS_INLINE increment_above
increment_known(vec x)
{
    return (increment_above){.z = x, .sigma = splat(1), .lead = splat(1)};
}

/* r of the next row, from its multiplier. */
PS_INLINE void
increment_add(increment_above *above, vec m, vec z, vec f)
{
    above->r = f + m * (above->r - above->sigma * (z - above->z));
    above->z = z;
}

/* Eliminate the next row; `far` is e and counts if `ring`. */
PS_INLINE void
increment_eliminate(increment_above *above, vec lower, vec upper, vec far, vec sum, vec z,
                    vec f, int ring)
{
    const vec m = lower * above->lead;

    increment_add(above, m, z, f);
    above->sigma = sum + m * above->sigma;
    vec pivot = above->sigma + upper;
    if (ring) {
        above->far = far + m * above->far;
        pivot += above->far;
    }
    above->lead = splat(1) / pivot;
}

/* Eliminate the entry of the last row of a ring in the column of the row `above`, whose
 * c is `upper`. */
PS_INLINE void
increment_eliminate_bottom(increment_bottom *bottom, const increment_above *above,
                           vec upper)
{
    const vec m = bottom->entry * above->lead;

    bottom->r += m * (above->r + above->sigma * (above->z - bottom->z));
    bottom->sigma += m * above->sigma;
    bottom->entry = m * upper;
}

/* d of the next row upwards, from y = r/p, c/p and, if `ring`, e/p and the last row. */
PS_INLINE vec
increment_substitute(increment_below *below, vec y, vec c, vec z, vec far,
                     const increment_below *last, int ring)
{
    vec d = y + c * (below->d + (below->z - z));

    if (ring) {
        d += far * (last->d + (last->z - z));
    }
    *below = (increment_below){d, z};
    return d;
}

#endif
