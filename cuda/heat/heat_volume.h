/* heat_volume.h - steps of Douglas and Gunn in three dimensions: 5 words per node.
 *
 * A step is two kernels: heat_forward.cuh computes the right-hand side, solves along x
 * and eliminates along y; heat_backward.cuh substitutes back along y and solves along
 * z.
 */
#ifndef PS_CUDA_HEAT_HEAT_VOLUME_H
#define PS_CUDA_HEAT_HEAT_VOLUME_H

#include "heat/heat_sections.h"
#include "heat/heat_stencils.h"

namespace pysolvers::heat {

/* The constants of all steps of a call: the lines along x and z, the sections of those along y, and the
 * layout in shared memory of a line along x with its chunks. A form of a step (heat_run.h), which needs
 * constant k, a large field, and lines that fit. */
template <typename Real> struct HeatVolume {
    static constexpr const char *name = "fused";
    bool is_used = false;
    HeatLine<Real> line[2];
    HeatSections<Real> sections;
    int32_t chunk, pitch; /* rows of a chunk, elements of a line */
    int32_t planes, ring; /* of a block; lines of each in shared memory */
    int32_t side;         /* the blocks along z */
    size_t shared;

    static size_t bytes(const ps_heat *h, const ps_cuda_device *device);
    ps_status make(const ps_heat *h, const ps_cuda_device *device, void *memory,
                   cudaStream_t stream);
};

/* The two kernels of step s, one after the other. */
template <typename Real>
ps_status heat_volume_forward(const ps_heat *h, const HeatVolume<Real> &plan, int64_t s,
                              cudaStream_t stream);
template <typename Real>
ps_status heat_volume_backward(const ps_heat *h, const HeatVolume<Real> &plan, int64_t s,
                               cudaStream_t stream);

} // namespace pysolvers::heat

#endif
