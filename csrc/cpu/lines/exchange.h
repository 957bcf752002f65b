/* exchange.h - the Exchange algebra: elimination with partial pivoting. One system per
 * lane.
 *
 * In the order of the rows: row i+1 takes the place of row i in the lanes in which its
 * entry in the column is larger. The operations are those of LAPACK's gtsv, two divisions
 * a row: no entry grows to more than twice the largest one of the matrix (Higham 2002,
 * Theorem 9.11 with p = 1).
 *
 * From the middle row outwards, for periodic systems and for the spans of long systems:
 * folded_step(), which folded.inc explains.
 */
#ifndef PS_CPU_LINES_EXCHANGE_H
#define PS_CPU_LINES_EXCHANGE_H

#include "lines/line.h"

PS_INLINE void
exchange(mask m, num *a, num *b)
{
    const num kept = *a;

    *a = choose(m, *b, *a);
    *b = choose(m, kept, *b);
}

PS_INLINE void
exchange_values(mask m, value *a, value *b)
{
    const value kept = *a;

    *a = choose(m, *b, *a);
    *b = choose(m, kept, *b);
}

/* The right-hand sides of the carried row and of the next one, in which the rows of the
 * lanes of `swap` are exchanged: that of the pivot row is returned, and *carried receives
 * that of the other one, from which m times the former is subtracted. */
PS_INLINE value
exchange_rhs(mask swap, num m, value *carried, value rhs)
{
    value r = *carried;

    exchange_values(swap, &r, &rhs);
    *carried = sub_mul(rhs, m, r);
    return r;
}

/* The unknown of a pivot row with right-hand side r, from its `count` entries to the right
 * of the pivot and the unknowns of their columns. The nearest one, which is the last to be
 * known, is subtracted last: solves with kept factors of real numbers take 0.92 to 0.95 of
 * the time of the other order, which is that of LAPACK's gtsv. */
PS_INLINE value
exchanged_unknown(value r, const num *to_right, num pivot, const value *next, int count)
{
#pragma GCC unroll 4
    for (int k = count - 1; k >= 0; k--) {
        r = sub_mul(r, to_right[k], next[k]);
    }
    return inverse_times(pivot, r);
}

/* As eliminate_row(), with row exchanges in the lanes of `allowed`: `to` receives the
 * words of the pivot row of the previous column. In a factor, lanes that do not exchange
 * rows multiply as eliminate_row() does: what a matrix gets does not depend on its
 * neighbours. */
PS_INLINE void
exchange_row(sweep *s, single_row a, num *to, int keeps, mask allowed)
{
    num pivot = s->lead, next = s->next, second = zero();
    mask swap = (mask)(size_of(a.lower) > size_of(pivot));

    if (keeps == FACTOR) {
        swap &= allowed;
    }
    exchange(swap, &pivot, &a.lower);
    exchange(swap, &next, &a.diag);
    exchange(swap, &second, &a.upper);
    s->bad |= is_bad_exchanged(pivot);

    num m = divide(a.lower, pivot);

    if (keeps == FACTOR) {
        m = choose(allowed, m, mul(a.lower, reciprocal(pivot)));
    }
    s->lead = sub_mul(a.diag, m, next);
    s->next = sub_mul(a.upper, m, second);
    to[0] = next;
    to[1] = second;
    to[2] = pivot;
    if (keeps == FACTOR) {
        to[3] = m;
        to[4] = as_num(swap);
    }
    else {
        put_value(&to[3], exchange_rhs(swap, m, &s->r, a.rhs));
    }
}

/* The words of the last row with exchanges. */
PS_INLINE void
keep_last(sweep *s, num *to, int width, int keeps)
{
    for (int q = 0; q < width; q++, to += PIVOT_WORDS(0, keeps == FACTOR)) {
        s[q].bad |= is_bad_exchanged(s[q].lead);
        to[0] = to[1] = zero();
        to[2] = s[q].lead;
        if (keeps == FACTOR) {
            to[3] = to[4] = zero();
        }
        else {
            put_value(&to[3], s[q].r);
        }
    }
}

/* Unknowns of the next row upwards; `from` has the words of its pivot row. */
PS_INLINE void
substitute_exchanged(unknowns *b, const num *from)
{
    const value next[] = {b->x, b->second};
    const value x = exchanged_unknown(value_in(&from[3]), from, from[2], next, 2);

    b->second = b->x;
    b->x = x;
}

/* Words kept of a position: U_{p,p+1} .. U_{p,p+4}, the pivot, and of a solve y_p, in
 * place of which x_p comes, of a factor both multipliers and both exchanges. */
enum {
    FOLDED_PIVOT = 4,
    FOLDED_RHS = 5,
    FOLDED_MULTIPLIER = 5, /* of the second carried row, and of the new row */
    FOLDED_EXCHANGE = 7    /* with the second carried row, then with the new row */
};

/* A carried row in columns p .. p+3. */
typedef struct {
    num at[4];
    value rhs;
} folded_row;

typedef struct {
    folded_row a, b;
    mask info; /* 0, or 1 + row of the unknown of the first zero pivot */
} folded_sweep;

/* Eliminate one column: b and the row (inward, 0, diag, 0, outward) are what is carried
 * on. Where no lane exchanges rows, the exchanges, a third of the operations, are left
 * out: dominant systems take 0.85 of the time, those that exchange rows in some lane of
 * every row 1.0 to 1.025. (In exchange_row(), which has half as many, 0.9 and 1.05.) The
 * pivot is added to *sum, for is_bad_fold(). */
PS_INLINE void
folded_step(folded_sweep *s, num inward, num diag, num outward, value rhs, num *kept,
            int factor, vec *sum)
{
    folded_row p = s->a, b = s->b;
    num n0 = inward, n1 = zero(), n2 = diag, n3 = zero(), n4 = outward, p4 = zero();
    mask first = (mask)(size_of(b.at[0]) > size_of(p.at[0]));
    mask second = (mask)(size_of(n0) > size_of(p.at[0]));

    if (any(first | second)) {
        exchange(first, &p.at[0], &b.at[0]);
        exchange(first, &p.at[1], &b.at[1]);
        exchange(first, &p.at[2], &b.at[2]);
        exchange(first, &p.at[3], &b.at[3]);
        exchange_values(first, &p.rhs, &b.rhs);
        second = (mask)(size_of(n0) > size_of(p.at[0]));
        exchange(second, &p.at[0], &n0);
        exchange(second, &p.at[1], &n1);
        exchange(second, &p.at[2], &n2);
        exchange(second, &p.at[3], &n3);
        exchange(second, &p4, &n4);
        exchange_values(second, &p.rhs, &rhs);
    }
    *sum += sum_of(p.at[0]);
    const num of_b = divide(b.at[0], p.at[0]), of_n = divide(n0, p.at[0]);

    s->a.at[0] = sub_mul(b.at[1], of_b, p.at[1]);
    s->a.at[1] = sub_mul(b.at[2], of_b, p.at[2]);
    s->a.at[2] = sub_mul(b.at[3], of_b, p.at[3]);
    s->a.at[3] = sub_mul(zero(), of_b, p4);
    s->b.at[0] = sub_mul(n1, of_n, p.at[1]);
    s->b.at[1] = sub_mul(n2, of_n, p.at[2]);
    s->b.at[2] = sub_mul(n3, of_n, p.at[3]);
    s->b.at[3] = sub_mul(n4, of_n, p4);
    kept[0] = p.at[1];
    kept[1] = p.at[2];
    kept[2] = p.at[3];
    kept[3] = p4;
    kept[FOLDED_PIVOT] = p.at[0];
    if (factor) {
        kept[FOLDED_MULTIPLIER] = of_b;
        kept[FOLDED_MULTIPLIER + 1] = of_n;
        kept[FOLDED_EXCHANGE] = as_num(first);
        kept[FOLDED_EXCHANGE + 1] = as_num(second);
    }
    else {
        s->a.rhs = sub_mul(b.rhs, of_b, p.rhs);
        s->b.rhs = sub_mul(rhs, of_n, p.rhs);
        put_value(&kept[FOLDED_RHS], p.rhs);
    }
}

/* Lanes in which one of the pivots of `sum`, the last of which left *s, may be bad: a pivot
 * of zero makes what is carried NaN. Of finite pivots the sum may overflow. */
PS_INLINE mask
is_bad_fold(const folded_sweep *s, vec sum)
{
    return ~(mask)(abs_vec(sum + sum_of(s->a.at[0])) <= splat(PS_LARGEST));
}

#endif
