/* step_words.cu - the bits of a mask for the chunks of strided systems: step_terms.cuh.
 *
 * A kernel of its own, so that the kernels of steps load a word per chunk and not a byte
 * per row with its neighbours. It moves a byte per unknown and a word or two per chunk, a
 * twentieth of what the step moves.
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
    int64_t rows, inner, systems, count; /* count: of threads */
    int32_t chunk_rows, chunks;
    bool periodic;
    uint32_t *words;
};

/* The bytes of WIDTH neighbouring systems. */
template <int WIDTH> struct alignas(WIDTH) Bytes {
    uint8_t of[WIDTH];
};

} // namespace

/* A thread per chunk of WIDTH neighbouring systems. */
template <int WIDTH>
static __global__ void
__launch_bounds__(threads_a_block) step_words_kernel(const __grid_constant__ WordsJob job)
{
    const int64_t index = int64_t(blockIdx.x) * threads_a_block + threadIdx.x;

    if (index >= job.count) {
        return;
    }
    const int64_t fast = job.systems / WIDTH, chunk = quotient(index, fast);
    const int64_t system = (index - chunk * fast) * WIDTH;
    const int64_t j = quotient(system, job.inner), k = system - j * job.inner;
    const uint8_t *const own = job.where + j * job.stride.outer + k * job.stride.inner;
    const int64_t before = job.rows - (job.chunks - chunk) * job.chunk_rows - 1;
    const int words = mask_words(job.chunk_rows);

#pragma unroll 1
    for (int h = 0; h < words; h++) {
        const int end = min(job.chunk_rows + 2 - 32 * h, 32);
        uint32_t word[WIDTH] = {};

        /* several rows are loaded before one is used */
#pragma unroll 1
        for (int first = 0; first < end; first += at_once) {
            Bytes<WIDTH> inside[at_once];

#pragma unroll
            for (int r = 0; r < at_once; r++) {
                int64_t row = before + 32 * h + first + r;

                if (job.periodic && (row == -1 || row == job.rows)) {
                    row = row < 0 ? job.rows - 1 : 0;
                }
                inside[r] = {};
                if (first + r < end && row >= 0 && row < job.rows) {
                    inside[r] = *reinterpret_cast<const Bytes<WIDTH> *>(
                        own + row * job.stride.row);
                }
            }
#pragma unroll
            for (int r = 0; r < at_once; r++) {
#pragma unroll
                for (int w = 0; w < WIDTH; w++) {
                    word[w] |= inside[r].of[w] != 0 ? 1u << (first + r) : 0u;
                }
            }
        }
#pragma unroll
        for (int w = 0; w < WIDTH; w++) {
            job.words[(chunk * words + h) * job.systems + system + w] = word[w];
        }
    }
}

/* Whether four neighbouring systems always lie in one word. */
static bool
has_words_of_four(const ps_mask &where, int64_t rows, int64_t outer, int64_t inner)
{
    const ps_stride &s = where.stride;

    return s.inner == 1 && inner % 4 == 0 && (rows == 1 || s.row % 4 == 0) &&
           (outer == 1 || s.outer % 4 == 0) &&
           reinterpret_cast<uintptr_t>(where.data) % 4 == 0;
}

ps_status
ps_cuda_step_words(const ps_mask &where, int64_t rows, int64_t outer, int64_t inner,
                   bool periodic, int chunk_rows, int chunks, uint32_t *words,
                   cudaStream_t stream)
{
    const int64_t systems = outer * inner;
    const int width = has_words_of_four(where, rows, outer, inner) ? 4 : 1;
    const int64_t count = systems / width * chunks;
    const WordsJob job = {where.data, where.stride, rows,   inner,    systems,
                          count,      chunk_rows,   chunks, periodic, words};

    return Launch(divided_up(count, threads_a_block), threads_a_block, 0, stream)
        .run(width == 4 ? step_words_kernel<4> : step_words_kernel<1>, job);
}

} // namespace pysolvers::join
