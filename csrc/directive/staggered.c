/* staggered.c - steps of the cavity on a staggered grid with compiler directives.
 *
 * The scheme, its operations and its stability are those of
 * csrc/cpu/flow/staggered_stages.c and staggered.c; the values are stored in arrays of
 * (N+2)^2 elements for all fields, with interleaved colours in the relaxation. The survey
 * of Niemeyer and Sung (2014) compares such loops with kernels written for the device.
 * Every loop reads and writes whole fields: a step of K iterations moves 18 + 4 K words
 * per cell. The fields are copied to the device and back once per call.
 */
#include "directive.h"

#include <math.h>
#include <stddef.h>
#include <time.h>

#include "ps_staggered_clock.h"

/* Fields of a call; p and q have (N+2)^2 elements, of which the ghosts are 0. */
typedef struct {
    long long n;
    double *u, *v, *p, *f, *g, *q;
} fields;

const char *
ps_directive_describe(void)
{
    int on_host = 1;

#if defined(_OPENACC)
    on_host = acc_get_num_devices(acc_device_nvidia) == 0;
#else
#pragma omp target map(tofrom : on_host)
    on_host = omp_is_initial_device();
#endif
    return on_host ? MODEL " on the host" : MODEL " on a device";
}

/* See flux() in csrc/cpu/flow/staggered_stages.c. */
#if defined(_OPENACC)
#pragma acc routine seq
#else
#pragma omp declare target
#endif
static double
flux(double out, double in, double before, double c, double after, double gamma)
{
    const double central = out * (c + after) - in * (before + c);

    return central + gamma * (fabs(out) * (c - after) - fabs(in) * (before - c));
}
#if !defined(_OPENACC)
#pragma omp end declare target
#endif

static void
predict(const fields *a, double reynolds, double gamma, double dt)
{
    const long long n = a->n, m = n + 2;
    const double inverse = (double)n, diffusion = dt * inverse * inverse / reynolds;
    const double convection = dt * inverse / 4, scale = inverse / dt;
    const double *const u = a->u, *const v = a->v;
    double *const f = a->f, *const g = a->g, *const q = a->q;

    FOR_ALL(AT(u), AT(v), AT(f), AT(g))
    for (long long j = 1; j <= n; j++) {
        for (long long i = 1; i <= n; i++) {
            const long long k = j * m + i;

            if (i < n) {
                const double c = u[k], east = u[k + 1], west = u[k - 1];
                const double north = u[k + m], south = u[k - m];
                const double uu = flux(c + east, west + c, west, c, east, gamma);
                const double uv = flux(v[k] + v[k + 1], v[k - m] + v[k + 1 - m], south, c,
                                       north, gamma);
                const double lap = ((east + west) + (north + south)) - 4 * c;

                f[k] = c + (diffusion * lap - convection * (uu + uv));
            }
            if (j < n) {
                const double c = v[k], east = v[k + 1], west = v[k - 1];
                const double north = v[k + m], south = v[k - m];
                const double vv = flux(c + north, south + c, south, c, north, gamma);
                const double uv =
                    flux(u[k] + u[k + m], u[k - 1] + u[k - 1 + m], west, c, east, gamma);
                const double lap = ((east + west) + (north + south)) - 4 * c;

                g[k] = c + (diffusion * lap - convection * (uv + vv));
            }
        }
    }
    FOR_ALL(AT(f), AT(g), AT(q))
    for (long long j = 1; j <= n; j++) {
        for (long long i = 1; i <= n; i++) {
            const long long k = j * m + i;

            q[k] = scale * ((f[k] - f[k - 1]) + (g[k] - g[k - m]));
        }
    }
}

/* Relax one colour; returns the sum of the squares of the residuals. */
static double
relax(const fields *a, double omega, int colour)
{
    const long long n = a->n, m = n + 2, half = (n + 1) / 2;
    const double inverse = (double)(n * n), *const q = a->q;
    double *const p = a->p;
    double sum = 0;

    FOR_ALL_SUM(sum, AT(p), AT(q))
    for (long long j = 1; j <= n; j++) {
        for (long long l = 0; l < half; l++) {
            const long long i = 1 + 2 * l + ((j + colour + 1) & 1), k = j * m + i;

            if (i <= n) {
                const double count = 4 - (i == 1) - (i == n) - (j == 1) - (j == n);
                const double diag = inverse * count;
                const double r =
                    ((inverse * (p[k - 1] + p[k + 1]) + inverse * (p[k + m] + p[k - m])) -
                     q[k]) -
                    diag * p[k];

                p[k] = p[k] + omega / diag * r;
                sum += r * r;
            }
        }
    }
    return sum;
}

static ps_staggered_end
solve_pressure(const fields *a, const ps_staggered *s)
{
    double *const clock = s->clock;
    long long sweeps = 0;
    double residual = INFINITY;

    while (sweeps < s->most_sweeps && !(residual <= s->tolerance)) {
        const double red = relax(a, s->omega, 0);
        const double sum = red + relax(a, s->omega, 1);

        residual = sqrt(sum / ((double)a->n * (double)a->n));
        sweeps++;
        if (!isfinite(residual)) {
            return PS_STAGGERED_GROWN;
        }
    }
    clock[PS_CLOCK_RESIDUAL] = residual;
    if (s->tolerance >= 0 && residual > s->tolerance) {
        return PS_STAGGERED_SWEEPS;
    }
    clock[PS_CLOCK_SWEEPS] += (double)sweeps;
    return PS_STAGGERED_COUNT;
}

/* Subtract the gradient of the pressure, set the ghosts, and update the clock. */
static void
correct(const fields *a, double lid, double *clock)
{
    const long long n = a->n, m = n + 2;
    const double factor = clock[PS_CLOCK_DT] * (double)n;
    const double *const p = a->p, *const f = a->f, *const g = a->g;
    double *const u = a->u, *const v = a->v;
    double change = 0, u_most = 0, v_most = 0, not_finite = 0;

    FOR_ALL_MAX(change, AT(u), AT(v), AT(p), AT(f), AT(g))
    for (long long j = 1; j <= n; j++) {
        for (long long i = 1; i <= n; i++) {
            const long long k = j * m + i;

            if (i < n) {
                const double now = f[k] - factor * (p[k + 1] - p[k]);

                change = fmax(change, fabs(now - u[k]));
                u[k] = now;
            }
            if (j < n) {
                const double now = g[k] - factor * (p[k + m] - p[k]);

                change = fmax(change, fabs(now - v[k]));
                v[k] = now;
            }
        }
    }
    FOR_LINE(AT(u), AT(v))
    for (long long i = 0; i <= n; i++) {
        u[i] = -u[m + i];
        u[(n + 1) * m + i] = 2 * lid - u[n * m + i];
        v[i * m] = -v[i * m + 1];
        v[i * m + n + 1] = -v[i * m + n];
    }
    FOR_ALL_MAX(u_most, AT(u))
    for (long long j = 1; j <= n + 1; j++) {
        for (long long i = 0; i <= n; i++) {
            u_most = fmax(u_most, fabs(u[j * m + i]));
        }
    }
    FOR_ALL_MAX(v_most, AT(v))
    for (long long j = 0; j <= n; j++) {
        for (long long i = 1; i <= n; i++) {
            v_most = fmax(v_most, fabs(v[j * m + i]));
        }
    }
    /* fmax() ignores a NaN; the sum of x - x is NaN if one x is not finite. */
    FOR_ALL_SUM(not_finite, AT(u), AT(v))
    for (long long j = 1; j <= n; j++) {
        for (long long i = 1; i <= n; i++) {
            const long long k = j * m + i;

            not_finite += (u[k] - u[k]) + (v[k] - v[k]);
        }
    }
    clock[PS_CLOCK_U] = u_most + not_finite;
    clock[PS_CLOCK_V] = v_most + not_finite;
    clock[PS_CLOCK_CHANGE] = (change + not_finite) / clock[PS_CLOCK_DT];
    clock[PS_CLOCK_TIME] = clock[PS_CLOCK_NEXT];
    clock[PS_CLOCK_STEPS] += 1;
}

/* Copy p of N^2 elements to or from the field with ghosts. */
static void
pack(const fields *a, double *centres, int back)
{
    const long long n = a->n, m = n + 2;

    for (long long j = 0; j < n; j++) {
        for (long long i = 0; i < n; i++) {
            double *const field = a->p + (j + 1) * m + i + 1;

            if (back) {
                centres[j * n + i] = *field;
            }
            else {
                *field = centres[j * n + i];
            }
        }
    }
}

static double
now(void)
{
    struct timespec t;

    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ps_staggered_end
step(const fields *a, const ps_staggered *s, double *seconds)
{
    const double start = now();

    ps_staggered_choose_dt(s);
    predict(a, s->reynolds, ps_staggered_gamma(s), s->clock[PS_CLOCK_DT]);
    const double predicted = now();
    ps_staggered_end end = solve_pressure(a, s);
    const double solved = now();

    seconds[PS_STAGGERED_PREDICT] += predicted - start;
    seconds[PS_STAGGERED_PRESSURE] += solved - predicted;
    if (end == PS_STAGGERED_COUNT) {
        correct(a, s->lid, s->clock);
        end = ps_staggered_judge(s);
        seconds[PS_STAGGERED_CORRECT] += now() - solved;
    }
    return end;
}

int
ps_directive_staggered_step(long long cells, const double *numbers, long long most_sweeps,
                            double *u, double *v, double *p, double *f, double *g,
                            double *clock, double *work, long long count,
                            long long *steps, int *end, double *seconds)
{
    const size_t all = (size_t)((cells + 2) * (cells + 2));
    double *const with_ghosts = work, *const q = work + all;
    const ps_staggered s = {.cells = cells,
                            .pressure = PS_PRESSURE_SOR,
                            .stages = 7,
                            .reynolds = numbers[0],
                            .tau = numbers[1],
                            .gamma = numbers[2],
                            .dt = numbers[3],
                            .until = numbers[4],
                            .steady = numbers[5],
                            .tolerance = numbers[6],
                            .omega = numbers[7],
                            .lid = numbers[8],
                            .push = numbers[9],
                            .bound = numbers[10],
                            .most_sweeps = most_sweeps,
                            .u = u,
                            .v = v,
                            .p = p,
                            .f = f,
                            .g = g,
                            .q = q,
                            .clock = clock};
    const fields a = {cells, u, v, with_ghosts, f, g, q};
    const ps_status status = ps_staggered_check(&s);

    *steps = 0;
    *end = PS_STAGGERED_COUNT;
    if (status != PS_OK) {
        return (int)status;
    }
    for (size_t k = 0; k < all; k++) {
        with_ghosts[k] = 0;
    }
    pack(&a, p, 0);
#if defined(_OPENACC)
#pragma acc data copy(u[0 : all], v[0 : all], with_ghosts[0 : all]) \
    copyin(f[0 : all], g[0 : all]) create(q[0 : all])
#else
#pragma omp target data map(tofrom : u[0 : all], v[0 : all], with_ghosts[0 : all]) \
    map(to : f[0 : all], g[0 : all]) map(alloc : q[0 : all])
#endif
    {
        for (long long k = 0; k < count && *end == PS_STAGGERED_COUNT; k++) {
            *end = (int)step(&a, &s, seconds);
            *steps += *end != PS_STAGGERED_SWEEPS &&
                      clock[PS_CLOCK_TIME] == clock[PS_CLOCK_NEXT];
        }
    }
    /* A step that SOR did not complete leaves the pressure of the step before. */
    if (*end != PS_STAGGERED_SWEEPS) {
        pack(&a, p, 1);
    }
    return PS_OK;
}
