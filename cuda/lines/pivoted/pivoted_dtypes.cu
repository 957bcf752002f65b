/* pivoted_dtypes.cu - the pivoted solver, compiled once per dtype. */
#include "lines/pivoted/pivoted_launch.cuh"

namespace pysolvers::pivoted {

template ps_status pivot_work_bytes<PS_NUMBER>(const ps_tridiag *, size_t *);
template ps_status pivot_run<PS_NUMBER>(const ps_tridiag *, uint8_t *, const ps_exec *,
                                        void *);

} // namespace pysolvers::pivoted
