/* spline.c - rows, pieces and points of splines: parts for the threads. */
#include "spline/spline.h"

#include "runtime/threads.h"
#include "spline/spline_parts.h"

static ps_status
run(ps_spline_task *t, const ps_exec *exec,
    void (*body)(void *task, int64_t begin, int64_t end, int thread))
{
    const int64_t splines = t->outer * t->inner;
    const int64_t parts = ps_spline_count(splines, PS_SPLINE_TILE) *
                          ps_spline_count(t->rows, PS_SPLINE_BLOCK);

    if (parts > 0) {
        ps_parallel_for(ps_thread_count_for(exec, splines * t->rows), parts, body, t);
    }
    return PS_OK;
}

ps_status
ps_cpu_spline_rows(const ps_spline_rows *r, const ps_exec *exec)
{
    const ps_status status = ps_spline_rows_check(r);
    ps_spline_task task = {.operation = r};

    if (status != PS_OK) {
        return status;
    }
    task.outer = r->outer;
    task.inner = r->inner;
    task.rows = r->knots;
    return run(&task, exec, r->dtype == PS_F32 ? ps_spline_rows_f32 : ps_spline_rows_f64);
}

ps_status
ps_cpu_spline_pieces(const ps_spline_pieces *p, const ps_exec *exec)
{
    const ps_status status = ps_spline_pieces_check(p);
    ps_spline_task task = {.operation = p};

    if (status != PS_OK) {
        return status;
    }
    task.outer = p->from.outer;
    task.inner = p->from.inner;
    task.rows = p->from.knots - 1;
    return run(&task, exec,
               p->from.dtype == PS_F32 ? ps_spline_pieces_f32 : ps_spline_pieces_f64);
}

ps_status
ps_cpu_spline_points(const ps_spline_points *p, const ps_exec *exec)
{
    const ps_status status = ps_spline_points_check(p);
    ps_spline_task task = {.operation = p};

    if (status != PS_OK) {
        return status;
    }
    task.outer = p->from.outer;
    task.inner = p->from.inner;
    task.rows = p->points;
    return run(&task, exec,
               p->from.dtype == PS_F32 ? ps_spline_points_f32 : ps_spline_points_f64);
}
