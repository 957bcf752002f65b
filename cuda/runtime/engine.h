/* engine.h - what the files of the CUDA backend offer each other on the host.
 *
 * Nothing here waits, allocates or prints: every call enqueues on exec->stream of the
 * current device (backend.cu has set it) and returns.
 */
#ifndef PS_CUDA_RUNTIME_ENGINE_H
#define PS_CUDA_RUNTIME_ENGINE_H

#include <cuda_runtime.h>

#include "pysolvers.h"

namespace pysolvers::runtime {

/* Device properties that choose kernels; read once a process and device. */
typedef struct {
    int capability; /* 10 * major + minor */
    int processors;
    int shared_bytes;           /* of a block, opted in */
    int shared_bytes_processor; /* of a multiprocessor */
    int cluster_blocks;         /* largest portable cluster; 1 where there is none */
} ps_cuda_device;

/* The current device's properties; null if the runtime fails. */
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
