/* launch.cu - attributes and occupancy of kernels, which each thread queries once per
 * kernel and device.
 */
#include "runtime/launch.cuh"
#include "runtime/remembered.h"

namespace pysolvers::runtime {

namespace {

struct KernelKey {
    const void *kernel;
    const ps_cuda_device *device;
};

struct BlockKey {
    const void *kernel;
    const ps_cuda_device *device;
    size_t shared;
    int64_t threads, cluster;
};

} // namespace

/* The value is the same for every call, because the attribute is shared by threads that
 * launch the kernel with different sizes. */
cudaError_t
ps_cuda_allow_shared(const void *kernel)
{
    static thread_local Remembered<KernelKey, bool, 32> prepared;
    const ps_cuda_device *const device = ps_cuda_device_get();
    const KernelKey key = {kernel, device};
    cudaFuncAttributes own = {};

    if (device == nullptr) {
        return cudaErrorInvalidDevice;
    }
    if (prepared.find(key) != nullptr) {
        return cudaSuccess;
    }
    cudaError_t error = cudaFuncGetAttributes(&own, kernel);

    if (error == cudaSuccess) {
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     device->shared_bytes -
                                         static_cast<int>(own.sharedSizeBytes));
    }
    if (error == cudaSuccess) {
        (void)prepared.add(key, true);
    }
    return error;
}

/* Query what ps_cuda_resident() returns. */
static cudaError_t
query_resident(const BlockKey &key, int *count)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    const int threads = static_cast<int>(key.threads);
    const unsigned cluster = static_cast<unsigned>(key.cluster);
    cudaError_t error = ps_cuda_allow_shared(key.kernel);

    if (error == cudaSuccess && cluster > 8) {
        error = cudaFuncSetAttribute(key.kernel,
                                     cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
    if (error != cudaSuccess) {
        return error;
    }
    if (cluster == 1) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(count, key.kernel, threads,
                                                              key.shared);
        *count *= key.device->processors;
        return error;
    }
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
    config.gridDim = dim3(cluster);
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = key.shared;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaOccupancyMaxActiveClusters(count, key.kernel, &config);
}

ps_status
ps_cuda_resident(const void *kernel, int threads, size_t shared, int cluster, int *count)
{
    static thread_local Remembered<BlockKey, int, 32> resident;
    const BlockKey key = {kernel, ps_cuda_device_get(), shared, threads, cluster};
    const int *known = resident.find(key);

    *count = 0;
    if (key.device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    if (known == nullptr) {
        int found = 0;
        const cudaError_t error = query_resident(key, &found);

        if (error != cudaSuccess) {
            return ps_cuda_status(error);
        }
        known = resident.add(key, found);
    }
    *count = *known;
    return *count > 0 ? PS_OK : PS_DEVICE_FAILURE;
}

} // namespace pysolvers::runtime
