/* part.cu - systems that are divided over several devices: ps_part.h.
 *
 * The kernel is that of the partition method, with the devices as the level above the
 * block.
 */
#include <algorithm>

#include "device/barrier.h"
#include "lines/geometry.h"
#include "lines/partition/partition.h"
#include "runtime/backend.h"
#include "runtime/elements.cuh"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::partition {

template <typename Number>
static DeviceExchange<Number>
exchange_of(const ps_part &p)
{
    DeviceExchange<Number> e = {};

    e.part = p.part;
    e.count = p.count;
    e.divisor = divided_up(1u << 16, p.count);
    e.step = p.step;
    e.first_row = p.part == 0 ? 0 : p.last_row[p.part - 1] + 1;
    e.clock = static_cast<ps_part_clock *>(p.clock);
    e.patience = p.patience;
    e.key = p.key;
    for (int k = 0; k < p.count; k++) {
        e.last_row[k] = p.last_row[k];
        e.mailbox[k] = static_cast<MailboxSlot *>(p.mailbox[k]);
        e.log[k] = static_cast<ps_part_log *>(p.log[k]);
    }
    return e;
}

/* The most blocks of a part if other parts have the same device; otherwise 0. All blocks of all parts
 * must be resident, because they wait for each other. With an equal share of the multiprocessors for
 * each part every block can have one of its own, whatever the plans of the parts are. */
static int32_t
most_blocks_of(const ps_part &p, const ps_cuda_device *device)
{
    return p.step == PS_PART_WHOLE && p.sharing > 1
               ? std::max(device->processors / p.sharing, 1)
               : 0;
}

/* Tiling::aligned of a batch of numbers of some bytes. */
static bool
is_aligned(const ps_tridiag &t, const Tiling &how, int64_t size)
{
    const auto fits = [&](const void *data, const ps_stride &s) {
        return reinterpret_cast<uintptr_t>(data) % 16 == 0 && s.inner * size % 16 == 0;
    };

    return how.runs == 31 && how.shorts == 0 && t.outer == 1 && t.rows * size % 16 == 0 &&
           fits(t.lower.data, t.lower.stride) && fits(t.diag.data, t.diag.stride) &&
           fits(t.upper.data, t.upper.stride) && fits(t.rhs.data, t.rhs.stride) &&
           fits(t.x.data, t.x.stride);
}

template <typename Number>
static ps_status
solve(const ps_part &p, const Plan &plan, cudaStream_t stream)
{
    const bool periodic = (p.t.flags & PS_PERIODIC) != 0;
    const DeviceExchange<Number> devices = exchange_of<Number>(p);
    Job<Number> job = job_of<Number>(p.t, plan, p.marks, &devices.clock->tickets);

    job.devices = devices;
    job.tiling.aligned = is_aligned(p.t, plan.tiling, sizeof(Number));
    job.has_left = periodic || p.part > 0;
    job.has_next = periodic || p.part < p.count - 1;
    return launch_partition(job, TOP_DEVICES, plan, stream);
}

/* Write a call of no key into the logs, and count it. */
struct LeaveCall {
    DeviceExchange<float> devices;

    __device__ __forceinline__ void operator()() const
    {
        wait_for_last_kernel();
        devices.announce();
        __syncwarp();
        if (threadIdx.x == 0) {
            devices.log[devices.part]->calls++;
        }
    }
};

static ps_status
leave(const ps_part &p, cudaStream_t stream)
{
    DeviceExchange<float> devices = exchange_of<float>(p);

    devices.key = 0;
    return for_threads<32>(1, stream, LeaveCall{devices});
}

/* Let the kernel of this part that waits give up. The copy is not a kernel, for which there
 * may be no place, and its stream does not wait for the default stream. */
static ps_status
end(const ps_part &p)
{
    ps_part_log ended = {};
    cudaStream_t stream;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    if (error != cudaSuccess) {
        return ps_cuda_status(error);
    }
    for (int k = 0; k < PS_MOST_PARTS; k++) {
        ended.of_part[k].call = UINT64_MAX;
    }
    error =
        cudaMemcpyAsync(static_cast<ps_part_log *>(p.log[p.part])->of_part, ended.of_part,
                        sizeof ended.of_part, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess) {
        error = cudaStreamSynchronize(stream);
    }
    (void)cudaStreamDestroy(stream);
    return ps_cuda_status(error);
}

static bool
is_valid(const ps_part &p)
{
    const uint32_t refused = PS_SHORT_LOWER | PS_SHORT_UPPER;

    if (p.count < 2 || p.count > PS_MOST_PARTS || p.part < 0 || p.part >= p.count ||
        (p.t.flags & refused) != 0) {
        return false;
    }
    for (int k = 0; k < p.count; k++) {
        if (p.last_row[k] < (k > 0 ? p.last_row[k - 1] + 1 : 0)) {
            return false;
        }
    }
    return p.last_row[p.part] - (p.part > 0 ? p.last_row[p.part - 1] : -1) >= p.t.rows;
}

} // namespace pysolvers::partition

namespace pysolvers {

using namespace lines;
using namespace partition;

ps_status
ps_cuda_part_mailbox(const ps_part *p, size_t *bytes)
{
    return with_number(p->t.dtype, [&](auto zero) {
        const int64_t words =
            p->t.outer * p->t.inner * DeviceExchange<decltype(zero)>::words;

        *bytes = p->step == PS_PART_WHOLE
                     ? static_cast<size_t>(words * 2 * p->count) * sizeof(MailboxSlot)
                     : static_cast<size_t>(words) * sizeof(uint64_t);
        return PS_OK;
    });
}

namespace {

struct PartPlan {
    Plan plan;
    bool is_possible;
};

} // namespace

/* The plan of a part, with its batch merged; whether the device can solve it. */
static ps_status
plan_of(const ps_part &p, ps_part *own, Plan *plan)
{
    const ps_options options = {PS_PARTITION, PS_PIVOT_NEVER, 0};
    const ps_cuda_device *const device = ps_cuda_device_get();
    const ps_status status = ps_tridiag_check(&p.t, &options);

    if (status != PS_OK) {
        return status;
    }
    if (!is_valid(p)) {
        return PS_BAD_ARGUMENT;
    }
    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    *own = p;
    if (p.t.outer == 0 || p.t.inner == 0) {
        return PS_OK;
    }
    own->t = ps_cuda_merged(&p.t);

    static thread_local Remembered<Geometry, PartPlan, 8> known;
    const PartPlan &found =
        remembered_plan(known, geometry_of(own->t, device, p.count), [&] {
            PartPlan made = {};

            made.is_possible =
                ps_cuda_plan(&own->t, device,
                             ps_cuda_choose_block(&own->t, device, p.count), &made.plan);
            return made;
        });
    *plan = found.plan;
    plan->most_blocks = most_blocks_of(p, device);
    return found.is_possible ? PS_OK : PS_UNSUPPORTED;
}

ps_status
ps_cuda_part_check(const ps_part *p)
{
    ps_part own;
    Plan plan;

    return plan_of(*p, &own, &plan);
}

ps_status
ps_cuda_part_solve(const ps_part *p, const ps_exec *exec)
{
    ps_part own;
    Plan plan;

    if (p->step == PS_PART_LEAVE) {
        return leave(*p, ps_cuda_stream(exec));
    }
    if (p->step == PS_PART_BARRIER || p->step == PS_PART_FAIL) {
        return ps_cuda_barrier(p, exec);
    }
    if (p->step == PS_PART_END) {
        return end(*p);
    }
    const ps_status status = plan_of(*p, &own, &plan);

    if (status != PS_OK || p->t.outer == 0 || p->t.inner == 0) {
        return status;
    }
    return with_number(p->t.dtype, [&](auto zero) {
        return solve<decltype(zero)>(own, plan, ps_cuda_stream(exec));
    });
}

} // namespace pysolvers
