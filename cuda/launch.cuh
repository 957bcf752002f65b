/* launch.cuh - kernels that follow each other closely on one stream.
 *
 * On sm_90 and later the blocks of the next kernel are already in place when the last
 * kernel ends (programmatic dependent launch). Every kernel launched so calls
 * wait_for_last_kernel() before it reads or writes memory.
 */
#ifndef PS_CUDA_LAUNCH_CUH
#define PS_CUDA_LAUNCH_CUH

#include "engine.h"

/* Threads that a multiprocessor holds, of the architecture compiled for. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int resident_threads = 1024;
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ % 100 != 0 || __CUDA_ARCH__ >= 1200)
constexpr int resident_threads = 1536;
#else
constexpr int resident_threads = 2048;
#endif

/* All that kernels before this one have written is there. */
__device__ __forceinline__ void
wait_for_last_kernel()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* The next kernel may take the places that this one leaves. */
__device__ __forceinline__ void
let_next_kernel_in()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

template <typename... Parameters, typename... Arguments>
inline ps_status
launch_closely(void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared,
               cudaStream_t stream, Arguments... arguments)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    cudaLaunchAttribute closely = {};
    cudaLaunchConfig_t config = {};

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    closely.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    closely.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &closely;
    config.numAttrs = device->capability >= 90 ? 1 : 0;
    return ps_cuda_status(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

#endif
