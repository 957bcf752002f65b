/* tridiag.cu - the choice of the method for a batch of systems. */
#include "lines/methods.h"
#include "lines/pivoted/pivoted.h"
#include "runtime/backend.h"
#include "runtime/engine.h"

namespace pysolvers {

using namespace lines;
using namespace partition;
using namespace pivoted;
using namespace reduction;
using namespace shared;

/* The method `thomas` is never chosen by PS_AUTO. With 2^25 unknowns it takes 1 to 5
 * times as long as one pass of the partition method up to 32 rows (except for some
 * lengths of complex numbers along a strided axis); with longer or fewer systems most
 * of the device is idle. */
static ps_method
method_of(const ps_options *options)
{
    if (options->method != PS_AUTO) {
        return options->method;
    }
    return options->pivot == PS_PIVOT_ALWAYS ? PS_PIVOTED : PS_PARTITION;
}

static const ps_cuda_method *
implementation_of(const ps_tridiag *t, ps_method method)
{
    switch (method) {
    case PS_THOMAS:
        return &ps_cuda_thomas;
    case PS_PARTITION:
        return (t->flags & PS_ROW_SUMS) == 0 && ps_cuda_shared_accepts(t)
                   ? &ps_cuda_shared
                   : &ps_cuda_partition;
    case PS_PIVOTED:
        return &ps_cuda_pivoted;
    default:
        return &ps_cuda_reduction;
    }
}

namespace {

/* What a call is reduced to: a concrete method and its own choice of pivoting. */
struct Plan {
    ps_options options;
    const ps_cuda_method *method;
};

} // namespace

static Plan
plan_of(const ps_tridiag *t, const ps_options *options, const ps_exec *exec)
{
    const ps_method method = method_of(options);
    const ps_pivot pivot = ps_options_pivot(options);

    return {{method, pivot == PS_PIVOT_AUTO && exec->marks != nullptr ? mark_only : pivot,
             options->variant},
            implementation_of(t, method)};
}

/* Whether only the marked systems are solved. */
static bool
solves_marked(const Plan &p, const ps_exec *exec)
{
    return p.options.method == PS_PIVOTED && exec->marks != nullptr;
}

static bool
is_empty(const ps_tridiag *t)
{
    return t->outer == 0 || t->inner == 0;
}

ps_status
ps_cuda_tridiag_work(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
                     size_t *bytes)
{
    const ps_status status = ps_tridiag_check(t, options);

    *bytes = 0;
    if (status != PS_OK || is_empty(t)) {
        return status;
    }
    if ((t->flags & PS_ROW_SUMS) != 0 && t->dtype != PS_F32 && t->dtype != PS_F64) {
        return PS_UNSUPPORTED;
    }
    const Plan p = plan_of(t, options, exec);
    return solves_marked(p, exec) ? ps_cuda_pivoted_marked_work(t, bytes)
                                  : p.method->work(t, &p.options, bytes);
}

/* The number of systems that are solved with row exchanges, as far as the host knows
 * it. */
static int64_t
pivoted_of(const ps_tridiag *t, ps_pivot pivot)
{
    switch (pivot) {
    case PS_PIVOT_NEVER:
        return 0;
    case PS_PIVOT_ALWAYS:
        return t->outer * t->inner;
    default:
        return is_empty(t) ? 0 : -1;
    }
}

ps_status
ps_cuda_tridiag_solve(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
                      ps_report *report)
{
    size_t bytes;
    const ps_status status = ps_cuda_tridiag_work(t, options, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    const Plan p = plan_of(t, options, exec);
    const int64_t pivoted = pivoted_of(t, p.options.pivot);
    const void *const marks = exec->marks != nullptr ? exec->marks : exec->work;
    const uint8_t *const known =
        pivoted < 0 ? static_cast<const uint8_t *>(marks) : nullptr;
    *report = {p.options.method, 0, pivoted, known, pivoted == 0 ? 0 : -1, known, ""};
    if (is_empty(t)) {
        return PS_OK;
    }
    return solves_marked(p, exec)
               ? ps_cuda_pivoted_marked(t, exec->marks, exec, exec->work)
               : p.method->solve(t, &p.options, exec, report);
}

} // namespace pysolvers
