/* line.h - the Line algebra: the rows of a tridiagonal system, what elimination keeps of
 * them, and the segments in which it leaves a chunk of rows. One system, or chunk, per
 * lane. This file knows neither where rows come from nor where unknowns go.
 *
 * Without row exchanges (Thomas' algorithm):
 *
 *   pivot_i = diag_i - m_i upper_{i-1},    m_i = lower_i / pivot_{i-1}
 *   r_i = rhs_i - m_i r_{i-1},    x_i = (r_i - upper_i x_{i+1}) / pivot_i
 *
 * where / pivot is the product with its reciprocal: on the right in m_i, lower_i times
 * pivot_{i-1}^-1, and on the left in x_i, which makes a difference for blocks.
 *
 * 8 operations per unknown in this form. The code stores 1 / pivot and executes 9
 * multiplications and subtractions and one division. 5 words per unknown if the
 * eliminated rows stay in cache. Stable for diagonally dominant and for symmetric
 * positive definite systems (Higham 2002, ch. 9): the componentwise backward error is a
 * few eps. The bottom row of a periodic system is the exception: multiples of all other
 * rows are added to it, and if these do not decay (u_i close to pivot_i), its backward
 * error is up to 0.5 n eps after the back substitution. last_row.inc then corrects x; the
 * error of the bottom row is less than 20 eps, or 32 eps if n < 64.
 *
 * Row-sum form (PS_ROW_SUMS): the word PS_DIAG holds the row sums s_i = lower_i + diag_i
 * + upper_i, and the sum of the eliminated row replaces its diagonal,
 *
 *   sigma_i = s_i - m_i sigma_{i-1},    pivot_i = sigma_i - upper_i - far_i
 *
 * with the entry far_i of the far column (Grassmann, Taksar and Heyman 1985; Alfa, Xue
 * and Ye 2002). If all off-diagonal entries have one sign and all s_i the other one,
 * nothing is subtracted: pivots and multipliers have a relative error of O(n) eps for any
 * condition number, and the last pivot is exactly zero if and only if all s_i are. One
 * subtraction more per row, and quotients that multiply from row to row (m_i, the entry
 * upper_i / pivot_i, the multiplier of a bottom row) are divisions: products with
 * 1 / pivot would repeat one rounding error in all rows of a matrix with constant
 * coefficients, so that n of them add up. A Schur complement has this form again, so that
 * chunks and bottom rows pass on row sums in the place of diagonals.
 *
 * A row that has no row above it is eliminated like the others: the row above is that of
 * a unit matrix, with -1 in the far column. Pivots are not tested: one that is too small
 * makes the right-hand side of its row or of the next one infinite or NaN, and with it
 * that of the last row; one that is infinite or NaN makes the sum of all pivots infinite
 * or NaN. is_bad_sweep() tests both once, after the last row. (The sum of finite pivots
 * can overflow, so that there may be no bad row.) Every pivot is tested in factors and in
 * matrices given by row sums.
 *
 * Segments (Wang 1981): a chunk of rows without its last one, the separator, is
 * eliminated with the ends RING, where the far column and the bottom row are those of the
 * separator on the left. The separator of the chunk and the one on the left are then two
 * rows of the reduced system, of which other chunks hold the rest: the reduced system has
 * one row per chunk, join() of the segments of that chunk and of the next one.
 */
#ifndef PS_CPU_LINES_LINE_H
#define PS_CPU_LINES_LINE_H

#include <string.h>

#include "pysolvers.h"
#include "lines/number.h"

/* What the first and the last row of a system couple to: nothing; the unknown before the
 * first one, whose column is the far one, and nothing that counts in the elimination; or
 * an unknown that has the far column and the bottom row: the last one of a periodic
 * system, or the separator before a chunk. */
enum { OPEN, CUT, RING };

/* Bit of the first entry of lower, or of the last one of upper, that counts if CUT. */
#define CORNER(word) (1 << (word))

/* Words kept per row. Solve: c, y and, unless OPEN, the far entry, all divided by the
 * pivot; with exchanges the pivot row (next, second, pivot) and its right-hand side.
 * Solve of several right-hand sides: c, y, m, 1 / pivot.
 * Factor: m, 1 / pivot, c and, if RING, the multiplier of the bottom row and the far
 * entry; with exchanges the pivot row, m and the exchange. folded.inc: by position. */
enum {
    THOMAS_KEPT = 2,
    THOMAS_KEPT_FAR = 3,
    THOMAS_FACTOR = 3,
    THOMAS_FACTOR_FAR = 5,
    SIDES_KEPT = 4,
    PIVOT_KEPT = 4,
    PIVOT_KEPT_FAR = 6,
    PIVOT_FACTOR = 5,
    PIVOT_FACTOR_FAR = 9
};
#define THOMAS_WORDS(ends, factor)                                   \
    ((factor) ? ((ends) != OPEN ? THOMAS_FACTOR_FAR : THOMAS_FACTOR) \
              : ((ends) != OPEN ? THOMAS_KEPT_FAR : THOMAS_KEPT))
#define PIVOT_WORDS(periodic, factor)                          \
    ((factor) ? ((periodic) ? PIVOT_FACTOR_FAR : PIVOT_FACTOR) \
              : ((periodic) ? PIVOT_KEPT_FAR : PIVOT_KEPT))

/* What is kept of a row. SIDES: a row, and what other right-hand sides of it need. */
enum { NOTHING, ROW, FACTOR, SIDES };
#define ROW_WORDS(ends, keeps) \
    ((keeps) == SIDES ? SIDES_KEPT : THOMAS_WORDS(ends, (keeps) == FACTOR))
#define KEPT_WORDS(pivot, ends, keeps) \
    ((pivot) == PS_PIVOT_ALWAYS ? PIVOT_WORDS(0, 0) : ROW_WORDS(ends, keeps))

/* What the word PS_DIAG holds: diagonal entries; row sums; or those of a symmetric open
 * system, in which the multiplier of a row is the entry that is kept of the row above. */
enum { DIAGONAL, ROW_SUMS, FACE_SUMS };

/* The form of matrices with these flags, of factors and of solves. There are no blocks
 * in row-sum form, and no solves of complex numbers: their code is not compiled. */
PS_INLINE int
form_of(uint32_t flags)
{
    return PARTS == VALUE_PARTS && (flags & PS_ROW_SUMS) != 0 ? ROW_SUMS : DIAGONAL;
}

PS_INLINE int
form_of_solve(uint32_t flags)
{
    return PARTS == 1 ? form_of(flags) : DIAGONAL;
}

/* The forward elimination of a system: the row above, divided by nothing (lead: 1 / pivot
 * or, with exchanges and in row-sum form, its entry in the column to be eliminated; next:
 * the entry to the right of it or, in row-sum form, its row sum), and the bottom row: its
 * entry in the column of the next row, its diagonal or row sum, and its right-hand side.
 */
typedef struct {
    num lead, next;
    value r;
    num far;
    num bottom, bottom_diag;
    value bottom_r;
    mask dominant; /* lanes in which all rows so far were dominant */
    mask bad;      /* lanes with a bad pivot; of factors, row sums and exchanges only */
    vec sum;       /* of all pivots; otherwise only */
} sweep;

/* A row of a system. */
typedef struct {
    num lower, diag, upper;
    value rhs;
} single_row;

/* Start; `last` is the bottom row of a periodic system of `rows` rows, or null. Only what
 * an elimination with these ends reads is set: it counts in systems of a few rows. */
PS_INLINE void
sweep_begin(sweep *s, const single_row *last, int64_t rows, int check, int ends, int form)
{
    s->lead = form == FACE_SUMS ? zero() : one();
    s->next = zero();
    s->r = zero_value();
    s->dominant = ~(mask){0};
    s->bad = (mask){0};
    s->sum = (vec){0};
    if (ends != OPEN) {
        s->far = sub(zero(), one());
    }
    if (ends == RING && last == NULL) {
        s->bottom = s->bottom_diag = zero();
        s->bottom_r = zero_value();
    }
    if (last != NULL) {
        s->bottom = last->upper;
        s->bottom_diag = rows > 1 || form == ROW_SUMS
                             ? last->diag
                             : add(last->diag, add(last->lower, last->upper));
        s->bottom_r = last->rhs;
        if (check) {
            s->dominant = is_dominant(last->lower, last->diag, last->upper);
        }
    }
}

/* Copy what an elimination of these kinds changes of `width` sweeps. */
PS_INLINE void
copy_sweeps(sweep *to, const sweep *from, int width, ps_pivot pivot, int ends, int keeps,
            int form)
{
#pragma GCC unroll 4
    for (int q = 0; q < width; q++) {
        to[q].lead = from[q].lead;
        to[q].next = from[q].next;
        to[q].r = from[q].r;
        if (ends != OPEN) {
            to[q].far = from[q].far;
        }
        if (ends == RING) {
            to[q].bottom = from[q].bottom;
            to[q].bottom_diag = from[q].bottom_diag;
            to[q].bottom_r = from[q].bottom_r;
        }
        if (pivot == PS_PIVOT_AUTO) {
            to[q].dominant = from[q].dominant;
        }
        if (pivot == PS_PIVOT_ALWAYS || keeps == FACTOR || form != DIAGONAL) {
            to[q].bad = from[q].bad;
        }
        else {
            to[q].sum = from[q].sum;
        }
    }
}

/* An entry of a row that is divided by its pivot: pivot^-1 a. */
PS_INLINE num
quotient(num a, num pivot, num inverse, int form)
{
    return form != DIAGONAL ? inverse_times(pivot, a) : scaled(a, inverse);
}

/* The multiplier of a row with this pivot for a row with the entry a: a pivot^-1. */
PS_INLINE num
multiplier_of(num a, num pivot, num inverse, int form)
{
    return form == ROW_SUMS ? divide(a, pivot) : mul(a, inverse);
}

/* The multiplier of the row above for a row with the entry `lower`. */
PS_INLINE num
multiplier(num lower, const sweep *s, int form)
{
    return form == FACE_SUMS ? s->lead : multiplier_of(lower, s->lead, s->lead, form);
}

/* Replace what an elimination of a chunk changes in the lanes of m. */
PS_INLINE void
choose_sweep(mask m, sweep *s, const sweep *other)
{
    s->lead = choose(m, other->lead, s->lead);
    s->next = choose(m, other->next, s->next);
    s->r = choose(m, other->r, s->r);
    s->far = choose(m, other->far, s->far);
    s->bottom = choose(m, other->bottom, s->bottom);
    s->bottom_diag = choose(m, other->bottom_diag, s->bottom_diag);
    s->bottom_r = choose(m, other->bottom_r, s->bottom_r);
    s->dominant &= other->dominant | ~m;
    s->bad |= other->bad & m;
    s->sum = choose_vec(m, other->sum, s->sum);
}

/* Eliminate a right-hand side by the multiplier m of its row; *r is that of the row above
 * and receives that of the row. */
PS_INLINE void
eliminate_rhs(value *r, value rhs, num m)
{
    *r = sub_mul(rhs, m, *r);
}

/* The unknown of a row, y and its entries c and `far` divided by the pivot, from the unknown
 * below it and, if `ring`, that of the far column. */
PS_INLINE value
unknown_of(value y, num c, value below, num far, value last, int ring)
{
    if (ring) {
        y = sub_mul(y, far, last);
    }
    return sub_mul(y, c, below);
}

/* Eliminate the row `a`. `to` receives what is kept of it. `last` is null but for the row
 * above the bottom row of a periodic system, whose upper entry is in the far column. */
PS_INLINE void
eliminate_row(sweep *s, single_row a, num *to, int check, int ends, int keeps, int form,
              const single_row *last)
{
    num u = a.upper, far = zero(), m_bottom = zero();
    const num m = multiplier(a.lower, s, form), sum = sub_mul(a.diag, m, s->next);
    num pivot = sum; /* the diagonal or, in row-sum form, the row sum so far */

    if (check) {
        s->dominant &= is_dominant(a.lower, a.diag, u);
    }
    if (last != NULL) {
        far = u;
        u = zero();
        s->bottom = add(s->bottom, last->lower);
    }
    if (ends != OPEN) {
        s->far = sub_mul(far, m, s->far);
    }
    if (form != DIAGONAL) {
        pivot = sub(sum, u);
        if (ends != OPEN) {
            pivot = sub(pivot, s->far);
        }
    }
    const num inverse = reciprocal(pivot);

    s->lead = form == ROW_SUMS    ? pivot
              : form == FACE_SUMS ? quotient(u, pivot, inverse, form)
                                  : inverse;
    s->next = form != DIAGONAL ? sum : u;
    if (keeps != FACTOR) {
        eliminate_rhs(&s->r, a.rhs, m);
        if (form == DIAGONAL) {
            s->sum += sum_of(pivot);
        }
    }
    if (ends == RING) {
        m_bottom = multiplier_of(s->bottom, pivot, inverse, form);
        s->bottom = sub_mul(zero(), m_bottom, u);
        s->bottom_diag =
            sub_mul(s->bottom_diag, m_bottom, form == ROW_SUMS ? sum : s->far);
        if (keeps != FACTOR) {
            s->bottom_r = sub_mul(s->bottom_r, m_bottom, s->r);
        }
    }
    if (keeps == FACTOR || form != DIAGONAL) {
        s->bad |= is_bad(pivot);
    }
    if (keeps == ROW || keeps == SIDES) {
        to[0] = quotient(u, pivot, inverse, form);
        put_value(&to[1], scaled(s->r, inverse));
    }
    else if (keeps == FACTOR) {
        to[0] = m;
        to[1] = inverse;
        to[2] = quotient(u, pivot, inverse, form);
    }
    if (keeps == SIDES) {
        to[2] = m;
        to[3] = inverse;
    }
    if (keeps == FACTOR && ends == RING) {
        to[3] = m_bottom;
    }
    if (keeps != NOTHING && ends != OPEN) {
        to[THOMAS_WORDS(ends, keeps == FACTOR) - 1] = scaled(s->far, inverse);
    }
}

/* Replace y of a row kept with SIDES by that of another right-hand side. */
PS_INLINE void
eliminate_side(value *r, value rhs, num *kept)
{
    eliminate_rhs(r, rhs, kept[2]);
    put_value(&kept[1], scaled(*r, kept[3]));
}

/* Lanes with a bad pivot in the rows that were eliminated with right-hand sides. */
PS_INLINE mask
is_bad_sweep(const sweep *s)
{
    const vec largest = splat(PS_LARGEST);

    return ~((mask)(size_of(scaled(s->r, s->lead)) <= largest) &
             (mask)(abs_vec(s->sum) <= largest));
}

/* The columns that a back substitution computes if CUT: the left and the right one. */
enum { LEFT_SPIKE, RIGHT_SPIKE, SPIKES, ANSWERS = 1 + SPIKES };

/* The unknowns of the row below: x and, if CUT, the spikes; x of the row below that one;
 * and, if RING, the unknown of the far column. */
typedef struct {
    value x;
    num spike[SPIKES];
    value second, far;
} unknowns;

/* The unknowns beyond the last row, those that a back substitution with these ends reads.
 */
PS_INLINE void
unknowns_end(unknowns *b, int ends)
{
    b->x = b->second = zero_value();
    if (ends == CUT) {
        b->spike[LEFT_SPIKE] = zero();
        b->spike[RIGHT_SPIKE] = sub(zero(), one());
    }
    if (ends == RING) {
        b->far = zero_value();
    }
}

/* Copy what a back substitution of these kinds reads or changes of `width` tiles. */
PS_INLINE void
copy_unknowns(unknowns *to, const unknowns *from, int width, int exchanges, int ends)
{
#pragma GCC unroll 8
    for (int q = 0; q < width; q++) {
        to[q].x = from[q].x;
        if (ends == CUT) {
            to[q].spike[LEFT_SPIKE] = from[q].spike[LEFT_SPIKE];
            to[q].spike[RIGHT_SPIKE] = from[q].spike[RIGHT_SPIKE];
        }
        if (ends == RING) {
            to[q].far = from[q].far;
        }
        if (exchanges) {
            to[q].second = from[q].second;
        }
    }
}

/* Unknowns of the next row upwards; `from` has the words kept of it. */
PS_INLINE void
substitute_row(unknowns *b, const num *from, int ends)
{
    const int ring = ends == RING;

    b->x = unknown_of(value_in(&from[1]), from[0], b->x, ring ? from[2] : zero(), b->far,
                      ring);
    if (ends == CUT) {
        b->spike[LEFT_SPIKE] = sub_mul(from[2], from[0], b->spike[LEFT_SPIKE]);
        b->spike[RIGHT_SPIKE] = sub_mul(zero(), from[0], b->spike[RIGHT_SPIKE]);
    }
}

/* What a chunk contributes to the reduced system: to the row of its separator, and to
 * that of the separator on its left, whose entry in the column of the former is `upper`.
 * In row-sum form diag and left_diag are row sums. */
typedef struct {
    num lower, diag;
    value rhs;
    num upper, left_diag;
    value left_rhs;
} segment;

/* The segment of the rows eliminated so far and of the separator `own`. */
PS_INLINE segment
segment_of(const sweep *s, const single_row *own, int form)
{
    const num m = multiplier(own->lower, s, form);

    return (segment){
        .lower = sub_mul(zero(), m, s->far),
        .diag = sub_mul(own->diag, m, s->next),
        .rhs = sub_mul(own->rhs, m, s->r),
        .upper = s->bottom,
        .left_diag = s->bottom_diag,
        .left_rhs = s->bottom_r,
    };
}

/* The row of the reduced system that two neighbouring chunks join to. */
PS_INLINE single_row
join(const segment *a, const segment *next)
{
    return (single_row){a->lower, add(a->diag, next->left_diag), next->upper,
                        add(a->rhs, next->left_rhs)};
}

#endif
