/* pivoted_c128.cu - the pivoted solver for one dtype. */
#include "lines/pivoted/pivoted_dtypes.h"
#include "lines/pivoted/pivoted_launch.cuh"

namespace pysolvers::pivoted {

ps_status
ps_cuda_pivoted_work_c128(const ps_tridiag *t, size_t *bytes)
{
    return pivot_work_bytes<Complex<double>>(t, bytes);
}

ps_status
ps_cuda_pivoted_run_c128(const ps_tridiag *t, uint8_t *marks, const ps_exec *exec,
                         void *work)
{
    return pivot_run<Complex<double>>(t, marks, exec, work);
}

} // namespace pysolvers::pivoted
