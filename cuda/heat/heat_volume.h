/* heat_volume.h - steps of Douglas and Gunn in three dimensions: 5 words per node.
 *
 * A step is two kernels: heat_forward.cuh computes the right-hand side, solves along x
 * and eliminates along y; heat_backward.cuh substitutes back along y and solves along
 * z.
 */
#ifndef PS_CUDA_HEAT_HEAT_VOLUME_H
#define PS_CUDA_HEAT_HEAT_VOLUME_H

#include "heat/heat_run.h"

namespace pysolvers::heat {

/* Bytes of workspace of a plan; 0 if the steps of `h` are not made in this way, which needs constant k, a
 * large field, and lines that fit. */
size_t heat_volume_bytes(const ps_heat *h, const ps_cuda_device *device);

/* A plan, without planes if the steps are not made in this way; `memory` exists as long as the plan is in use. */
template <typename Real>
ps_status heat_plan_volume(const ps_heat *h, const ps_cuda_device *device, void *memory,
                           cudaStream_t stream, HeatVolume<Real> *plan);

/* The two kernels of step s, one after the other. */
template <typename Real>
ps_status heat_volume_forward(const HeatRun<Real> &run, int64_t s);
template <typename Real>
ps_status heat_volume_backward(const HeatRun<Real> &run, int64_t s);

} // namespace pysolvers::heat

#endif
