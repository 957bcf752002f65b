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
 * row of the identity with the right-hand side 0.
 *
 * The row of PS_STEP_FLUX, in row-sum form, comes from the diffusivities K of the faces
 * before and after it, and from the thicknesses d and u of it and of its neighbours:
 *
 *   -k_lower, d, -k_upper,  k = 2 h K / (d + d of the neighbour),
 *   d u + gain h d source - (gain - 1) (k_lower (u - u[i-1]) + k_upper (u - u[i+1]))
 *
 * and in the first and the last inner row of a system what enters through its outer face:
 * k = 2 h K / d is added to the row sum, gain (h flux + k value) - (gain - 1) k u to the
 * right-hand side. 16 operations and a reciprocal more than a solve. Four words per
 * unknown, K, d, u and x, of which those of d, or of d and K, are none if all systems have
 * the same; one word more with a source. The sum of two thicknesses and its reciprocal are
 * normal numbers.
 *
 * Bit i + 1 of the bits of a mask for a chunk is that of row i of the chunk; bits 0 and rows
 * + 1 are those of the rows before and after it, which of a periodic system are those of
 * its ends.
 */
#ifndef PS_CUDA_LINES_JOIN_STEP_TERMS_CUH
#define PS_CUDA_LINES_JOIN_STEP_TERMS_CUH

#include <type_traits>

#include "device/operand.cuh"
#include "lines/join/row_sums.cuh"
#include "ps_step.h"

namespace pysolvers::join {

using namespace device;

/* What the kernels of steps are compiled for; more: a source, a mask, or both. */
enum class StepKind { bare, more, flux };

struct StepTerms {
    double own, couple, product, weight;
    ps_input source;       /* null data: none */
    ps_mask where;         /* null data: none; its batch axes are those of the step, */
    int64_t inner;         /* of which this is the length of the inner one */
    const uint32_t *words; /* null, or the bits of the mask for strided systems */
    /* of PS_STEP_FLUX */
    bool is_flux;
    double step, gain;
    ps_input flux[2], value[2]; /* null data: none */
    const int32_t *ends;        /* null, or the first inner row of each system, and then
                                   the last one of each */

    bool has_more() const
    {
        return where.data != nullptr || source.data != nullptr ||
               flux[0].data != nullptr || flux[1].data != nullptr ||
               value[0].data != nullptr || value[1].data != nullptr;
    }
    StepKind kind() const
    {
        return is_flux ? StepKind::flux : has_more() ? StepKind::more : StepKind::bare;
    }
};

/* The words of the bits of a chunk, and their type. */
__host__ __device__ constexpr int
mask_words(int chunk_rows)
{
    return chunk_rows > 30 ? 2 : 1;
}

template <int ROWS>
using MaskBits = std::conditional_t<(mask_words(ROWS) > 1), uint64_t, uint32_t>;

/* Whether x of row i of a chunk is u. */
template <typename Bits>
__device__ __forceinline__ bool
keeps_u(Bits inside, int i)
{
    return (inside >> (i + 1) & 1u) == 0;
}

/* The numbers in the precision of the kernel. */
template <typename Number> struct StepNumbers {
    Number own, couple, product, weight;
    bool has_source;
    const uint32_t *words;

    /* The row from its operands. */
    __device__ __forceinline__ Row<Number> row(Number lower, Number diag, Number upper,
                                               Number before, Number u, Number behind,
                                               Number source) const
    {
        const Number sum = lower * before + diag * u + upper * behind;
        /* A sum that is not finite is not multiplied by 0. */
        const Number old = product != Number(0) ? product * sum : Number(0);
        const Number added = has_source ? weight * source : Number(0);

        return {couple * lower, own + couple * diag, couple * upper, u + old + added};
    }
    /* The same with a mask: bits 0, 1 and 2 of `inside` are those of the row before the
     * row, of itself and of the row after it. Without branches, so that the rows of a
     * chunk overlap. */
    __device__ __forceinline__ Row<Number> row(uint32_t inside, Number lower, Number diag,
                                               Number upper, Number before, Number u,
                                               Number behind, Number source) const
    {
        const bool is_inside = (inside & 2u) != 0;
        const bool has_left = (inside & 3u) == 3u, has_right = (inside & 6u) == 6u;
        const Row<Number> made =
            row(has_left ? lower : Number(0), diag, has_right ? upper : Number(0),
                has_left ? before : Number(0), u, has_right ? behind : Number(0), source);

        return {made.lower, is_inside ? made.diag : Number(1), made.upper,
                is_inside ? made.rhs : Number(0)};
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

template <typename Real> struct FluxNumbers {
    Real step, gain;
    bool has_source, has_ends; /* has_ends: whether something enters through a face */
    bool has_one_thickness;    /* for all systems; and then one diffusivity of a face */
    bool has_one_diffusivity;
    const uint32_t *words;
    const int32_t *ends;
    Input<Real> flux[2], value[2];

    /* 2 h / (d + d of the neighbour): k per K of a face. */
    __device__ __forceinline__ Real per_face(Real d, Real of_neighbour) const
    {
        return 2 * step * fast_reciprocal(d + of_neighbour);
    }

    /* The row from k of its faces. */
    __device__ __forceinline__ Row<BySums<Real>>
    row(Real lower, Real d, Real upper, Real before, Real u, Real behind) const
    {
        const Real more = gain - 1;
        Real rhs = d * u;

        if (more != Real(0)) { /* a loss that is not finite is not multiplied by 0 */
            rhs -= more * (lower * (u - before) + upper * (u - behind));
        }
        return {-lower, d, -upper, rhs};
    }
    /* The same with what enters through an outer face, `sum` and `load`, a source, a mask.
     * Bits of `inside` as of StepNumbers. */
    __device__ __forceinline__ Row<BySums<Real>> row(uint32_t inside, Real lower, Real d,
                                                     Real upper, Real before, Real u,
                                                     Real behind, Real source, Real sum,
                                                     Real load) const
    {
        const bool is_inside = (inside & 2u) != 0;
        const bool has_left = (inside & 3u) == 3u, has_right = (inside & 6u) == 6u;
        const Real more = gain - 1;

        lower = has_left ? lower : Real(0);
        upper = has_right ? upper : Real(0);
        if (has_source) {
            load += step * d * source;
        }
        Real rhs = d * u + gain * load;

        if (more != Real(0)) { /* a loss that is not finite is not multiplied by 0 */
            const Real loss = lower * (u - (has_left ? before : u)) +
                              upper * (u - (has_right ? behind : u)) + sum * u;

            rhs -= more * loss;
        }
        return {-lower, is_inside ? d + sum : Real(1), -upper, is_inside ? rhs : Real(0)};
    }
};

template <typename Real>
inline FluxNumbers<Real>
flux_numbers_of(const StepTerms &t, bool has_one_thickness, bool has_one_diffusivity)
{
    FluxNumbers<Real> n = {static_cast<Real>(t.step),
                           static_cast<Real>(t.gain),
                           t.source.data != nullptr,
                           false,
                           has_one_thickness,
                           has_one_diffusivity,
                           t.words,
                           t.ends,
                           {},
                           {}};

    for (int end = 0; end < 2; end++) {
        n.flux[end] = input_of<Real>(t.flux[end]);
        n.value[end] = input_of<Real>(t.value[end]);
        n.has_ends =
            n.has_ends || t.flux[end].data != nullptr || t.value[end].data != nullptr;
    }
    return n;
}

/* The bits of a mask for systems that are cut into `chunks` chunks of chunk_rows rows,
 * whose last one ends with the system: word h of chunk c of a system at (c
 * mask_words(chunk_rows) + h) * systems + system. */
ps_status ps_cuda_step_words(const ps_mask &where, int64_t rows, int64_t outer,
                             int64_t inner, bool periodic, int chunk_rows, int chunks,
                             uint32_t *words, cudaStream_t stream);

} // namespace pysolvers::join

#endif
