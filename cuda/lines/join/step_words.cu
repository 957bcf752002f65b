/* step_words.cu - the bits of a mask for the chunks of strided systems: step_terms.cuh.
 *
 * A kernel of its own, so that the kernels of steps load a word per chunk and not a byte
 * per row with its neighbours. It moves a byte per unknown and a word or two per chunk, a
 * twentieth of what the step moves.
 */
#include "lines/join/step_terms.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::join {

using namespace runtime;

static constexpr int at_once = 8;

namespace {

/* The bytes of WIDTH neighbouring systems. */
template <int WIDTH> struct alignas(WIDTH) Bytes {
    uint8_t of[WIDTH];
};

/* The words of a chunk of WIDTH neighbouring systems. */
template <int WIDTH> struct StepWords {
    ps_mask where;
    int64_t rows, inner, systems;
    int32_t chunk_rows, chunks;
    bool periodic;
    uint32_t *words;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        const int64_t fast = systems / WIDTH, chunk = quotient(index, fast);
        const int64_t system = (index - chunk * fast) * WIDTH;
        const int64_t j = quotient(system, inner), k = system - j * inner;
        const ps_stride &stride = where.stride;
        const uint8_t *const own = where.data + j * stride.outer + k * stride.inner;
        const int64_t before = rows - (chunks - chunk) * chunk_rows - 1;
        const int count = mask_words(chunk_rows);

#pragma unroll 1
        for (int h = 0; h < count; h++) {
            const int end = min(chunk_rows + 2 - 32 * h, 32);
            uint32_t word[WIDTH] = {};

            /* several rows are loaded before one is used */
#pragma unroll 1
            for (int first = 0; first < end; first += at_once) {
                Bytes<WIDTH> inside[at_once];

#pragma unroll
                for (int r = 0; r < at_once; r++) {
                    int64_t row = before + 32 * h + first + r;

                    if (periodic && (row == -1 || row == rows)) {
                        row = row < 0 ? rows - 1 : 0;
                    }
                    inside[r] = {};
                    if (first + r < end && row >= 0 && row < rows) {
                        inside[r] = *reinterpret_cast<const Bytes<WIDTH> *>(
                            own + row * stride.row);
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
                words[(chunk * count + h) * systems + system + w] = word[w];
            }
        }
    }
};

template <int WIDTH>
ps_status
make_words(const StepWords<WIDTH> &operation, cudaStream_t stream)
{
    return for_elements(operation.systems / WIDTH * operation.chunks, stream, operation);
}

} // namespace

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

    return has_words_of_four(where, rows, outer, inner)
               ? make_words<4>(
                     {where, rows, inner, systems, chunk_rows, chunks, periodic, words},
                     stream)
               : make_words<1>(
                     {where, rows, inner, systems, chunk_rows, chunks, periodic, words},
                     stream);
}

} // namespace pysolvers::join
