/* engine.h - properties of the device and helpers of the host that all files of the
 * backend use.
 *
 * These functions do not wait, allocate or print. They use the current device, which
 * backend.cu has set.
 */
#ifndef PS_CUDA_RUNTIME_ENGINE_H
#define PS_CUDA_RUNTIME_ENGINE_H

#include <cuda_runtime.h>

#include "pysolvers.h"

namespace pysolvers::runtime {

/* The properties by which kernels are chosen; read once per process and device. */
typedef struct {
    int capability; /* 10 * major + minor */
    int processors;
    int shared_bytes;           /* of a block, with the opt-in */
    int shared_bytes_processor; /* of a multiprocessor */
    int cluster_blocks;         /* largest portable cluster; 1 if there are no clusters */
} ps_cuda_device;

/* The properties of the current device; null if the runtime fails. */
const ps_cuda_device *ps_cuda_device_get(void);

/* The last launch error as a status. */
static inline ps_status
ps_cuda_status(cudaError_t error)
{
    return error == cudaSuccess ? PS_OK : PS_DEVICE_FAILURE;
}

static inline cudaStream_t
ps_cuda_stream(const ps_exec *exec)
{
    return static_cast<cudaStream_t>(exec->stream);
}

/* Bytes rounded up, so that the next part of a workspace is aligned. */
static inline size_t
ps_cuda_padded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

} // namespace pysolvers::runtime

#endif
