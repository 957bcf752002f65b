/* differences.c - differences of the values of lines, and systems for them.
 *
 * ps_differences.h has the formulas. A part of the rows of a line, or of the lines side by
 * side, is computed at once: 9 operations and 2 words per value. Before a solve, those of a
 * block of lines are computed that are still in the cache when the block is solved.
 */
#include "differences.h"

#include <stdlib.h>

#include "lines/factor/factor.h"
#include "runtime/integers.h"
#include "runtime/threads.h"
#include "runtime/tuning.h"

/* A unit is one line if by_row, otherwise all lines of the inner axis. */
typedef struct {
    const ps_differences *d;
    int64_t pieces, rows; /* pieces of a unit, rows of a piece */
    int by_row;
} job;

#define NAME(name) name##_f32
#define REAL float
#define PARTS 1
#include "differences.inc"

#define NAME(name) name##_f64
#define REAL double
#define PARTS 1
#include "differences.inc"

#define NAME(name) name##_c64
#define REAL float
#define PARTS 2
#include "differences.inc"

#define NAME(name) name##_c128
#define REAL double
#define PARTS 2
#include "differences.inc"

ps_status
ps_cpu_differences(const ps_differences *d, const ps_exec *exec)
{
    static const ps_body bodies[] = {all_f32, all_f64, all_c64, all_c128};
    const ps_status status = ps_differences_check(d, (ps_difference_factors){NULL, NULL});

    if (status != PS_OK || d->outer * d->inner == 0) {
        return status;
    }
    const int by_row =
        d->inner == 1 || llabs(d->x.stride.row) <= llabs(d->x.stride.inner);
    const int64_t width = by_row ? 1 : d->inner;
    const int64_t rows =
        smaller(larger(PS_PRODUCTS_PART / width, 2 * PS_DIFFERENCE_ENDS), d->rows);
    const int64_t units = by_row ? d->outer * d->inner : d->outer;
    job its = {
        .d = d, .pieces = (d->rows + rows - 1) / rows, .rows = rows, .by_row = by_row};

    ps_parallel_for(ps_thread_count_for(exec, d->outer * d->inner * d->rows),
                    units * its.pieces, bodies[d->dtype], &its);
    return PS_OK;
}

/* The systems; their right-hand sides, the differences, are in x. */
static ps_factor_rhs
sides_of(const ps_differences *d)
{
    return (ps_factor_rhs){.trans = PS_TRANS_NONE,
                           .outer = d->outer,
                           .inner = d->inner,
                           .rhs = {d->x.data, d->x.stride},
                           .x = d->x};
}

/* The lines first .. of one axis, at most `count`. */
static ps_differences
block_of(const ps_differences *d, int64_t first, int64_t count)
{
    const int is_outer = d->outer > 1;
    const int64_t size = ps_dtype_size(d->dtype);
    const int64_t left = (is_outer ? d->outer : d->inner) - first;
    const ps_stride *const from = &d->f.stride, *const to = &d->x.stride;
    ps_differences b = *d;

    *(is_outer ? &b.outer : &b.inner) = smaller(count, left);
    b.f.data =
        (const char *)d->f.data + first * size * (is_outer ? from->outer : from->inner);
    b.x.data = (char *)d->x.data + first * size * (is_outer ? to->outer : to->inner);
    return b;
}

/* Lines of a block. */
static int64_t
block_lines(const ps_differences *d, const ps_exec *exec)
{
    const int64_t values = PS_DIFFERENCE_BLOCK * (int64_t)ps_thread_count(exec);
    const int64_t systems =
        larger(values / d->rows / PS_DIFFERENCE_SYSTEMS, 1) * PS_DIFFERENCE_SYSTEMS;

    return d->outer > 1 ? larger(systems / d->inner, 1) : systems;
}

/* The last block has fewer lines, which may need another workspace. */
ps_status
ps_cpu_difference_solve_work(ps_difference_factors f, const ps_differences *d,
                             const ps_exec *exec, size_t *bytes)
{
    ps_status status = ps_differences_check(d, f);

    *bytes = 0;
    if (status != PS_OK || d->outer * d->inner == 0) {
        return status;
    }
    const int64_t count = block_lines(d, exec),
                  lines = d->outer > 1 ? d->outer : d->inner;
    const int64_t firsts[] = {0, (lines - 1) / count * count};

    for (int k = 0; k < 2 && status == PS_OK; k++) {
        const ps_differences block = block_of(d, firsts[k], count);
        const ps_factor_rhs sides = sides_of(&block);
        const ps_factor *const both[] = {f.first, f.second};

        for (int i = 0; i < 2 && status == PS_OK && both[i] != NULL; i++) {
            size_t needed = 0;

            status = ps_cpu_factor_work(both[i], &sides, exec, &needed);
            *bytes = needed > *bytes ? needed : *bytes;
        }
    }
    return status;
}

ps_status
ps_cpu_difference_solve(ps_difference_factors f, const ps_differences *d,
                        const ps_exec *exec)
{
    ps_status status = ps_differences_check(d, f);

    if (status != PS_OK || d->outer * d->inner == 0) {
        return status;
    }
    const int64_t count = block_lines(d, exec),
                  lines = d->outer > 1 ? d->outer : d->inner;

    for (int64_t first = 0; first < lines && status == PS_OK; first += count) {
        const ps_differences block = block_of(d, first, count);
        const ps_factor_rhs sides = sides_of(&block);

        status = ps_cpu_differences(&block, exec);
        if (status == PS_OK) {
            status = ps_cpu_factor_solve(f.first, &sides, exec);
        }
        if (status == PS_OK && f.second != NULL) {
            status = ps_cpu_factor_solve(f.second, &sides, exec);
        }
    }
    return status;
}
