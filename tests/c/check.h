/* check.h - what the C tests share: a check that counts, and numbers of any dtype.
 *
 * A test program runs all its cases and returns report(): 0 if every CHECK held.
 */
#ifndef PS_TESTS_CHECK_H
#define PS_TESTS_CHECK_H

#include <complex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pysolvers.h"

static int failures, checks;

#define CHECK(condition, ...)                                                \
    do {                                                                     \
        checks++;                                                            \
        if (!(condition) && failures++ < 20) {                               \
            fprintf(stderr, "%s:%d: %s  [", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                    \
            fprintf(stderr, "]\n");                                          \
        }                                                                    \
    } while (0)

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static inline int
report(void)
{
    printf("%d checks, %d failures\n", checks, failures);
    return failures != 0;
}

static inline size_t
element_size(ps_dtype dtype)
{
    static const size_t size[PS_DTYPE_COUNT] = {
        [PS_F32] = 4, [PS_F64] = 8, [PS_C64] = 8, [PS_C128] = 16};
    return size[dtype];
}

static inline double
epsilon(ps_dtype dtype)
{
    return dtype == PS_F32 || dtype == PS_C64 ? 0x1p-23 : 0x1p-52;
}

static inline void
store(ps_dtype dtype, void *data, int64_t at, double complex value)
{
    switch (dtype) {
    case PS_F32:
        ((float *)data)[at] = (float)creal(value);
        break;
    case PS_F64:
        ((double *)data)[at] = creal(value);
        break;
    case PS_C64:
        ((float complex *)data)[at] = (float complex)value;
        break;
    default:
        ((double complex *)data)[at] = value;
        break;
    }
}

static inline double complex
load(ps_dtype dtype, const void *data, int64_t at)
{
    switch (dtype) {
    case PS_F32:
        return ((const float *)data)[at];
    case PS_F64:
        return ((const double *)data)[at];
    case PS_C64:
        return ((const float complex *)data)[at];
    default:
        return ((const double complex *)data)[at];
    }
}

/* A number in (-1, 1) that depends on its three arguments alone (splitmix64). */
static inline double
noise(int64_t line, int64_t row, int word)
{
    uint64_t z = (uint64_t)line * 0x9E3779B97F4A7C15u +
                 (uint64_t)row * 0xD1B54A32D192ED03u +
                 (uint64_t)word * 0x94D049BB133111EBu + 1;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-52 - 1.0;
}

enum { LOWER, DIAG, UPPER, RHS, WORDS };

/* Entry `word` of row `row` of a diagonally dominant line, as `dtype` holds it. */
static inline double complex
entry(ps_dtype dtype, int64_t line, int64_t row, int word)
{
    const int is_complex = dtype == PS_C64 || dtype == PS_C128;
    const double complex part = is_complex ? noise(line, row, word + WORDS) * I : 0;
    double complex value = noise(line, row, word) + part;

    if (word == DIAG) {
        value += line % 2 ? 4 : -4;
    }
    return dtype == PS_F32 || dtype == PS_C64 ? (float complex)value : value;
}

/* The largest |A x - b| / (|A| |x| + |b|) of the rows of one such line. */
static inline double
backward_error(ps_dtype dtype, int64_t line, int64_t rows, int periodic,
               const double complex *x)
{
    double worst = 0;

    for (int64_t i = 0; i < rows; i++) {
        const double complex below =
            i > 0 || periodic ? entry(dtype, line, i, LOWER) * x[(i + rows - 1) % rows]
                              : 0;
        const double complex above =
            i < rows - 1 || periodic ? entry(dtype, line, i, UPPER) * x[(i + 1) % rows]
                                     : 0;
        const double complex here = entry(dtype, line, i, DIAG) * x[i];
        const double complex b = entry(dtype, line, i, RHS);
        const double error = cabs(below + here + above - b) /
                             (cabs(below) + cabs(here) + cabs(above) + cabs(b));

        if (!(error <= worst)) { /* a NaN counts */
            worst = error;
        }
    }
    return worst;
}

#endif
