/* shaped_kernels.h - kernels of the partition method whose shape is chosen by the batch. */
#ifndef PS_CUDA_LINES_COLUMNS_SHAPED_KERNELS_H
#define PS_CUDA_LINES_COLUMNS_SHAPED_KERNELS_H

#include "runtime/engine.h"

namespace pysolvers::lines {

using namespace runtime;

/* For batches whose batch axes are merged: whether the kernels suit a batch, and then its shape;
 * the bytes of workspace; the solve by PS_PARTITION, whose marks may be null. */
template <typename Shape> struct ShapedKernels {
    bool (*accepts)(const ps_tridiag *t, const ps_cuda_device *device, Shape *shape);
    size_t (*work)(const ps_tridiag *t, const Shape &shape, const ps_cuda_device *device);
    ps_status (*solve)(const ps_tridiag *t, const Shape &shape,
                       const ps_cuda_device *device, uint8_t *marks, void *work,
                       cudaStream_t stream);
};

} // namespace pysolvers::lines

#endif
