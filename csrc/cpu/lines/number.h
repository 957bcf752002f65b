/* number.h - the numbers of a unit and their arithmetic, one number per lane.
 *
 * The dtype header of the unit, isa/<dtype>.h, names the header of its numbers in
 * PS_NUMBER: lines/real.h, lines/complex.h or lines/block.h. That header defines two types,
 *
 *   num      an entry of a matrix
 *   value    an entry of a right-hand side or of a solution
 *
 * which are one type unless an entry of a matrix is a block. A number consists of
 * PS_PARTS reals in memory and of as many vectors here, a value of PS_VALUE_PARTS of them;
 * no value has more parts than a number. The header defines
 *
 *   zero, zero_value, one
 *   add, sub, choose, size_of      of two numbers or two values, or of one
 *   mul                            a number times a number or a value
 *   reciprocal, divide             b^-1 and a b^-1 of numbers
 *   inverse_times(b, a)            b^-1 a of a number or a value a
 *   scaled(a, inverse)             inverse a of a number or a value a, which is divided
 *                                  by the pivot of its row
 *   put_value, value_in            a value in the place of a number, in arrays of the
 *                                  words of rows, which are both
 *   sum_of                         infinite or NaN if a part of the number is
 *   is_dominant, is_bad, is_bad_exchanged     of a row; of a pivot
 *   adjoint_if, has_adjoints(trans)           whether a solve with `trans` uses the
 *                                  adjoints of the entries of the matrix
 *
 * Kernels for all numbers are written with these functions; those for real numbers alone
 * use the operators of vectors. Products do not commute, and every kernel keeps the order
 * of their factors: a row is multiplied from the left.
 */
#ifndef PS_CPU_LINES_NUMBER_H
#define PS_CPU_LINES_NUMBER_H

#include PS_NUMBER

enum { PARTS = PS_PARTS, VALUE_PARTS = PS_VALUE_PARTS };

PS_INLINE num
as_num(mask m)
{
    return choose(m, one(), zero());
}

/* a - b c. A macro: GCC 12 generates other code for complex numbers if it inlines one
 * function more. */
#define sub_mul(a, b, c) sub(a, mul(b, c))

#endif
