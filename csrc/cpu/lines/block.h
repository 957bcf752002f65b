/* block.h - blocks of PS_SIDE x PS_SIDE real numbers, and columns of so many as values:
 * block tridiagonal systems. A block is stored by rows.
 */
#ifndef PS_CPU_LINES_BLOCK_H
#define PS_CPU_LINES_BLOCK_H

#define PS_PARTS (PS_SIDE * PS_SIDE)
#define PS_VALUE_PARTS PS_SIDE

/* A loop over the rows or the columns of a block, unrolled. */
#define PS_EACH(i) _Pragma("GCC unroll 8") for (int i = 0; i < PS_SIDE; i++)

typedef struct {
    vec at[PS_SIDE];
} value;

typedef struct {
    value row[PS_SIDE];
} num;

#define PS_OF_TYPE(name, a) _Generic((a), num: name##_block, value: name##_column)

PS_INLINE value
zero_value(void)
{
    value a;

    PS_EACH(i)
    {
        a.at[i] = (vec){0};
    }
    return a;
}

PS_INLINE num
zero(void)
{
    num a;

    PS_EACH(i)
    {
        a.row[i] = zero_value();
    }
    return a;
}

PS_INLINE num
one(void)
{
    num a = zero();

    PS_EACH(i)
    {
        a.row[i].at[i] = splat(1);
    }
    return a;
}

PS_INLINE value
add_column(value a, value b)
{
    PS_EACH(i)
    {
        a.at[i] += b.at[i];
    }
    return a;
}

PS_INLINE value
sub_column(value a, value b)
{
    PS_EACH(i)
    {
        a.at[i] -= b.at[i];
    }
    return a;
}

PS_INLINE value
mul_column(num a, value b)
{
    value c;

    PS_EACH(i)
    {
        c.at[i] = a.row[i].at[0] * b.at[0];
        for (int k = 1; k < PS_SIDE; k++) {
            c.at[i] += a.row[i].at[k] * b.at[k];
        }
    }
    return c;
}

PS_INLINE value
choose_column(mask m, value a, value b)
{
    PS_EACH(i)
    {
        a.at[i] = choose_vec(m, a.at[i], b.at[i]);
    }
    return a;
}

PS_INLINE vec
size_of_column(value a)
{
    vec size = abs_vec(a.at[0]);

    for (int i = 1; i < PS_SIDE; i++) {
        size += abs_vec(a.at[i]);
    }
    return size;
}

PS_INLINE num
transposed_block(num a)
{
    num b;

    PS_EACH(i)
    {
        PS_EACH(k)
        {
            b.row[i].at[k] = a.row[k].at[i];
        }
    }
    return b;
}

PS_INLINE num
add_block(num a, num b)
{
    PS_EACH(i)
    {
        a.row[i] = add_column(a.row[i], b.row[i]);
    }
    return a;
}

PS_INLINE num
sub_block(num a, num b)
{
    PS_EACH(i)
    {
        a.row[i] = sub_column(a.row[i], b.row[i]);
    }
    return a;
}

PS_INLINE num
mul_block(num a, num b)
{
    num c;

    PS_EACH(i)
    {
        PS_EACH(j)
        {
            c.row[i].at[j] = a.row[i].at[0] * b.row[0].at[j];
            for (int k = 1; k < PS_SIDE; k++) {
                c.row[i].at[j] += a.row[i].at[k] * b.row[k].at[j];
            }
        }
    }
    return c;
}

PS_INLINE num
choose_block(mask m, num a, num b)
{
    PS_EACH(i)
    {
        a.row[i] = choose_column(m, a.row[i], b.row[i]);
    }
    return a;
}

PS_INLINE vec
size_of_block(num a)
{
    vec size = size_of_column(a.row[0]);

    for (int i = 1; i < PS_SIDE; i++) {
        size += size_of_column(a.row[i]);
    }
    return size;
}

#define add(a, b) PS_OF_TYPE(add, a)(a, b)
#define sub(a, b) PS_OF_TYPE(sub, a)(a, b)
#define mul(a, b) PS_OF_TYPE(mul, b)(a, b)
#define choose(m, a, b) PS_OF_TYPE(choose, a)(m, a, b)
#define size_of(a) PS_OF_TYPE(size_of, a)(a)
#define inverse_times(b, a) mul(reciprocal(b), a)
#define scaled(a, inverse) mul(inverse, a)
#define put_value(to, a) (*(value *)(to) = (a))
#define value_in(from) (*(const value *)(from))

PS_INLINE vec
sum_of(num a)
{
    vec sum = (vec){0};

    PS_EACH(i)
    {
        PS_EACH(k)
        {
            sum += a.row[i].at[k];
        }
    }
    return sum;
}

#if PS_SIDE == 2
/* The inverse by elimination with row exchanges. Infinite or NaN if a is singular. */
PS_INLINE num
reciprocal(num a)
{
    const mask swap = (mask)(abs_vec(a.row[1].at[0]) > abs_vec(a.row[0].at[0]));
    const value top = choose(swap, a.row[1], a.row[0]);
    const value bottom = choose(swap, a.row[0], a.row[1]);
    const vec inverse = splat(1) / top.at[0], m = bottom.at[0] * inverse;
    const vec last = splat(1) / (bottom.at[1] - m * top.at[1]);
    const vec up = top.at[1] * inverse * last;
    const value of_top = {{inverse + up * m, -(last * m)}}, of_bottom = {{-up, last}};

    return transposed_block(
        (num){{choose(swap, of_bottom, of_top), choose(swap, of_top, of_bottom)}});
}
#else
/* The inverse by the Gauss-Jordan elimination in place, with row exchanges, which are
 * exchanges of columns of the inverse in the opposite order. Infinite or NaN if a is
 * singular. */
PS_INLINE num
reciprocal(num a)
{
    mask swap[PS_SIDE][PS_SIDE];

    PS_EACH(k)
    {
        for (int r = k + 1; r < PS_SIDE; r++) {
            const value own = a.row[k], other = a.row[r];

            swap[k][r] = (mask)(abs_vec(other.at[k]) > abs_vec(own.at[k]));
            a.row[k] = choose(swap[k][r], other, own);
            a.row[r] = choose(swap[k][r], own, other);
        }
        const vec inverse = splat(1) / a.row[k].at[k];

        a.row[k].at[k] = splat(1);
        PS_EACH(j)
        {
            a.row[k].at[j] *= inverse;
        }
        PS_EACH(r)
        {
            const vec m = a.row[r].at[k];

            if (r == k) {
                continue;
            }
            a.row[r].at[k] = (vec){0};
            PS_EACH(j)
            {
                a.row[r].at[j] -= m * a.row[k].at[j];
            }
        }
    }
    for (int k = PS_SIDE - 1; k >= 0; k--) {
        for (int r = PS_SIDE - 1; r > k; r--) {
            PS_EACH(i)
            {
                const vec own = a.row[i].at[k], other = a.row[i].at[r];

                a.row[i].at[k] = choose_vec(swap[k][r], other, own);
                a.row[i].at[r] = choose_vec(swap[k][r], own, other);
            }
        }
    }
    return a;
}
#endif

PS_INLINE num
divide(num a, num b)
{
    return mul(a, reciprocal(b));
}

PS_INLINE mask
is_bad(num pivot)
{
    const vec largest = splat(PS_LARGEST);

    return ~((mask)(size_of(pivot) <= largest) &
             (mask)(size_of(reciprocal(pivot)) <= largest));
}

/* Whether a symmetric pivot with this inverse is positive definite: it has a Cholesky
 * factor. */
PS_INLINE mask
is_definite(num a, num inverse)
{
    mask all = (mask)(a.row[0].at[0] > (vec){0});

#if PS_SIDE == 2
    /* inverse = adj(a) / det(a): det(a) has the sign of a_00 and of a_11 */
    PS_EACH(k)
    {
        all &= (mask)(inverse.row[k].at[k] > (vec){0});
    }
#else
    (void)inverse;
    for (int k = 0; k < PS_SIDE - 1; k++) {
        const vec scale = splat(1) / a.row[k].at[k];

        for (int r = k + 1; r < PS_SIDE; r++) {
            const vec m = a.row[r].at[k] * scale;

            for (int c = k + 1; c <= r; c++) {
                a.row[r].at[c] -= m * a.row[c].at[k];
            }
        }
        all &= (mask)(a.row[k + 1].at[k + 1] > (vec){0});
    }
#endif
    return all;
}

#define is_bad_exchanged(pivot) is_bad(pivot)

/* The largest sum of the sizes of the entries of a row, a norm of blocks. */
PS_INLINE vec
norm_of(num a)
{
    vec norm = size_of_column(a.row[0]);

    for (int i = 1; i < PS_SIDE; i++) {
        const vec row = size_of_column(a.row[i]);

        norm = choose_vec((mask)(row <= norm), norm, row);
    }
    return norm;
}

/* ||diag^-1|| (||lower|| + ||upper||) <= 1 in this norm, or each scalar row dominant: both are
 * sufficient for a stable elimination without exchanges across blocks. A row of the identity
 * before five diagonals has only the second. */
PS_INLINE mask
is_dominant(num lower, num diag, num upper)
{
    mask by_rows = ~(mask){0};

    for (int i = 0; i < PS_SIDE; i++) {
        const vec own = abs_vec(diag.row[i].at[i]);

        by_rows &= (mask)(size_of_column(lower.row[i]) + size_of_column(diag.row[i]) +
                              size_of_column(upper.row[i]) <=
                          own + own);
    }
    return by_rows |
           (mask)(norm_of(reciprocal(diag)) * (norm_of(lower) + norm_of(upper)) <=
                  splat(1));
}

/* The entries of a transposed matrix are the transposed blocks, the adjoints of those of
 * the matrix. */
#define has_adjoints(trans) ((trans) != PS_TRANS_NONE)

PS_INLINE num
adjoint_if(int condition, num a)
{
    return condition ? transposed_block(a) : a;
}

#endif
