// numbers.cu - the table of ps_numbers.h.
#include "ps_numbers.h"

#include "lines/blocks_factor.h"
#include "lines/differences.h"
#include "lines/rates.h"
#include "lines/recurrence.h"
#include "runtime/device.h"

namespace pysolvers {

using namespace lines;
using namespace runtime;

static ps_status
recurrence_work(const ps_recurrence *r, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_recurrence_work(r, bytes); });
}

static ps_status
recurrence(const ps_recurrence *r, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_recurrence(r, exec); });
}

static ps_status
blocks_store(const ps_blocks *b, const ps_exec *, size_t *bytes)
{
    return ps_cuda_blocks_store(b, bytes);
}

static ps_status
blocks_work(const ps_blocks *b, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_blocks_work(b, bytes); });
}

static ps_status
blocks_run(const ps_blocks *b, const ps_exec *exec, ps_report *report)
{
    return on_device(exec, [=] { return ps_cuda_blocks_run(b, exec, report); });
}

static ps_status
rates(const ps_rates *r, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_rates(r, exec); });
}

static ps_status
differences(const ps_differences *d, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_differences(d, exec); });
}

static ps_status
difference_solve_work(ps_difference_factors f, const ps_differences *d,
                      const ps_exec *exec, size_t *bytes)
{
    return on_device(exec,
                     [=] { return ps_cuda_difference_solve_work(f, d, exec, bytes); });
}

static ps_status
difference_solve(ps_difference_factors f, const ps_differences *d, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_difference_solve(f, d, exec); });
}

} // namespace pysolvers

extern "C" const ps_number_entries *
ps_number_entries_get(void)
{
    static const ps_number_entries entries = {pysolvers::recurrence_work,
                                              pysolvers::recurrence,
                                              pysolvers::blocks_store,
                                              pysolvers::blocks_work,
                                              pysolvers::blocks_run,
                                              pysolvers::rates,
                                              nullptr,
                                              pysolvers::differences,
                                              pysolvers::difference_solve_work,
                                              pysolvers::difference_solve};

    return &entries;
}
