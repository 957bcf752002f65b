/* heat.c - time steps of heat conduction by sweeps along the axes; schemes in ps_heat.h.
 *
 * Peaceman and Rachford (1955): second order, unconditionally stable; two sweeps per
 * step, each of which reads one word and writes one word per node. Douglas and Gunn
 * (1964): second order, unconditionally stable in two dimensions, and in three if k is
 * constant; the sweeps along x and y of a plane run one after the other, so that the
 * intermediate plane may stay in cache. Wei, Jang, Zhang and Jia (2013): one pass of line
 * Jacobi, no time integrator.
 */
#include "heat/heat.h"

#include <math.h>
#include <string.h>

#include "heat/heat_sweep.h"
#include "runtime/clock.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

/* A call in progress, and the current parallel loop. */
typedef struct {
    const ps_heat *h;
    const ps_heat_kernel_table *kernels;
    ps_heat_sweep sweep[PS_HEAT_AXES];
    int threads;
    size_t scratch; /* bytes a thread */
    size_t bytes;   /* of workspace */
    char *work;
    ps_heat_report *report;
    int planes;     /* two sweeps of each plane: those along x and y */
    int axis;       /* of the current sweep */
    double *maxima; /* largest value of each thread */
} run;

static int64_t
nodes_of(const ps_heat *h)
{
    return h->nodes[0] * h->nodes[1] * h->nodes[2];
}

static size_t
table_bytes(const ps_heat_sweep *s)
{
    return ps_aligned((size_t)(PS_HEAT_TABLES * s->rows * ps_dtype_size(s->h->dtype)));
}

static size_t
scratch_bytes(const run *r)
{
    size_t most = 0;

    for (int axis = 0; axis < r->h->axes; axis++) {
        const size_t bytes = r->kernels->scratch(&r->sweep[axis]);

        most = bytes > most ? bytes : most;
    }
    return ps_aligned(most);
}

static size_t
maxima_bytes(int threads)
{
    return ps_aligned((size_t)threads * sizeof(double));
}

/* Check a call, set the sweeps of a step, without the members that change from step to
 * step, and divide the workspace. */
static ps_status
plan(run *r, const ps_heat *h, int64_t count, const ps_exec *exec)
{
    const ps_status status = ps_heat_check(h, count);

    if (status != PS_OK) {
        return status;
    }
    *r = (run){.h = h,
               .kernels =
                   h->dtype == PS_F32 ? PS_ISA_OF(ps_heat_f32) : PS_ISA_OF(ps_heat_f64)};
    for (int axis = 0; axis < h->axes; axis++) {
        ps_heat_sweep *const s = &r->sweep[axis];

        *s = ps_heat_sweep_along(h, axis);
        s->from = h->w;
        if (h->scheme == PS_HEAT_PR) {
            s->reflect = h->w;
        }
        else if (h->scheme == PS_HEAT_DOUGLAS_GUNN) {
            s->increment = axis == h->axes - 1;
            s->to = s->increment ? h->t : h->w;
            s->rhs = axis == 0 ? PS_HEAT_FROM_DG : PS_HEAT_FROM_MEMORY;
        }
        else {
            s->rhs = PS_HEAT_FROM_WEI;
            s->theta = 1 / (1 + 2 * h->ratio[1 - axis]);
            s->from = axis == 0 ? h->t : h->w;
            s->to = axis == 0 ? h->w : h->t;
        }
    }
    r->threads = ps_thread_count_for(exec, nodes_of(h));
    r->scratch = scratch_bytes(r);
    r->bytes = maxima_bytes(r->threads) + r->scratch * (size_t)r->threads;
    for (int axis = 0; axis < h->axes; axis++) {
        r->bytes += table_bytes(&r->sweep[axis]);
    }
    return PS_OK;
}

ps_status
ps_heat_work(const ps_heat *h, const ps_exec *exec, size_t *bytes)
{
    run r;
    const ps_status status = plan(&r, h, 0, exec);

    if (status == PS_OK) {
        *bytes = r.bytes;
    }
    return status;
}

static void
lay_out(run *r, char *at)
{
    r->maxima = (double *)at;
    at += maxima_bytes(r->threads);
    for (int axis = 0; axis < r->h->axes; axis++) {
        ps_heat_sweep *const s = &r->sweep[axis];

        if (r->h->k == NULL) {
            r->kernels->tables(s, at);
            s->tables = at;
        }
        at += table_bytes(s);
    }
    r->work = at;
}

static void
half_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    (void)thread;

    for (int64_t row = begin; row < end; row++) {
        r->kernels->half(r->h, r->sweep[0].inner_first + row, 0, r->h->w);
    }
}

static void
bands(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    void *const scratch = r->work + (size_t)thread * r->scratch;

    for (int64_t band = begin; band < end; band++) {
        r->kernels->band(&r->sweep[r->axis], band, scratch);
    }
}

/* Sweeps along x and y of planes of constant z, one plane after the other. */
static void
planes(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    void *const scratch = r->work + (size_t)thread * r->scratch;

    for (int64_t plane = begin; plane < end; plane++) {
        for (int axis = 0; axis < 2; axis++) {
            const int64_t count = ps_heat_run_bands(&r->sweep[axis]);

            for (int64_t band = plane * count; band < (plane + 1) * count; band++) {
                r->kernels->band(&r->sweep[axis], band, scratch);
            }
        }
    }
}

static void
make_stage(run *r, ps_heat_stage stage, int64_t count,
           void (*body)(void *self, int64_t begin, int64_t end, int thread))
{
    const double start = ps_clock_now();

    ps_parallel_for(r->threads, count, body, r);
    r->report->seconds[stage] += ps_clock_now() - start;
}

static void
make_sweep(run *r, int axis)
{
    r->axis = axis;
    make_stage(r, (ps_heat_stage)(PS_HEAT_STAGE_X + axis), ps_heat_bands(&r->sweep[axis]),
               bands);
}

/* Copy the values of one side to its nodes of t. */
static void
put_side(const ps_heat *h, int axis, int end, int64_t level)
{
    const int64_t strides[] = {1, h->nodes[0], h->nodes[0] * h->nodes[1]};
    const int inner = axis == 0 ? 1 : 0, outer = axis == 2 ? 1 : 2;
    const ps_heat_table *const table = &h->side[axis][end].level;
    const size_t size = (size_t)ps_dtype_size(h->dtype);
    const char *const from = table->data;
    char *const to =
        (char *)h->t + (size_t)(end * (h->nodes[axis] - 1) * strides[axis]) * size;

    for (int64_t o = 0; o < h->nodes[outer]; o++) {
        for (int64_t i = 0; i < h->nodes[inner]; i++) {
            char *const at =
                to + (size_t)(o * strides[outer] + i * strides[inner]) * size;
            const int64_t node = o * h->nodes[inner] + i;

            if (from == NULL) {
                memset(at, 0, size);
            }
            else {
                memcpy(at,
                       from +
                           (size_t)(level * table->level_step + node * table->node_step) *
                               size,
                       size);
            }
        }
    }
}

static void
put_sides(const ps_heat *h, int64_t level)
{
    for (int axis = 0; axis < h->axes; axis++) {
        for (int end = 0; end < 2; end++) {
            if (h->side[axis][end].kind == PS_HEAT_VALUE) {
                put_side(h, axis, end, level);
            }
        }
    }
}

static void
thread_largest(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    const char *const t = r->h->t;
    const double largest = r->kernels->largest(
        t + (size_t)(begin * ps_dtype_size(r->h->dtype)), end - begin);

    if (!(largest <= r->maxima[thread]) &&
        !isnan(r->maxima[thread])) { /* also true for NaN */
        r->maxima[thread] = largest;
    }
}

/* Set the boundary nodes of t and find the largest value. */
static void
finish(run *r)
{
    const double start = ps_clock_now();
    const ps_heat *const h = r->h;

    put_sides(h, r->report->steps);
    if (h->largest != NULL) {
        memset(r->maxima, 0, (size_t)r->threads * sizeof(double));
        ps_parallel_for(r->threads, nodes_of(h), thread_largest, r);
        *h->largest = 0;
        for (int k = 0; k < r->threads; k++) {
            if (!(r->maxima[k] <= *h->largest)) { /* also true for NaN */
                *h->largest = r->maxima[k];
            }
            if (isnan(*h->largest)) {
                break;
            }
        }
    }
    r->report->seconds[PS_HEAT_STAGE_END] += ps_clock_now() - start;
}

/* One step; the last one of a Peaceman-Rachford call stores t in addition to w. */
static void
make_step(run *r, int last)
{
    const ps_heat *const h = r->h;
    const int first = r->planes ? 2 : 0;

    if (h->scheme == PS_HEAT_PR) {
        r->sweep[1].to = last ? h->t : NULL;
    }
    if (r->planes) {
        make_stage(r, PS_HEAT_STAGE_X, r->sweep[0].outer_end - r->sweep[0].outer_first,
                   planes);
    }
    for (int axis = first; axis < h->axes; axis++) {
        make_sweep(r, axis);
    }
    r->report->steps++;
    for (int axis = 0; axis < h->axes; axis++) {
        r->sweep[axis].step++;
    }
    if (h->scheme == PS_HEAT_DOUGLAS_GUNN && !last) {
        put_sides(h, r->report->steps);
    }
}

ps_status
ps_heat_step(const ps_heat *h, int64_t count, const ps_exec *exec, ps_heat_report *report)
{
    run r;
    ps_status status = plan(&r, h, count, exec);

    if (status != PS_OK) {
        return status;
    }
    if (exec->work_bytes < r.bytes) {
        return PS_WORK_TOO_SMALL;
    }
    lay_out(&r, exec->work);
    *report = (ps_heat_report){.threads = r.threads, .kernel = ps_isa_get()->name};
    r.report = report;
    r.planes = h->axes == PS_HEAT_AXES && h->nodes[2] >= 4 * r.threads;
    if (h->scheme == PS_HEAT_PR && h->fresh) {
        make_stage(&r, PS_HEAT_STAGE_RHS, r.sweep[0].inner_end - r.sweep[0].inner_first,
                   half_rows);
    }
    if (h->scheme == PS_HEAT_WEI2013) {
        memcpy(h->w, h->t, (size_t)(nodes_of(h) * ps_dtype_size(h->dtype)));
    }
    while (status == PS_OK && report->steps < count) {
        const int stop = exec->poll != NULL && exec->poll(exec->poll_self) != 0;

        make_step(&r, stop || report->steps == count - 1);
        status = stop ? PS_INTERRUPTED : PS_OK;
    }
    finish(&r);
    return status;
}
