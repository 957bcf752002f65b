/* step_terms.cuh - the rows of an implicit step, made from those in memory in the kernels
 * that solve them.
 *
 * From lower, diag, upper and u of a row and its neighbours comes the row
 *
 *   couple lower, own + couple diag, couple upper,
 *   u + product (lower u[i-1] + diag u[i] + upper u[i+1]) + weight source
 *
 * which is that of PS_STEP_THETA with couple = -h, own = 1, product = (gain - 1) h and
 * weight = gain h, and of PS_STEP_MATRIX with 1, 0, 0 and 0. Five words per unknown as a
 * solve, 10 operations more, one word more with a source. A row outside of a mask is a
 * row of the identity with the right-hand side 0. The mask comes as words of bits, one
 * for each chunk: bit i + 1 is that of row i of the chunk, bits 0 and rows + 1 are those
 * of the rows before and after it, which of a periodic system are those of its ends.
 */
#ifndef PS_CUDA_LINES_JOIN_STEP_TERMS_CUH
#define PS_CUDA_LINES_JOIN_STEP_TERMS_CUH

#include "device/operand.cuh"
#include "lines/join/segment.cuh"

namespace pysolvers::join {

using namespace device;

struct StepTerms {
    double own, couple, product, weight;
    ps_input source;       /* null data: none */
    const uint32_t *words; /* null: all rows are inside */
};

/* The numbers in the precision of the kernel. */
template <typename Number> struct StepNumbers {
    Number own, couple, product, weight;
    bool has_source;
    const uint32_t *words;

    /* The row from its operands; bits 0, 1 and 2 of `inside` are those of the row before
     * it, of itself and of the row after it. Without branches, so that the rows of a
     * chunk overlap. */
    __device__ __forceinline__ Row<Number> row(uint32_t inside, Number lower, Number diag,
                                               Number upper, Number before, Number u,
                                               Number behind, Number source) const
    {
        const bool is_inside = (inside & 2u) != 0;
        const bool has_left = (inside & 3u) == 3u, has_right = (inside & 6u) == 6u;

        lower = has_left ? lower : Number(0);
        before = has_left ? before : Number(0);
        upper = has_right ? upper : Number(0);
        behind = has_right ? behind : Number(0);

        const Number sum = lower * before + diag * u + upper * behind;
        /* A sum that is not finite is not multiplied by 0. */
        const Number old = product != Number(0) ? product * sum : Number(0);
        const Number added = has_source ? weight * source : Number(0);

        return {couple * lower, is_inside ? own + couple * diag : Number(1),
                couple * upper, is_inside ? u + old + added : Number(0)};
    }
    /* Whether x of row i of a chunk is u, by the word of the chunk, of which all bits are
     * set without a mask. */
    static __device__ __forceinline__ bool keeps_u(uint32_t word, int i)
    {
        return (word >> (i + 1) & 1u) == 0;
    }
};

template <typename Number>
inline StepNumbers<Number>
step_numbers_of(const StepTerms &t)
{
    return {static_cast<Number>(t.own),     static_cast<Number>(t.couple),
            static_cast<Number>(t.product), static_cast<Number>(t.weight),
            t.source.data != nullptr,       t.words};
}

/* The words of a mask for systems that are cut into `chunks` chunks of chunk_rows rows,
 * whose last one ends with the system: word (chunk, system) at chunk * systems + system,
 * or at system * chunks + chunk if by_system. */
ps_status ps_cuda_step_words(const uint8_t *where, const ps_stride &stride, int64_t rows,
                             int64_t outer, int64_t inner, bool periodic, int chunk_rows,
                             int chunks, bool by_system, uint32_t *words,
                             cudaStream_t stream);

} // namespace pysolvers::join

#endif
