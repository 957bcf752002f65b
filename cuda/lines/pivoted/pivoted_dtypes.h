/* pivoted_dtypes.h - the pivoted solver of one dtype: pivoted_launch.cuh has the
 * definitions, pivoted_dtypes.cu is compiled once per dtype.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_DTYPES_H
#define PS_CUDA_LINES_PIVOTED_PIVOTED_DTYPES_H

#include "device/number.cuh"

namespace pysolvers::pivoted {

using namespace device;

/* Bytes of the workspace; the solve. Marks and work as in ps_cuda_pivoted_marked(). */
template <typename Number> ps_status pivot_work_bytes(const ps_tridiag *t, size_t *bytes);
template <typename Number>
ps_status pivot_run(const ps_tridiag *t, uint8_t *marks, const ps_exec *exec, void *work);

} // namespace pysolvers::pivoted

#endif
