/* test_staggered.c - refusals of a ps_staggered, and steps in buffers without a byte to
 * spare. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "ps_staggered.h"

enum { FIELDS = 7 };

/* A cavity at rest, and the memory of u, v, f, g, p, q and clock. */
typedef struct {
    ps_staggered s;
    double *field[FIELDS];
} problem;

static problem
problem_new(int64_t n, ps_pressure pressure, ps_staggered_kernel kernel)
{
    problem p = {.s = {.cells = n,
                       .kernel = kernel,
                       .pressure = pressure,
                       .stages = 7,
                       .reynolds = 100,
                       .tau = 0.5,
                       .gamma = 0.5,
                       .until = INFINITY,
                       .steady = -1,
                       .tolerance = 1e-6,
                       .omega = 1.5,
                       .lid = 1,
                       .bound = 100,
                       .most_sweeps = 10000}};
    const int64_t staggered = (n + 2) * (n + 2), centres = n * n;
    const int64_t count[FIELDS] = {staggered, staggered, staggered,     staggered,
                                   centres,   centres,   PS_CLOCK_COUNT};

    for (int k = 0; k < FIELDS; k++) {
        p.field[k] = calloc((size_t)count[k], sizeof(double));
    }
    p.s.u = p.field[0];
    p.s.v = p.field[1];
    p.s.f = p.field[2];
    p.s.g = p.field[3];
    p.s.p = p.field[4];
    p.s.q = p.field[5];
    p.s.clock = p.field[6];
    for (int64_t i = 0; i <= n; i++) {
        p.s.u[(n + 1) * (n + 2) + i] = 2;
    }
    p.s.clock[PS_CLOCK_U] = 2;
    return p;
}

static void
problem_end(problem *p)
{
    for (int k = 0; k < FIELDS; k++) {
        free(p->field[k]);
    }
}

static ps_status
step(const problem *p, int64_t count, int threads, ps_staggered_report *report)
{
    const ps_backend *const backend = ps_backend_get();
    ps_exec exec = {.threads = threads};
    void *work = NULL;
    ps_status status = backend->staggered_work(&p->s, &exec, &exec.work_bytes);

    CHECK(status == PS_OK, "%s", ps_status_text(status));
    CHECK(posix_memalign(&work, 64, exec.work_bytes) == 0, "%zu bytes", exec.work_bytes);
    exec.work = work;
    exec.work_bytes--;
    status = backend->staggered_step(&p->s, count, &exec, report);
    CHECK(status == PS_WORK_TOO_SMALL, "%s", ps_status_text(status));
    exec.work_bytes++;
    status = backend->staggered_step(&p->s, count, &exec, report);
    free(work);
    return status;
}

/* Largest sum of the outflows of a cell. */
static double
divergence(const ps_staggered *s)
{
    const int64_t n = s->cells, m = n + 2;
    double found = 0;

    for (int64_t j = 1; j <= n; j++) {
        for (int64_t i = 1; i <= n; i++) {
            const int64_t k = j * m + i;

            found = fmax(found, fabs(s->u[k] - s->u[k - 1] + (s->v[k] - s->v[k - m])));
        }
    }
    return found;
}

/* The steps have the same bits for every kernel and number of threads. */
static void
test_steps(int64_t n)
{
    problem first = problem_new(n, PS_PRESSURE_SOR, PS_STAGGERED_SERIAL);
    ps_staggered_report report;
    const ps_status status = step(&first, 6, 1, &report);

    CHECK(status == PS_OK && report.steps == 6, "%s", ps_status_text(status));
    CHECK(report.end == PS_STAGGERED_COUNT, "end %d", (int)report.end);
    CHECK(divergence(&first.s) < 1e-6, "divergence %g", divergence(&first.s));
    CHECK(fabs(first.s.u[n * (n + 2) + n / 2]) > 0.01, "the fluid is at rest");
    for (int kernel = 0; kernel < PS_STAGGERED_KERNELS; kernel++) {
        for (int threads = 1; threads <= 3; threads++) {
            problem p = problem_new(n, PS_PRESSURE_SOR, (ps_staggered_kernel)kernel);
            const size_t bytes = (size_t)((n + 2) * (n + 2)) * sizeof(double);

            CHECK(step(&p, 6, threads, &report) == PS_OK, "kernel %d", kernel);
            CHECK(memcmp(p.s.u, first.s.u, bytes) == 0, "u of kernel %d", kernel);
            CHECK(memcmp(p.s.v, first.s.v, bytes) == 0, "v of kernel %d", kernel);
            problem_end(&p);
        }
    }
    problem_end(&first);
}

/* With a given pressure of 0, a step is the explicit part alone. */
static void
test_given_pressure(void)
{
    problem p = problem_new(5, PS_PRESSURE_GIVEN, PS_STAGGERED_AUTO);
    ps_staggered_report report;

    p.s.stages = 1u << PS_STAGGERED_PREDICT;
    CHECK(step(&p, 1, 1, &report) == PS_OK && report.steps == 0, "predict");
    CHECK(p.s.clock[PS_CLOCK_TIME] == 0 && p.s.clock[PS_CLOCK_DT] > 0, "clock");
    CHECK(p.s.clock[PS_CLOCK_STEPS] == 0, "no step is complete");
    memset(p.s.q, 0, 25 * sizeof(double));
    p.s.stages = 1u << PS_STAGGERED_CORRECT;
    CHECK(step(&p, 1, 1, &report) == PS_OK && report.steps == 1, "correct");
    CHECK(p.s.u[5 * 7 + 2] == p.s.f[5 * 7 + 2], "u is f");
    CHECK(p.s.clock[PS_CLOCK_TIME] == p.s.clock[PS_CLOCK_DT], "time");
    CHECK(p.s.clock[PS_CLOCK_STEPS] == 1, "one step is complete");
    problem_end(&p);
}

static void
test_ends(void)
{
    problem p = problem_new(6, PS_PRESSURE_SOR, PS_STAGGERED_AUTO);
    ps_staggered_report report;

    p.s.until = 0.1;
    CHECK(step(&p, 1000, 1, &report) == PS_OK, "until");
    CHECK(report.end == PS_STAGGERED_UNTIL && p.s.clock[PS_CLOCK_TIME] == 0.1, "until");
    CHECK(step(&p, 1000, 1, &report) == PS_OK && report.steps == 0, "at the end");
    CHECK(report.end == PS_STAGGERED_UNTIL, "end %d", (int)report.end);
    p.s.until = INFINITY;
    p.s.steady = 0.1;
    CHECK(step(&p, 1000, 1, &report) == PS_OK, "steady");
    CHECK(report.end == PS_STAGGERED_STEADY, "end %d", (int)report.end);
    p.s.steady = -1;
    p.s.most_sweeps = 1;
    p.s.tolerance = 0;
    CHECK(step(&p, 5, 1, &report) == PS_OK && report.steps == 0, "sweeps");
    CHECK(report.end == PS_STAGGERED_SWEEPS, "end %d", (int)report.end);
    p.s.u[8 * 3 + 3] = NAN;
    p.s.tolerance = -1;
    CHECK(step(&p, 5, 1, &report) == PS_OK, "grown");
    CHECK(report.end == PS_STAGGERED_GROWN, "end %d", (int)report.end);
    problem_end(&p);
}

static void
test_refusals(void)
{
    problem p = problem_new(4, PS_PRESSURE_SOR, PS_STAGGERED_AUTO);
    ps_staggered s = p.s;

    CHECK(ps_staggered_check(&s) == PS_OK, "legal");
    CHECK(ps_staggered_check(NULL) == PS_BAD_ARGUMENT, "null");
    s.v = NULL;
    CHECK(ps_staggered_check(&s) == PS_BAD_ARGUMENT, "v");
    s = p.s;
    s.g = s.u + 1;
    CHECK(ps_staggered_check(&s) == PS_BAD_LAYOUT, "overlap");
    s = p.s;
    s.cells = 3;
    CHECK(ps_staggered_check(&s) == PS_BAD_ARGUMENT, "cells");
    s = p.s;
    s.force_x = p.s.q;
    CHECK(ps_staggered_check(&s) == PS_BAD_ARGUMENT, "one component of a force");
    s.force_y = s.u;
    CHECK(ps_staggered_check(&s) == PS_BAD_LAYOUT, "force is u");
    s = p.s;
    s.push = 1;
    CHECK(ps_staggered_check(&s) == PS_BAD_ARGUMENT, "push without a force");
    s = p.s;
    s.lid = NAN;
    CHECK(ps_staggered_check(&s) == PS_BAD_ARGUMENT, "lid");
    s = p.s;
    s.bound = 0;
    CHECK(ps_staggered_check(&s) == PS_BAD_ARGUMENT, "bound");
    s = p.s;
    s.omega = 2;
    CHECK(ps_staggered_check(&s) == PS_BAD_ARGUMENT, "omega");
    s.pressure = PS_PRESSURE_GIVEN;
    CHECK(ps_staggered_check(&s) == PS_OK, "omega is not read");
    problem_end(&p);
}

int
main(void)
{
    for (int64_t n = 4; n < 8; n++) {
        test_steps(n);
    }
    test_steps(37);
    test_given_pressure();
    test_ends();
    test_refusals();
    return report();
}
