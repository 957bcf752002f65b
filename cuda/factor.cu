/* factor.cu - factors that are kept in a store and solved for many right-hand sides.
 *
 * A store contains the diagonals, system after system; for complex numbers also their
 * conjugates; and for a single matrix, which all right-hand sides share, the eliminated
 * matrix and the eliminated transpose (shared.h). A solve with a single matrix moves 2
 * words per unknown. A batch of matrices is solved from its diagonals by the line
 * algorithms: 5 words per unknown, which is the minimum for reading three diagonals and
 * the right-hand side and writing x. The transpose reads the diagonals shifted by one
 * row; the corner entries of a periodic matrix are stored twice for it.
 *
 * Matrices in row-sum form (PS_ROW_SUMS) are always solved from their diagonals, because
 * the elimination of the line algorithms (lines/join/row_sums.cuh) has no cancellation.
 * Their transposes are not offered: the row sums of a transpose would be differences.
 * With PS_COLUMNS neighbouring systems are stored side by side, as the right-hand sides
 * lie in memory, so that the column kernels read whole sectors.
 */
#include "lines/compact/compact.h"
#include "lines/differences.h"
#include "lines/layout.h"
#include "lines/methods.h"
#include "lines/pivoted/pivoted.h"
#include "lines/shared/shared.h"
#include "runtime/backend.h"
#include "runtime/elements.cuh"
#include "runtime/memory.h"

namespace pysolvers {

using namespace device;
using namespace lines;
using namespace partition;
using namespace pivoted;
using namespace runtime;
using namespace shared;

namespace {

/* The arrays of a store: elements per system, and offsets in bytes. */
typedef struct {
    int64_t element, systems;
    int64_t side_pitch;     /* rows of lower and upper; diag has f->rows */
    int64_t corner;         /* rows that upper has before row 0: a corner entry */
    int64_t row;            /* bytes from a row of lower and upper to the next one */
    ps_stride side, middle; /* of lower and upper, and of diag */
    size_t lower, diag, upper;
    size_t conjugates; /* offset in bytes from an array to its conjugate; 0 for real
                          numbers */
    size_t kept[2]; /* offsets of the eliminated matrix and of the eliminated transpose */
    bool is_kept;
    size_t bytes;
} layout;

} // namespace

static bool
has_sums(const ps_factor *f)
{
    return (f->flags & PS_ROW_SUMS) != 0;
}

/* Strides of systems of `rows` rows that lie one after the other, or side by side. */
static ps_stride
stride_of(const ps_factor *f, int64_t rows)
{
    return (f->flags & PS_COLUMNS) != 0 ? ps_stride{f->inner, rows * f->inner, 1}
                                        : ps_stride{1, f->inner * rows, rows};
}

static layout
layout_of(const ps_factor *f)
{
    layout l = {};
    size_t store = 0;

    l.element = ps_dtype_size(f->dtype);
    l.systems = f->outer * f->inner;
    l.corner = (f->flags & PS_PERIODIC) != 0 && !has_sums(f) ? 1 : 0;
    l.side_pitch = f->rows + l.corner;
    l.side = stride_of(f, l.side_pitch);
    l.middle = stride_of(f, f->rows);
    l.row = l.side.row * l.element;

    const size_t side =
        ps_cuda_padded(static_cast<size_t>(l.systems * l.side_pitch * l.element));
    const size_t middle =
        ps_cuda_padded(static_cast<size_t>(l.systems * f->rows * l.element));
    l.diag = side;
    l.upper = side + middle;
    l.bytes = l.upper + side;
    if (f->dtype == PS_C64 || f->dtype == PS_C128) {
        l.conjugates = l.bytes;
        l.bytes *= 2;
    }
    l.is_kept = l.systems == 1 && f->pivot != PS_PIVOT_ALWAYS && !has_sums(f) &&
                ps_cuda_shared_fits(f->dtype, f->rows, &store);
    if (l.is_kept) {
        l.kept[0] = l.bytes;
        l.kept[1] = l.bytes + ps_cuda_padded(store);
        l.bytes += 2 * ps_cuda_padded(store);
    }
    return l;
}

/* The matrices of a store as operands, without right-hand side, x and info. A step of 0
 * uses the first matrix for the whole axis. */
static ps_tridiag
matrices_of(const ps_factor *f, ps_trans trans, int64_t outer_step, int64_t inner_step)
{
    const layout l = layout_of(f);
    const char *const store = static_cast<const char *>(f->store) +
                              (trans == PS_TRANS_ADJOINT ? l.conjugates : 0);
    const auto stepped = [=](const ps_stride &s) {
        return ps_stride{s.row, outer_step * s.outer, inner_step * s.inner};
    };
    const ps_stride side = stepped(l.side);
    const char *lower = store + l.lower;
    /* row -1 holds the corner entries */
    const char *upper = store + l.upper + l.corner * l.row;
    ps_tridiag t = {};

    t.dtype = f->dtype;
    t.flags = f->flags & (PS_PERIODIC | PS_ROW_SUMS);
    t.rows = f->rows;
    t.diag = {store + l.diag, stepped(l.middle)};
    if (trans == PS_TRANS_NONE) {
        t.lower = {lower, side};
        t.upper = {upper, side};
        return t;
    }
    t.lower = {upper - l.corner * l.row, side};
    t.upper = {lower + l.row, side};
    t.flags |= l.corner ? 0 : PS_SHORT_LOWER | PS_SHORT_UPPER;
    return t;
}

ps_tridiag
ps_cuda_factor_matrices(const ps_factor *f)
{
    ps_tridiag t = matrices_of(f, PS_TRANS_NONE, 1, 1);

    t.outer = f->outer;
    t.inner = f->inner;
    return t;
}

static ps_options
options_of(const ps_factor *f)
{
    return {f->pivot == PS_PIVOT_ALWAYS ? PS_PIVOTED : PS_PARTITION, f->pivot, 0};
}

static const ps_cuda_method *
method_of(const ps_factor *f)
{
    return f->pivot == PS_PIVOT_ALWAYS ? &ps_cuda_pivoted : &ps_cuda_partition;
}

ps_status
ps_cuda_factor_store(const ps_factor *f, const ps_exec *, size_t *bytes)
{
    ps_status status = ps_factor_check(f, nullptr);

    if (status == PS_OK && has_sums(f) && f->dtype != PS_F32 && f->dtype != PS_F64) {
        status = PS_UNSUPPORTED;
    }
    *bytes = status == PS_OK ? layout_of(f).bytes : 0;
    return status;
}

namespace {

/* The workspace of a factorisation. If only a solve can find the singular matrices, the
 * factorisation solves once for the right-hand side 0: the parts are a zero, the mark
 * of a single matrix, x, and the workspace of the solver. */
typedef struct {
    size_t mark, x, solver, bytes;
    ps_tridiag t; /* without the addresses of rhs, x and info */
} trial;

} // namespace

static ps_status
trial_of(const ps_factor *f, trial *r)
{
    const layout l = layout_of(f);
    const ps_options options = options_of(f);
    size_t solver = 0;
    ps_status status = PS_OK;

    r->t = ps_cuda_factor_matrices(f);
    r->t.x.stride = l.middle;
    r->mark = 64;
    r->x = 256;
    r->solver =
        r->x + ps_cuda_padded(static_cast<size_t>(l.systems * f->rows * l.element));
    if (l.is_kept) {
        status = f->pivot == PS_PIVOT_AUTO ? ps_cuda_pivoted_marked_work(&r->t, &solver)
                                           : PS_OK;
    }
    else if (l.systems > 0) {
        status = method_of(f)->work(&r->t, &options, &solver);
    }
    r->bytes = r->solver + solver;
    return status;
}

ps_status
ps_cuda_factor_make_work(const ps_factor *f, const ps_exec *, size_t *bytes)
{
    trial r = {};
    ps_status status = ps_factor_check(f, nullptr);

    if (status == PS_OK) {
        status = trial_of(f, &r);
    }
    *bytes = r.bytes;
    return status;
}

/* Copy rows from `first` on of an operand to `to`. */
static ps_status
copy_rows(const ps_tridiag *t, const ps_input &from, int64_t first, int64_t rows,
          void *to, const ps_stride &stride, const ps_exec *exec)
{
    const int64_t element = ps_dtype_size(t->dtype);
    ps_relayout r = {};

    r.element = static_cast<int32_t>(element);
    r.axes = 3;
    r.shape[0] = t->outer;
    r.shape[1] = t->inner;
    r.shape[2] = rows;
    r.to = to;
    r.to_stride[0] = stride.outer;
    r.to_stride[1] = stride.inner;
    r.to_stride[2] = stride.row;
    r.from = static_cast<const char *>(from.data) + first * from.stride.row * element;
    r.from_stride[0] = from.stride.outer;
    r.from_stride[1] = from.stride.inner;
    r.from_stride[2] = from.stride.row;
    return ps_cuda_relayout(&r, exec);
}

/* Copy the diagonals of `t`. An entry that a short diagonal does not have is left as it
 * is. */
static ps_status
copy_matrices(const ps_factor *f, const layout &l, const ps_tridiag *t,
              const ps_exec *exec)
{
    const int64_t n = t->rows;
    const int64_t no_first = t->flags & PS_SHORT_LOWER ? 1 : 0;
    const int64_t no_last = t->flags & PS_SHORT_UPPER ? 1 : 0;
    char *const store = static_cast<char *>(f->store);
    char *const lower = store + l.lower;
    char *const upper = store + l.upper + l.corner * l.row;
    ps_status status = copy_rows(t, t->diag, 0, n, store + l.diag, l.middle, exec);

    if (status == PS_OK) {
        status = copy_rows(t, t->lower, 0, n - no_first, lower + no_first * l.row, l.side,
                           exec);
    }
    if (status == PS_OK) {
        status = copy_rows(t, t->upper, 0, n - no_last, upper, l.side, exec);
    }
    if (status == PS_OK && l.corner) {
        status = copy_rows(t, t->lower, 0, 1, lower + n * l.row, l.side, exec);
    }
    if (status == PS_OK && l.corner) {
        status = copy_rows(t, t->upper, n - 1, 1, upper - l.row, l.side, exec);
    }
    return status;
}

namespace {

template <typename Real> struct Conjugation {
    Complex<Real> *to;
    const Complex<Real> *from;

    __device__ __forceinline__ void operator()(int64_t i) const
    {
        to[i] = conjugate(from[i]);
    }
};

} // namespace

template <typename Real>
static ps_status
conjugate_store(const ps_factor *f, const layout &l, cudaStream_t stream)
{
    Complex<Real> *const from = static_cast<Complex<Real> *>(f->store);
    const int64_t count =
        static_cast<int64_t>(l.conjugates / static_cast<size_t>(l.element));

    return for_elements(count, stream, Conjugation<Real>{from + count, from});
}

/* Eliminate a single matrix and its transpose. */
static ps_status
keep_matrix(const ps_factor *f, const layout &l, const trial &r, const ps_exec *exec)
{
    char *const store = static_cast<char *>(f->store);
    char *const work = static_cast<char *>(exec->work);
    uint8_t *const mark = reinterpret_cast<uint8_t *>(work + r.mark);
    const cudaStream_t stream = ps_cuda_stream(exec);
    ps_status status = ps_cuda_shared_keep(&r.t, false, store + l.kept[0], mark, stream);

    if (status == PS_OK) {
        ps_tridiag silent = r.t;

        silent.info = nullptr;
        status = ps_cuda_shared_keep(&silent, true, store + l.kept[1], nullptr, stream);
    }
    if (status == PS_OK && f->pivot == PS_PIVOT_AUTO && r.t.info != nullptr) {
        status = ps_cuda_pivoted_marked(&r.t, mark, exec, work + r.solver);
    }
    return status;
}

/* Solve for the right-hand side 0: info shows which matrices are singular. */
static ps_status
try_matrices(const ps_factor *f, const trial &r, const ps_exec *exec, ps_report *report)
{
    const ps_options options = options_of(f);
    ps_exec inner = *exec;

    inner.work = static_cast<char *>(exec->work) + r.solver;
    inner.work_bytes = exec->work_bytes - r.solver;
    return method_of(f)->solve(&r.t, &options, &inner, report);
}

ps_status
ps_cuda_factor_make(const ps_factor *f, const ps_tridiag *t, const ps_exec *exec,
                    ps_report *report)
{
    const layout l = layout_of(f);
    const ps_pivot pivot = f->pivot;
    trial r = {};
    ps_status status = trial_of(f, &r);

    if (status != PS_OK) {
        return status;
    }
    if (f->store_bytes < l.bytes || exec->work_bytes < r.bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = {options_of(f).method,
               0,
               pivot == PS_PIVOT_NEVER    ? 0
               : pivot == PS_PIVOT_ALWAYS ? l.systems
                                          : -1,
               nullptr,
               pivot == PS_PIVOT_NEVER ? 0 : -1,
               nullptr,
               l.is_kept ? "partition shared matrix" : ""};
    if (l.systems == 0) {
        report->pivoted = report->repeated = 0;
        return PS_OK;
    }
    if (pivot == PS_PIVOT_AUTO && (l.is_kept || t->info != nullptr)) {
        report->marks = report->again =
            static_cast<const uint8_t *>(exec->work) + (l.is_kept ? r.mark : r.solver);
    }
    r.t.rhs.data = exec->work;
    r.t.x.data = static_cast<char *>(exec->work) + r.x;
    r.t.info = t->info;
    status = ps_cuda_status(cudaMemsetAsync(exec->work, 0, r.x, ps_cuda_stream(exec)));
    if (status == PS_OK) {
        status = copy_matrices(f, l, t, exec);
    }
    if (status == PS_OK && f->dtype == PS_C64) {
        status = conjugate_store<float>(f, l, ps_cuda_stream(exec));
    }
    if (status == PS_OK && f->dtype == PS_C128) {
        status = conjugate_store<double>(f, l, ps_cuda_stream(exec));
    }
    if (status != PS_OK) {
        return status;
    }
    if (l.is_kept) {
        return keep_matrix(f, l, r, exec);
    }
    return t->info != nullptr ? try_matrices(f, r, exec, report) : PS_OK;
}

/* The right-hand sides with their matrices. */
static ps_tridiag
systems_for(const ps_factor *f, const ps_factor_rhs *b)
{
    ps_tridiag t = matrices_of(f, b->trans, b->outer_step, b->inner_step);

    t.outer = b->outer;
    t.inner = b->inner;
    t.rhs = b->rhs;
    t.x = b->x;
    return t;
}

ps_status
ps_cuda_factor_work(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *,
                    size_t *bytes)
{
    const ps_options options = options_of(f);
    ps_status status = ps_factor_check(f, b);

    if (status == PS_OK && has_sums(f) && b->trans != PS_TRANS_NONE) {
        status = PS_UNSUPPORTED;
    }
    *bytes = 0;
    if (status != PS_OK || b->outer == 0 || b->inner == 0) {
        return status;
    }
    const ps_tridiag t = systems_for(f, b);
    if (!layout_of(f).is_kept) {
        return method_of(f)->work(&t, &options, bytes);
    }
    return ps_cuda_shared_work(&t, true, f->pivot, bytes);
}

/* Solve with a single matrix. */
static ps_status
solve_kept(const ps_factor *f, const ps_factor_rhs *b, const ps_tridiag &t,
           const ps_exec *exec)
{
    const layout l = layout_of(f);
    const char *const kept =
        static_cast<const char *>(f->store) + l.kept[b->trans != PS_TRANS_NONE];

    return ps_cuda_shared_solve(&t, kept, b->trans == PS_TRANS_ADJOINT, f->pivot, exec);
}

ps_status
ps_cuda_factor_solve(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec)
{
    size_t bytes;
    const ps_status status = ps_cuda_factor_work(f, b, exec, &bytes);
    const ps_options options = options_of(f);
    ps_report report;

    if (status != PS_OK || b->outer == 0 || b->inner == 0) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    const ps_tridiag t = systems_for(f, b);
    return layout_of(f).is_kept ? solve_kept(f, b, t, exec)
                                : method_of(f)->solve(&t, &options, exec, &report);
}

/* The systems whose right-hand sides are differences. */
static ps_factor_rhs
sides_of(const ps_differences *d)
{
    ps_factor_rhs b = {};

    b.trans = PS_TRANS_NONE;
    b.outer = d->outer;
    b.inner = d->inner;
    b.rhs = d->f;
    b.x = d->x;
    return b;
}

/* The systems whose right-hand sides are the differences that have been stored in x. */
static ps_factor_rhs
in_place(const ps_differences *d)
{
    ps_factor_rhs b = sides_of(d);

    b.rhs = {d->x.data, d->x.stride};
    return b;
}

/* How the differences are made and solved for: by recurrences, or in tiles or panels of the first factor, 2 words
 * per value; otherwise they are stored in x and then replaced by the solution, 4 words. A second factor
 * moves 2 more, except with recurrences. */
enum class DifferenceMethod { recurrences, source, stored };

static DifferenceMethod
difference_method(const ps_factor *f, const ps_differences *d, size_t *bytes)
{
    const ps_factor_rhs b = sides_of(d);
    const ps_tridiag t = systems_for(f, &b);
    const bool has_source = layout_of(f).is_kept && f->pivot == PS_PIVOT_NEVER &&
                            ps_cuda_shared_differences_work(&t, bytes) == PS_OK;

    if (has_source ? compact::ps_cuda_compact_is_faster(d)
                   : compact::ps_cuda_compact_accepts(d)) {
        return DifferenceMethod::recurrences;
    }
    return has_source ? DifferenceMethod::source : DifferenceMethod::stored;
}

ps_status
ps_cuda_difference_solve_work(ps_difference_factors f, const ps_differences *d,
                              const ps_exec *exec, size_t *bytes)
{
    ps_status status = ps_differences_check(d, f);
    size_t most = 0, needed = 0;

    *bytes = 0;
    if (status != PS_OK || d->outer * d->inner == 0) {
        return status;
    }
    const DifferenceMethod method = difference_method(f.first, d, &most);
    const ps_factor_rhs b = in_place(d);

    if (method == DifferenceMethod::recurrences) {
        return PS_OK;
    }
    if (method == DifferenceMethod::stored) {
        status = ps_cuda_factor_work(f.first, &b, exec, &most);
    }
    if (status == PS_OK && f.second != nullptr) {
        status = ps_cuda_factor_work(f.second, &b, exec, &needed);
    }
    *bytes = most > needed ? most : needed;
    return status;
}

static ps_status
solve_by_source(const ps_factor *f, const ps_differences *d, const ps_exec *exec)
{
    const ps_factor_rhs b = sides_of(d);
    const ps_tridiag t = systems_for(f, &b);
    const char *const store = static_cast<const char *>(f->store);

    return ps_cuda_shared_differences(&t, *d, store + layout_of(f).kept[0], exec);
}

ps_status
ps_cuda_difference_solve(ps_difference_factors f, const ps_differences *d,
                         const ps_exec *exec)
{
    size_t bytes;
    ps_status status = ps_cuda_difference_solve_work(f, d, exec, &bytes);

    if (status != PS_OK || d->outer * d->inner == 0) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    const DifferenceMethod method = difference_method(f.first, d, &bytes);
    const ps_factor_rhs b = in_place(d);

    if (method == DifferenceMethod::recurrences) {
        return compact::ps_cuda_compact_solve(d, ps_cuda_stream(exec));
    }
    if (method == DifferenceMethod::source) {
        status = solve_by_source(f.first, d, exec);
    }
    else {
        status = ps_cuda_differences(d, exec);
        if (status == PS_OK) {
            status = ps_cuda_factor_solve(f.first, &b, exec);
        }
    }
    return status == PS_OK && f.second != nullptr
               ? ps_cuda_factor_solve(f.second, &b, exec)
               : status;
}

} // namespace pysolvers
