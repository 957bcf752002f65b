/* real.h - real numbers: vectors. */
#ifndef PS_CPU_LINES_REAL_H
#define PS_CPU_LINES_REAL_H

#define PS_PARTS 1
#define PS_VALUE_PARTS 1

typedef vec num;
typedef num value;

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
adjoint_if(int condition, num a)
{
    (void)condition;
    return a;
}

#include "lines/scalar.h"

#endif
