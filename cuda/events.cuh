/* events.cuh - CUDA events that live as long as a call. */
#ifndef PS_CUDA_EVENTS_CUH
#define PS_CUDA_EVENTS_CUH

#include "engine.h"

template <int COUNT> class Events {
  public:
    /* cudaEventDefault, or cudaEventDisableTiming where `seconds` is not asked. */
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

    /* Between two events that have been recorded and waited for. */
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

#endif
