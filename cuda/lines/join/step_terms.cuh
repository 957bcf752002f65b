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

/* What the kernels of steps are compiled for; more: a source, perhaps a mask; flux: all
 * kinds of fluxes. */
enum class StepKind { bare, masked, more, flux };

/* What kernels of fluxes are compiled for: inner faces only; a source, perhaps a mask,
 * something enters through an outer face. */
enum class FluxKind { bare, more };

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

    FluxKind flux_kind() const
    {
        const bool has_more = where.data != nullptr || source.data != nullptr ||
                              flux[0].data != nullptr || flux[1].data != nullptr ||
                              value[0].data != nullptr || value[1].data != nullptr;

        return has_more ? FluxKind::more : FluxKind::bare;
    }
    StepKind kind() const
    {
        return is_flux                  ? StepKind::flux
               : source.data != nullptr ? StepKind::more
               : where.data != nullptr  ? StepKind::masked
                                        : StepKind::bare;
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

/* Bit k, a constant, from one word. */
__device__ __forceinline__ bool
bit_of(uint32_t bits, int k)
{
    return (bits >> k & 1u) != 0;
}

__device__ __forceinline__ bool
bit_of(uint64_t bits, int k)
{
    return k < 32 ? bit_of(static_cast<uint32_t>(bits), k)
                  : bit_of(static_cast<uint32_t>(bits >> 32), k - 32);
}

/* Whether x of row i of a chunk is u. */
template <typename Bits>
__device__ __forceinline__ bool
keeps_u(Bits inside, int i)
{
    return !bit_of(inside, i + 1);
}

/* Whether a row is inside, and whether it and its neighbours are. */
struct RowInside {
    bool itself, left, right;

    /* Row i of a chunk. Bit i of inside & inside >> 1 is that of rows i - 1 and i, so that
     * a row tests two bits. */
    template <typename Bits> __device__ __forceinline__ RowInside(Bits inside, int i)
    {
        const Bits both = inside & inside >> 1;

        itself = bit_of(inside, i + 1);
        left = bit_of(both, i);
        right = bit_of(both, i + 1);
    }
};

/* by x, for a real number `by`. */
template <typename Number>
__device__ __forceinline__ Number
scaled(real_of<Number> by, Number x)
{
    if constexpr (number_traits<Number>::is_complex) {
        return {by * x.re, by * x.im};
    }
    else {
        return by * x;
    }
}

/* The numbers in the precision of the kernel. */
template <typename Number> struct StepNumbers {
    real_of<Number> own, couple, product, weight;
    const uint32_t *words;

    /* The row from its coefficients, u, and its element of A u, without the source. */
    __device__ __forceinline__ Row<Number> row(Number lower, Number diag, Number upper,
                                               Number u, Number of_u) const
    {
        /* An element that is not finite is not multiplied by 0. */
        const Number rhs = product != 0 ? u + scaled(product, of_u) : u;

        return {scaled(couple, lower), Number(own) + scaled(couple, diag),
                scaled(couple, upper), rhs};
    }
    /* The same from u of the row and its neighbours. */
    __device__ __forceinline__ Row<Number> row(Number lower, Number diag, Number upper,
                                               Number before, Number u,
                                               Number behind) const
    {
        return row(lower, diag, upper, u, lower * before + diag * u + upper * behind);
    }
    /* The same with a mask. Without branches, so that the rows of a chunk overlap. */
    template <bool HAS_SOURCE>
    __device__ __forceinline__ Row<Number>
    row(const RowInside &row_is, Number lower, Number diag, Number upper, Number before,
        Number u, Number behind, [[maybe_unused]] Number source) const
    {
        const auto [is_inside, has_left, has_right] = row_is;
        Row<Number> made =
            row(has_left ? lower : Number(0), diag, has_right ? upper : Number(0),
                has_left ? before : Number(0), u, has_right ? behind : Number(0));

        if constexpr (HAS_SOURCE) {
            made.rhs = made.rhs + weight * source;
        }
        return {made.lower, is_inside ? made.diag : Number(1), made.upper,
                is_inside ? made.rhs : Number(0)};
    }
};

template <typename Number>
inline StepNumbers<Number>
step_numbers_of(const StepTerms &t)
{
    using Real = real_of<Number>;

    return {static_cast<Real>(t.own), static_cast<Real>(t.couple),
            static_cast<Real>(t.product), static_cast<Real>(t.weight), t.words};
}

/* A face between two rows: k, and (gain - 1) k (u after it - u before it), which both rows
 * have, with opposite signs. */
template <typename Real> struct FluxFace {
    Real k, old;
};

/* What enters through an outer face: what is added to the row sum, and to the load. */
template <typename Real> struct FluxEntry {
    Real sum, load;
};

/* What the rows of fluxes are made with. */
template <typename Real> struct FluxRows {
    Real step, gain, more; /* more: gain - 1 */
    bool has_source;

    /* 2 h / (d + d of the neighbour): k per K of a face. */
    __device__ __forceinline__ Real per_face(Real d, Real of_neighbour) const
    {
        return 2 * step * fast_reciprocal(d + of_neighbour);
    }

    /* The face between rows with u and `behind`. */
    __device__ __forceinline__ FluxFace<Real> face(Real k, Real u, Real behind) const
    {
        return {k, more * (k * (behind - u))};
    }
    /* The same if both rows are inside, otherwise none. */
    __device__ __forceinline__ FluxFace<Real> face(bool is_inside, Real k, Real u,
                                                   Real behind) const
    {
        const FluxFace<Real> f = face(k, u, behind);

        return {is_inside ? f.k : Real(0), is_inside ? f.old : Real(0)};
    }

    /* The face before row i of a chunk. */
    template <FluxKind KIND, typename Bits>
    __device__ __forceinline__ FluxFace<Real> face_before([[maybe_unused]] Bits inside,
                                                          [[maybe_unused]] int i, Real k,
                                                          Real u, Real behind) const
    {
        if constexpr (KIND == FluxKind::more) {
            return face(RowInside(inside, i).left, k, u, behind);
        }
        else {
            return face(k, u, behind);
        }
    }

    /* What enters through an outer face with flux(), or with value() behind it, into a row
     * with the thickness d(); the face has the diffusivity outer(). */
    template <typename Flux, typename Value, typename Outer, typename Thickness>
    __device__ __forceinline__ FluxEntry<Real>
    entry(bool has_flux, const Flux &flux, bool has_value, const Value &value,
          const Outer &outer, const Thickness &d) const
    {
        FluxEntry<Real> e = {Real(0), Real(0)};

        if (has_flux) {
            e.load = step * flux();
        }
        if (has_value) {
            e.sum = 2 * step * outer() * reciprocal(d());
            e.load += e.sum * value();
        }
        return e;
    }

    /* The row from its faces. */
    __device__ __forceinline__ Row<BySums<Real>>
    row(const FluxFace<Real> &left, Real d, const FluxFace<Real> &right, Real u) const
    {
        return {-left.k, d, -right.k, with_old(d * u, right.old - left.old)};
    }
    /* The same with what enters through an outer face, `sum` and `load`, a source, a
     * mask. */
    __device__ __forceinline__ Row<BySums<Real>>
    row(bool is_inside, const FluxFace<Real> &left, Real d, const FluxFace<Real> &right,
        Real u, Real source, Real sum, Real load) const
    {
        if (has_source) {
            load += step * d * source;
        }
        const Real rhs =
            with_old(d * u + gain * load, (right.old - left.old) - more * (sum * u));

        return {-left.k, is_inside ? d + sum : Real(1), -right.k,
                is_inside ? rhs : Real(0)};
    }

  private:
    /* A loss that is not finite is not multiplied by 0. */
    __device__ __forceinline__ Real with_old(Real rhs, Real old) const
    {
        return more != Real(0) ? rhs + old : rhs;
    }
};

template <typename Real>
inline FluxRows<Real>
flux_rows_of(const StepTerms &t)
{
    return {static_cast<Real>(t.step), static_cast<Real>(t.gain),
            static_cast<Real>(t.gain - 1), t.source.data != nullptr};
}

template <typename Real> struct FluxNumbers : FluxRows<Real> {
    bool has_ends;          /* whether something enters through a face */
    bool has_one_thickness; /* for all systems; and then one diffusivity of a face */
    bool has_one_diffusivity;
    const uint32_t *words;
    const int32_t *ends;
    Input<Real> flux[2], value[2];
};

template <typename Real>
inline FluxNumbers<Real>
flux_numbers_of(const StepTerms &t, bool has_one_thickness, bool has_one_diffusivity)
{
    FluxNumbers<Real> n = {flux_rows_of<Real>(t),
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
