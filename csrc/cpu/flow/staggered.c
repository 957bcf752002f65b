/* staggered.c - steps of the cavity on a staggered grid: explicit velocity, implicit
 * pressure.
 *
 * A step computes the velocity without pressure (staggered_stages.c), solves the Poisson
 * equation of the pressure by red-black SOR, and subtracts the gradient of the pressure.
 * The relaxation is that of the plate (relaxation/relax.c): a cell next to a wall has no
 * neighbour there, which is a normal derivative of 0, so that
 *
 *   r = N^2 (sum of the existing neighbours - their number p) - q,
 *   p = p + omega / (N^2 number) r
 *
 * with the neighbours that do not exist stored as 0. 2 to 3 words per cell and iteration.
 * With omega = 2/(1 + sin(pi/N)) the error falls by a factor of about 1 - 2 pi/N per
 * iteration (Young 1971). Sources: Niemeyer and Sung (2014), section 3.2; Griebel,
 * Dornseifer and Neunhoeffer (1998), ch. 3.
 */
#include "flow/staggered.h"

#include <math.h>
#include <string.h>

#include "flow/staggered_stages.h"
#include "ps_staggered_clock.h"
#include "relaxation/lmsor.h"
#include "runtime/clock.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

enum { TABLE_ROWS = 3 };

/* A call in progress. p and source are null unless SOR solves for the pressure. */
typedef struct {
    const ps_staggered *s;
    const ps_exec *exec;
    int threads;
    ps_coloured p, source;
    ps_laplace laplace;
    ps_exec relax;
    double *rows;
    ps_staggered_report *report;
} run;

static int64_t
pitch_of(const ps_staggered *s)
{
    return ((s->cells + 3) / 2 + 15) / 16 * 16;
}

static size_t
coloured_bytes(const ps_staggered *s)
{
    return ps_aligned((size_t)(2 * (s->cells + 2) * pitch_of(s)) * sizeof(double));
}

static size_t
table_bytes(const ps_staggered *s)
{
    return ps_aligned((size_t)(TABLE_ROWS * 2 * pitch_of(s)) * sizeof(double));
}

static size_t
rows_bytes(const ps_staggered *s)
{
    return ps_aligned((size_t)(3 * s->cells) * sizeof(double));
}

static int
solves_pressure(const ps_staggered *s)
{
    return s->pressure == PS_PRESSURE_SOR && (s->stages & 1u << PS_STAGGERED_PRESSURE);
}

/* The relaxation of the pressure; `base` are the two coloured fields and the two tables.
 */
static ps_laplace
laplace_of(const ps_staggered *s, char *base)
{
    const double inverse = (double)(s->cells * s->cells);
    const size_t field = coloured_bytes(s), table = table_bytes(s);

    return (ps_laplace){
        .dtype = PS_F64,
        .variant = s->kernel == PS_STAGGERED_SERIAL   ? PS_LAPLACE_NAIVE
                   : s->kernel == PS_STAGGERED_OPENMP ? PS_LAPLACE_SPLIT
                                                      : PS_LAPLACE_AUTO,
        .nx = s->cells,
        .ny = s->cells,
        .pitch = pitch_of(s),
        .ax = inverse,
        .ay = inverse,
        .t = base,
        .source = base + field,
        .diag = base + 2 * field,
        .gain = base + 2 * field + table,
        .stop = {.criterion = PS_CRITERION_RESIDUAL,
                 .norm = PS_NORM_L2,
                 .every = s->tolerance < 0 ? 0 : 1,
                 .tolerance = s->tolerance},
    };
}

static ps_exec
exec_of(const ps_staggered *s, const ps_exec *exec)
{
    ps_exec same = *exec;

    same.threads = s->kernel == PS_STAGGERED_SERIAL
                       ? 1
                       : ps_thread_count_for(exec, s->cells * s->cells);
    return same;
}

ps_status
ps_staggered_work(const ps_staggered *s, const ps_exec *exec, size_t *bytes)
{
    ps_status status = ps_staggered_check(s);

    if (status != PS_OK) {
        return status;
    }
    *bytes = rows_bytes(s);
    if (solves_pressure(s)) {
        /* The size does not depend on the addresses, which are compared and not read. */
        const ps_laplace l = laplace_of(s, (char *)s->u);
        const ps_exec relax = exec_of(s, exec);
        size_t sweeps = 0;

        status = ps_cpu_laplace_work(&l, &relax, &sweeps);
        *bytes += 2 * coloured_bytes(s) + 2 * table_bytes(s) + sweeps;
    }
    return status;
}

/* Coefficients of the cells of a row: first, inner and last row; for each parity of i,
 * or for all i if the colours are interleaved. */
static void
fill_tables(const run *r, double *diag, double *gain)
{
    const int64_t n = r->s->cells, pitch = r->laplace.pitch;

    for (int64_t row = 0; row < TABLE_ROWS; row++) {
        for (int64_t i = 1; i <= n; i++) {
            const double count = 4 - (row != 1) - (i == 1) - (i == n);
            const int64_t k = r->p.interleaved ? row * 2 * pitch + i
                                               : (row * 2 + i % 2) * pitch + i / 2;

            diag[k] = r->laplace.ax * count;
            gain[k] = r->s->omega / diag[k];
        }
    }
}

static run
begin(const ps_staggered *s, const ps_exec *exec, ps_staggered_report *report)
{
    run r = {.s = s, .exec = exec, .report = report, .relax = exec_of(s, exec)};
    char *work = (char *)exec->work + rows_bytes(s);

    r.threads = r.relax.threads;
    r.rows = exec->work;
    if (solves_pressure(s)) {
        const size_t field = coloured_bytes(s), table = table_bytes(s);
        const size_t used = 2 * field + 2 * table;
        const int interleaved = s->kernel == PS_STAGGERED_SERIAL;

        r.laplace = laplace_of(s, work);
        memset(work, 0, used);
        r.p = (ps_coloured){(double *)work, r.laplace.pitch, interleaved};
        r.source = (ps_coloured){(double *)(work + field), r.laplace.pitch, interleaved};
        fill_tables(&r, (double *)(work + 2 * field),
                    (double *)(work + 2 * field + table));
        ps_staggered_colour(s, &r.p, r.threads);
        r.relax.work = work + used;
        r.relax.work_bytes = exec->work_bytes - rows_bytes(s) - used;
    }
    return r;
}

static ps_status
predict(run *r)
{
    ps_staggered_choose_dt(r->s);
    ps_staggered_predict(r->s, r->threads);
    ps_staggered_source(r->s, solves_pressure(r->s) ? &r->source : NULL, r->threads);
    return PS_OK;
}

static ps_status
solve_pressure(run *r)
{
    ps_laplace_report report = {0};
    const ps_status status =
        ps_cpu_laplace_iterate(&r->laplace, r->s->most_sweeps, &r->relax, &report);

    if (status != PS_OK) {
        return status;
    }
    r->report->kernel = report.relax.kernel;
    if (report.relax.end == PS_END_NOT_FINITE) {
        r->report->end = PS_STAGGERED_GROWN;
    }
    else if (report.relax.end == PS_END_COUNT && r->s->tolerance >= 0) {
        r->report->end = PS_STAGGERED_SWEEPS;
    }
    else {
        r->s->clock[PS_CLOCK_SWEEPS] += (double)report.relax.iterations;
    }
    r->s->clock[PS_CLOCK_RESIDUAL] = report.relax.measure;
    return PS_OK;
}

static ps_status
correct(run *r)
{
    const ps_staggered *const s = r->s;

    if (solves_pressure(s)) {
        ps_staggered_uncolour(s, &r->p, r->threads);
    }
    else {
        memcpy(s->p, s->q, (size_t)(s->cells * s->cells) * sizeof(double));
    }
    ps_staggered_correct(s, r->rows, r->threads);
    r->report->steps++;
    r->report->end = ps_staggered_judge(s);
    return PS_OK;
}

static ps_status
make_stage(run *r, ps_staggered_stage stage, ps_status (*make)(run *r))
{
    if ((r->s->stages & 1u << stage) == 0 || r->report->end != PS_STAGGERED_COUNT) {
        return PS_OK;
    }
    const double start = ps_clock_now();
    const ps_status status = make(r);

    r->report->seconds[stage] += ps_clock_now() - start;
    return status;
}

ps_status
ps_staggered_step(const ps_staggered *s, int64_t count, const ps_exec *exec,
                  ps_staggered_report *report)
{
    size_t bytes;
    ps_status status = ps_staggered_work(s, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (exec->work_bytes < bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = (ps_staggered_report){.kernel = ps_isa_get()->name};
    run r = begin(s, exec, report);
    report->threads = r.threads;
    if (s->clock[PS_CLOCK_TIME] >= s->until) {
        report->end = PS_STAGGERED_UNTIL;
    }
    for (int64_t k = 0; k < count && report->end == PS_STAGGERED_COUNT; k++) {
        status = make_stage(&r, PS_STAGGERED_PREDICT, predict);
        if (status == PS_OK && solves_pressure(s)) {
            status = make_stage(&r, PS_STAGGERED_PRESSURE, solve_pressure);
        }
        if (status == PS_OK) {
            status = make_stage(&r, PS_STAGGERED_CORRECT, correct);
        }
        if (status == PS_OK && exec->poll != NULL && exec->poll(exec->poll_self) != 0) {
            status = PS_INTERRUPTED;
        }
        if (status != PS_OK) {
            break;
        }
    }
    return status;
}
