/* device.h - the devices, and the scope in which one of them is current. */
#ifndef PS_CUDA_RUNTIME_DEVICE_H
#define PS_CUDA_RUNTIME_DEVICE_H

#include "runtime/engine.h"

namespace pysolvers::runtime {

/* The largest number of devices; higher ordinals are refused. */
enum { PS_CUDA_MAX_DEVICES = 64 };

/* The entries of the backend table. */
const char *ps_cuda_unavailable(void);
int32_t ps_cuda_devices(void);
const char *ps_cuda_describe(void);

/* Makes the device of a call current, and the previous device on destruction. An error
 * that an earlier call left in the runtime is cleared. */
class DeviceScope {
  public:
    explicit DeviceScope(const ps_exec *exec);
    ~DeviceScope();
    DeviceScope(const DeviceScope &) = delete;
    DeviceScope &operator=(const DeviceScope &) = delete;

    /* Whether the device exists and is current. */
    bool is_set() const
    {
        return is_set_;
    }

  private:
    int before_ = 0;
    bool is_set_ = false, is_other_ = false;
};

/* Run call() -> ps_status on the device of `exec`. An error is cleared, so that the
 * next call does not report it. */
template <typename Call>
static inline ps_status
on_device(const ps_exec *exec, Call call)
{
    const DeviceScope scope(exec);

    if (!scope.is_set()) {
        return PS_DEVICE_FAILURE;
    }
    const ps_status status = call();
    if (status != PS_OK) {
        (void)cudaGetLastError();
    }
    return status;
}

} // namespace pysolvers::runtime

#endif
