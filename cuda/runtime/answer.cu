/* answer.cu - pinned memory of the host that kernels write directly.
 *
 * A kernel that stores a few numbers there costs less than a copy of them: the host reads
 * them as soon as it has waited for the stream.
 */
#include "runtime/memory.h"

#include <atomic>
#include <cstddef>

namespace pysolvers::runtime {

static constexpr int blocks = 16;

/* Whether a block is in use, or was left to a stream that may still write it. */
static std::atomic_flag is_in_use[blocks];

/* All blocks, for all devices; null if there is no memory. */
static char *
make_memory()
{
    const Relaxed relaxed;
    void *memory = nullptr;

    if (cudaHostAlloc(&memory, size_t(blocks) * PS_ANSWER_BYTES, cudaHostAllocPortable) !=
        cudaSuccess) {
        (void)cudaGetLastError();
        return nullptr;
    }
    return static_cast<char *>(memory);
}

static char *
memory_of_blocks()
{
    static char *const memory = make_memory();

    return memory;
}

ps_status
ps_cuda_answer(void **data)
{
    char *const memory = memory_of_blocks();

    *data = nullptr;
    for (int k = 0; memory != nullptr && k < blocks; k++) {
        if (!is_in_use[k].test_and_set(std::memory_order_acquire)) {
            *data = memory + size_t(k) * PS_ANSWER_BYTES;
            return PS_OK;
        }
    }
    return PS_NO_MEMORY;
}

void
ps_cuda_answer_end(void *data, int32_t is_complete)
{
    const ptrdiff_t offset = static_cast<char *>(data) - memory_of_blocks();

    if (is_complete != 0) {
        is_in_use[offset / PS_ANSWER_BYTES].clear(std::memory_order_release);
    }
}

} // namespace pysolvers::runtime
