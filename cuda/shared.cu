/* shared.cu - one matrix for all systems, on the host. */
#include "pivoted.h"
#include "shared.h"

template <typename Number>
static SharedMatrix<Number>
matrix_of(const ps_tridiag *t)
{
    const Systems<Number> s = systems_of<Number>(*t);

    return {s.lower, s.diag, s.upper, s.periodic, false, false, nullptr};
}

template <typename Number>
static ps_status
launch(const SharedJob<Number> &job, cudaStream_t stream)
{
#define PS_LAUNCH(number, name)                                                   \
    if constexpr (number_traits<Number>::dtype == number_traits<number>::dtype) { \
        return ps_cuda_shared_launch_##name(job, stream);                         \
    }
    PS_CUDA_DTYPES(PS_LAUNCH)
#undef PS_LAUNCH
}

template <typename Number>
static ps_status
apply(const ps_tridiag *t, const void *store, bool conjugated, uint8_t *marks,
      const ps_cuda_device *device, cudaStream_t stream)
{
    SharedJob<Number> job = {ps_cuda_shared_plan_of(t, device), matrix_of<Number>(t),
                             t->info, marks};

    job.matrix.conjugated = conjugated;
    job.matrix.note = static_cast<const ps_cuda_shared_note *>(store);
    return launch(job, stream);
}

ps_status
ps_cuda_shared_apply(const ps_tridiag *t, const void *store, bool conjugated,
                     uint8_t *marks, cudaStream_t stream)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    switch (t->dtype) {
#define PS_CASE(number, name)          \
    case number_traits<number>::dtype: \
        return apply<number>(t, store, conjugated, marks, device, stream);
        PS_CUDA_DTYPES(PS_CASE)
#undef PS_CASE
    default:
        return PS_BAD_ARGUMENT;
    }
}

ps_status
ps_cuda_shared_keep(const ps_tridiag *t, bool transposed, void *store, uint8_t *mark,
                    cudaStream_t stream)
{
    const ps_cuda_shared_shape shape = ps_cuda_shared_team(t->dtype, t->rows);

    switch (t->dtype) {
#define PS_CASE(number, name)                                                           \
    case number_traits<number>::dtype: {                                                \
        SharedMatrix<number> matrix = matrix_of<number>(t);                             \
        matrix.transposed = transposed;                                                 \
        return ps_cuda_shared_keep_##name(matrix, shape, store, t->info, mark, stream); \
    }
        PS_CUDA_DTYPES(PS_CASE)
#undef PS_CASE
    default:
        return PS_BAD_ARGUMENT;
    }
}

bool
ps_cuda_shared_takes(const ps_tridiag *t)
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

/* The workspace with PS_PIVOT_AUTO: marks, then what the pivoted solve needs. */
static ps_status
work(const ps_tridiag *t, const ps_options *options, size_t *bytes)
{
    *bytes = 0;
    if (options->pivot != PS_PIVOT_AUTO) {
        return PS_OK;
    }
    const ps_status status = ps_cuda_pivoted_marked_work(t, bytes);
    *bytes += ps_cuda_marks_bytes(t->outer * t->inner);
    return status;
}

static ps_status
solve(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
      ps_report *report)
{
    uint8_t *const marks =
        options->pivot == PS_PIVOT_AUTO ? static_cast<uint8_t *>(exec->work) : nullptr;
    ps_status status =
        ps_cuda_shared_apply(t, nullptr, false, marks, ps_cuda_stream(exec));

    report->kernel = "partition shared matrix";
    if (status == PS_OK && marks != nullptr) {
        status = ps_cuda_pivoted_marked(t, marks, exec,
                                        marks + ps_cuda_marks_bytes(t->outer * t->inner));
    }
    return status;
}

const ps_cuda_method ps_cuda_shared = {work, solve};
