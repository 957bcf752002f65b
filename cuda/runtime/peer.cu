/* peer.cu - memory that other devices and other processes of the host use. */
#include <cstring>

#include "runtime/engine.h"
#include "runtime/memory.h"

namespace pysolvers::runtime {

static_assert(sizeof(cudaIpcMemHandle_t) == PS_SHARED_NAME_BYTES);

ps_status
ps_cuda_reach(int32_t other)
{
    int device = 0, possible = 0;
    cudaError_t error = cudaGetDevice(&device);

    if (error == cudaSuccess && device == other) {
        return PS_OK;
    }
    if (error == cudaSuccess) {
        error = cudaDeviceCanAccessPeer(&possible, device, other);
    }
    if (error == cudaSuccess && !possible) {
        return PS_UNSUPPORTED;
    }
    if (error == cudaSuccess) {
        error = cudaDeviceEnablePeerAccess(other, 0);
    }
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError();
        error = cudaSuccess;
    }
    return ps_cuda_status(error);
}

ps_status
ps_cuda_share(void *data, void *name)
{
    cudaIpcMemHandle_t handle;
    const ps_status status = ps_cuda_status(cudaIpcGetMemHandle(&handle, data));

    memcpy(name, &handle, sizeof handle);
    return status;
}

ps_status
ps_cuda_open_shared(const void *name, void **data)
{
    cudaIpcMemHandle_t handle;

    memcpy(&handle, name, sizeof handle);
    const ps_status status = ps_cuda_status(
        cudaIpcOpenMemHandle(data, handle, cudaIpcMemLazyEnablePeerAccess));
    (void)cudaGetLastError();
    return status;
}

ps_status
ps_cuda_close_shared(void *data)
{
    return ps_cuda_status(cudaIpcCloseMemHandle(data));
}

} // namespace pysolvers::runtime
