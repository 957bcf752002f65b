/* shared_differences_reals.cu - tiles whose right-hand sides are differences of the values in
 * memory (shared_differences.cuh), compiled once per dtype.
 */
#include "lines/shared/shared.cuh"
#include "lines/shared/shared_differences.cuh"

namespace pysolvers::shared {

template ps_status shared_launch(const SharedJob<PS_NUMBER> &,
                                 const SharedSidesOfDifferences<PS_NUMBER> &,
                                 cudaStream_t);

} // namespace pysolvers::shared
