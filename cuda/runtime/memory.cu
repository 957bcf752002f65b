/* memory.cu - device memory, the order of streams, and waiting.
 *
 * Stream-ordered memory comes from one pool per device. The pool keeps a part of the
 * memory that was released for later calls. Small blocks, the workspace of small batches,
 * are not returned to the pool: the next call on the same stream uses them again, ordered
 * by the stream, which costs less than an allocation.
 */
#include "runtime/memory.h"

#include <chrono>
#include <mutex>
#include <thread>

#include "runtime/device.h"

namespace pysolvers::runtime {

/* The pool keeps at most 1 / kept_part of the memory of the device. */
static constexpr size_t kept_part = 16;

/* A wait polls without sleeping for `spin_time`, then sleeps for `sleep_time` between
 * polls. */
static constexpr std::chrono::microseconds spin_time{500}, sleep_time{50};

static ps_status
memory_status(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? PS_NO_MEMORY : ps_cuda_status(error);
}

static cudaMemPool_t
make_pool(int device)
{
    const Relaxed relaxed;
    cudaMemPoolProps wanted = {};
    cudaMemPool_t pool = nullptr;
    size_t free = 0, total = 0;

    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location.type = cudaMemLocationTypeDevice;
    wanted.location.id = device;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess ||
        cudaMemPoolCreate(&pool, &wanted) != cudaSuccess) {
        return nullptr;
    }
    uint64_t kept = total / kept_part;
    (void)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept);
    return pool;
}

/* The pool of a device. Null if it does not exist yet and `is_made_if_missing` is false,
 * or if it cannot be made, for example because the device memory is full. */
static cudaMemPool_t
pool_of(int device, bool is_made_if_missing)
{
    static std::mutex lock;
    static cudaMemPool_t pools[PS_CUDA_MAX_DEVICES];
    const std::lock_guard<std::mutex> own(lock);

    if (pools[device] == nullptr && is_made_if_missing) {
        pools[device] = make_pool(device);
    }
    return pools[device];
}

static ps_status
allocate_from_pool(size_t bytes, const ps_exec *exec, void **data)
{
    cudaMemPool_t const pool = pool_of(exec->device, true);

    if (pool == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    return memory_status(
        cudaMallocFromPoolAsync(data, bytes, pool, ps_cuda_stream(exec)));
}

namespace {

/* A block that stays with its stream. Numbers of streams are never used again, so that a
 * new stream does not get the block of one that was destroyed and may still be busy. */
struct Kept {
    void *data;
    unsigned long long stream;
    int32_t device;
    bool is_in_use;
};

} // namespace

static constexpr int most_kept = 32;
static constexpr size_t kept_bytes = 16384;
static std::mutex kept_lock;
static Kept kept[most_kept];
static int kept_count;

/* The number of the stream; 0 if it is captured: a graph must own its memory. */
static unsigned long long
number_of(cudaStream_t stream)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
    unsigned long long number = 0;

    if (cudaStreamIsCapturing(stream, &capture) != cudaSuccess ||
        capture != cudaStreamCaptureStatusNone ||
        cudaStreamGetId(stream, &number) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return number;
}

/* A block of the stream that no call uses, perhaps a new one; null if there is none. */
static void *
take_kept(const ps_exec *exec)
{
    const unsigned long long stream = number_of(ps_cuda_stream(exec));
    const std::lock_guard<std::mutex> own(kept_lock);
    void *data = nullptr;

    for (int k = 0; stream != 0 && k < kept_count; k++) {
        Kept &block = kept[k];

        if (block.stream == stream && block.device == exec->device && !block.is_in_use) {
            block.is_in_use = true;
            return block.data;
        }
    }
    if (stream != 0 && kept_count < most_kept &&
        allocate_from_pool(kept_bytes, exec, &data) == PS_OK) {
        kept[kept_count++] = {data, stream, exec->device, true};
    }
    return data;
}

/* Whether the memory is a block that stays with its stream. */
static bool
leave_kept(const void *data)
{
    const std::lock_guard<std::mutex> own(kept_lock);

    for (int k = 0; k < kept_count; k++) {
        if (kept[k].data == data) {
            kept[k].is_in_use = false;
            return true;
        }
    }
    return false;
}

ps_status
ps_cuda_allocate(size_t bytes, const ps_exec *exec, void **data)
{
    *data = nullptr;
    if (bytes == 0) {
        return PS_OK;
    }
    *data = bytes <= kept_bytes ? take_kept(exec) : nullptr;
    return *data != nullptr ? PS_OK : allocate_from_pool(bytes, exec, data);
}

ps_status
ps_cuda_release(void *data, const ps_exec *exec)
{
    return data == nullptr || leave_kept(data)
               ? PS_OK
               : ps_cuda_status(cudaFreeAsync(data, ps_cuda_stream(exec)));
}

ps_status
ps_cuda_reserve(size_t bytes, void **data)
{
    *data = nullptr;
    return bytes == 0 ? PS_OK : memory_status(cudaMalloc(data, bytes));
}

ps_status
ps_cuda_discard(void *data)
{
    const Relaxed relaxed;

    return ps_cuda_status(cudaFree(data));
}

bool
ps_cuda_has_pool(const ps_exec *exec)
{
    return pool_of(exec->device, false) != nullptr;
}

/* The pool counts memory as released only after a synchronisation; queries of a stream,
 * with which ps_cuda_wait() waits, are none. */
ps_status
ps_cuda_trim(const ps_exec *exec)
{
    const Relaxed relaxed;
    const cudaError_t error = cudaDeviceSynchronize();

    return ps_cuda_status(error != cudaSuccess
                              ? error
                              : cudaMemPoolTrimTo(pool_of(exec->device, false), 0));
}

/* Poll query() until its result is not cudaErrorNotReady. */
template <typename Query>
static ps_status
wait_until(Query query, const ps_exec *exec)
{
    const auto begin = std::chrono::steady_clock::now();

    for (;;) {
        const cudaError_t error = query();

        if (error != cudaErrorNotReady) {
            return ps_cuda_status(error);
        }
        (void)cudaGetLastError(); /* clears cudaErrorNotReady, which the runtime keeps as
                                     well */
        if (exec->poll != nullptr && exec->poll(exec->poll_self)) {
            return PS_INTERRUPTED;
        }
        if (std::chrono::steady_clock::now() - begin > spin_time) {
            std::this_thread::sleep_for(sleep_time);
        }
    }
}

ps_status
ps_cuda_wait(const ps_exec *exec)
{
    return wait_until([=] { return cudaStreamQuery(ps_cuda_stream(exec)); }, exec);
}

ps_status
ps_cuda_wait_event(void *event, const ps_exec *exec)
{
    return wait_until([=] { return cudaEventQuery(static_cast<cudaEvent_t>(event)); },
                      exec);
}

ps_status
ps_cuda_copy(void *to, const void *from, size_t bytes, const ps_exec *exec)
{
    return ps_cuda_status(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, ps_cuda_stream(exec)));
}

ps_status
ps_cuda_order(void *first, const ps_exec *exec)
{
    cudaEvent_t event;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);

    if (error != cudaSuccess) {
        return PS_DEVICE_FAILURE;
    }
    error = cudaEventRecord(event, static_cast<cudaStream_t>(first));
    if (error == cudaSuccess) {
        error = cudaStreamWaitEvent(ps_cuda_stream(exec), event, 0);
    }
    (void)cudaEventDestroy(event); /* the event exists until it has been passed */
    return ps_cuda_status(error);
}

ps_status
ps_cuda_mark(const ps_exec *exec, void **mark)
{
    cudaEvent_t event;

    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) {
        return PS_DEVICE_FAILURE;
    }
    if (cudaEventRecord(event, ps_cuda_stream(exec)) != cudaSuccess) {
        (void)cudaEventDestroy(event);
        return PS_DEVICE_FAILURE;
    }
    *mark = event;
    return PS_OK;
}

ps_status
ps_cuda_mark_passed(void *mark, int32_t *passed)
{
    const cudaError_t error = cudaEventQuery(static_cast<cudaEvent_t>(mark));

    *passed = error != cudaErrorNotReady;
    if (*passed) {
        return ps_cuda_status(error);
    }
    (void)cudaGetLastError(); /* clears cudaErrorNotReady, which the runtime keeps as well
                               */
    return PS_OK;
}

ps_status
ps_cuda_mark_end(void *mark)
{
    return ps_cuda_status(cudaEventDestroy(static_cast<cudaEvent_t>(mark)));
}

} // namespace pysolvers::runtime
