/* gceidd.c - steps of convection and diffusion by GCEIDD on the CPU.
 *
 * A step is a sweep along x and a sweep along y; the groups of lines (gceidd_sweep.inc)
 * are distributed over the threads. The field is updated in place; MU needs two previous
 * half levels and rotates its fields instead. 4 words per node and step, 8 with MU. A
 * sweep without velocity, diffusion and source only sets its sides.
 *
 * The first sweep of a call reads `before`, if it is given, and writes u.
 */
#include "transport/gceidd.h"

#include <string.h>

#include "transport/gceidd_sweep.h"
#include "runtime/clock.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

enum { ALIGNMENT = 64, FIELDS = 4 };

/* A call in progress. fields[0] is the current u, [1] and [2] are the previous half
 * levels, [3] receives the next one; except for MU all are the same, but for `before`. */
typedef struct {
    const ps_gceidd *g;
    ps_gceidd_report *report;
    void *fields[FIELDS], *spare;
    char *scratch;
    size_t scratch_bytes;
    int32_t *grown;
    int threads;
    size_t bytes; /* of workspace */
} run;

static int64_t
nodes(const ps_gceidd *g)
{
    return (g->cells[PS_GCEIDD_X] + 1) * (g->cells[PS_GCEIDD_Y] + 1);
}

/* MU rotates its fields with one in the workspace. */
static size_t
spare_bytes(const ps_gceidd *g)
{
    const size_t bytes = (size_t)(nodes(g) * ps_dtype_size(g->dtype));

    return g->scheme == PS_GCEIDD_MU ? ps_aligned(bytes) : 0;
}

int64_t
ps_gceidd_array_rows(const ps_gceidd *g, int axis, ps_gceidd_array k)
{
    const int64_t all = g->cells[axis] + 1;
    int64_t along = 0;

    switch (k) {
    case PS_GCEIDD_VELOCITY:
    case PS_GCEIDD_DIFFUSION: {
        const ps_gceidd_data *const data =
            &(k == PS_GCEIDD_VELOCITY ? g->velocity : g->diffusion)[axis];

        return (axis == PS_GCEIDD_X ? data->x : data->y) != 0 ? all : 1;
    }
    case PS_GCEIDD_SOURCE:
        for (int term = 0; term < g->terms; term++) {
            const ps_gceidd_data *const data = &g->source[term].field;

            along |= axis == PS_GCEIDD_X ? data->x : data->y;
        }
        return along != 0 ? all : 1;
    case PS_GCEIDD_FOOT:
        return g->scheme == PS_GCEIDD_CFD ? all : 0;
    default:
        return all;
    }
}

static size_t
scratch_bytes(const ps_gceidd *g)
{
    int64_t most = 0;

    for (int axis = 0; axis < PS_GCEIDD_AXES; axis++) {
        int64_t rows = 0;

        for (int k = 0; k < PS_GCEIDD_ARRAYS; k++) {
            rows += ps_gceidd_array_rows(g, axis, (ps_gceidd_array)k);
        }
        most = rows > most ? rows : most;
    }
    return ps_aligned((size_t)most * PS_GCEIDD_BYTES);
}

/* Check a call and divide its workspace. */
static ps_status
plan(run *r, const ps_gceidd *g, const ps_exec *exec)
{
    const ps_status status = ps_gceidd_check(g);

    if (status != PS_OK) {
        return status;
    }
    *r = (run){
        .g = g,
        .fields = {g->u, g->u, g->u, g->u},
        .scratch_bytes = scratch_bytes(g),
        .threads = ps_thread_count_for(exec, nodes(g)),
    };
    r->bytes = spare_bytes(g) + (size_t)r->threads * r->scratch_bytes +
               ps_aligned((size_t)r->threads * sizeof *r->grown);
    return PS_OK;
}

ps_status
ps_gceidd_work(const ps_gceidd *g, const ps_exec *exec, size_t *bytes)
{
    run r;
    const ps_status status = plan(&r, g, exec);

    if (status == PS_OK) {
        *bytes = r.bytes;
    }
    return status;
}

static void
lay_out(run *r, char *work)
{
    const ps_gceidd *const g = r->g;

    r->spare = work;
    r->scratch = work + spare_bytes(g);
    r->grown = (int32_t *)(r->scratch + (size_t)r->threads * r->scratch_bytes);
    memset(r->grown, 0, (size_t)r->threads * sizeof *r->grown);
    if (g->scheme == PS_GCEIDD_MU) {
        memcpy(r->fields, (void *[]){g->u, g->older[0], g->older[1], work},
               sizeof r->fields);
    }
    else if (g->before != NULL) {
        r->fields[0] = (void *)g->before; /* is only read */
    }
}

int64_t
ps_gceidd_first_line(const ps_gceidd *g, int axis)
{
    const int side = axis == PS_GCEIDD_X ? PS_GCEIDD_SOUTH : PS_GCEIDD_WEST;

    return g->edge[side].kind == PS_GCEIDD_DIRICHLET;
}

int64_t
ps_gceidd_end_line(const ps_gceidd *g, int axis)
{
    const int side = axis == PS_GCEIDD_X ? PS_GCEIDD_NORTH : PS_GCEIDD_EAST;

    return g->cells[!axis] + (g->edge[side].kind != PS_GCEIDD_DIRICHLET);
}

/* Keep the values of lines on the Dirichlet sides south and north in the sweep along x.
 */
static void
keep_rows(const ps_gceidd *g, const void *from, void *to)
{
    const int64_t row = (g->cells[PS_GCEIDD_X] + 1) * ps_dtype_size(g->dtype);

    for (int side = PS_GCEIDD_SOUTH; side <= PS_GCEIDD_NORTH && from != to; side++) {
        if (g->edge[side].kind == PS_GCEIDD_DIRICHLET) {
            const int64_t at = side == PS_GCEIDD_SOUTH ? 0 : g->cells[PS_GCEIDD_Y] * row;

            memcpy((char *)to + at, (const char *)from + at, (size_t)row);
        }
    }
}

static const ps_gceidd_kernel_table *
kernels_of(const ps_gceidd *g)
{
    return g->dtype == PS_F32 ? PS_ISA_OF(ps_gceidd_f32) : PS_ISA_OF(ps_gceidd_f64);
}

/* Lines of a group: a row of PS_GCEIDD_BYTES of them, or fewer whole vectors of the
 * widest instruction set, so that every thread has a group. */
static int64_t
lines_of_group(const ps_gceidd *g, int64_t lines, int threads)
{
    const int64_t size = ps_dtype_size(g->dtype), lanes = ALIGNMENT / size;
    const int64_t most = PS_GCEIDD_BYTES / size;
    const int64_t share = ((lines + threads - 1) / threads + lanes - 1) / lanes * lanes;

    return share < most ? share : most;
}

/* A sweep of the grid of the current step. */
static void
make_sweep(run *r, const ps_gceidd *g, int axis)
{
    const double begin = ps_clock_now();
    const int64_t first = (const char *)g->u - (const char *)r->g->u;
    const int64_t lines = ps_gceidd_end_line(g, axis) - ps_gceidd_first_line(g, axis);
    const ps_gceidd_kernel_table *const kernels = kernels_of(g);
    void *const to = r->fields[FIELDS - 1];
    ps_gceidd_sweep s = {
        .g = g,
        .axis = axis,
        .step = r->report->steps,
        .lines = lines_of_group(g, lines, r->threads),
        .from = (char *)r->fields[0] + first,
        .older = {(char *)r->fields[1] + first, (char *)r->fields[2] + first},
        .to = (char *)to + first,
        .scratch = r->scratch,
        .scratch_bytes = r->scratch_bytes,
        .grown = r->grown,
    };

    if (!kernels->is_idle(&s)) {
        ps_parallel_for(r->threads, (lines + s.lines - 1) / s.lines, kernels->sweep, &s);
    }
    else if (axis == PS_GCEIDD_Y) {
        ps_parallel_for(r->threads, g->cells[PS_GCEIDD_Y] + 1, kernels->keep, &s);
    }
    else if (s.from != s.to) {
        memcpy(s.to, s.from, (size_t)(nodes(g) * ps_dtype_size(g->dtype)));
    }
    if (axis == PS_GCEIDD_X) {
        keep_rows(g, s.from, s.to);
    }
    else {
        kernels->sides(&s);
    }
    if (g->scheme == PS_GCEIDD_MU) {
        memmove(r->fields + 1, r->fields, (FIELDS - 1) * sizeof *r->fields);
    }
    r->fields[0] = to;
    r->report->seconds[axis][PS_GCEIDD_SOLVE] += ps_clock_now() - begin;
}

/* Copy the fields to u and `older`. With MU, after an odd number of steps the current u
 * is in older[1], and the previous half levels are in the spare field and in u. */
static void
copy_fields_back(const run *r)
{
    const ps_gceidd *const g = r->g;
    const size_t bytes = (size_t)(nodes(g) * ps_dtype_size(g->dtype));

    if (g->before != NULL) {
        if (r->report->steps == 0) {
            memcpy(g->u, g->before, bytes);
        }
    }
    else if (r->fields[0] != g->u) {
        memcpy(g->older[0], r->spare, bytes);
        memcpy(r->spare, g->u, bytes);
        memcpy(g->u, g->older[1], bytes);
        memcpy(g->older[1], r->spare, bytes);
    }
}

ps_status
ps_gceidd_step(const ps_gceidd *g, int64_t count, const ps_exec *exec,
               ps_gceidd_report *report)
{
    run r;
    ps_status status = plan(&r, g, exec);

    status = status == PS_OK ? ps_gceidd_check_count(g, count) : status;
    if (status != PS_OK) {
        return status;
    }
    if (exec->work_bytes < r.bytes) {
        return PS_WORK_TOO_SMALL;
    }
    lay_out(&r, exec->work);
    *report = (ps_gceidd_report){.threads = r.threads, .kernel = ps_isa_get()->name};
    r.report = report;
    while (status == PS_OK && report->steps < count && !report->grown) {
        const ps_gceidd grid = ps_gceidd_in_step(g, report->steps);

        make_sweep(&r, &grid, PS_GCEIDD_X);
        make_sweep(&r, &grid, PS_GCEIDD_Y);
        report->steps++;
        for (int k = 0; k < r.threads; k++) {
            report->grown |= r.grown[k];
        }
        if (exec->poll != NULL && exec->poll(exec->poll_self) != 0) {
            status = PS_INTERRUPTED;
        }
    }
    copy_fields_back(&r);
    return status;
}
