/* one_pass.cu - the choice of shape and kernel for implicit steps in one pass over memory:
 * 5 words per unknown, 6 with a source; fluxes 4, fewer where all systems have the same.
 *
 * Systems along a strided axis use the column kernels, those along a contiguous one
 * tiles; both make the rows from the operands (lines/join/step_terms.cuh). Not offered:
 * complex numbers; systems that neither a block nor a cluster holds, because the second
 * pass over a long system would read u where x is stored already; strided systems that
 * the column kernels do not accept; a source along a contiguous axis.
 */
#include <algorithm>

#include "device/work_queue.cuh"
#include "lines/geometry.h"
#include "lines/partition/one_pass.h"

namespace pysolvers::partition {

using namespace lines;

/* An operand with the batch axes of the merged `t`; false if they cannot be merged. */
static bool
merge(const ps_tridiag &from, const ps_tridiag &merged, ps_input *in)
{
    ps_stride &s = in->stride;

    if (in->data == nullptr) {
        return true;
    }
    if (from.inner == 1) {
        s.inner = s.outer;
    }
    const bool is_merged = from.outer != merged.outer;
    return !is_merged || from.inner == 1 || s.outer == s.inner * from.inner;
}

static bool
merge(const ps_tridiag &from, const ps_tridiag &merged, StepTerms *terms)
{
    bool can = merge(from, merged, &terms->source);

    for (int end = 0; end < 2; end++) {
        can = can && merge(from, merged, &terms->flux[end]) &&
              merge(from, merged, &terms->value[end]);
    }
    return can;
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
shapes_of(const ps_tridiag &t, StepKind kind, bool has_source,
          const ps_cuda_device *device)
{
    Shapes s = {};

    s.by_columns = ps_cuda_step_column_accepts(&t, kind, device, &s.columns);
    if (s.by_columns || has_source) {
        s.is_there = s.by_columns;
        return s;
    }
    const Choice c = kind == StepKind::flux ? ps_cuda_choose(&t, device)
                                            : ps_cuda_choose_step(&t, device);

    s.is_there = c.by_row && c.warps == 0 && ps_cuda_plan(&t, device, c, &s.plan);
    return s;
}

bool
ps_cuda_one_pass(const ps_tridiag *t, const StepTerms &terms,
                 const ps_cuda_device *device, OnePassStep *step)
{
    static thread_local Remembered<Geometry, Shapes, 16> known;

    if (t->dtype != PS_F32 && t->dtype != PS_F64) {
        return false;
    }
    step->t = ps_cuda_merged(t);
    step->terms = terms;
    step->terms.inner = t->inner;
    if (!merge(*t, step->t, &step->terms)) {
        return false;
    }
    const bool has_source = terms.source.data != nullptr;
    const int64_t option = 2 * static_cast<int64_t>(terms.kind()) + has_source;
    const Shapes &s = remembered_plan(known, geometry_of(step->t, device, option), [&] {
        return shapes_of(step->t, terms.kind(), has_source, device);
    });

    step->columns = s.columns;
    step->plan = s.plan;
    step->by_columns = s.by_columns;
    step->chunk_rows = s.columns.chunk;
    step->chunks = s.by_columns ? s.columns.chunks() : 0;
    return s.is_there;
}

size_t
ps_cuda_one_pass_work(const OnePassStep &step, const ps_cuda_device *device)
{
    if (step.by_columns) {
        return ps_cuda_step_column_work(&step.t, step.terms, step.columns, device);
    }
    return step.plan.work_queue ? work_queue_bytes(1) : 0;
}

static StepMask
mask_of(const OnePassStep &step)
{
    const ps_mask &where = step.terms.where;
    const int64_t inner = step.terms.inner;
    const int64_t spans[] = {
        where.stride.row * (step.t.rows - 1), where.stride.inner * (inner - 1),
        where.stride.outer * (step.t.outer * step.t.inner / inner - 1)};
    StepMask mask = {input_of<uint8_t>({where.data, where.stride}), inner, where.data,
                     where.data};

    if (where.data == nullptr) {
        return mask;
    }
    for (const int64_t span : spans) {
        mask.begin += std::min<int64_t>(span, 0);
        mask.end += std::max<int64_t>(span, 0);
    }
    mask.end++;
    return mask;
}

/* A job for tiles, but for its numbers. */
template <typename StepJobOf, typename Number>
static StepJobOf
step_job_of(const OnePassStep &step, uint8_t *marks, void *work)
{
    StepJobOf job = {};

    static_cast<Job<Number> &>(job) = job_of<Number>(step.t, step.plan, marks, work);
    job.mask = mask_of(step);
    return job;
}

template <typename Real, bool IS_MASKED>
static ps_status
solve_tiles(const OnePassStep &step, uint8_t *marks, void *work, cudaStream_t stream)
{
    auto job = step_job_of<StepJob<Real, IS_MASKED>, Real>(step, marks, work);

    job.terms = step_numbers_of<Real>(step.terms);
    return launch_step_partition(job, step.plan, stream);
}

/* Remove the operands `absent` from the copies of a tiling, which then treats the others
 * alike if it did so with all of them. */
static void
leave_out(uint32_t absent, Tiling *how)
{
    const uint32_t others = 31u & ~absent;
    const bool by_vectors =
        (how->vectors & others) == others && (how->dense & others) == 0;

    how->runs &= others;
    how->dense &= others;
    how->vectors = by_vectors ? 31u : how->vectors & others;
}

template <typename Real, FluxKind KIND>
static ps_status
solve_flux_tiles(const OnePassStep &step, uint8_t *marks, void *work, cudaStream_t stream)
{
    const bool has_one_thickness = step.t.diag.stride.inner == 0 &&
                                   (step.t.outer == 1 || step.t.diag.stride.outer == 0);
    auto job = step_job_of<FluxJob<Real, KIND>, BySums<Real>>(step, marks, work);

    job.inputs[0] = {};
    if (has_one_thickness) {
        job.inputs[1] = {};
    }
    leave_out(has_one_thickness ? 3u : 1u, &job.tiling);
    job.terms = flux_numbers_of<Real>(step.terms, has_one_thickness, false);
    return launch_flux_partition(job, step.plan, stream);
}

ps_status
ps_cuda_one_pass_solve(const OnePassStep &step, const ps_cuda_device *device,
                       uint8_t *marks, void *work, cudaStream_t stream)
{
    if (step.by_columns) {
        return ps_cuda_step_column_solve(&step.t, step.terms, step.columns, device, marks,
                                         work, stream);
    }
    return with_real(step.t.dtype, [&](auto zero) {
        using Real = decltype(zero);

        if (step.terms.is_flux) {
            return step.terms.flux_kind() == FluxKind::more
                       ? solve_flux_tiles<Real, FluxKind::more>(step, marks, work, stream)
                       : solve_flux_tiles<Real, FluxKind::bare>(step, marks, work,
                                                                stream);
        }
        return step.terms.where.data != nullptr
                   ? solve_tiles<Real, true>(step, marks, work, stream)
                   : solve_tiles<Real, false>(step, marks, work, stream);
    });
}

} // namespace pysolvers::partition
