/* events.cuh - CUDA events that exist for the duration of a call. */
#ifndef PS_CUDA_RUNTIME_EVENTS_CUH
#define PS_CUDA_RUNTIME_EVENTS_CUH

#include "runtime/engine.h"

namespace pysolvers::runtime {

template <int COUNT> class Events {
  public:
    /* `flags`: cudaEventDefault, or cudaEventDisableTiming if seconds() is not called. */
    explicit Events(unsigned flags)
    {
        for (int k = 0; k < COUNT && error_ == cudaSuccess; k++) {
            error_ = cudaEventCreateWithFlags(&events_[k], flags);
        }
    }
    Events(const Events &) = delete;
    Events &operator=(const Events &) = delete;
    ~Events()
    {
        for (cudaEvent_t event : events_) {
            if (event != nullptr) {
                cudaEventDestroy(event);
            }
        }
    }

    ps_status record(int k, cudaStream_t stream) const
    {
        return ps_cuda_status(error_ == cudaSuccess ? cudaEventRecord(events_[k], stream)
                                                    : error_);
    }

    ps_status wait(int k) const
    {
        return ps_cuda_status(cudaEventSynchronize(events_[k]));
    }

    /* Seconds between two events that have been recorded and waited for. */
    double seconds(int from, int to) const
    {
        float milliseconds = 0;

        return cudaEventElapsedTime(&milliseconds, events_[from], events_[to]) ==
                       cudaSuccess
                   ? 1e-3 * static_cast<double>(milliseconds)
                   : 0;
    }

  private:
    cudaEvent_t events_[COUNT] = {};
    cudaError_t error_ = cudaSuccess;
};

/* Enqueue steps by make(k), and count them in *made. After each group of `size` steps,
 * which takes some milliseconds at most, the host calls exec.poll. The host is at most
 * two groups ahead of the device, so that a call can be interrupted. */
template <typename Make>
inline ps_status
make_in_groups(int64_t count, int64_t size, const ps_exec &exec, int64_t *made,
               const Make &make)
{
    const Events<2> groups(cudaEventDisableTiming);
    ps_status status = PS_OK;

    while (status == PS_OK && *made < count) {
        status = make(*made);
        *made += status == PS_OK;
        if (status != PS_OK || *made % size != 0 || *made == count) {
            continue;
        }
        const int64_t group = *made / size;

        status = groups.record(static_cast<int>(group % 2), ps_cuda_stream(&exec));
        if (status == PS_OK && group > 1) {
            status = groups.wait(static_cast<int>((group - 1) % 2));
        }
        if (status == PS_OK && exec.poll != nullptr && exec.poll(exec.poll_self) != 0) {
            status = PS_INTERRUPTED;
        }
    }
    return status;
}

} // namespace pysolvers::runtime

#endif
