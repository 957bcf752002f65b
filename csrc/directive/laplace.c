/* laplace.c - red-black SOR for a plate with compiler directives.
 *
 *   r = ((ax (T_W + T_E) + ay (T_N + T_S)) + source) - diag T,   T = T + gain r
 *
 * in the order of operations of ps_laplace.h, on one array with interleaved colours: the
 * layout of its variant naive, in float32 or float64; sums of squares are in float64.
 * 8 to 10 operations and 4 words per cell and iteration.
 * Source: Niemeyer and Sung (2014), first case study.
 */
#include "directive.h"

#include <math.h>
#include <stddef.h>

#include "ps_laplace.h"

/* What a relaxation of one colour measures. */
typedef struct {
    double sum, most; /* of the squares, of the absolute values */
} measures;

static double
measure_of(const ps_laplace *l, measures red, measures black)
{
    const double sum = red.sum + black.sum;

    if (!isfinite(sum)) { /* fmax() ignores a NaN, the sum does not */
        return sum;
    }
    return l->stop.norm == PS_NORM_MAX ? fmax(red.most, black.most)
                                       : sqrt(sum / ((double)l->nx * (double)l->ny));
}

#define REAL float
#define NAMED(name) name##_f32
#include "laplace.inc"
#undef REAL
#undef NAMED

#define REAL double
#define NAMED(name) name##_f64
#include "laplace.inc"
#undef REAL
#undef NAMED

int
ps_directive_laplace_iterate(int dtype, long long nx, long long ny, long long pitch,
                             const double *numbers, const int *codes, long long every,
                             void *t, const void *diag, const void *gain,
                             const void *source, double *history, long long count,
                             long long *iterations, long long *taken, double *measure,
                             int *end)
{
    const ps_laplace l = {.dtype = (ps_dtype)dtype,
                          .variant = PS_LAPLACE_NAIVE,
                          .nx = nx,
                          .ny = ny,
                          .pitch = pitch,
                          .ax = numbers[0],
                          .ay = numbers[1],
                          .t = t,
                          .diag = diag,
                          .gain = gain,
                          .source = source,
                          .stop = {.criterion = (ps_criterion)codes[0],
                                   .norm = (ps_norm)codes[1],
                                   .every = every,
                                   .tolerance = numbers[2],
                                   .history = history}};
    const ps_status status = ps_laplace_check(&l);

    *iterations = *taken = 0;
    *measure = NAN;
    *end = PS_END_COUNT;
    if (status != PS_OK) {
        return (int)status;
    }
    if (l.dtype == PS_F32) {
        run_f32(&l, count, iterations, taken, measure, end);
    }
    else {
        run_f64(&l, count, iterations, taken, measure, end);
    }
    return PS_OK;
}
