/* blocks_reals.cu - the kernels of blocks.cuh, compiled once per real dtype. */
#include "lines/blocks.cuh"

namespace pysolvers::lines {

template ps_status launch_blocks(const BlocksJob<PS_NUMBER> &, cudaStream_t);

} // namespace pysolvers::lines
