/* test_upwind.c - a new source of rows (upwind.h) against the dense equations of its grid.
 *
 * With a number of nodes as argument, the program prints the nanoseconds per unknown of a
 * sweep along each axis, and of a solve of the same lines whose rows are in memory. For
 * that, compile this file with -O2, -mavx512f and -DPS_VECTOR_BYTES=64.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <time.h>

#include "pysolvers.h"
#include "runtime/threads.h"

#define PS_ISA test
#ifndef PS_VECTOR_BYTES
#define PS_VECTOR_BYTES 16
#endif
#include "isa/f64.h"
#include "upwind.h"

#undef load
#undef store
#include "check.h"

enum { NODES = 9, INNER = NODES - 2, UNKNOWNS = INNER * INNER };

static const double spacing = 1.0 / (NODES - 1), step = 0.3, viscosity = 0.01;

static void *
memory_of(size_t bytes)
{
    void *at = NULL;

    CHECK(posix_memalign(&at, 64, bytes > 0 ? bytes : 1) == 0, "%zu bytes", bytes);
    return at;
}

typedef struct {
    line_source source;
    num *kept; /* of a thread */
    int bad[2];
} run;

static void
solve_tiles(void *self, int64_t begin, int64_t end, int thread)
{
    run *const r = self;

    r->bad[thread] |= source_solve(&r->source, begin, end, r->source.u.across == 1,
                                   r->kept + thread * SOURCE_KEPT(r->source.rows));
}

/* A sweep on one or two threads; returns whether a pivot was bad. */
static int
solve(line_source source, int threads)
{
    const size_t bytes = (size_t)SOURCE_KEPT(source.rows) * sizeof(num);
    run r = {source, memory_of(2 * bytes), {0, 0}};

    ps_parallel_for(threads, field_tiles(&source.u), solve_tiles, &r);
    free(r.kept);
    return r.bad[0] | r.bad[1];
}

/* Solve a dense system by elimination with row exchanges; b receives the solution. */
static void
solve_dense(long double a[UNKNOWNS][UNKNOWNS], long double b[UNKNOWNS])
{
    for (int k = 0; k < UNKNOWNS; k++) {
        int best = k;

        for (int i = k + 1; i < UNKNOWNS; i++) {
            best = fabsl(a[i][k]) > fabsl(a[best][k]) ? i : best;
        }
        for (int j = 0; j < UNKNOWNS; j++) {
            const long double kept = a[k][j];

            a[k][j] = a[best][j];
            a[best][j] = kept;
        }
        const long double kept = b[k];
        b[k] = b[best];
        b[best] = kept;
        for (int i = 0; i < UNKNOWNS; i++) {
            const long double m = i != k ? a[i][k] / a[k][k] : 0;

            for (int j = k; j < UNKNOWNS; j++) {
                a[i][j] -= m * a[k][j];
            }
            b[i] -= m * b[k];
        }
    }
    for (int k = 0; k < UNKNOWNS; k++) {
        b[k] /= a[k][k];
    }
}

/* The step along an axis of all inner nodes as one dense system. */
static void
step_dense(int axis, const double *velocity, double *u)
{
    static long double a[UNKNOWNS][UNKNOWNS], b[UNKNOWNS];
    const long double spread = (long double)step * viscosity / (spacing * spacing);

    memset(a, 0, sizeof a);
    for (int q = 0; q < UNKNOWNS; q++) {
        const int i = q % INNER + 1, j = q / INNER + 1, at = j * NODES + i;
        const int stride = axis == 0 ? 1 : NODES, place = axis == 0 ? i : j;
        const long double flow = (long double)step * velocity[at] / spacing;
        const long double upstream[] = {spread + fmaxl(flow, 0),
                                        spread + fmaxl(-flow, 0)};

        a[q][q] = 1 + upstream[0] + upstream[1];
        b[q] = u[at];
        for (int side = 0; side < 2; side++) {
            const int sign = side == 0 ? -1 : 1, next = place + sign;

            if (next == 0 || next == NODES - 1) {
                b[q] += upstream[side] * u[at + sign * stride];
            }
            else {
                a[q][q + sign * (axis == 0 ? 1 : INNER)] = -upstream[side];
            }
        }
    }
    solve_dense(a, b);
    for (int q = 0; q < UNKNOWNS; q++) {
        u[(q / INNER + 1) * NODES + q % INNER + 1] = (double)b[q];
    }
}

static void
steps_are_those_of_the_dense_equations(int threads)
{
    double u[NODES * NODES], expected[NODES * NODES], velocity[2][NODES * NODES];

    for (int k = 0; k < NODES * NODES; k++) {
        u[k] = expected[k] = noise(1, k, 0);
        velocity[0][k] = noise(2, k, 0);
        velocity[1][k] = noise(3, k, 0);
    }
    for (int k = 0; k < 6; k++) {
        const line_source s =
            upwind_sweep(k % 2, NODES, velocity[k % 2], u, step, viscosity);

        CHECK(solve(s, threads) == 0, "sweep %d", k);
        step_dense(k % 2, velocity[k % 2], expected);
    }
    for (int k = 0; k < NODES * NODES; k++) {
        CHECK(fabs(u[k] - expected[k]) < 1e-14, "node %d: %g", k, u[k] - expected[k]);
    }
}

/* No value is outside the range of the old ones, and lines of any length are solved. */
static void
sweeps_have_a_maximum_principle(int64_t nodes, int threads)
{
    const size_t count = (size_t)(nodes * nodes);
    double *const u = memory_of(count * sizeof *u);
    double *const velocity = memory_of(count * sizeof *velocity);

    for (size_t k = 0; k < count; k++) {
        u[k] = noise(4, (int64_t)k, 0);
        velocity[k] = noise(5, (int64_t)k, 0);
    }
    for (int axis = 0; axis < 2; axis++) {
        const line_source s = upwind_sweep(axis, nodes, velocity, u, step, viscosity);

        CHECK(solve(s, threads) == 0, "%d nodes", (int)nodes);
    }
    for (size_t k = 0; k < count; k++) {
        CHECK(fabs(u[k]) <= 1 + 1e-14, "%g at node %d of %d", u[k], (int)k, (int)nodes);
    }
    free(u), free(velocity);
}

static double
seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The rows of a sweep, in arrays of [word][node]. */
static void
write_rows(const line_source *s, int64_t size, double *words)
{
    for (int64_t tile = 0; tile < field_tiles(&s->u); tile++) {
        for (int64_t row = 0; row < s->rows; row += LANES) {
            const int count = source_count(s, row);
            single_row block[LANES];

            source_rows(s, row, count, tile, block);
            for (int k = 0; k < count * field_lanes(&s->u, tile); k++) {
                const int r = k % count, v = k / count;
                const int64_t at =
                    (row + r) * s->u.along + (tile * LANES + v) * s->u.across;
                const double words_of[WORDS] = {block[r].lower[v], block[r].diag[v],
                                                block[r].upper[v], block[r].rhs[v]};

                for (int word = 0; word < WORDS; word++) {
                    words[word * size + at] = words_of[word];
                }
            }
        }
    }
}

static void
print_times(int64_t nodes)
{
    const ps_options options = {PS_THOMAS, PS_PIVOT_NEVER, 0};
    const int64_t rows = nodes - 2, size = nodes * nodes;
    double *const fields = memory_of((size_t)(7 * size) * sizeof *fields);
    double *const u = fields, *const velocity = u + size, *const words = velocity + size;
    ps_exec exec = {.threads = 1, .work_bytes = 1 << 26, .work = memory_of(1 << 26)};

    for (int64_t k = 0; k < size; k++) {
        u[k] = noise(4, k, 0);
        velocity[k] = noise(5, k, 0);
    }
    for (int axis = 0; axis < 2; axis++) {
        const line_source s = upwind_sweep(axis, nodes, velocity, u, step, viscosity);
        const ps_stride stride = {s.u.along, 0, s.u.across};
        ps_tridiag t = {.dtype = PS_F64, .rows = rows, .outer = 1, .inner = rows};
        ps_input *const inputs[WORDS] = {&t.lower, &t.diag, &t.upper, &t.rhs};
        double best[2] = {1e9, 1e9};
        ps_report report;

        write_rows(&s, size, words);
        for (int word = 0; word < WORDS; word++) {
            *inputs[word] = (ps_input){words + word * size, stride};
        }
        t.x = (ps_output){words + WORDS * size, stride};
        for (int round = 0; round < 200; round++) {
            const double start = seconds_now();

            if (round % 2 == 0) {
                source_solve(&s, 0, field_tiles(&s.u), axis == 1, exec.work);
            }
            else {
                ps_backend_get()->tridiag_solve(&t, &options, &exec, &report);
            }
            best[round % 2] = fmin(best[round % 2], seconds_now() - start);
        }
        printf("along %c: %.2f ns, rows in memory %.2f ns, ratio %.2f\n", "xy"[axis],
               1e9 * best[0] / (double)(rows * rows),
               1e9 * best[1] / (double)(rows * rows), best[0] / best[1]);
    }
    free(fields), free(exec.work);
}

int
main(int argc, char **argv)
{
    static const int64_t sizes[] = {3, 4, 5, 10, 11, 18, 19, 34, 35, 70};

    if (argc > 1) {
        print_times(atoll(argv[1]));
        return 0;
    }
    for (int threads = 1; threads <= 2; threads++) {
        steps_are_those_of_the_dense_equations(threads);
        for (int k = 0; k < COUNT(sizes); k++) {
            sweeps_have_a_maximum_principle(sizes[k], threads);
        }
    }
    return report();
}
