/* device.cu - the devices and their properties, queried once per process.
 *
 * Loading the module queries nothing. A forked process can use CUDA only if its parent
 * did not use it before the fork. The first process that queries is therefore recorded,
 * and the locks below are never taken in another process.
 */
#include "runtime/device.h"

#include <atomic>
#include <cstdio>
#include <mutex>

#include <pthread.h>
#include <unistd.h>

namespace pysolvers::runtime {

static constexpr int least_capability = 75;

static std::atomic<pid_t> owner{0}; /* the process that queried first */
static std::atomic<bool> is_probed{false};
static std::atomic<bool> is_forked{false}; /* or it is not known without getpid() */

/* Written once, before is_probed becomes true. */
static int32_t device_count;
static char reason[192];

static const char *const forked =
    "CUDA cannot be used in a process forked from one that has used it";

static int
capability_of(int device)
{
    int major = 0, minor = 0;

    (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    return 10 * major + minor;
}

static bool
any_is_capable(int count)
{
    for (int device = 0; device < count; device++) {
        if (capability_of(device) >= least_capability) {
            return true;
        }
    }
    return false;
}

static void
explain(cudaError_t error)
{
    int driver = 0;

    (void)cudaDriverGetVersion(&driver);
    switch (error) {
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
        if (driver == 0) {
            snprintf(reason, sizeof reason, "no NVIDIA driver is installed");
        }
        else {
            snprintf(reason, sizeof reason,
                     "the NVIDIA driver is too old: it offers CUDA %d.%d, "
                     "this build needs %d.%d",
                     driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                     CUDART_VERSION % 1000 / 10);
        }
        break;
    case cudaErrorNoDevice:
        snprintf(reason, sizeof reason, "no NVIDIA GPU is visible");
        break;
    case cudaErrorInitializationError:
        snprintf(reason, sizeof reason, "%s", forked);
        break;
    default:
        snprintf(reason, sizeof reason, "the CUDA runtime does not start: %s",
                 cudaGetErrorString(error));
    }
}

static void
probe()
{
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);

    if (pthread_atfork(nullptr, nullptr, [] { is_forked.store(true); }) != 0) {
        is_forked.store(true);
    }

    if (error != cudaSuccess) {
        explain(error);
    }
    else if (!any_is_capable(count)) {
        snprintf(reason, sizeof reason,
                 "no NVIDIA GPU of compute capability %d.%d or newer is visible",
                 least_capability / 10, least_capability % 10);
    }
    else {
        device_count = count < PS_CUDA_MAX_DEVICES ? count : PS_CUDA_MAX_DEVICES;
    }
    (void)cudaGetLastError();
    is_probed.store(true, std::memory_order_release);
}

const char *
ps_cuda_unavailable(void)
{
    static std::once_flag once;

    if (is_probed.load(std::memory_order_acquire) &&
        !is_forked.load(std::memory_order_relaxed)) {
        return reason[0] ? reason : nullptr;
    }
    const pid_t self = getpid();
    pid_t first = 0;

    if (!owner.compare_exchange_strong(first, self) && first != self) {
        return is_probed.load(std::memory_order_acquire) && reason[0] ? reason : forked;
    }
    std::call_once(once, probe);
    return reason[0] ? reason : nullptr;
}

int32_t
ps_cuda_devices(void)
{
    return ps_cuda_unavailable() == nullptr ? device_count : 0;
}

static void
describe(char *text, size_t size)
{
    cudaDeviceProp device;
    int driver = 0, runtime = 0, count = 0;

    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        snprintf(text, size, "a CUDA device that does not describe itself");
        return;
    }
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    count = device_count;
    snprintf(text, size,
             "%s%s, compute capability %d.%d, %.1f GiB, driver for CUDA %d.%d, "
             "runtime %d.%d",
             count > 1 ? "several GPUs, the first " : "", device.name, device.major,
             device.minor, static_cast<double>(device.totalGlobalMem) / (1 << 30),
             driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

const char *
ps_cuda_describe(void)
{
    static std::once_flag once;
    static char text[384];
    const char *const unavailable = ps_cuda_unavailable();

    if (unavailable != nullptr) {
        return unavailable;
    }
    std::call_once(once, describe, text, sizeof text);
    return text;
}

static bool
read_properties(int device, ps_cuda_device *p)
{
    int clusters = 0;
    const bool read =
        cudaDeviceGetAttribute(&p->processors, cudaDevAttrMultiProcessorCount, device) ==
            cudaSuccess &&
        cudaDeviceGetAttribute(&p->shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                               device) == cudaSuccess &&
        cudaDeviceGetAttribute(&p->shared_bytes_processor,
                               cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                               device) == cudaSuccess;

    (void)cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device);
    p->capability = capability_of(device);
    p->cluster_blocks = clusters ? 8 : 1;
    return read;
}

const ps_cuda_device *
ps_cuda_device_get(void)
{
    static std::once_flag once[PS_CUDA_MAX_DEVICES];
    static ps_cuda_device properties[PS_CUDA_MAX_DEVICES];
    static bool is_read[PS_CUDA_MAX_DEVICES];
    int device = 0;

    if (cudaGetDevice(&device) != cudaSuccess || device >= PS_CUDA_MAX_DEVICES) {
        return nullptr;
    }
    std::call_once(once[device], [=] {
        is_read[device] = read_properties(device, &properties[device]);
    });
    return is_read[device] ? &properties[device] : nullptr;
}

DeviceScope::DeviceScope(const ps_exec *exec)
{
    if (exec->device < 0 || exec->device >= ps_cuda_devices() ||
        cudaGetDevice(&before_) != cudaSuccess) {
        return;
    }
    is_other_ = exec->device != before_;
    is_set_ = !is_other_ || cudaSetDevice(exec->device) == cudaSuccess;
    (void)cudaGetLastError();
}

DeviceScope::~DeviceScope()
{
    if (is_other_) {
        (void)cudaSetDevice(before_);
    }
}

} // namespace pysolvers::runtime
