/* engine.h - what the files of the CUDA backend offer each other on the host.
 *
 * Nothing here waits, allocates or prints: every call enqueues on exec->stream of the
 * current device (backend.cu has set it) and returns.
 */
#ifndef PS_CUDA_ENGINE_H
#define PS_CUDA_ENGINE_H

#include <cuda_runtime.h>

#include "pysolvers.h"

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

/* One way to solve. `work` gives the bytes of exec->work that `solve` needs. Both take
 * what ps_tridiag_check() has accepted, with at least one system, and a concrete
 * method. `solve` sets report->kernel; it writes t->info if that is not null. */
typedef struct {
    ps_status (*work)(const ps_tridiag *t, const ps_options *options, size_t *bytes);
    ps_status (*solve)(const ps_tridiag *t, const ps_options *options,
                       const ps_exec *exec, ps_report *report);
} ps_cuda_method;

extern const ps_cuda_method ps_cuda_thomas;    /* PS_THOMAS */
extern const ps_cuda_method ps_cuda_reduction; /* PS_CR .. PS_PCR_THOMAS */
extern const ps_cuda_method ps_cuda_partition; /* PS_PARTITION; PS_PIVOT_AUTO pivots
                                                  the systems that are not dominant */
extern const ps_cuda_method ps_cuda_pivoted;   /* PS_PIVOTED */

/* PS_PARTITION with 2 words an unknown, for the batches that ps_cuda_shared_takes():
 * several systems with one matrix, which fits a block. */
bool ps_cuda_shared_takes(const ps_tridiag *t);
extern const ps_cuda_method ps_cuda_shared;

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

#endif
