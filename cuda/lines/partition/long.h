/* long.h - systems that are too long for a cluster, in two passes of the partition
 * method.
 */
#ifndef PS_CUDA_LINES_PARTITION_LONG_H
#define PS_CUDA_LINES_PARTITION_LONG_H

#include "lines/partition/partition.h"

namespace pysolvers::partition {

/* Bytes of workspace for systems divided as in `plan`, including the coarse systems. */
size_t ps_cuda_long_work(const ps_tridiag *t, const Plan &plan, bool has_halos,
                         const ps_cuda_device *device);

/* Solve; info and marks may be null. */
ps_status ps_cuda_long_solve(const ps_tridiag *t, const Plan &plan, bool has_halos,
                             const ps_cuda_device *device, uint8_t *marks,
                             const ps_exec *exec, void *work);

} // namespace pysolvers::partition

#endif
