/* number.h - one lane-wide number, real or complex, and its arithmetic.
 *
 * For the dtype of the unit, PS_TAG: f32, f64, c64 or c128. A complex number keeps its
 * real and imaginary parts in two vectors. Kernels for all dtypes are written with these
 * functions; those for real numbers alone use the operators of vectors. Products keep
 * the order of their factors.
 */
#ifndef PS_CPU_LINES_NUMBER_H
#define PS_CPU_LINES_NUMBER_H

enum { PARTS = 1 + PS_COMPLEX };

#if PS_COMPLEX

typedef struct {
    vec re, im;
} num;

PS_INLINE num
zero(void)
{
    return (num){(vec){0}, (vec){0}};
}

PS_INLINE num
one(void)
{
    return (num){splat(1), (vec){0}};
}

PS_INLINE num
add(num a, num b)
{
    return (num){a.re + b.re, a.im + b.im};
}

PS_INLINE num
sub(num a, num b)
{
    return (num){a.re - b.re, a.im - b.im};
}

PS_INLINE num
mul(num a, num b)
{
    return (num){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

PS_INLINE num
choose(mask m, num a, num b)
{
    return (num){choose_vec(m, a.re, b.re), choose_vec(m, a.im, b.im)};
}

/* |re| + |im|, the size by which LAPACK chooses a pivot too. */
PS_INLINE vec
size_of(num a)
{
    return abs_vec(a.re) + abs_vec(a.im);
}

/* re + im, which is infinite or NaN if a part is. */
PS_INLINE vec
sum_of(num a)
{
    return a.re + a.im;
}

/* 1 / a, scaled so that only the answer can overflow. */
PS_INLINE num
reciprocal(num a)
{
    const vec re = abs_vec(a.re), im = abs_vec(a.im);
    const vec scale = splat(1) / choose_vec(re >= im, re, im);
    const vec x = a.re * scale, y = a.im * scale;
    const vec factor = scale / (x * x + y * y);

    return (num){x * factor, -(y * factor)};
}

/* a / b. A subnormal b, whose reciprocal overflows, is first scaled up by a power of two
 * and a with it; other quotients are not changed by that. */
PS_INLINE num
divide(num a, num b)
{
    const mask small = (mask)(abs_vec(b.re) + abs_vec(b.im) <= splat(PS_TINY));
    const vec scale = choose_vec(small, splat(1 / PS_EPSILON), splat(1));

    return mul((num){a.re * scale, a.im * scale},
               reciprocal((num){b.re * scale, b.im * scale}));
}

PS_INLINE vec
modulus(num a)
{
    const vec square = a.re * a.re + a.im * a.im;
    vec root = square; /* all lanes are replaced */

    for (int v = 0; v < LANES; v++) {
        root[v] = PS_SQRT(square[v]);
    }
    return root;
}

/* |diag| >= |lower| + |upper|; false where the squares leave their range. */
PS_INLINE mask
is_dominant(num lower, num diag, num upper)
{
    const vec d = modulus(diag);
    const vec others = modulus(lower) + modulus(upper);

    return (d >= others) & (d <= splat(PS_LARGEST)) & (d >= splat(PS_SMALL_SQUARE));
}

PS_INLINE num
conjugate_if(int condition, num a)
{
    return condition ? (num){a.re, -a.im} : a;
}

#else

typedef vec num;

PS_INLINE num
zero(void)
{
    return (num){0};
}

PS_INLINE num
one(void)
{
    return splat(1);
}

PS_INLINE num
add(num a, num b)
{
    return a + b;
}

PS_INLINE num
sub(num a, num b)
{
    return a - b;
}

PS_INLINE num
mul(num a, num b)
{
    return a * b;
}

PS_INLINE num
choose(mask m, num a, num b)
{
    return choose_vec(m, a, b);
}

PS_INLINE vec
size_of(num a)
{
    return abs_vec(a);
}

PS_INLINE vec
sum_of(num a)
{
    return a;
}

PS_INLINE num
reciprocal(num a)
{
    return splat(1) / a;
}

PS_INLINE num
divide(num a, num b)
{
    return a / b;
}

PS_INLINE mask
is_dominant(num lower, num diag, num upper)
{
    return abs_vec(diag) >= abs_vec(lower) + abs_vec(upper);
}

PS_INLINE num
conjugate_if(int condition, num a)
{
    (void)condition;
    return a;
}

#endif

PS_INLINE num
as_num(mask m)
{
    return choose(m, one(), zero());
}

/* a - b c. A macro: GCC 12 generates other code for complex numbers if it inlines one
 * function more. */
#define sub_mul(a, b, c) sub(a, mul(b, c))

/* A pivot of an elimination with exchanges is zero, infinite or NaN. It divides by pivots
 * of any other size. */
PS_INLINE mask
is_bad_exchanged(num pivot)
{
    const vec size = size_of(pivot);

    return ~((mask)(size > (vec){0}) & (mask)(size <= splat(PS_LARGEST)));
}

/* A pivot is so small that its reciprocal overflows, infinite or NaN. */
PS_INLINE mask
is_bad(num pivot)
{
    const vec size = size_of(pivot);

    return ~((mask)(size > splat(1 / PS_LARGEST)) & (mask)(size <= splat(PS_LARGEST)));
}

#endif
