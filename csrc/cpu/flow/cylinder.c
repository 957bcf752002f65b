/* cylinder.c - steps of the flow around a square cylinder.
 *
 *   omega   psi and omega at the outlet; half steps along x and y, or both factors of the
 *           steady step (cylinder_sweep.inc)
 *   psi     a sine transform of the columns, the lines of its waves, once without charges on
 *           the body and once with them (cylinder_waves.inc), and the transform back
 *           (cylinder_psi.inc); with psi_tol cycles of sweeps instead
 *           (flow/cylinder/_line_poisson.py)
 *   walls   omega on walls and body, velocities at the probes (cylinder_stages.inc)
 *   forces  after every fourth step
 *
 * Words moved per node: 11 and 6 in the half steps, 2 and 3 in the transforms, 1 and 2 in
 * the lines of waves; 25 in all. Operations per node: 2/9 ny in both transforms, about
 * 110 otherwise. Stable as pysolvers/flow/cylinder/_steps.py says. All sums have one order
 * and all loops are over nodes, lines or panels of columns, so that the bits do not depend
 * on the number of threads.
 */
#include "flow/cylinder.h"

#include <math.h>

#include "flow/cylinder_kernels.h"
#include "runtime/clock.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

enum { MOST_CYCLES = 100 };

/* A cycle that leaves more than this share of the residual is the last one: the rest is
 * rounding. */
static const double stagnation = 0.9;

/* A call in progress. */
typedef struct {
    ps_cylinder_run step;
    const ps_cylinder_kernels *kernels;
    ps_sine_plan plan;
    int threads;
    char *kept; /* of the sweeps, `kept_bytes` for each thread */
    size_t kept_bytes;
    ps_cylinder_report *report;
} run;

/* The parts of the workspace, in the order of `run`. */
typedef struct {
    size_t half, outlet, pairs, kept, waves, body, ends, decays, forward, backward,
        panels, psi_0, charged, all;
} parts;

static const ps_cylinder_kernels *
kernels_of(ps_dtype dtype)
{
    return dtype == PS_F32 ? PS_ISA_OF(ps_cylinder_f32) : PS_ISA_OF(ps_cylinder_f64);
}

static int64_t
last_of(const ps_cylinder *c)
{
    return c->steady ? c->nx - 1 : c->nx - 2;
}

static int64_t
pitch_of(const ps_cylinder *c)
{
    return (c->ny + PS_WAVES - 1) / PS_WAVES * PS_WAVES;
}

static int64_t
panels_of(const ps_cylinder *c)
{
    const int64_t columns = PS_SINE_BYTES / ps_dtype_size(c->dtype);

    return (c->nx + columns - 1) / columns;
}

static int64_t
width_of(const ps_cylinder *c)
{
    return c->columns.last - c->columns.first + 1;
}

static int64_t
responses_of(const ps_cylinder *c)
{
    return 2 * c->ny + 2 * width_of(c);
}

/* A sweep along x (axis 0) or y (axis 1). */
static ps_cylinder_sweep
sweep_of(const ps_cylinder_run *r, ps_cylinder_lines kind, int axis)
{
    const ps_cylinder *const c = r->c;
    const int is_psi = kind == PS_CYLINDER_PSI_X || kind == PS_CYLINDER_PSI_Y;
    const int64_t columns = is_psi ? r->last : c->nx - 2, rows = c->ny - 2;
    const double dt = c->steady ? c->dt : c->dt / 2;

    return (ps_cylinder_sweep){
        .kind = kind,
        .rows = axis == 0 ? columns : rows,
        .lines = axis == 0 ? rows : columns,
        .along = axis == 0 ? 1 : c->nx,
        .across = axis == 0 ? c->nx : 1,
        .nx = c->nx,
        .ny = c->ny,
        .body_rows = c->rows,
        .body_columns = c->columns,
        .psi = r->psi,
        .psi_old = r->psi_old,
        .omega = r->omega,
        .half = r->half,
        .new_omega = r->omega_old,
        .along_x = c->viscosity * dt / (c->hx * c->hx),
        .along_y = c->viscosity * dt / (c->hy * c->hy),
        .swirl = dt / (4 * c->hx * c->hy),
        .share = c->steady ? 0 : c->dt / (2 * r->dt_old),
    };
}

/* The parts for psi: fields and tables of the transforms, or nothing. */
static void
lay_out_psi(const ps_cylinder *c, const ps_sine_plan *plan, int threads, parts *p,
            size_t *end)
{
    const size_t real = (size_t)ps_dtype_size(c->dtype), word = sizeof(double);
    const size_t pitch = (size_t)pitch_of(c), width = (size_t)width_of(c);
    const size_t entries = (size_t)plan->entries * real;

#define PART(name, bytes) (p->name = *end, *end += ps_aligned(bytes))
    if (c->psi_tol == 0) {
        PART(waves, (size_t)panels_of(c) * PS_SINE_BYTES * pitch);
        PART(body, width * pitch * real);
        PART(ends, 2 * pitch * real);
        PART(decays, pitch * real);
        PART(forward, entries);
        PART(backward, entries);
        PART(panels, (size_t)threads * 2 * pitch * PS_SINE_BYTES);
        PART(psi_0, (size_t)c->surface_nodes * word);
        PART(charged, (size_t)responses_of(c) * word);
    }
}

static void
lay_out(const ps_cylinder *c, const ps_sine_plan *plan, int threads, parts *p,
        size_t *kept_bytes)
{
    const size_t real = (size_t)ps_dtype_size(c->dtype);
    const ps_cylinder_kernels *const kernels = kernels_of(c->dtype);
    const ps_cylinder_run r = {.c = c, .dt_old = c->dt_old, .last = last_of(c)};
    const size_t nodes = (size_t)(c->ny * c->nx);
    const int64_t pairs = c->ny > panels_of(c) ? c->ny : panels_of(c);
    size_t largest = 0, *const end = &p->all;

    *end = 0;
    for (int axis = 0; axis < 2; axis++) {
        const ps_cylinder_sweep s =
            sweep_of(&r, axis == 0 ? PS_CYLINDER_PSI_X : PS_CYLINDER_PSI_Y, axis);
        const size_t bytes = ps_aligned((size_t)kernels->kept(&s) * real);

        largest = bytes > largest ? bytes : largest;
    }
    *kept_bytes = largest;
    PART(half, nodes * real);
    PART(outlet, (size_t)c->ny * real);
    PART(pairs, (size_t)pairs * sizeof(ps_cylinder_pair));
    PART(kept, (size_t)threads * largest);
    lay_out_psi(c, plan, threads, p, end);
#undef PART
}

/* The workspace depends on the number of threads. */
static int
threads_of(const ps_cylinder *c, const ps_exec *exec)
{
    return ps_thread_count_for(exec, c->ny * c->nx);
}

ps_status
ps_cpu_cylinder_work(const ps_cylinder *c, const ps_exec *exec, size_t *bytes)
{
    const ps_status status = ps_cylinder_check(c);
    ps_sine_plan plan;
    size_t kept;
    parts p;

    if (status != PS_OK) {
        return status;
    }
    ps_sine_plan_of(c->ny - 1, &plan);
    lay_out(c, &plan, threads_of(c, exec), &p, &kept);
    *bytes = p.all;
    return PS_OK;
}

static void
begin(run *r, const ps_cylinder *c, char *base, const parts *p,
      ps_cylinder_report *report)
{
    r->kernels = kernels_of(c->dtype);
    r->report = report;
    r->kept = base + p->kept;
    r->step = (ps_cylinder_run){
        .c = c,
        .psi = c->psi,
        .psi_old = c->psi_old,
        .omega = c->omega,
        .omega_old = c->omega_old,
        .half = base + p->half,
        .outlet = base + p->outlet,
        .pairs = (ps_cylinder_pair *)(base + p->pairs),
        .pitch = pitch_of(c),
        .plan = &r->plan,
        .dt_old = c->dt_old,
        .history = c->history,
        .last = last_of(c),
    };
    if (c->psi_tol == 0) {
        r->step.waves = base + p->waves;
        r->step.body = base + p->body;
        r->step.ends = base + p->ends;
        r->step.decays = base + p->decays;
        r->step.forward = base + p->forward;
        r->step.backward = base + p->backward;
        r->step.panels = base + p->panels;
        r->step.psi_0 = (double *)(base + p->psi_0);
        r->step.charged = (double *)(base + p->charged);
        r->kernels->pack(&r->step, base + p->forward, base + p->backward);
    }
}

/* A sweep in progress. */
typedef struct {
    const run *run;
    ps_cylinder_sweep sweep;
    int64_t tiles, group; /* tiles that are solved together */
} sweep_pass;

static void
solve_groups(void *self, int64_t begin, int64_t end, int thread)
{
    const sweep_pass *const p = self;
    const int64_t last = end * p->group;
    char *const kept = p->run->kept + (size_t)thread * p->run->kept_bytes;

    p->run->kernels->solve(&p->sweep, begin * p->group, last < p->tiles ? last : p->tiles,
                           kept);
}

static void
solve_sweep(const run *r, ps_cylinder_sweep sweep)
{
    const int lanes = r->kernels->lanes;
    sweep_pass p = {
        .run = r,
        .sweep = sweep,
        .tiles = (sweep.lines + lanes - 1) / lanes,
        .group = sweep.along == 1 ? 1 : r->kernels->team,
    };

    ps_parallel_for(r->threads, (p.tiles + p.group - 1) / p.group, solve_groups, &p);
}

static void
step_omega(run *r)
{
    ps_cylinder_run *const s = &r->step;
    const ps_cylinder *const c = s->c;

    if (c->steady) {
        solve_sweep(r, sweep_of(s, PS_CYLINDER_STEADY_X, 0));
        solve_sweep(r, sweep_of(s, PS_CYLINDER_STEADY_Y, 1));
        r->kernels->close_outlet(s);
        s->rate = 0;
        s->circulation = c->scalars[1];
        return;
    }
    const double share = c->dt / (2 * s->dt_old);

    /* The rate one step before, NaN if unknown; the method of Adams and Bashforth. */
    s->rate = r->kernels->rate(s);
    s->circulation =
        c->scalars[1] +
        c->dt * (s->rate + share * (isnan(c->scalars[2]) ? 0 : s->rate - c->scalars[2]));
    r->kernels->outlet(s);
    solve_sweep(r, sweep_of(s, PS_CYLINDER_HALF_X, 0));
    solve_sweep(r, sweep_of(s, PS_CYLINDER_HALF_Y, 1));
}

static void
transform_columns(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;

    r->kernels->to_waves(&r->step, begin, end, thread);
}

static void
transform_back(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;

    r->kernels->from_waves(&r->step, begin, end, thread);
}

/* What the charges add: the products of rows of the response with value - psi_0. */
static void
respond(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    const int64_t nodes = r->step.c->surface_nodes;
    const double *const psi_0 = r->step.psi_0, value = r->step.value;
    (void)thread;

    for (int64_t m = begin; m < end; m++) {
        const double *const row =
            (const double *)r->step.c->tables[PS_TABLE_RESPONSE] + m * nodes;
        double sum[4] = {0};

        for (int64_t k = 0; k < nodes; k++) {
            sum[k % 4] += row[k] * (value - psi_0[k]);
        }
        r->step.charged[m] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

/* psi on the body, for which psi has the circulation. The circulation is area (sum of
 * omega - sum of charges), and the sum of charges unit_sum value - (sum of unit psi_0). */
static double
value_of(const run *r)
{
    const ps_cylinder *const c = r->step.c;
    const double *const unit = c->tables[PS_TABLE_UNIT];
    double found = 0;

    if (!c->free || c->steady) {
        return 0;
    }
    for (int64_t k = 0; k < c->surface_nodes; k++) {
        found += unit[k] * r->step.psi_0[k];
    }
    found += r->kernels->box_sum(&r->step);
    return (found - r->step.circulation / (c->hx * c->hy)) / c->unit_sum;
}

/* The larger one; NaN if one of them is. */
static double
larger(double a, double b)
{
    return a >= b || isnan(a) ? a : b;
}

static ps_cylinder_pair
largest_pair(const run *r, int64_t count)
{
    ps_cylinder_pair found = {0, 0};

    for (int64_t k = 0; k < count; k++) {
        found.first = larger(found.first, r->step.pairs[k].first);
        found.second = larger(found.second, r->step.pairs[k].second);
    }
    return found;
}

static void
record_bounds(const run *r, int64_t count)
{
    const ps_cylinder_pair found = largest_pair(r, count);

    r->step.history[PS_COLUMN_LARGEST] = found.first;
    r->step.history[PS_COLUMN_CHANGE] = found.second;
}

static void
solve_body_waves(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    (void)thread;

    r->kernels->body_waves(&r->step, begin, end);
}

static void
solve_all_waves(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    (void)thread;

    r->kernels->all_waves(&r->step, begin, end);
}

static void
transform_psi(run *r)
{
    ps_cylinder_run *const s = &r->step;
    const int64_t panels = panels_of(s->c), groups = s->pitch / PS_WAVES;

    ps_parallel_for(r->threads, panels, transform_columns, r);
    r->kernels->add_ends(s);
    ps_parallel_for(r->threads, groups, solve_body_waves, r);
    r->kernels->surface(s);
    s->value = value_of(r);
    ps_parallel_for(r->threads, responses_of(s->c), respond, r);
    r->kernels->add_charges(s);
    ps_parallel_for(r->threads, groups, solve_all_waves, r);
    ps_parallel_for(r->threads, panels, transform_back, r);
    record_bounds(r, panels);
}

static void
estimate_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    (void)thread;

    r->kernels->estimate(&r->step, begin, end);
}

static void
residual_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    (void)thread;

    r->kernels->residual(&r->step, begin, end);
}

static void
finish_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    (void)thread;

    r->kernels->finish(&r->step, begin, end);
}

/* The largest residual and the largest omega. */
static ps_cylinder_pair
measure(run *r)
{
    ps_parallel_for(r->threads, r->step.c->ny, residual_rows, r);
    return largest_pair(r, r->step.c->ny);
}

static void
make_cycle(const run *r)
{
    const ps_cylinder_run *const s = &r->step;
    const ps_cylinder *const c = s->c;
    const double ratio = c->hx / c->hy;

    for (int k = 0; k < c->shift_count; k++) {
        ps_cylinder_sweep x = sweep_of(s, PS_CYLINDER_PSI_X, 0);
        ps_cylinder_sweep y = sweep_of(s, PS_CYLINDER_PSI_Y, 1);

        x.area = c->hx * c->hx;
        x.cross = ratio * ratio;
        y.area = c->hy * c->hy;
        y.cross = 1 / (ratio * ratio);
        x.shift = c->shifts[k] * x.area;
        y.shift = c->shifts[k] * y.area;
        x.from = y.to = s->psi_old;
        x.to = s->half;
        y.from = s->half;
        solve_sweep(r, x);
        solve_sweep(r, y);
    }
}

static void
iterate_psi(run *r)
{
    ps_cylinder_run *const s = &r->step;
    const ps_cylinder *const c = s->c;
    double before = 0;

    ps_parallel_for(r->threads, c->ny, estimate_rows, r);
    ps_cylinder_pair now = measure(r);

    /* NaN fails the comparisons. */
    for (int k = 0; k < MOST_CYCLES && now.first > c->psi_tol * now.second &&
                    (k == 0 || now.first < stagnation * before);
         k++) {
        before = now.first;
        make_cycle(r);
        now = measure(r);
    }
    s->shift = c->free && !c->steady
                   ? (s->circulation - r->kernels->flux(s)) / c->unit_circulation
                   : 0;
    s->value = r->kernels->body_value(s) + s->shift;
    ps_parallel_for(r->threads, c->ny, finish_rows, r);
    record_bounds(r, c->ny);
}

static void
solve_psi(run *r)
{
    if (r->step.c->psi_tol > 0) {
        iterate_psi(r);
    }
    else {
        transform_psi(r);
    }
    r->step.history[PS_COLUMN_VALUE] = r->step.value;
    r->step.history[PS_COLUMN_CIRCULATION] = r->step.circulation;
}

static void
update_walls(run *r)
{
    r->kernels->walls(&r->step);
    r->kernels->probes(&r->step);
}

static void
compute_forces(run *r)
{
    if ((r->step.c->steps + r->report->steps + 1) % PS_FORCES_EVERY == 0) {
        r->kernels->forces(&r->step);
    }
}

static void
make_step(run *r)
{
    static void (*const make[PS_CYLINDER_STAGES])(run *r) = {
        [PS_CYLINDER_STAGE_OMEGA] = step_omega,
        [PS_CYLINDER_STAGE_PSI] = solve_psi,
        [PS_CYLINDER_STAGE_WALLS] = update_walls,
        [PS_CYLINDER_STAGE_FORCES] = compute_forces,
    };
    double start = ps_clock_now();

    for (int k = 0; k < PS_CYLINDER_STAGES; k++) {
        make[k](r);
        const double now = ps_clock_now();

        r->report->seconds[k] += now - start;
        start = now;
    }
}

static void
swap_fields(void **a, void **b)
{
    void *const kept = *a;

    *a = *b;
    *b = kept;
}

ps_status
ps_cpu_cylinder_step(const ps_cylinder *c, int64_t count, const ps_exec *exec,
                     ps_cylinder_report *report)
{
    ps_status status = ps_cylinder_check(c);
    parts p;
    run r;

    if (status != PS_OK) {
        return status;
    }
    r.threads = threads_of(c, exec);
    ps_sine_plan_of(c->ny - 1, &r.plan);
    lay_out(c, &r.plan, r.threads, &p, &r.kept_bytes);
    if (exec->work_bytes < p.all) {
        return PS_WORK_TOO_SMALL;
    }
    const int64_t columns = PS_CYLINDER_COLUMNS + 2 * c->probes;

    *report = (ps_cylinder_report){.threads = r.threads};
    begin(&r, c, exec->work, &p, report);
    for (int64_t k = 0; k < count * columns; k++) {
        c->history[k] = 0;
    }
    while (status == PS_OK && report->steps < count) {
        make_step(&r);
        c->scalars[0] = r.step.value;
        c->scalars[1] = r.step.circulation;
        c->scalars[2] = r.step.rate;
        swap_fields(&r.step.psi, &r.step.psi_old);
        swap_fields(&r.step.omega, &r.step.omega_old);
        r.step.dt_old = c->dt;
        r.step.history += columns;
        report->steps++;
        if (exec->poll != NULL && exec->poll(exec->poll_self) != 0) {
            status = PS_INTERRUPTED;
        }
    }
    return status;
}
