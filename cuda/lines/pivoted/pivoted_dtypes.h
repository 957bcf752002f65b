/* pivoted_dtypes.h - the pivoted solver by dtype, one module each. */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_DTYPES_H
#define PS_CUDA_LINES_PIVOTED_PIVOTED_DTYPES_H

#include "device/number.cuh"

namespace pysolvers::pivoted {

using namespace device;

/* Marks and work as in ps_cuda_pivoted_marked(). */
#define PS_PIVOTED_DECLARE_(number, name)                                      \
    ps_status ps_cuda_pivoted_work_##name(const ps_tridiag *t, size_t *bytes); \
    ps_status ps_cuda_pivoted_run_##name(const ps_tridiag *t, uint8_t *marks,  \
                                         const ps_exec *exec, void *work);
PS_CUDA_DTYPES(PS_PIVOTED_DECLARE_)
#undef PS_PIVOTED_DECLARE_

} // namespace pysolvers::pivoted

#endif
