/* step_way.cu - the choice of shape and kernel for implicit steps in one pass over memory:
 * 5 words per unknown, 6 with a source.
 *
 * Systems along a strided axis use the column kernels, those along a contiguous one
 * tiles; both make the rows from the operands (lines/join/step_terms.cuh). Not offered:
 * complex numbers; systems that neither a block nor a cluster holds, because the second
 * pass over a long system would read u where x is stored already; strided systems that
 * the column kernels do not accept; a source along a contiguous axis.
 */
#include "device/work_queue.cuh"
#include "lines/geometry.h"
#include "lines/partition/step_way.h"

namespace pysolvers::partition {

using namespace lines;

/* The source with the batch axes of the merged `t`; false if they cannot be merged. */
static bool
merge_source(const ps_tridiag &from, const ps_tridiag &merged, ps_input *source)
{
    ps_stride &s = source->stride;

    if (source->data == nullptr) {
        return true;
    }
    if (from.inner == 1) {
        s.inner = s.outer;
    }
    const bool is_merged = from.outer != merged.outer;
    return !is_merged || from.inner == 1 || s.outer == s.inner * from.inner;
}

namespace {

/* What the geometry determines. */
struct Shapes {
    ColumnShape columns;
    Plan plan;
    bool is_there, by_columns;
};

} // namespace

static Shapes
shapes_of(const ps_tridiag &t, bool has_source, const ps_cuda_device *device)
{
    Shapes s = {};

    s.by_columns = ps_cuda_step_column_accepts(&t, device, &s.columns);
    if (s.by_columns || has_source) {
        s.is_there = s.by_columns;
        return s;
    }
    const Choice c = ps_cuda_choose(&t, device);

    s.is_there = c.by_row && c.warps == 0 && ps_cuda_plan(&t, device, c, &s.plan);
    return s;
}

bool
ps_cuda_step_way(const ps_tridiag *t, const StepTerms &terms,
                 const ps_cuda_device *device, StepWay *way)
{
    static thread_local Remembered<Geometry, Shapes, 16> known;

    if (t->dtype != PS_F32 && t->dtype != PS_F64) {
        return false;
    }
    way->t = ps_cuda_merged(t);
    way->terms = terms;
    if (!merge_source(*t, way->t, &way->terms.source)) {
        return false;
    }
    const bool has_source = terms.source.data != nullptr;
    const Shapes &s =
        remembered_plan(known, geometry_of(way->t, device, has_source),
                        [&] { return shapes_of(way->t, has_source, device); });

    way->columns = s.columns;
    way->plan = s.plan;
    way->by_columns = s.by_columns;
    if (s.by_columns) {
        way->chunk_rows = s.columns.chunk;
        way->chunks = s.columns.chunks();
    }
    else {
        way->chunk_rows =
            t->dtype == PS_F32 ? Tuning<float, true>::rows : Tuning<double, true>::rows;
        way->chunks = s.plan.shape.chunks();
    }
    return s.is_there;
}

size_t
ps_cuda_step_way_work(const StepWay &way, const ps_cuda_device *device)
{
    if (way.by_columns) {
        return ps_cuda_column_work(&way.t, way.columns, device);
    }
    return way.plan.work_queue ? work_queue_bytes(1) : 0;
}

ps_status
ps_cuda_step_way_solve(const StepWay &way, const ps_cuda_device *device, uint8_t *marks,
                       void *work, cudaStream_t stream)
{
    if (way.by_columns) {
        return ps_cuda_step_column_solve(&way.t, way.terms, way.columns, device, marks,
                                         work, stream);
    }
    return with_real(way.t.dtype, [&](auto zero) {
        using Number = decltype(zero);
        StepJob<Number> job = {};
        Job<Number> &plain = job;

        plain = job_of<Number>(way.t, way.plan, marks, work);
        job.terms = step_numbers_of<Number>(way.terms);
        return launch_step_partition(job, way.plan, stream);
    });
}

} // namespace pysolvers::partition
