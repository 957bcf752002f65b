/* pivoted.cu - PS_PIVOTED: elimination with row exchanges for all systems of a batch. */
#include "lines/methods.h"
#include "lines/pivoted/pivoted.h"
#include "lines/pivoted/pivoted_dtypes.h"

namespace pysolvers::pivoted {

ps_status
ps_cuda_pivoted_marked_work(const ps_tridiag *t, size_t *bytes)
{
    return with_number(
        t->dtype, [&](auto zero) { return pivot_work_bytes<decltype(zero)>(t, bytes); });
}

ps_status
ps_cuda_pivoted_marked(const ps_tridiag *t, uint8_t *marks, const ps_exec *exec,
                       void *work)
{
    return with_number(t->dtype, [&](auto zero) {
        return pivot_run<decltype(zero)>(t, marks, exec, work);
    });
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
