/* heat_clock.cuh - the durations of the stages of a call of the heat solver.
 */
#ifndef PS_CUDA_HEAT_HEAT_CLOCK_CUH
#define PS_CUDA_HEAT_HEAT_CLOCK_CUH

#include <optional>

#include "ps_heat.h"
#include "runtime/events.cuh"

namespace pysolvers::heat {

using namespace runtime;

/* Events in the stream: of the work before the steps, and of the last step, whose
 * proportions are used for all steps. Nothing is recorded unless `timed` is set. */
class HeatClock {
  public:
    HeatClock(bool timed, cudaStream_t stream) : stream_(stream)
    {
        if (timed) {
            events_.emplace(static_cast<unsigned>(cudaEventDefault));
        }
    }

    /* The begin of the call, of its steps and of the last step; and their end. */
    ps_status begin()
    {
        return record(PS_HEAT_STAGE_END);
    }
    ps_status begin_steps()
    {
        steps_ = count_;
        return record(PS_HEAT_STAGE_END);
    }
    ps_status begin_last()
    {
        last_ = count_;
        return record(PS_HEAT_STAGE_END);
    }
    void end_steps()
    {
        end_ = count_ - 1;
    }

    /* `stage` has been enqueued. Of the steps, only the last one has `is_timed`. */
    ps_status made(ps_heat_stage stage, bool is_timed)
    {
        return is_timed ? record(stage) : PS_OK;
    }

    /* After the device has passed all events. */
    void write(double seconds[PS_HEAT_STAGE_COUNT]) const
    {
        const double all = between(steps_, end_), last = between(last_, end_);

        for (int k = 1; events_ && k < count_; k++) {
            if (k == steps_ || k == last_) {
                continue;
            }
            const double share = k > last_ && k <= end_ && last > 0 ? all / last : 1;

            seconds[stage_[k]] += share * between(k - 1, k);
        }
    }

  private:
    static constexpr int most = 24;

    ps_status record(ps_heat_stage stage)
    {
        if (!events_ || count_ == most) {
            return PS_OK;
        }
        stage_[count_] = stage;
        return events_->record(count_++, stream_);
    }

    double between(int from, int to) const
    {
        return events_ && to > from ? events_->seconds(from, to) : 0;
    }

    std::optional<Events<most>> events_;
    ps_heat_stage stage_[most] = {};
    int count_ = 0, steps_ = 0, last_ = 0, end_ = 0;
    cudaStream_t stream_;
};

} // namespace pysolvers::heat

#endif
