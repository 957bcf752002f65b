/* scalar.h - what real and complex numbers share: products commute, and values are
 * numbers. */
#ifndef PS_CPU_LINES_SCALAR_H
#define PS_CPU_LINES_SCALAR_H

#define zero_value() zero()
#define inverse_times(b, a) divide(a, b)
#define scaled(a, inverse) mul(a, inverse)
#define put_value(to, a) (*(to) = (a))
#define value_in(from) (*(from))
#define has_adjoints(trans) ((trans) == PS_TRANS_ADJOINT)

/* A pivot is so small that its reciprocal overflows, infinite or NaN. */
PS_INLINE mask
is_bad(num pivot)
{
    const vec size = size_of(pivot);

    return ~((mask)(size > splat(1 / PS_LARGEST)) & (mask)(size <= splat(PS_LARGEST)));
}

/* A pivot of an elimination with exchanges is zero, infinite or NaN. Such an elimination
 * divides by pivots of any other size. */
PS_INLINE mask
is_bad_exchanged(num pivot)
{
    const vec size = size_of(pivot);

    return ~((mask)(size > (vec){0}) & (mask)(size <= splat(PS_LARGEST)));
}

#endif
