/* ring_reals.cu - the kernels of ring.cuh, compiled once per dtype. */
#include "lines/sides/ring.cuh"

namespace pysolvers::sides {

template ps_status launch_side_ring(const SideRingJob<PS_NUMBER> &, cudaStream_t);

} // namespace pysolvers::sides
