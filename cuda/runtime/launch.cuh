/* launch.cuh - kernel launches with programmatic dependent launch, clusters and
 * cooperative grids.
 *
 * On sm_90 and later, the blocks of a kernel may be resident before the previous kernel
 * of the stream ends (programmatic dependent launch). A kernel launched so calls
 * wait_for_last_kernel() before it reads or writes global memory.
 */
#ifndef PS_CUDA_RUNTIME_LAUNCH_CUH
#define PS_CUDA_RUNTIME_LAUNCH_CUH

#include "runtime/engine.h"

namespace pysolvers::runtime {

/* Threads that a multiprocessor holds, for the architecture of this compilation. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int resident_threads = 1024;
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ % 100 != 0 || __CUDA_ARCH__ >= 1200)
constexpr int resident_threads = 1536;
#else
constexpr int resident_threads = 2048;
#endif

/* Wait until the memory written by all earlier kernels of the stream is visible. */
__device__ __forceinline__ void
wait_for_last_kernel()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Allow the blocks of the next kernel to become resident when blocks of this one end. */
__device__ __forceinline__ void
let_next_kernel_in()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* launch.cu: raise the limit of dynamic shared memory of a kernel to the maximum. */
cudaError_t ps_cuda_allow_shared(const void *kernel);

/* launch.cu: do the same, and count the blocks of a kernel, or its clusters of `cluster`
 * blocks, that are resident on the current device at the same time; PS_DEVICE_FAILURE if none is. */
ps_status ps_cuda_resident(const void *kernel, int threads, size_t shared, int cluster,
                           int *count);

template <typename Kernel>
inline cudaError_t
allow_shared(Kernel kernel)
{
    return ps_cuda_allow_shared(reinterpret_cast<const void *>(kernel));
}

template <typename Kernel>
inline ps_status
resident(Kernel kernel, int threads, size_t shared, int cluster, int *count)
{
    return ps_cuda_resident(reinterpret_cast<const void *>(kernel), threads, shared,
                            cluster, count);
}

/* allow_shared() for one of several kernels that follow each other closely: all of them
 * request the same split of the L1 cache, so that a multiprocessor need not be
 * reconfigured between two of them. */
template <typename Kernel>
inline cudaError_t
share_cache(Kernel kernel)
{
    const cudaError_t error = allow_shared(kernel);

    return error == cudaSuccess
               ? cudaFuncSetAttribute(kernel,
                                      cudaFuncAttributePreferredSharedMemoryCarveout, 60)
               : error;
}

/* The configuration of a launch. Every kernel of the backend is launched by run(). */
class Launch {
  public:
    Launch(int64_t blocks, dim3 threads, size_t shared, cudaStream_t stream)
    {
        config_.gridDim = dim3(static_cast<unsigned>(blocks));
        config_.blockDim = threads;
        config_.dynamicSmemBytes = shared;
        config_.stream = stream;
    }

    /* With programmatic dependent launch, if the device has it. */
    Launch &closely()
    {
        if (device_ != nullptr && device_->capability >= 90) {
            add(cudaLaunchAttributeProgrammaticStreamSerialization)
                .programmaticStreamSerializationAllowed = 1;
        }
        return *this;
    }

    /* Cooperative: all blocks are resident at once, because they wait for each other. */
    Launch &together()
    {
        add(cudaLaunchAttributeCooperative).cooperative = 1;
        return *this;
    }

    /* In clusters of `blocks` blocks; from sm_90 on. */
    Launch &in_clusters(int blocks)
    {
        if (device_ != nullptr && device_->capability >= 90) {
            add(cudaLaunchAttributeClusterDimension).clusterDim = {
                static_cast<unsigned>(blocks), 1, 1};
        }
        return *this;
    }

    /* Valid as long as this object. */
    cudaLaunchConfig_t config()
    {
        config_.attrs = attributes_;
        return config_;
    }

    template <typename... Parameters, typename... Arguments>
    ps_status run(void (*kernel)(Parameters...), const Arguments &...arguments)
    {
        const cudaLaunchConfig_t how = config();

        return device_ == nullptr ? PS_DEVICE_FAILURE
                                  : ps_cuda_status(cudaLaunchKernelEx(
                                        &how, kernel, Parameters(arguments)...));
    }

  private:
    cudaLaunchAttributeValue &add(cudaLaunchAttributeID id)
    {
        cudaLaunchAttribute &attribute = attributes_[config_.numAttrs++];

        attribute.id = id;
        return attribute.val;
    }

    const ps_cuda_device *const device_ = ps_cuda_device_get();
    cudaLaunchAttribute attributes_[3] = {};
    cudaLaunchConfig_t config_ = {};
};

template <typename... Parameters, typename... Arguments>
inline ps_status
launch_closely(void (*kernel)(Parameters...), int64_t blocks, dim3 threads, size_t shared,
               cudaStream_t stream, const Arguments &...arguments)
{
    return Launch(blocks, threads, shared, stream).closely().run(kernel, arguments...);
}

} // namespace pysolvers::runtime

#endif
