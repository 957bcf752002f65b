/* cavity.c - iterations of the steady lid-driven cavity, with the line solvers.
 *
 * adi: one step of pseudo time for omega by factored backward Euler in delta form,
 *   (1 + dt (u delta_x - nu delta_xx)) D* = dt (nu lap omega - u . grad omega)
 *   (1 + dt (v delta_y - nu delta_yy)) D  = D*,             omega += D,
 * where dt is reduced at nodes where omega is steep (cavity_stencils.c). Then K double
 * sweeps of Peaceman and Rachford (1955) for -lap psi = omega, with the parameters r_k
 * = b (a/b)^((2k+1)/(2K)), where a and b are the extreme eigenvalues of the operator 2
 * -1 -1. Then the walls, omega_w += (formula - omega_w) / (1 + 2 sqrt(dt nu)/h). An
 * iteration has 2 + 2 K half-sweeps of 4 to 6 words per node each. Stable for steps of
 * the order of the convective time scale; the caller chooses the step.
 *
 * line-jacobi: psi, then omega, along lines whose neighbours across have old values;
 * then the wall formula without relaxation (Souri, Akbarzadeh and Mahmoodi Darian
 * 2020). An iteration has 2 half-sweeps. Stable for moderate cell Reynolds numbers
 * only.
 */
#include "flow/cavity.h"

#include <math.h>
#include <string.h>

#include "flow/cavity_lines.h"
#include "flow/cavity_stencils.h"
#include "runtime/clock.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

static const double pi = 3.14159265358979323846;

/* The parts of the workspace. half and other (or step) are fields; rows contains two sums
 * per row. */
typedef struct {
    double *half, *other, *step, *rows;
    ps_exec exec; /* for the line solvers, with the rest of the workspace */
} workspace;

/* A call in progress. psi and omega are the fields with the current state: line Jacobi
 * exchanges them with fields of the workspace. */
typedef struct {
    const ps_cavity *c;
    const ps_options *options;
    workspace work;
    double *psi, *omega;
    ps_cavity_report *report;
} run;

static size_t
field_bytes(const ps_cavity *c)
{
    return ps_aligned((size_t)(c->nodes * c->nodes) * sizeof(double));
}

static size_t
rows_bytes(const ps_cavity *c)
{
    return ps_aligned((size_t)(2 * c->nodes) * sizeof(double));
}

/* Threads of the iterations and of their sweeps, whose workspace depends on the number.
 */
static ps_exec
with_threads(const ps_cavity *c, const ps_exec *exec)
{
    ps_exec same = *exec;

    same.threads = ps_thread_count_for(exec, c->nodes * c->nodes);
    return same;
}

ps_status
ps_cavity_work(const ps_cavity *c, const ps_options *options, const ps_exec *exec,
               size_t *bytes)
{
    ps_status status = ps_cavity_check(c);
    size_t lines_bytes = 0;

    if (status != PS_OK) {
        return status;
    }
    const ps_exec sweeps = with_threads(c, exec);

    for (int axis = 0; status == PS_OK && axis < 2; axis++) {
        ps_sweep sweep = ps_sweep_along(axis, c->nodes, c->viscosity);
        size_t needed = 0;

        sweep.x = c->psi;
        status = ps_sweep_work(&sweep, options, &sweeps, &needed);
        lines_bytes = needed > lines_bytes ? needed : lines_bytes;
    }
    *bytes = 2 * field_bytes(c) + rows_bytes(c) + lines_bytes;
    return status;
}

static workspace
lay_out(const ps_cavity *c, const ps_exec *exec)
{
    char *const base = exec->work;
    const size_t used = 2 * field_bytes(c) + rows_bytes(c);
    workspace w = {
        .half = (double *)base,
        .other = (double *)(base + field_bytes(c)),
        .step = (double *)(base + field_bytes(c)),
        .rows = (double *)(base + 2 * field_bytes(c)),
        .exec = with_threads(c, exec),
    };

    w.exec.work = base + used;
    w.exec.work_bytes = exec->work_bytes - used;
    /* called between iterations only, so that the state is complete */
    w.exec.poll = NULL;
    return w;
}

static void
clear_walls(double *field, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        field[k] = field[k * n] = 0;
        field[k * n + n - 1] = field[(n - 1) * n + k] = 0;
    }
}

static ps_status
make_sweep(run *r, const ps_sweep *sweep)
{
    return ps_sweep_solve(sweep, r->options, &r->work.exec, &r->report->lines);
}

static ps_status
step_omega(run *r)
{
    const ps_cavity *const c = r->c;
    ps_sweep first = ps_sweep_along(0, c->nodes, c->viscosity);
    ps_sweep second = ps_sweep_along(1, c->nodes, c->viscosity);

    first.kind = PS_ROWS_OMEGA_FIRST;
    second.kind = PS_ROWS_OMEGA_SECOND;
    first.psi = second.psi = r->psi;
    first.step = second.step = r->work.step;
    first.omega = r->omega;
    second.half = first.x = r->work.half;
    second.x = r->omega;
    second.increment = 1;

    ps_cavity_local_steps(c, r->omega, r->work.step, r->work.exec.threads);
    const ps_status status = make_sweep(r, &first);
    return status == PS_OK ? make_sweep(r, &second) : status;
}

/* Parameter k of `count`: geometric sequence between the extreme eigenvalues of the
 * operator 2 -1 -1 on the interior nodes of a line. */
static double
peaceman_rachford_shift(int64_t nodes, int k, int count)
{
    const double angle = pi / (double)(nodes - 1);
    const double smallest = 2 - 2 * cos(angle);
    const double largest = 2 - 2 * cos((double)(nodes - 2) * angle);

    return largest * pow(smallest / largest, (2 * k + 1) / (2.0 * count));
}

static ps_status
solve_psi(run *r)
{
    const ps_cavity *const c = r->c;
    ps_sweep first = ps_sweep_along(0, c->nodes, c->viscosity);
    ps_sweep second = ps_sweep_along(1, c->nodes, c->viscosity);
    ps_status status = PS_OK;

    first.kind = second.kind = PS_ROWS_PSI;
    first.omega = second.omega = r->omega;
    first.half = second.x = r->psi;
    second.half = first.x = r->work.half;
    for (int k = 0; status == PS_OK && k < c->psi_sweeps; k++) {
        first.shift = second.shift = peaceman_rachford_shift(c->nodes, k, c->psi_sweeps);
        status = make_sweep(r, &first);
        if (status == PS_OK) {
            status = make_sweep(r, &second);
        }
    }
    return status;
}

static void
swap_fields(double **a, double **b)
{
    double *const kept = *a;

    *a = *b;
    *b = kept;
}

static int
jacobi_axis(const run *r)
{
    const ps_cavity *const c = r->c;

    if (c->direction == PS_DIRECTION_ALTERNATE) {
        return (int)((c->iteration + r->report->iterations) % 2);
    }
    return c->direction == PS_DIRECTION_Y;
}

static ps_status
relax_psi(run *r)
{
    ps_sweep sweep = ps_sweep_along(jacobi_axis(r), r->c->nodes, r->c->viscosity);

    sweep.kind = PS_ROWS_JACOBI_PSI;
    sweep.omega = r->omega;
    sweep.half = r->psi;
    sweep.x = r->work.half;

    const ps_status status = make_sweep(r, &sweep);
    swap_fields(&r->psi, &r->work.half);
    return status;
}

static ps_status
relax_omega(run *r)
{
    ps_sweep sweep = ps_sweep_along(jacobi_axis(r), r->c->nodes, r->c->viscosity);

    sweep.kind = PS_ROWS_JACOBI_OMEGA;
    sweep.psi = r->psi;
    sweep.omega = r->omega;
    sweep.x = r->work.other;

    const ps_status status = make_sweep(r, &sweep);
    for (int64_t k = 0, n = r->c->nodes; k < n; k++) {
        r->work.other[k] = r->omega[k];
        r->work.other[k * n] = r->omega[k * n];
        r->work.other[k * n + n - 1] = r->omega[k * n + n - 1];
        r->work.other[(n - 1) * n + k] = r->omega[(n - 1) * n + k];
    }
    swap_fields(&r->omega, &r->work.other);
    return status;
}

static ps_status
relax_walls(run *r)
{
    ps_cavity_relax_walls(r->c, r->psi, r->omega);
    return PS_OK;
}

static ps_status
measure_residual(run *r)
{
    ps_cavity_report *const report = r->report;

    ps_cavity_residuals(r->c, r->psi, r->omega, r->work.rows, r->work.exec.threads,
                        &report->psi_residual, &report->omega_residual);
    return PS_OK;
}

static ps_status
make_stage(run *r, ps_stage stage, ps_status (*make)(run *r))
{
    if ((r->c->stages & 1u << stage) == 0) {
        return PS_OK;
    }
    const double start = ps_clock_now();
    const ps_status status = make(r);

    r->report->seconds[stage] += ps_clock_now() - start;
    return status;
}

static ps_status
make_iteration(run *r)
{
    const int adi = r->c->scheme == PS_SCHEME_ADI;
    ps_status status = adi ? make_stage(r, PS_STAGE_OMEGA, step_omega)
                           : make_stage(r, PS_STAGE_PSI, relax_psi);

    if (status == PS_OK) {
        status = adi ? make_stage(r, PS_STAGE_PSI, solve_psi)
                     : make_stage(r, PS_STAGE_OMEGA, relax_omega);
    }
    return status == PS_OK ? make_stage(r, PS_STAGE_WALLS, relax_walls) : status;
}

/* Copy the state to the fields of the caller if line Jacobi left it in the workspace. */
static void
copy_fields_back(const run *r)
{
    const size_t bytes = (size_t)(r->c->nodes * r->c->nodes) * sizeof(double);

    if (r->psi != r->c->psi) {
        memcpy(r->c->psi, r->psi, bytes);
    }
    if (r->omega != r->c->omega) {
        memcpy(r->c->omega, r->omega, bytes);
    }
}

ps_status
ps_cavity_iterate(const ps_cavity *c, int64_t count, const ps_options *options,
                  const ps_exec *exec, ps_cavity_report *report)
{
    size_t bytes;
    ps_status status = ps_cavity_work(c, options, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (exec->work_bytes < bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = (ps_cavity_report){.psi_residual = NAN, .omega_residual = NAN};
    run r = {c, options, lay_out(c, exec), c->psi, c->omega, report};
    clear_walls(r.work.half, c->nodes);
    while (status == PS_OK && report->iterations < count) {
        status = make_iteration(&r);
        report->iterations += status == PS_OK;
        if (status == PS_OK && exec->poll != NULL && exec->poll(exec->poll_self) != 0) {
            status = PS_INTERRUPTED;
        }
    }
    if (status == PS_OK) {
        status = make_stage(&r, PS_STAGE_RESIDUAL, measure_residual);
    }
    copy_fields_back(&r);
    return status;
}
