/* complex.h - complex numbers: real and imaginary parts in two vectors. */
#ifndef PS_CPU_LINES_COMPLEX_H
#define PS_CPU_LINES_COMPLEX_H

#define PS_PARTS 2
#define PS_VALUE_PARTS 2

typedef struct {
    vec re, im;
} num;

typedef num value;

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

#pragma GCC unroll 16
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
adjoint_if(int condition, num a)
{
    return condition ? (num){a.re, -a.im} : a;
}

/* Store the numbers of all lanes, one after the other. */
PS_INLINE void
store_pairs(real *to, num a)
{
#if defined(__clang__)
#pragma GCC unroll 16
    for (int v = 0; v < LANES; v++) {
        to[2 * v] = a.re[v];
        to[2 * v + 1] = a.im[v];
    }
#else
    mask low = {0}, high = {0};

#pragma GCC unroll 16
    for (int v = 0; v < LANES; v++) {
        low[v] = v / 2 + v % 2 * LANES;
        high[v] = low[v] + LANES / 2;
    }
    store(to, __builtin_shuffle(a.re, a.im, low));
    store(to + LANES, __builtin_shuffle(a.re, a.im, high));
#endif
}

#include "lines/scalar.h"

#endif
