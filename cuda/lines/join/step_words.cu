/* step_words.cu - the bits of a mask, a word for each chunk: step_terms.cuh.
 *
 * A kernel of its own, so that the kernels of steps load one word per chunk and not one
 * byte per row with its neighbours. The gain of this design was not measured.
 */
#include "lines/join/step_terms.cuh"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::join {

using namespace runtime;

static constexpr int threads_a_block = 256, at_once = 8;

namespace {

struct WordsJob {
    const uint8_t *where;
    ps_stride stride;
    int64_t rows, inner, systems, count;
    int32_t chunk_rows, chunks;
    bool periodic, by_system;
    uint32_t *words;
};

} // namespace

/* A thread per word. */
static __global__ void
__launch_bounds__(threads_a_block) step_words_kernel(const __grid_constant__ WordsJob job)
{
    const int64_t index = int64_t(blockIdx.x) * threads_a_block + threadIdx.x;

    if (index >= job.count) {
        return;
    }
    const int64_t fast = job.by_system ? job.chunks : job.systems;
    const int64_t slow = quotient(index, fast), rest = index - slow * fast;
    const int64_t system = job.by_system ? slow : rest;
    const int64_t chunk = job.by_system ? rest : slow;
    const int64_t j = quotient(system, job.inner), k = system - j * job.inner;
    const uint8_t *const own = job.where + j * job.stride.outer + k * job.stride.inner;
    const int64_t before = job.rows - (job.chunks - chunk) * job.chunk_rows - 1;
    uint32_t word = 0;

    /* several rows are loaded before one is used */
#pragma unroll 1
    for (int first = 0; first < job.chunk_rows + 2; first += at_once) {
        uint8_t inside[at_once];

#pragma unroll
        for (int k = 0; k < at_once; k++) {
            int64_t row = before + first + k;

            if (job.periodic && (row == -1 || row == job.rows)) {
                row = row < 0 ? job.rows - 1 : 0;
            }
            const bool is_there =
                first + k < job.chunk_rows + 2 && row >= 0 && row < job.rows;

            inside[k] = is_there ? own[row * job.stride.row] : uint8_t(0);
        }
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            word |= inside[k] != 0 ? 1u << (first + k) : 0u;
        }
    }
    job.words[index] = word;
}

ps_status
ps_cuda_step_words(const uint8_t *where, const ps_stride &stride, int64_t rows,
                   int64_t outer, int64_t inner, bool periodic, int chunk_rows,
                   int chunks, bool by_system, uint32_t *words, cudaStream_t stream)
{
    const int64_t systems = outer * inner, count = systems * chunks;
    const WordsJob job = {where,      stride, rows,     inner,     systems, count,
                          chunk_rows, chunks, periodic, by_system, words};

    return Launch(divided_up(count, threads_a_block), threads_a_block, 0, stream)
        .run(step_words_kernel, job);
}

} // namespace pysolvers::join
