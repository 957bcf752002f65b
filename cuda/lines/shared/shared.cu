/* shared.cu - one matrix for all systems: choice and launch. */
#include "device/work_queue.cuh"
#include "lines/compact/compact.h"
#include "lines/methods.h"
#include "lines/panels/shared_panels.h"
#include "lines/pivoted/pivoted.h"
#include "lines/shared/shared.h"
#include "lines/shared/shared_differences.cuh"

namespace pysolvers::shared {

using namespace compact;
using namespace panels;
using namespace pivoted;

template <typename Number>
static SharedMatrix<Number>
matrix_of(const ps_tridiag *t)
{
    const Systems<Number> s = systems_of<Number>(*t);

    return {s.lower, s.diag, s.upper, s.periodic, false, false, nullptr};
}

template <typename Number, typename Source>
static ps_status
apply(const ps_tridiag *t, const Source &source, const void *store, bool conjugated,
      uint8_t *marks, void *work, const ps_cuda_device *device, cudaStream_t stream)
{
    SharedJob<Number> job = {ps_cuda_shared_plan_of(t, device), matrix_of<Number>(t),
                             t->info, marks, nullptr};

    if (job.ps_cuda_shared_plan::work_queue) {
        job.work_queue = static_cast<uint32_t *>(work);
    }

    job.matrix.conjugated = conjugated;
    job.matrix.note = static_cast<const StoredNote *>(store);
    return shared_launch(job, source, stream);
}

/* Bytes of the part of a store that the tile kernels use; the table for panels follows.
 */
static size_t
block_bytes(const ps_tridiag *t)
{
    size_t bytes = 0;

    (void)ps_cuda_shared_block_fits(t->dtype, t->rows, &bytes);
    return ps_cuda_padded(bytes);
}

/* Bytes of the table for panels; the one for columns follows. */
static size_t
panels_bytes(const ps_tridiag *t)
{
    size_t table = 0;

    (void)ps_cuda_panels_fit(t->dtype, t->rows, &table);
    return ps_cuda_padded(table);
}

bool
ps_cuda_shared_fits(ps_dtype dtype, int64_t rows, size_t *store)
{
    size_t table;

    if (!ps_cuda_shared_block_fits(dtype, rows, store)) {
        return false;
    }
    if (ps_cuda_panels_fit(dtype, rows, &table)) {
        *store = ps_cuda_padded(*store) + ps_cuda_padded(table) +
                 ps_cuda_columns_table(dtype, rows);
    }
    return true;
}

/* Solve in panels, or by recurrences through columns if the rows of the matrix decay. */
static ps_status
solve_panels(const ps_tridiag *t, const void *store, bool conjugated, uint8_t *marks,
             void *work, cudaStream_t stream)
{
    const bool has_store = store != nullptr;
    const char *const table =
        has_store ? static_cast<const char *>(store) + block_bytes(t) : nullptr;
    ps_status status = PS_OK;

    if (t->rhs.data == t->x.data || !ps_cuda_columns_accept(t)) {
        return ps_cuda_panels_apply(t, table, conjugated, marks, {}, work, stream);
    }
    char *const made =
        static_cast<char *>(work) + ps_cuda_padded(ps_cuda_panels_work(t, has_store));
    const char *const columns = has_store ? table + panels_bytes(t) : made;

    if (!has_store) {
        status = ps_cuda_columns_keep(t, false, made, stream);
    }
    if (status == PS_OK) {
        status = ps_cuda_panels_apply(t, table, conjugated, marks,
                                      ps_cuda_columns_needs(t->dtype, t->rows, columns),
                                      work, stream);
    }
    return status == PS_OK ? ps_cuda_columns_solve(t, columns, marks, stream) : status;
}

static ps_status
shared_apply(const ps_tridiag *t, const void *store, bool conjugated, uint8_t *marks,
             void *work, cudaStream_t stream)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    if (ps_cuda_panels_accept(t, store != nullptr)) {
        return solve_panels(t, store, conjugated, marks, work, stream);
    }
    return with_number(t->dtype, [&](auto zero) {
        return apply<decltype(zero)>(t, SharedSides(), store, conjugated, marks, work,
                                     device, stream);
    });
}

ps_status
ps_cuda_shared_keep(const ps_tridiag *t, bool transposed, void *store, uint8_t *mark,
                    cudaStream_t stream)
{
    const ps_cuda_shared_shape shape = ps_cuda_shared_team(t->dtype, t->rows);
    size_t table;

    if (ps_cuda_panels_fit(t->dtype, t->rows, &table)) {
        char *const place = static_cast<char *>(store) + block_bytes(t);
        ps_status status = ps_cuda_panels_keep(t, transposed, place, stream);

        if (status == PS_OK && ps_cuda_columns_table(t->dtype, t->rows) > 0) {
            status = ps_cuda_columns_keep(t, transposed, place + panels_bytes(t), stream);
        }
        if (status != PS_OK) {
            return status;
        }
    }
    return with_number(t->dtype, [&](auto zero) {
        auto matrix = matrix_of<decltype(zero)>(t);

        matrix.transposed = transposed;
        return shared_keep(matrix, shape, store, t->info, mark, stream);
    });
}

bool
ps_cuda_shared_accepts(const ps_tridiag *t)
{
    const ps_input *const matrix[] = {&t->lower, &t->diag, &t->upper};
    size_t store;

    for (const ps_input *operand : matrix) {
        if ((t->outer > 1 && operand->stride.outer != 0) ||
            (t->inner > 1 && operand->stride.inner != 0)) {
            return false;
        }
    }
    return t->outer * t->inner > 1 && ps_cuda_shared_fits(t->dtype, t->rows, &store);
}

/* Bytes of the exchange between blocks: for panels, or the counters of a plan. */
static size_t
bytes_of_words(const ps_tridiag *t, bool has_store)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return 0;
    }
    if (ps_cuda_panels_accept(t, has_store)) {
        const size_t panels = ps_cuda_panels_work(t, has_store);

        return has_store || !ps_cuda_columns_accept(t)
                   ? panels
                   : ps_cuda_padded(panels) + ps_cuda_columns_table(t->dtype, t->rows);
    }
    const ps_cuda_shared_plan plan = ps_cuda_shared_plan_of(t, device);
    return plan.work_queue ? work_queue_bytes(plan.shape.teams) : 0;
}

ps_status
ps_cuda_shared_work(const ps_tridiag *t, bool has_store, ps_pivot pivot, size_t *bytes)
{
    ps_status status = PS_OK;

    *bytes = 0;
    if (pivot == PS_PIVOT_AUTO) {
        status = ps_cuda_pivoted_marked_work(t, bytes);
        *bytes += ps_cuda_marks_bytes(t->outer * t->inner);
    }
    *bytes += bytes_of_words(t, has_store);
    return status;
}

ps_status
ps_cuda_shared_solve(const ps_tridiag *t, const void *store, bool conjugated,
                     ps_pivot pivot, const ps_exec *exec)
{
    uint8_t *const memory = static_cast<uint8_t *>(exec->work);
    const bool pivots = pivot == PS_PIVOT_AUTO;
    uint8_t *const marks = pivots ? memory : pivot == mark_only ? exec->marks : nullptr;
    uint8_t *const work =
        pivots ? memory + ps_cuda_marks_bytes(t->outer * t->inner) : memory;
    const ps_status status =
        shared_apply(t, store, conjugated, marks, work, ps_cuda_stream(exec));

    return status == PS_OK && pivots
               ? ps_cuda_pivoted_marked(t, marks, exec,
                                        work + bytes_of_words(t, store != nullptr))
               : status;
}

/* Whether panels or tiles have a source of differences for a batch. */
static bool
takes_differences(const ps_tridiag *t, const ps_cuda_device *device)
{
    if (device == nullptr || t->outer * t->inner < 1 ||
        (t->dtype != PS_F32 && t->dtype != PS_F64)) {
        return false;
    }
    if (ps_cuda_panels_accept(t, true)) {
        return true;
    }
    const ps_cuda_shared_plan plan = ps_cuda_shared_plan_of(t, device);

    return plan.shape.warps == 1 || plan.shape.rounds <= most_stencil_rounds;
}

ps_status
ps_cuda_shared_differences_work(const ps_tridiag *t, size_t *bytes)
{
    if (!takes_differences(t, ps_cuda_device_get())) {
        return PS_UNSUPPORTED;
    }
    *bytes = bytes_of_words(t, true);
    return PS_OK;
}

ps_status
ps_cuda_shared_differences(const ps_tridiag *t, const ps_differences &d,
                           const void *store, const ps_exec *exec)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    cudaStream_t const stream = ps_cuda_stream(exec);

    if (!takes_differences(t, device)) {
        return PS_UNSUPPORTED;
    }
    if (ps_cuda_panels_accept(t, true)) {
        const char *const table = static_cast<const char *>(store) + block_bytes(t);

        return ps_cuda_panels_stencils(t, d, table, exec->work, stream);
    }
    return with_real(t->dtype, [&](auto zero) {
        using Real = decltype(zero);
        const SharedSidesOfDifferences<Real> source = {lines::Differences<Real>(d)};

        return apply<Real>(t, source, store, false, nullptr, exec->work, device, stream);
    });
}

static ps_status
work(const ps_tridiag *t, const ps_options *options, size_t *bytes)
{
    return ps_cuda_shared_work(t, false, options->pivot, bytes);
}

static ps_status
solve(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
      ps_report *report)
{
    report->kernel = "partition shared matrix";
    return ps_cuda_shared_solve(t, nullptr, false, options->pivot, exec);
}

const ps_cuda_method ps_cuda_shared = {work, solve};

} // namespace pysolvers::shared
