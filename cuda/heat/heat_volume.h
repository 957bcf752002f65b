/* heat_volume.h - steps of Douglas and Gunn in three dimensions with 5 words a node.
 *
 * Two kernels a step: heat_forward.cuh makes the right side, solves along x and
 * eliminates along y, heat_backward.cuh goes back along y and solves along z.
 */
#ifndef PS_CUDA_HEAT_HEAT_VOLUME_H
#define PS_CUDA_HEAT_HEAT_VOLUME_H

#include "heat/heat_run.h"

namespace pysolvers::heat {

/* Whether the steps of `h` are made so: fields of constant k, large enough, whose lines
 * fit. */
bool heat_is_volume(const ps_heat *h, const ps_cuda_device *device);

/* Bytes of workspace of a plan. */
size_t heat_volume_bytes(const ps_heat *h);

/* `memory` is as long as the plan is in use. */
template <typename Real>
ps_status heat_plan_volume(const ps_heat *h, void *memory, cudaStream_t stream,
                           HeatVolume<Real> *plan);

/* The two kernels of step s, one after the other. */
template <typename Real>
ps_status heat_volume_forward(const HeatRun<Real> &run, int64_t s);
template <typename Real>
ps_status heat_volume_backward(const HeatRun<Real> &run, int64_t s);

} // namespace pysolvers::heat

#endif
