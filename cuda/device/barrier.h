/* barrier.h - a barrier of streams of several devices: PS_PART_BARRIER and PS_PART_FAIL of
 * ps_part.h. */
#ifndef PS_CUDA_DEVICE_BARRIER_H
#define PS_CUDA_DEVICE_BARRIER_H

#include "ps_part.h"

namespace pysolvers::device {

/* `p` has one of the two steps. */
ps_status ps_cuda_barrier(const ps_part *p, const ps_exec *exec);

} // namespace pysolvers::device

#endif
