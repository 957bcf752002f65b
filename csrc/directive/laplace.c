/* laplace.c - red-black SOR for a plate with compiler directives.
 *
 *   r = ((ax (T_W + T_E) + ay (T_N + T_S)) + source) - diag T,   T = T + gain r
 *
 * in the order of operations of ps_laplace.h, on one array with interleaved colours: the
 * layout of its variant naive. 8 to 10 operations and 4 words per cell and iteration.
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

static measures
relax(const ps_laplace *l, int colour)
{
    const long long nx = l->nx, ny = l->ny, row = 2 * l->pitch, half = (nx + 1) / 2;
    const double ax = l->ax, ay = l->ay;
    const int criterion = (int)l->stop.criterion, has_source = l->source != NULL;
    double *const t = l->t;
    const double *const diag = l->diag, *const gain = l->gain;
    const double *const source = has_source ? l->source : l->t;
    double sum = 0, most = 0;

    FOR_ALL_BOTH(sum, most, AT(t), AT(diag), AT(gain), AT(source))
    for (long long j = 1; j <= ny; j++) {
        for (long long k = 0; k < half; k++) {
            const long long i = 1 + 2 * k + ((j + colour + 1) & 1), at = j * row + i;

            if (i <= nx) {
                const long long table = (j == 1 ? 0 : j == ny ? 2 : 1) * row + i;
                const double own = t[at];
                const double around =
                    ax * (t[at - 1] + t[at + 1]) + ay * (t[at + row] + t[at - row]);
                const double balance = has_source ? around + source[at] : around;
                const double r = balance - diag[table] * own;
                const double now = own + gain[table] * r;
                const double x = criterion == PS_CRITERION_RESIDUAL ? r
                                 : criterion == PS_CRITERION_CHANGE ? now - own
                                                                    : now;

                t[at] = now;
                sum += x * x;
                most = fmax(most, fabs(x));
            }
        }
    }
    return (measures){sum, most};
}

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

static void
iterate(const ps_laplace *l, long long count, long long *iterations, long long *taken,
        double *measure, int *end)
{
    const ps_stop *const stop = &l->stop;

    while (*iterations < count && *end == PS_END_COUNT) {
        const measures red = relax(l, 0), black = relax(l, 1);

        *iterations += 1;
        if (stop->every == 0 ||
            (*iterations % stop->every != 0 && *iterations != count)) {
            continue;
        }
        *measure = measure_of(l, red, black);
        if (stop->history != NULL) {
            stop->history[*taken] = *measure;
        }
        *taken += 1;
        *end = !isfinite(*measure)           ? PS_END_NOT_FINITE
               : *measure <= stop->tolerance ? PS_END_TOLERANCE
                                             : PS_END_COUNT;
    }
}

int
ps_directive_laplace_iterate(long long nx, long long ny, long long pitch,
                             const double *numbers, const int *codes, long long every,
                             double *t, const double *diag, const double *gain,
                             const double *source, double *history, long long count,
                             long long *iterations, long long *taken, double *measure,
                             int *end)
{
    const ps_laplace l = {.dtype = PS_F64,
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
    const size_t field = (size_t)(2 * (ny + 2) * pitch), table = (size_t)(6 * pitch);
    const double *const inner = source == NULL ? t : source;

    *iterations = *taken = 0;
    *measure = NAN;
    *end = PS_END_COUNT;
    if (status != PS_OK) {
        return (int)status;
    }
    (void)inner; /* read by the directives only; without a source t, mapped already */
#if defined(_OPENACC)
#pragma acc data copy(t[0 : field]) copyin(diag[0 : table], gain[0 : table])
#pragma acc data copyin(inner[0 : field])
#else
#pragma omp target data map(tofrom : t[0 : field]) \
    map(to : diag[0 : table], gain[0 : table])
#pragma omp target data map(to : inner[0 : field])
#endif
    iterate(&l, count, iterations, taken, measure, end);
    return PS_OK;
}
