/* side_passes.cu - the kernel of side_passes.cuh for float64, in which it is faster. */
#include "lines/partition/side_passes.cuh"

namespace pysolvers::partition {

template ps_status launch_side_passes(const SidePassJob<WithSides<double, most_sides>> &,
                                      const Plan &, cudaStream_t);

} // namespace pysolvers::partition
