/* side_partition_reals.cu - the kernels of partition.cuh for several right-hand sides of each
 * matrix, compiled once per dtype. */
#include "lines/partition/partition.cuh"

namespace pysolvers::partition {

template ps_status
launch_side_partition(const SideJob<WithSides<PS_NUMBER, most_sides>> &, const Plan &,
                      cudaStream_t);

} // namespace pysolvers::partition
