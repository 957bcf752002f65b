/* pivoted.cu - PS_PIVOTED: row exchanges in every system that needs them. */
#include "lines/methods.h"
#include "lines/pivoted/pivoted.h"
#include "lines/pivoted/pivoted_dtypes.h"

namespace pysolvers::pivoted {

ps_status
ps_cuda_pivoted_marked_work(const ps_tridiag *t, size_t *bytes)
{
    switch (t->dtype) {
#define PS_CASE_(number, name)         \
    case number_traits<number>::dtype: \
        return ps_cuda_pivoted_work_##name(t, bytes);
        PS_CUDA_DTYPES(PS_CASE_)
#undef PS_CASE_
    default:
        return PS_BAD_ARGUMENT;
    }
}

ps_status
ps_cuda_pivoted_marked(const ps_tridiag *t, uint8_t *marks, const ps_exec *exec,
                       void *work)
{
    switch (t->dtype) {
#define PS_CASE_(number, name)         \
    case number_traits<number>::dtype: \
        return ps_cuda_pivoted_run_##name(t, marks, exec, work);
        PS_CUDA_DTYPES(PS_CASE_)
#undef PS_CASE_
    default:
        return PS_BAD_ARGUMENT;
    }
}

static ps_status
pivoted_work(const ps_tridiag *t, const ps_options *, size_t *bytes)
{
    return ps_cuda_pivoted_marked_work(t, bytes);
}

static ps_status
pivoted_solve(const ps_tridiag *t, const ps_options *, const ps_exec *exec,
              ps_report *report)
{
    report->kernel = "pivoted";
    report->pivoted = t->outer * t->inner;
    report->again = static_cast<const uint8_t *>(exec->work);
    return ps_cuda_pivoted_marked(t, nullptr, exec, exec->work);
}

const ps_cuda_method ps_cuda_pivoted = {pivoted_work, pivoted_solve};

} // namespace pysolvers::pivoted
