/* column.cu - the choice of kernel for batches along a strided axis. */
#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "device/work_queue.cuh"
#include "lines/columns/column_choice.h"
#include "runtime/math.cuh"

namespace pysolvers::columns {

bool
ps_cuda_column_shape(ps_dtype dtype, int64_t rows, int32_t widest,
                     const ps_cuda_device *device, ColumnShape *shape)
{
    bool fits = false;

    (void)with_number(dtype, [&](auto zero) {
        using Number = decltype(zero);
        fits = shape_of<Number, ColumnJob<Number>>(rows, widest, device, shape);
        return PS_OK;
    });
    return fits;
}

/* Whether neighbouring systems are closer to each other in memory than neighbouring
 * rows. */
static bool
lies_by_column(const ps_stride &s)
{
    return s.inner == 0 || s.row == 0 || std::abs(s.inner) < std::abs(s.row);
}

static bool
lies_by_column(const ps_tridiag *t)
{
    return t->inner > 1 && t->rows > 1 && lies_by_column(t->lower.stride) &&
           lies_by_column(t->diag.stride) && lies_by_column(t->upper.stride) &&
           lies_by_column(t->rhs.stride) && lies_by_column(t->x.stride);
}

static bool
accepts(const ps_tridiag *t, const ps_cuda_device *device, ColumnShape *shape)
{
    return lies_by_column(t) && ps_cuda_column_shape(t->dtype, t->rows, 5, device, shape);
}

bool
ps_cuda_step_column_accepts(const ps_tridiag *t, StepKind kind,
                            const ps_cuda_device *device, ColumnShape *shape)
{
    return lies_by_column(t) && with_real(t->dtype, [&](auto zero) {
               using Real = decltype(zero);

               switch (kind) {
               case StepKind::flux:
                   return shape_of<Real, FluxColumnJob<Real, FluxKind::more>>(
                       t->rows, 5, device, shape);
               case StepKind::more:
                   return shape_of<Real, StepColumnJob<Real, StepKind::more>>(
                       t->rows, 5, device, shape);
               default:
                   return shape_of<Real, StepColumnJob<Real, StepKind::masked>>(
                       t->rows, 5, device, shape);
               }
           });
}

/* Whether every row begins at a multiple of `bytes` bytes and the systems can be copied
 * by 16 bytes. */
static bool
is_aligned_to(int64_t bytes, const ps_tridiag &t, const ps_input &in)
{
    const int64_t size = ps_dtype_size(t.dtype), count = bytes / size;
    const ps_stride &s = in.stride;

    return s.inner == 1 && s.row % count == 0 && t.inner % (16 / size) == 0 &&
           (t.outer == 1 || (s.outer % count == 0 && t.inner % count == 0)) &&
           reinterpret_cast<uintptr_t>(in.data) % bytes == 0;
}

/* Half sectors have a separate path in float32 only: it is no faster for other
 * types. Operands with null data are not copied. */
static ColumnAccess
access_of(const ps_tridiag &t, std::initializer_list<const ps_input *> inputs)
{
    bool by_sectors = true, by_half_sectors = true;

    for (const ps_input *in : inputs) {
        by_sectors = by_sectors && (in->data == nullptr || is_aligned_to(32, t, *in));
        by_half_sectors =
            by_half_sectors && (in->data == nullptr || is_aligned_to(16, t, *in));
    }
    if (!by_half_sectors) {
        return ColumnAccess::elements;
    }
    return by_sectors || t.dtype != PS_F32 ? ColumnAccess::sectors
                                           : ColumnAccess::half_sectors;
}

/* Rows that are copied element by element take 1.15 times as long as one side after the other.
 */
static bool
accepts_sides(const ps_tridiag *t, const ps_cuda_device *device, ColumnShape *shape)
{
    return has_side_groups(*t) && lies_by_column(t) &&
           access_of(*t, {&t->lower, &t->diag, &t->upper, &t->rhs}) !=
               ColumnAccess::elements &&
           with_real(t->dtype, [&](auto zero) {
               using Number = WithSides<decltype(zero), most_sides>;

               return shape_of<Number, SideColumnJob<Number>>(t->rows, 5, device, shape);
           });
}

static int64_t
tiles_of(const ps_tridiag &t, const ColumnShape &shape)
{
    return count_of_tiles(t, 1 << shape.width, sharing_of(t));
}

/* Whether tiles are drawn from a work queue: if there are many for each multiprocessor,
 * and only one tile in advance must be known. For single blocks of float32 it is no
 * faster: 37 rows have 0.80 of the floor in place of 0.88, 500 rows 0.68 and 0.67 (H200).
 * `short_step`: is_short_step(). */
static bool
uses_work_queue(const ps_tridiag &t, const ColumnShape &shape,
                const ps_cuda_device *device, bool short_step = false)
{
    return (shape.blocks > 1 || ps_dtype_size(t.dtype) > 4 || short_step) &&
           shape.chunk >= 16 &&
           pays_for_work_queue(tiles_of(t, shape), device->processors / shape.blocks);
}

static size_t
work(const ps_tridiag *t, const ColumnShape &shape, const ps_cuda_device *device)
{
    return uses_work_queue(*t, shape, device) ? work_queue_bytes(1) : 0;
}

template <typename Number>
static ColumnJob<Number>
job_of(const ps_tridiag &t, const ColumnShape &shape, uint8_t *marks,
       uint32_t *work_queue)
{
    const Systems<Number> s = systems_of<Number>(t);
    ColumnJob<Number> job = {s,
                             {s.lower, s.diag, s.upper, s.rhs},
                             {0, 0, 0, 0},
                             {s.rows, s.rows, s.rows, s.rows},
                             access_of(t, {&t.lower, &t.diag, &t.upper, &t.rhs}),
                             shape,
                             tiles_of(t, shape),
                             sharing_of(t),
                             marks,
                             work_queue};

    job.begin[0] += !s.periodic;
    job.end[2] -= !s.periodic;
    return job;
}

/* Whether a step of float32 in single blocks draws its tiles from a work queue, without source and
 * mask: 64, 75, 100 and 128 rows have 0.94, 0.90, 0.91 and 0.95 of the floor in place of 0.89, 0.90,
 * 0.90 and 0.91, 512 rows 0.89 in place of 0.91 (H200). */
static bool
is_short_step(const ps_tridiag &t, const StepTerms &terms)
{
    constexpr int64_t most_rows = 128;

    return !terms.is_flux && terms.kind() == StepKind::bare && t.rows <= most_rows;
}

/* Whether systems are solved by halves, if there are many: real ones of 16 to 160 rows in float32
 * whose rows do not begin at 16 bytes; in float64 such of 16 to 64 rows, and all of 33 to 64 rows.
 * H200, parts of the floor, in brackets without halves. float32, rows that begin anywhere: 16, 24,
 * 37, 48, 60, 64, 75 rows 0.80 (0.77), 0.84 (0.73), 0.83 (0.67), 0.89 (0.66), 0.87 (0.67), 0.89
 * (0.65), 0.86 (0.60), 81, 100, 120, 140, 160 rows 0.85 (0.65), 0.79 (0.69), 0.78 (0.69), 0.755
 * (0.675), 0.74 (0.62), 200 rows 0.58 (0.63); aligned 16, 24, 37, 64 rows 0.82 (0.98), 0.84 (0.93),
 * 0.84 (0.87), 0.94 (0.95). float64, anywhere: 16, 24, 37, 60 rows 0.99 (0.71 with 16), 0.98, 0.95
 * (0.58), 0.93 (0.70); aligned 37 and 60 rows 0.98 (0.74), 0.96 (0.81), 16 and 24 rows as without;
 * 100 rows 0.73 (0.73) and 0.85 (0.91). */
static bool
suits_halves(const ps_tridiag &t, const ps_cuda_device *device)
{
    constexpr int64_t least_rows = 16, aligned_rows = 33, most_rows = 64,
                      most_single_rows = 160, least_systems = 48;
    constexpr int64_t row_bytes = 512; /* shared, with more than most_rows rows */
    const bool is_aligned =
        access_of(t, {&t.lower, &t.diag, &t.upper, &t.rhs}) != ColumnAccess::elements;
    const auto is_near = [](const ps_stride &s) {
        return std::abs(s.row) <= INT32_MAX / static_cast<int64_t>(sizeof(double));
    };

    const bool has_rows =
        t.dtype == PS_F32
            ? !is_aligned && t.rows >= least_rows && t.rows <= most_single_rows &&
                  (t.rows <= most_rows ||
                   t.rows * row_bytes + statics_bytes <= device->shared_bytes)
            : t.dtype == PS_F64 && t.rows >= (is_aligned ? aligned_rows : least_rows) &&
                  t.rows <= most_rows;

    return has_rows && (t.flags & (PS_PERIODIC | PS_ROW_SUMS)) == 0 &&
           sharing_of(t) == 1 &&
           t.outer * t.inner >= least_systems * device->processors &&
           is_near(t.lower.stride) && is_near(t.diag.stride) && is_near(t.upper.stride) &&
           is_near(t.rhs.stride);
}

static ps_status
solve(const ps_tridiag *t, const ColumnShape &shape, const ps_cuda_device *device,
      uint8_t *marks, void *work, cudaStream_t stream)
{
    uint32_t *const counter =
        uses_work_queue(*t, shape, device) ? static_cast<uint32_t *>(work) : nullptr;

    if (suits_halves(*t, device)) {
        return with_real(t->dtype, [&](auto zero) {
            return launch_column_halves(job_of<decltype(zero)>(*t, shape, marks, counter),
                                        stream);
        });
    }
    return with_form(*t, [&](auto zero) {
        return launch_columns(job_of<decltype(zero)>(*t, shape, marks, counter), stream);
    });
}

const lines::ShapedKernels<ColumnShape> ps_cuda_columns = {accepts, work, solve};

static size_t
work_of_sides(const ps_tridiag *t, const ColumnShape &shape, const ps_cuda_device *device)
{
    const ps_tridiag groups = groups_of(*t);

    return work(&groups, shape, device);
}

static ps_status
solve_sides(const ps_tridiag *t, const ColumnShape &shape, const ps_cuda_device *device,
            uint8_t *marks, void *work, cudaStream_t stream)
{
    const ps_tridiag groups = groups_of(*t);
    uint32_t *const counter =
        uses_work_queue(groups, shape, device) ? static_cast<uint32_t *>(work) : nullptr;

    return with_real(t->dtype, [&](auto zero) {
        using Number = WithSides<decltype(zero), most_sides>;
        SideColumnJob<Number> job = {};

        static_cast<ColumnJob<Number> &>(job) =
            job_of<Number>(groups, shape, marks, counter);
        const ColumnJob<Number> &plain = job;
        job.groups = side_groups_of(*t);
        set_inputs(plain.t, job.groups, job.inputs);
        for (int q = 0; q < job.operands; q++) {
            job.begin[q] = plain.begin[std::min(q, 3)];
            job.end[q] = plain.end[std::min(q, 3)];
        }
        job.access = access_of(*t, {&t->lower, &t->diag, &t->upper, &t->rhs});
        return launch_side_columns(job, stream);
    });
}

const lines::ShapedKernels<ColumnShape> ps_cuda_side_columns = {
    accepts_sides, work_of_sides, solve_sides};

/* The ring of a step copies `in` as operand q, `ahead` rows ahead. */
template <typename Job, typename Number>
static void
copy_rows(const Input<Number> &in, int32_t begin, int32_t end, int32_t ahead, int q,
          Job *job)
{
    job->inputs[q] = in;
    job->inputs[q].data += ahead * in.row;
    job->begin[q] = begin - ahead;
    job->end[q] = end - ahead;
}

template <typename Number, StepKind KIND>
static ps_status
solve_step(const ps_tridiag &t, const StepTerms &terms, const ColumnJob<Number> &plain,
           cudaStream_t stream)
{
    const Systems<Number> &s = plain.t;
    const int32_t rows = s.rows, ends = s.periodic ? 0 : 1;
    StepColumnJob<Number, KIND> job = {};

    static_cast<ColumnJob<Number> &>(job) = plain;
    copy_rows(s.lower, ends, rows, 0, 0, &job);
    copy_rows(s.diag, 0, rows, 0, 1, &job);
    copy_rows(s.upper, 0, rows - ends, 0, 2, &job);
    copy_rows(s.rhs, 0, rows, 1, 3, &job);
    if constexpr (KIND == StepKind::more) {
        copy_rows(input_of<Number>(terms.source), 0, rows, 0, 4, &job);
    }
    job.access = access_of(t, {&t.lower, &t.diag, &t.upper, &t.rhs, &terms.source});
    job.terms = step_numbers_of<Number>(terms);
    return launch_step_columns(job, stream);
}

template <typename Real, FluxKind KIND>
static ps_status
solve_flux(const ps_tridiag &t, const StepTerms &terms,
           const ColumnJob<BySums<Real>> &plain, cudaStream_t stream)
{
    using Number = BySums<Real>;
    static constexpr ps_input none = {};
    const auto is_shared = [&](const ps_input &in) {
        return in.stride.inner == 0 && (t.outer == 1 || in.stride.outer == 0);
    };
    const bool has_one_thickness = is_shared(t.diag);
    const bool has_one_diffusivity = has_one_thickness && is_shared(t.upper);
    const Systems<Number> &s = plain.t;
    const int32_t rows = s.rows;
    FluxColumnJob<Real, KIND> job = {};

    static_cast<ColumnJob<Number> &>(job) = plain;
    copy_rows(input_of<Number>(terms.source), 0, rows, 0, 0, &job);
    if (!has_one_thickness) {
        copy_rows(s.diag, 0, rows, 1, 1, &job);
    }
    if (!has_one_diffusivity) {
        copy_rows(s.upper, 0, rows - 1, 0, 2, &job);
    }
    copy_rows(s.rhs, 0, rows, 1, 3, &job);
    job.access = access_of(t, {&terms.source, has_one_thickness ? &none : &t.diag,
                               has_one_diffusivity ? &none : &t.upper, &t.rhs});
    job.terms = flux_numbers_of<Real>(terms, has_one_thickness, has_one_diffusivity);
    return launch_flux_columns(job, stream);
}

size_t
ps_cuda_step_column_work(const ps_tridiag *t, const StepTerms &terms,
                         const ColumnShape &shape, const ps_cuda_device *device)
{
    return uses_work_queue(*t, shape, device, is_short_step(*t, terms))
               ? work_queue_bytes(1)
               : 0;
}

ps_status
ps_cuda_step_column_solve(const ps_tridiag *t, const StepTerms &terms,
                          const ColumnShape &shape, const ps_cuda_device *device,
                          uint8_t *marks, void *work, cudaStream_t stream)
{
    uint32_t *const counter = uses_work_queue(*t, shape, device, is_short_step(*t, terms))
                                  ? static_cast<uint32_t *>(work)
                                  : nullptr;

    return with_real(t->dtype, [&](auto zero) {
        using Real = decltype(zero);

        if (terms.is_flux) {
            const auto plain = job_of<BySums<Real>>(*t, shape, marks, counter);

            return terms.flux_kind() == FluxKind::more
                       ? solve_flux<Real, FluxKind::more>(*t, terms, plain, stream)
                       : solve_flux<Real, FluxKind::bare>(*t, terms, plain, stream);
        }
        const ColumnJob<Real> plain = job_of<Real>(*t, shape, marks, counter);

        switch (terms.kind()) {
        case StepKind::more:
            return solve_step<Real, StepKind::more>(*t, terms, plain, stream);
        case StepKind::masked:
            return solve_step<Real, StepKind::masked>(*t, terms, plain, stream);
        default:
            return solve_step<Real, StepKind::bare>(*t, terms, plain, stream);
        }
    });
}

} // namespace pysolvers::columns
