/* transfer.cu - copies between the memories of host and device.
 *
 * A copy goes through two pinned buffers per device: the host fills or empties one of
 * them while the other is transferred. One host thread copies more slowly than the bus,
 * so large copies use helper threads. A thread that finds the buffers in use copies
 * without them.
 */
#include "runtime/memory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "runtime/device.h"
#include "runtime/elements.cuh"

namespace pysolvers::runtime {

static constexpr size_t piece_bytes = size_t(8) << 20;

/* Size from which helper threads copy, and the number of threads. */
static constexpr size_t team_least = size_t(16) << 20;
static constexpr unsigned most_members = 4;

/* A helper yields so many times before it sleeps. */
static constexpr int spin_limit = 2000;
static constexpr std::chrono::microseconds sleep_time{50};

namespace {

/* Threads that copy memory together with the thread that made them. They end with the
 * object. */
class Team {
  public:
    explicit Team(size_t bytes)
    {
        const unsigned members =
            bytes < team_least
                ? 1
                : std::min(most_members, std::thread::hardware_concurrency());

        while (helpers_ + 1 < members && add_helper()) {
        }
    }

    ~Team()
    {
        turn_.store(last_turn, std::memory_order_release);
        for (unsigned k = 0; k < helpers_; k++) {
            helper_[k].join();
        }
    }

    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    void copy(char *to, const char *from, size_t bytes)
    {
        to_ = to;
        from_ = from;
        bytes_ = bytes;
        is_done_.store(0, std::memory_order_relaxed);
        turn_.fetch_add(1, std::memory_order_release);
        copy_share(0);
        while (is_done_.load(std::memory_order_acquire) != helpers_) {
            std::this_thread::yield();
        }
    }

  private:
    static constexpr int64_t last_turn = INT64_MAX;

    bool add_helper()
    {
        try {
            helper_[helpers_] = std::thread(&Team::help, this, helpers_ + 1);
        } catch (const std::exception &) {
            return false; /* the other threads copy the rest */
        }
        helpers_++;
        return true;
    }

    void help(unsigned member)
    {
        for (int64_t turn = 1;; turn++) {
            int64_t now;

            for (int idle = 0; (now = turn_.load(std::memory_order_acquire)) < turn;
                 idle += idle < spin_limit) {
                if (idle < spin_limit) {
                    std::this_thread::yield();
                }
                else {
                    std::this_thread::sleep_for(sleep_time);
                }
            }
            if (now == last_turn) {
                return;
            }
            copy_share(member);
            is_done_.fetch_add(1, std::memory_order_release);
        }
    }

    void copy_share(unsigned member) const
    {
        const size_t share = bytes_ / (helpers_ + 1) / 64 * 64;
        const size_t begin = member * share;
        const size_t end = member == helpers_ ? bytes_ : begin + share;

        memcpy(to_ + begin, from_ + begin, end - begin);
    }

    std::thread helper_[most_members - 1];
    unsigned helpers_ = 0;
    char *to_ = nullptr;
    const char *from_ = nullptr;
    size_t bytes_ = 0;
    std::atomic<int64_t> turn_{0};
    std::atomic<unsigned> is_done_{0};
};

/* Two buffers of pinned host memory. A buffer may be filled again when its event has
 * been passed. */
struct Staging {
    std::atomic_flag is_in_use = ATOMIC_FLAG_INIT;
    bool is_made;
    char *piece[2];
    cudaEvent_t event[2];
};

} // namespace

static bool
make_staging(Staging *s)
{
    for (int k = 0; k < 2; k++) {
        if (s->piece[k] == nullptr &&
            cudaHostAlloc(reinterpret_cast<void **>(&s->piece[k]), piece_bytes,
                          cudaHostAllocDefault) != cudaSuccess) {
            return false;
        }
        if (s->event[k] == nullptr &&
            cudaEventCreateWithFlags(&s->event[k], cudaEventDisableTiming) !=
                cudaSuccess) {
            return false;
        }
    }
    return true;
}

/* Acquire the buffers of the current device; null if another thread, or a caller
 * further up in this thread, uses them, or if they cannot be made. */
static Staging *
acquire_staging(int device)
{
    static Staging all[PS_CUDA_MAX_DEVICES];
    Staging *const s = &all[device];

    if (s->is_in_use.test_and_set(std::memory_order_acquire)) {
        return nullptr;
    }
    s->is_made = s->is_made || make_staging(s);
    if (!s->is_made) {
        (void)cudaGetLastError();
        s->is_in_use.clear(std::memory_order_release);
        return nullptr;
    }
    return s;
}

static void
release_staging(Staging *s)
{
    s->is_in_use.clear(std::memory_order_release);
}

static ps_status
wait_for_piece(const Staging *s, int k, const ps_exec *exec)
{
    return ps_cuda_wait_event(s->event[k], exec);
}

/* Enqueue a copy between a buffer and the device, and the event after it. */
static ps_status
enqueue(void *to, const void *from, size_t bytes, const Staging *s, int k,
        const ps_exec *exec)
{
    cudaError_t error =
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, ps_cuda_stream(exec));

    if (error == cudaSuccess) {
        error = cudaEventRecord(s->event[k], ps_cuda_stream(exec));
    }
    return ps_cuda_status(error);
}

static size_t
piece_at(size_t begin, size_t bytes)
{
    return bytes - begin < piece_bytes ? bytes - begin : piece_bytes;
}

static ps_status
upload_staged(char *to, const char *from, size_t bytes, const Staging *s,
              const ps_exec *exec)
{
    Team team(bytes);
    ps_status status = PS_OK;
    int k = 0;

    for (size_t at = 0; at < bytes && status == PS_OK; at += piece_bytes, k ^= 1) {
        const size_t count = piece_at(at, bytes);

        status = wait_for_piece(s, k, exec);
        if (status == PS_OK) {
            team.copy(s->piece[k], from + at, count);
            status = enqueue(to + at, s->piece[k], count, s, k, exec);
        }
    }
    return status;
}

/* Download: the next piece is transferred while the previous one is copied out of its
 * buffer. */
static ps_status
download_staged(char *to, const char *from, size_t bytes, const Staging *s,
                const ps_exec *exec)
{
    const auto enqueue_piece = [=](size_t at, int k) {
        const ps_status free = at < bytes ? wait_for_piece(s, k, exec) : PS_OK;

        return at < bytes && free == PS_OK
                   ? enqueue(s->piece[k], from + at, piece_at(at, bytes), s, k, exec)
                   : free;
    };
    ps_status status = enqueue_piece(0, 0);

    if (status == PS_OK) {
        status = enqueue_piece(piece_bytes, 1);
    }
    if (status == PS_OK) {
        /* waits for all earlier work of the stream as well */
        status = wait_for_piece(s, 0, exec);
    }
    Team team(bytes);
    int k = 0;
    for (size_t at = 0; at < bytes && status == PS_OK; at += piece_bytes, k ^= 1) {
        status = wait_for_piece(s, k, exec);
        if (status == PS_OK) {
            team.copy(to + at, s->piece[k], piece_at(at, bytes));
            status = enqueue_piece(at + 2 * piece_bytes, k);
        }
    }
    return status;
}

namespace {

struct SmallUpload {
    unsigned char *to;
    unsigned char bytes[PS_SMALL_BYTES];

    __device__ __forceinline__ void operator()(int64_t i) const
    {
        to[i] = bytes[i];
    }
};

} // namespace

static ps_status
upload_small(void *to, const void *from, size_t bytes, const ps_exec *exec)
{
    SmallUpload upload = {static_cast<unsigned char *>(to), {}};

    memcpy(upload.bytes, from, bytes);
    return for_elements<PS_SMALL_BYTES>(static_cast<int64_t>(bytes), ps_cuda_stream(exec),
                                        upload);
}

/* Copy without the pinned buffers. The memory of the caller may be pinned, so the
 * function waits for the copy. */
static ps_status
copy_plainly(void *to, const void *from, size_t bytes, const ps_exec *exec)
{
    ps_status status = ps_cuda_wait(exec); /* here the wait can be interrupted */

    if (status == PS_OK) {
        status = ps_cuda_copy(to, from, bytes, exec);
    }
    return status == PS_OK ? ps_cuda_wait(exec) : status;
}

ps_status
ps_cuda_upload(void *to, const void *from, size_t bytes, const ps_exec *exec)
{
    if (bytes == 0) {
        return PS_OK;
    }
    if (bytes <= PS_SMALL_BYTES) {
        return upload_small(to, from, bytes, exec);
    }
    Staging *const s = acquire_staging(exec->device);
    if (s == nullptr) {
        return copy_plainly(to, from, bytes, exec);
    }
    const ps_status status = upload_staged(
        static_cast<char *>(to), static_cast<const char *>(from), bytes, s, exec);
    release_staging(s);
    return status;
}

ps_status
ps_cuda_download(void *to, const void *from, size_t bytes, const ps_exec *exec)
{
    Staging *const s = bytes == 0 ? nullptr : acquire_staging(exec->device);

    if (s == nullptr) {
        return copy_plainly(to, from, bytes, exec);
    }
    const ps_status status = download_staged(
        static_cast<char *>(to), static_cast<const char *>(from), bytes, s, exec);
    release_staging(s);
    return status;
}

} // namespace pysolvers::runtime
