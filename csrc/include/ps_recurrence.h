/* ps_recurrence.h - linear recurrences of first and second order along lines. */
#ifndef PS_RECURRENCE_H
#define PS_RECURRENCE_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of a ps_recurrence. PS_REVERSED: the rows from the last to the first, with row
 * i + 1 in the place of row i - 1. PS_TRANSPOSED: the coefficients of row i are first and
 * second of the rows of the values that they multiply, which makes the matrix of the
 * recurrence that of the transposed one; those of initial values are 0. */
enum { PS_REVERSED = 1u, PS_TRANSPOSED = 2u };

/* x[i] = first[i] x[i-1] + second[i] x[i-2] + b[i], 0 <= i < rows
 *
 * of outer * inner lines. second with null data: of first order. initial with null data:
 * x before the first row is 0; otherwise row 0 of it is x[-1], row 1 of it x[-2]. x may be
 * b (same data, same strides); any other overlap is PS_BAD_LAYOUT. Strides as of a
 * ps_tridiag. Workspace of recurrence_work(). 1 <= rows <= INT32_MAX - 1. */
typedef struct {
    ps_dtype dtype;
    uint32_t flags;
    int64_t rows, outer, inner;
    ps_input first, second, b, initial;
    ps_output x;
} ps_recurrence;

ps_status ps_recurrence_check(const ps_recurrence *r);

#ifdef __cplusplus
}
#endif
#endif
