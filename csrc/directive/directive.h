/* directive.h - loops that OpenACC or OpenMP runs on an accelerator.
 *
 * Compiled with -fopenacc the macros are OpenACC constructs, with -fopenmp they are
 * OpenMP target constructs. The arrays of a loop must be on the device already: OpenACC
 * needs their names, because the construct that maps them is in another function, and
 * OpenMP finds them by their addresses. Without an accelerator both models run the loops
 * on the host.
 */
#ifndef PS_DIRECTIVE_H
#define PS_DIRECTIVE_H

#define PRAGMA(...) _Pragma(#__VA_ARGS__)

/* A loop takes its results first, then its arrays as AT(x). Their lengths are not needed:
 * OpenACC finds an array on the device by its first element. */
#define SOME 0 : 1
#define AT(x) x[SOME]

#if defined(_OPENACC)

#include <openacc.h>
#define MODEL "openacc"
/* Two nested loops, whose iterations are independent. */
#define FOR_ALL(...) \
    PRAGMA(acc parallel loop gang vector collapse(2) present(__VA_ARGS__))
#define FOR_ALL_SUM(x, ...)                                               \
    PRAGMA(acc parallel loop gang vector collapse(2) present(__VA_ARGS__) \
               reduction(+ : x))
#define FOR_ALL_MAX(x, ...)                                               \
    PRAGMA(acc parallel loop gang vector collapse(2) present(__VA_ARGS__) \
               reduction(max : x))
#define FOR_ALL_BOTH(x, y, ...)                                           \
    PRAGMA(acc parallel loop gang vector collapse(2) present(__VA_ARGS__) \
               reduction(+ : x) reduction(max : y))
#define FOR_LINE(...) PRAGMA(acc parallel loop gang vector present(__VA_ARGS__))

#elif defined(_OPENMP)

#include <omp.h>
#define MODEL "openmp"
#define FOR_ALL(...) PRAGMA(omp target teams distribute parallel for collapse(2))
#define FOR_ALL_SUM(x, ...)                                                     \
    PRAGMA(omp target teams distribute parallel for collapse(2) map(tofrom : x) \
               reduction(+ : x))
#define FOR_ALL_MAX(x, ...)                                                     \
    PRAGMA(omp target teams distribute parallel for collapse(2) map(tofrom : x) \
               reduction(max : x))
#define FOR_ALL_BOTH(x, y, ...)                                                    \
    PRAGMA(omp target teams distribute parallel for collapse(2) map(tofrom : x, y) \
               reduction(+ : x) reduction(max : y))
#define FOR_LINE(...) PRAGMA(omp target teams distribute parallel for)

#else
#error "compile with -fopenacc or -fopenmp"
#endif

#define EXPORT __attribute__((visibility("default")))

/* "openacc on the host", "openmp on a device", ...: a static text. */
EXPORT const char *ps_directive_describe(void);

/* Make at most `count` steps as ps_staggered.h describes, with SOR for the pressure.
 * `numbers`: reynolds, tau, gamma, dt, until, steady, tolerance, omega, lid, push,
 * bound, without a force. `work` has
 * 2 (N+2)^2 values. Writes the number of complete steps and the code of the end; seconds
 * has PS_STAGGERED_STAGES values, to which the times of the stages are added. Returns a
 * ps_status. */
EXPORT int ps_directive_staggered_step(long long cells, const double *numbers,
                                       long long most_sweeps, double *u, double *v,
                                       double *p, double *f, double *g, double *clock,
                                       double *work, long long count, long long *steps,
                                       int *end, double *seconds);

/* Run at most `count` iterations of a ps_laplace, variant naive. `dtype`: PS_F32 or
 * PS_F64, of t, diag, gain and source; `numbers`: ax, ay, tolerance; `codes`: criterion,
 * norm; source may be null. Writes the numbers of iterations and of measures, the last
 * measure and the code of the end. Returns a ps_status. */
EXPORT int ps_directive_laplace_iterate(int dtype, long long nx, long long ny,
                                        long long pitch, const double *numbers,
                                        const int *codes, long long every, void *t,
                                        const void *diag, const void *gain,
                                        const void *source, double *history,
                                        long long count, long long *iterations,
                                        long long *taken, double *measure, int *end);

#endif
