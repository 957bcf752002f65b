/* block.h - blocks of 2 x 2 real numbers, and columns of two as values: block tridiagonal
 * systems. A block is stored by rows.
 */
#ifndef PS_CPU_LINES_BLOCK_H
#define PS_CPU_LINES_BLOCK_H

#define PS_PARTS 4
#define PS_VALUE_PARTS 2

typedef struct {
    vec at[2];
} value;

typedef struct {
    value row[2];
} num;

#define PS_OF_TYPE(name, a) _Generic((a), num: name##_block, value: name##_column)

PS_INLINE value
zero_value(void)
{
    return (value){{(vec){0}, (vec){0}}};
}

PS_INLINE num
zero(void)
{
    return (num){{zero_value(), zero_value()}};
}

PS_INLINE num
one(void)
{
    return (num){{{{splat(1), (vec){0}}}, {{(vec){0}, splat(1)}}}};
}

PS_INLINE value
add_column(value a, value b)
{
    return (value){{a.at[0] + b.at[0], a.at[1] + b.at[1]}};
}

PS_INLINE value
sub_column(value a, value b)
{
    return (value){{a.at[0] - b.at[0], a.at[1] - b.at[1]}};
}

PS_INLINE value
mul_column(num a, value b)
{
    return (value){{a.row[0].at[0] * b.at[0] + a.row[0].at[1] * b.at[1],
                    a.row[1].at[0] * b.at[0] + a.row[1].at[1] * b.at[1]}};
}

PS_INLINE value
choose_column(mask m, value a, value b)
{
    return (value){{choose_vec(m, a.at[0], b.at[0]), choose_vec(m, a.at[1], b.at[1])}};
}

PS_INLINE vec
size_of_column(value a)
{
    return abs_vec(a.at[0]) + abs_vec(a.at[1]);
}

PS_INLINE num
transposed_block(num a)
{
    return (num){
        {{{a.row[0].at[0], a.row[1].at[0]}}, {{a.row[0].at[1], a.row[1].at[1]}}}};
}

PS_INLINE num
add_block(num a, num b)
{
    return (num){{add_column(a.row[0], b.row[0]), add_column(a.row[1], b.row[1])}};
}

PS_INLINE num
sub_block(num a, num b)
{
    return (num){{sub_column(a.row[0], b.row[0]), sub_column(a.row[1], b.row[1])}};
}

PS_INLINE num
mul_block(num a, num b)
{
    const num columns = transposed_block(b);

    return transposed_block(
        (num){{mul_column(a, columns.row[0]), mul_column(a, columns.row[1])}});
}

PS_INLINE num
choose_block(mask m, num a, num b)
{
    return (num){
        {choose_column(m, a.row[0], b.row[0]), choose_column(m, a.row[1], b.row[1])}};
}

PS_INLINE vec
size_of_block(num a)
{
    return size_of_column(a.row[0]) + size_of_column(a.row[1]);
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
    const value sum = add(a.row[0], a.row[1]);

    return sum.at[0] + sum.at[1];
}

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

#define is_bad_exchanged(pivot) is_bad(pivot)

/* ||diag^-1|| (||lower|| + ||upper||) <= 1 in a norm of blocks, the sum of the sizes of
 * the entries: sufficient for a stable elimination without exchanges. */
PS_INLINE mask
is_dominant(num lower, num diag, num upper)
{
    return size_of(reciprocal(diag)) * (size_of(lower) + size_of(upper)) <= splat(1);
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
