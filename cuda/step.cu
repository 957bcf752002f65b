/* step.cu - implicit steps: ps_step.h.
 *
 * Where lines/partition/one_pass.h offers it, one pass makes the rows and solves them: 5
 * words per unknown, 6 with a source, 2 to 5 for fluxes, and a byte or two for a mask.
 * Systems that it marks, because they are not dominant, are then solved with row
 * exchanges, from rows that are computed for them alone.
 *
 * Otherwise a pass computes the rows of the solve (lines/step_rows.h) into the workspace,
 * and the methods of tridiag.cu solve them. If all systems along a batch axis have one
 * matrix, the rows of the matrix are computed once, and the solve reads them as those of
 * a shared matrix. With own matrices this moves 13 words per unknown; with one matrix 4
 * words, and 2 if the right-hand side is u itself. The workspace has 4 words per unknown,
 * 5 with a mask if x is u; it has them also where systems may be marked.
 */
#include <algorithm>
#include <cstdlib>

#include "device/number.cuh"
#include "lines/methods.h"
#include "lines/partition/one_pass.h"
#include "lines/pivoted/pivoted.h"
#include "lines/products.h"
#include "lines/step_rows.h"
#include "runtime/backend.h"
#include "runtime/math.cuh"

namespace pysolvers {

using namespace device;
using namespace lines;
using namespace partition;
using namespace pivoted;
using namespace runtime;

static constexpr int row_bytes = 32; /* to a multiple of which strided rows are padded */

/* For sizes: an aligned address that is not null. */
static char *const nowhere = reinterpret_cast<char *>(256);

/* The strides of an array without gaps but for those between strided rows, whose axes are
 * in the order of those of x; `count` gets its numbers. */
static ps_stride
stride_like(const ps_stride &x, int64_t rows, int64_t outer, int64_t inner,
            int64_t element, int64_t *count)
{
    struct Axis {
        int64_t length, key, *stride;
        bool is_row;
    };
    ps_stride s = {};
    Axis axes[] = {{rows, std::abs(x.row), &s.row, true},
                   {inner, std::abs(x.inner), &s.inner, false},
                   {outer, std::abs(x.outer), &s.outer, false}};

    std::stable_sort(axes, axes + 3, [](const Axis &a, const Axis &b) {
        return (a.length > 1 ? a.key : INT64_MAX) < (b.length > 1 ? b.key : INT64_MAX);
    });
    *count = 1;
    for (const Axis &a : axes) {
        if (a.is_row && *count > 1) {
            *count = rounded_up(*count, row_bytes / element);
        }
        *a.stride = *count;
        *count *= a.length;
    }
    return s;
}

namespace {

/* Parts of a workspace, one after the other. */
struct StepMemory {
    char *next;

    template <typename T = void> T *take(size_t bytes)
    {
        char *const part = next;

        next += ps_cuda_padded(bytes);
        return reinterpret_cast<T *>(part);
    }
};

/* A step in a workspace. */
struct StepPlan {
    bool is_flux, has_one_pass; /* one pass: rows and right-hand sides together */
    bool makes_rhs;             /* otherwise u is the right-hand side */
    double gain;
    double outside = 1;   /* the diagonal of a row outside */
    int64_t outer, inner; /* matrices */
    ps_tridiag t;         /* the solve */
    ps_output kept;       /* null data, or a copy of u */
    int32_t *ends;        /* null, or those of the matrices */
    char *rest;           /* of the workspace */
};

} // namespace

/* Whether an operand differs between the systems of a batch axis. */
static bool
varies(const ps_step &s, int64_t ps_stride::*axis)
{
    return s.t.lower.stride.*axis != 0 || s.t.diag.stride.*axis != 0 ||
           s.t.upper.stride.*axis != 0 ||
           (s.where.data != nullptr && s.where.stride.*axis != 0);
}

/* Whether something enters through a face at an end of the systems. */
static bool
has_ends(const ps_step &s)
{
    return s.flux[0].data != nullptr || s.flux[1].data != nullptr ||
           s.value[0].data != nullptr || s.value[1].data != nullptr;
}

static StepPlan
step_plan_of(const ps_step &s, char *memory)
{
    const int64_t element = ps_dtype_size(s.t.dtype), rows = s.t.rows;
    const auto bytes = [=](int64_t count) {
        return static_cast<size_t>(count * element);
    };
    const bool is_masked = s.where.data != nullptr;
    StepPlan p = {};
    StepMemory parts = {memory};
    int64_t count;

    p.is_flux = s.kind == PS_STEP_FLUX;
    p.gain = s.kind == PS_STEP_MATRIX ? 1 : s.gain;
    p.outer = varies(s, &ps_stride::outer) ? s.t.outer : 1;
    p.inner = varies(s, &ps_stride::inner) ? s.t.inner : 1;
    p.makes_rhs = p.gain != 1 || s.source.data != nullptr || is_masked || p.is_flux;
    p.has_one_pass = p.makes_rhs && p.outer == s.t.outer && p.inner == s.t.inner;

    p.t = s.t;
    p.t.flags = (s.t.flags & (PS_PERIODIC | PS_ROW_SUMS)) |
                (p.is_flux ? static_cast<uint32_t>(PS_ROW_SUMS) : 0);
    const ps_stride dense =
        stride_like(s.t.x.stride, rows, p.outer, p.inner, element, &count);
    const ps_stride own = {dense.row, p.outer > 1 ? dense.outer : 0,
                           p.inner > 1 ? dense.inner : 0};

    p.t.lower = {parts.take(bytes(count)), own};
    p.t.diag = {parts.take(bytes(count)), own};
    p.t.upper = {parts.take(bytes(count)), own};

    const ps_stride of_rhs =
        stride_like(s.t.x.stride, rows, s.t.outer, s.t.inner, element, &count);
    if (p.makes_rhs) {
        p.t.rhs = {parts.take(bytes(count)), of_rhs};
    }
    if (is_masked && s.t.rhs.data == s.t.x.data) {
        p.kept = {parts.take(bytes(count)), of_rhs};
    }
    if (is_masked && has_ends(s)) {
        p.ends = parts.take<int32_t>(static_cast<size_t>(2 * p.outer * p.inner) *
                                     sizeof(int32_t));
    }
    p.rest = parts.next;
    return p;
}

/* The pivoting of the solve: matrices of fluxes are dominant. */
static ps_options
options_of(const ps_step &s, ps_pivot pivot)
{
    return {PS_AUTO, s.kind == PS_STEP_FLUX ? PS_PIVOT_NEVER : pivot, 0};
}

namespace {

/* A step in one pass. */
struct OnePass {
    OnePassStep step;
    uint8_t *marks; /* null: rows are never exchanged */
    void *work;     /* of the pass */
    uint32_t *words;
    int32_t *ends;
    char *rest; /* of the workspace: the plan of the marked systems */
};

} // namespace

/* The terms of the rows of a step, without its mask and what enters at its ends. */
static StepTerms
terms_of(const ps_step &s, double gain)
{
    const double h = s.step;
    StepTerms terms = {};

    terms.couple = 1;
    if (s.kind == PS_STEP_THETA) {
        terms.own = 1;
        terms.couple = -h;
        terms.product = (gain - 1) * h;
        terms.weight = gain * h;
    }
    terms.source = s.source;
    terms.is_flux = s.kind == PS_STEP_FLUX;
    terms.step = h;
    terms.gain = gain;
    return terms;
}

/* Whether one pass solves a step. Not where all systems have one matrix, but for fluxes
 * along strided axes. */
static bool
has_one_pass(const ps_step &s, ps_pivot pivot, const ps_cuda_device *device,
             OnePassStep *step)
{
    const bool is_flux = s.kind == PS_STEP_FLUX;
    const bool has_one_matrix =
        !varies(s, &ps_stride::outer) && !varies(s, &ps_stride::inner);
    StepTerms terms = terms_of(s, s.gain);

    if (device == nullptr || pivot == PS_PIVOT_ALWAYS || s.least.data != nullptr ||
        (s.t.flags & PS_ROW_SUMS) != 0 || (has_one_matrix && !is_flux)) {
        return false;
    }
    terms.where = s.where;
    for (int end = 0; end < 2; end++) {
        terms.flux[end] = s.flux[end];
        terms.value[end] = s.value[end];
    }
    return ps_cuda_one_pass(&s.t, terms, device, step) &&
           (!has_one_matrix || step->by_columns);
}

static bool
one_pass_of(const ps_step &s, ps_pivot pivot, char *memory, OnePass *p)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const size_t systems = static_cast<size_t>(s.t.outer * s.t.inner);
    const bool is_masked = s.where.data != nullptr;
    StepMemory parts = {memory};

    *p = {};
    if (!has_one_pass(s, options_of(s, pivot).pivot, device, &p->step)) {
        return false;
    }
    if (options_of(s, pivot).pivot == PS_PIVOT_AUTO) {
        p->marks = parts.take<uint8_t>(systems);
    }
    p->work = parts.take(ps_cuda_one_pass_work(p->step, device));
    if (is_masked && p->step.by_columns) {
        const size_t words = static_cast<size_t>(p->step.chunks) *
                             static_cast<size_t>(mask_words(p->step.chunk_rows));

        p->words = parts.take<uint32_t>(systems * words * sizeof(uint32_t));
        p->step.terms.words = p->words;
    }
    if (is_masked && has_ends(s)) {
        p->ends = parts.take<int32_t>(2 * systems * sizeof(int32_t));
        p->step.terms.ends = p->ends;
    }
    p->rest = parts.next;
    return true;
}

ps_status
ps_cuda_step_work(const ps_step *s, ps_pivot pivot, const ps_exec *exec, size_t *bytes)
{
    ps_status status = ps_step_check(s, pivot);
    OnePass one;

    *bytes = 0;
    if (status == PS_OK && s->least.data != nullptr && (s->t.flags & PS_ROW_SUMS) != 0) {
        status = PS_UNSUPPORTED;
    }
    if (status != PS_OK || s->t.outer == 0 || s->t.inner == 0) {
        return status;
    }
    if (one_pass_of(*s, pivot, nowhere, &one)) {
        if (one.marks != nullptr) {
            const StepPlan marked = step_plan_of(*s, one.rest);

            status = ps_cuda_pivoted_marked_work(&marked.t, bytes);
            one.rest = marked.rest;
        }
        *bytes += static_cast<size_t>(one.rest - nowhere);
        return status;
    }
    const StepPlan p = step_plan_of(*s, nowhere);
    const ps_options options = options_of(*s, pivot);

    status = s->least.data != nullptr ? ps_cuda_thomas_bounded_work(&p.t, bytes)
                                      : ps_cuda_tridiag_work(&p.t, &options, exec, bytes);
    *bytes += static_cast<size_t>(p.rest - nowhere);
    return status;
}

static MarkedSystems
marked_systems(const ps_tridiag &t, const uint8_t *marks)
{
    return {marks, t.outer * t.inner, t.inner, walk_axes_of(t).swaps};
}

static ps_input
as_input(const ps_output &out)
{
    return {out.data, out.stride};
}

/* Compute the matrices, or the right-hand sides, or both; if marks is not null, of the marked
 * systems only, each of which has a matrix of its own if matrices are computed. */
template <typename Number>
static ps_status
make_rows(const ps_step &s, const StepPlan &p, bool matrices, bool rhs,
          const uint8_t *marks, cudaStream_t stream)
{
    StepRowsJob<Number> job = {};
    ps_tridiag from = s.t;

    if (rhs) {
        from.x = {const_cast<void *>(p.t.rhs.data), p.t.rhs.stride};
    }
    else {
        from.outer = p.outer;
        from.inner = p.inner;
        from.rhs = from.diag; /* any numbers */
        from.x = {const_cast<void *>(p.t.diag.data), p.t.diag.stride};
    }
    const WalkAxes axes = walk_axes_of(from);
    const auto written = [&](const ps_input &to) {
        return written_of<Number>(from, job.walk,
                                  {const_cast<void *>(to.data), to.stride});
    };
    const auto read = [&](const ps_input &in) {
        return axes.walked(static_cast<const Number *>(in.data), in.stride);
    };

    job.walk = row_walk_of<Number>(from, rhs ? s.source : ps_input{}, false);
    if (matrices) {
        job.lower = written(p.t.lower);
        job.diag = written(p.t.diag);
        job.upper = written(p.t.upper);
    }
    if (rhs) {
        job.rhs = written(p.t.rhs);
    }
    if (rhs && p.kept.data != nullptr) {
        job.kept = written_of<Number>(from, job.walk, p.kept);
    }
    job.where = axes.walked(s.where.data, s.where.stride);
    job.marked = marked_systems(from, marks);
    if (p.ends != nullptr) {
        job.ends = axes.walked(
            static_cast<const int32_t *>(p.ends),
            {p.outer * p.inner, p.outer > 1 ? p.inner : 0, p.inner > 1 ? 1 : 0});
    }
    for (int end = 0; end < 2; end++) {
        job.flux[end] = read(s.flux[end]);
        job.value[end] = read(s.value[end]);
    }
    const StepTerms terms = terms_of(s, p.gain);

    job.is_flux = terms.is_flux;
    job.has_sums = (s.t.flags & PS_ROW_SUMS) != 0;
    job.terms = step_numbers_of<Number>(terms);
    job.fluxes = flux_rows_of<real_of<Number>>(terms);
    job.outside = static_cast<real_of<Number>>(p.outside);
    return launch_step_rows(job, stream);
}

ps_status
ps_cuda_masked_rows(const ps_step *s, double outside, const ps_output to[3],
                    const ps_exec *exec)
{
    StepPlan p = {};

    if (s->t.outer == 0 || s->t.inner == 0 || s->t.rows == 0) {
        return PS_OK;
    }
    p.outside = outside;
    p.outer = s->t.outer;
    p.inner = s->t.inner;
    p.t.lower = as_input(to[0]);
    p.t.diag = as_input(to[1]);
    p.t.upper = as_input(to[2]);
    return with_number(s->t.dtype, [&](auto number) {
        return make_rows<decltype(number)>(*s, p, true, false, nullptr,
                                           ps_cuda_stream(exec));
    });
}

template <typename Number>
static ps_status
make_all_rows(const ps_step &s, const StepPlan &p, const uint8_t *marks,
              cudaStream_t stream)
{
    ps_status status = PS_OK;

    if (p.ends != nullptr) {
        status = ps_cuda_step_ends(s.where, s.t.rows, p.outer, p.inner, p.ends, stream);
    }
    if (status != PS_OK || p.has_one_pass) {
        return status == PS_OK ? make_rows<Number>(s, p, true, true, marks, stream)
                               : status;
    }
    const bool has_own_matrices = p.outer == s.t.outer && p.inner == s.t.inner;

    status =
        make_rows<Number>(s, p, true, false, has_own_matrices ? marks : nullptr, stream);
    return status == PS_OK && p.makes_rhs
               ? make_rows<Number>(s, p, false, true, marks, stream)
               : status;
}

/* x = u + gain (y - u), or y if gain is 0, and u outside; if marks is not null, of the
 * marked systems only. */
template <typename Number>
static ps_status
blend(const ps_tridiag &like, const ps_input &u, const ps_input &y, const ps_output &x,
      double gain, const ps_mask &where, const uint8_t *marks, cudaStream_t stream)
{
    ps_tridiag t = like;
    StepBlendJob<Number> job = {};

    t.flags = 0;
    t.lower = t.diag = t.upper = t.rhs = u;
    t.x = x;
    job.walk = row_walk_of<Number>(t, y, marks == nullptr);
    job.x = written_of<Number>(t, job.walk, x);
    job.where = walk_axes_of(t).walked(where.data, where.stride);
    job.marked = marked_systems(t, marks);
    job.gain = static_cast<real_of<Number>>(gain);
    return launch_step_blend(job, stream);
}

static ps_status
make_all_rows(const ps_step &s, const StepPlan &p, const uint8_t *marks,
              cudaStream_t stream)
{
    return with_number(s.t.dtype, [&](auto number) {
        return make_all_rows<decltype(number)>(s, p, marks, stream);
    });
}

/* x = u in the rows outside. */
static ps_status
restore_outside(const ps_step &s, const StepPlan &p, const uint8_t *marks,
                cudaStream_t stream)
{
    if (s.where.data == nullptr) {
        return PS_OK;
    }
    const ps_input u = p.kept.data != nullptr ? as_input(p.kept) : s.t.rhs;

    return with_number(s.t.dtype, [&](auto number) {
        return blend<decltype(number)>(s.t, u, as_input(s.t.x), s.t.x, 0, s.where, marks,
                                       stream);
    });
}

static const char *
kernel_of(const OnePassStep &step)
{
    const bool is_flux = step.terms.is_flux;

    if (step.by_columns) {
        return step.columns.blocks > 1
                   ? (is_flux ? "flux columns cluster" : "step columns cluster")
                   : (is_flux ? "flux columns" : "step columns");
    }
    return step.plan.shape.blocks > 1
               ? (is_flux ? "flux tiles cluster" : "step tiles cluster")
               : (is_flux ? "flux tiles" : "step tiles");
}

static ps_status
solve_in_one_pass(const ps_step &s, const OnePass &one, const ps_exec *exec,
                  ps_report *report)
{
    const cudaStream_t stream = ps_cuda_stream(exec);
    const int64_t count = one.marks != nullptr ? -1 : 0; /* of exchanges: not known */
    ps_status status = PS_OK;

    *report = {PS_PARTITION, 0, count, one.marks, count, one.marks, kernel_of(one.step)};
    if (one.words != nullptr) {
        status = ps_cuda_step_words(s.where, s.t.rows, s.t.outer, s.t.inner,
                                    (s.t.flags & PS_PERIODIC) != 0, one.step.chunk_rows,
                                    one.step.chunks, one.words, stream);
    }
    if (status == PS_OK && one.ends != nullptr) {
        status =
            ps_cuda_step_ends(s.where, s.t.rows, s.t.outer, s.t.inner, one.ends, stream);
    }
    if (status == PS_OK) {
        status = ps_cuda_one_pass_solve(one.step, ps_cuda_device_get(), one.marks,
                                        one.work, stream);
    }
    if (status != PS_OK || one.marks == nullptr) {
        return status;
    }
    const StepPlan p = step_plan_of(s, one.rest);

    status = make_all_rows(s, p, one.marks, stream);
    if (status == PS_OK) {
        status = ps_cuda_pivoted_marked(&p.t, one.marks, exec, p.rest);
    }
    return status == PS_OK ? restore_outside(s, p, one.marks, stream) : status;
}

/* The products of a step that is a reverse pass, after its solve. */
static ps_status
make_products(const ps_step &s, const ps_exec *exec)
{
    return s.products != nullptr ? ps_cuda_products(s.products, exec) : PS_OK;
}

ps_status
ps_cuda_step_solve(const ps_step *s, ps_pivot pivot, const ps_exec *exec,
                   ps_report *report)
{
    const cudaStream_t stream = ps_cuda_stream(exec);
    const ps_options options = options_of(*s, pivot);
    size_t bytes;
    ps_status status = ps_cuda_step_work(s, pivot, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    if (s->t.outer == 0 || s->t.inner == 0) {
        return ps_cuda_tridiag_solve(&s->t, &options, exec, report);
    }
    char *const memory = static_cast<char *>(exec->work);
    OnePass one;

    if (one_pass_of(*s, pivot, memory, &one)) {
        status = solve_in_one_pass(*s, one, exec, report);
        return status == PS_OK ? make_products(*s, exec) : status;
    }
    const StepPlan p = step_plan_of(*s, memory);
    ps_exec inner = *exec;

    inner.work = p.rest;
    inner.work_bytes = exec->work_bytes - static_cast<size_t>(p.rest - memory);
    status = make_all_rows(*s, p, nullptr, stream);
    if (status == PS_OK) {
        status = s->least.data != nullptr
                     ? ps_cuda_thomas_bounded(&p.t, s->least, s->where, &inner, report)
                     : ps_cuda_tridiag_solve(&p.t, &options, &inner, report);
    }
    if (status == PS_OK) {
        status = restore_outside(*s, p, nullptr, stream);
    }
    return status == PS_OK ? make_products(*s, exec) : status;
}

namespace {

/* A step with a factor: its right-hand side and its y, the same array, if they are not
 * those of the caller. */
struct FactorStepPlan {
    ps_factor_rhs b; /* the solve */
    bool makes_rhs, blends;
    char *rest;
};

} // namespace

static FactorStepPlan
factor_step_plan_of(const ps_factor &f, const ps_factor_step &s, char *memory)
{
    const int64_t element = ps_dtype_size(f.dtype);
    const bool is_masked = s.where.data != nullptr;
    FactorStepPlan p = {s.b, is_masked || s.source.data != nullptr,
                        is_masked || s.gain != 0, memory};
    StepMemory parts = {memory};
    int64_t count;

    if (p.makes_rhs || (p.blends && s.b.rhs.data == s.b.x.data)) {
        const ps_stride stride =
            stride_like(s.b.x.stride, f.rows, s.b.outer, s.b.inner, element, &count);
        const ps_output array = {parts.take(static_cast<size_t>(count * element)),
                                 stride};

        if (p.makes_rhs) {
            p.b.rhs = as_input(array);
        }
        if (p.blends) {
            p.b.x = array;
        }
    }
    p.rest = parts.next;
    return p;
}

ps_status
ps_cuda_factor_step_work(const ps_factor *f, const ps_factor_step *s, const ps_exec *exec,
                         size_t *bytes)
{
    const ps_status status = ps_factor_step_check(f, s);

    *bytes = 0;
    if (status != PS_OK || s->b.outer == 0 || s->b.inner == 0) {
        return status;
    }
    const FactorStepPlan p = factor_step_plan_of(*f, *s, nowhere);
    const ps_status found = ps_cuda_factor_work(f, &p.b, exec, bytes);

    *bytes += static_cast<size_t>(p.rest - nowhere);
    return found;
}

/* u + step source, 0 outside. */
template <typename Number>
static ps_status
make_factor_rhs(const ps_factor &f, const ps_factor_step &s, const FactorStepPlan &p,
                cudaStream_t stream)
{
    ps_step step = {};
    StepPlan plan = {};

    step.kind = PS_STEP_THETA;
    step.t.dtype = f.dtype;
    step.t.rows = f.rows;
    step.t.outer = s.b.outer;
    step.t.inner = s.b.inner;
    step.t.lower = step.t.diag = step.t.upper = step.t.rhs = s.b.rhs; /* not read */
    step.step = s.step;
    step.source = s.source;
    step.where = s.where;
    plan.gain = 1;
    plan.t.rhs = p.b.rhs;
    return make_rows<Number>(step, plan, false, true, nullptr, stream);
}

ps_status
ps_cuda_factor_step(const ps_factor *f, const ps_factor_step *s, const ps_exec *exec)
{
    const cudaStream_t stream = ps_cuda_stream(exec);
    size_t bytes;
    ps_status status = ps_cuda_factor_step_work(f, s, exec, &bytes);

    if (status != PS_OK || s->b.outer == 0 || s->b.inner == 0) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    char *const memory = static_cast<char *>(exec->work);
    const FactorStepPlan p = factor_step_plan_of(*f, *s, memory);
    ps_exec inner = *exec;

    inner.work = p.rest;
    inner.work_bytes = exec->work_bytes - static_cast<size_t>(p.rest - memory);
    if (p.makes_rhs) {
        status = with_number(f->dtype, [&](auto number) {
            return make_factor_rhs<decltype(number)>(*f, *s, p, stream);
        });
    }
    if (status == PS_OK) {
        status = ps_cuda_factor_solve(f, &p.b, &inner);
    }
    if (status != PS_OK || !p.blends) {
        return status;
    }
    ps_tridiag like = {};

    like.dtype = f->dtype;
    like.rows = f->rows;
    like.outer = s->b.outer;
    like.inner = s->b.inner;
    return with_number(f->dtype, [&](auto number) {
        return blend<decltype(number)>(like, s->b.rhs, as_input(p.b.x), s->b.x, s->gain,
                                       s->where, nullptr, stream);
    });
}

} // namespace pysolvers
