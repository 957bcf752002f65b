/* waves.cuh - the lanes that have the waves of a plane as cuFFT packs them, and the
 * combinations of their numbers: struct ps_wave_lines.
 *
 * A tile is `slots` neighbouring reals of one row of the plane, or half as many of a row
 * and of its mirror image, so that the reals that are combined lie in lanes of one warp.
 * The combination is a product of up to three rotations in planes of two reals: along the
 * values, of both rows, and along the rows. It is orthogonal, and apply() with the
 * opposite sign of the sines undoes it.
 *
 * 4 operations per real and rotation.
 */
#ifndef PS_CUDA_TRANSFORMS_WAVES_CUH
#define PS_CUDA_TRANSFORMS_WAVES_CUH

#include "device/number.cuh"
#include "ps_transform.h"

namespace pysolvers::transforms {

using device::Complex;

/* Whether the library transforms the even or odd extension of a line. */
__host__ __device__ constexpr bool
is_extended(ps_transform_kind kind)
{
    return kind == PS_DCT1 || kind == PS_DST1;
}

/* The place of value j of n in a line before the transform of the library. */
__host__ __device__ __forceinline__ int
wave_place(ps_transform_kind kind, int j, int n)
{
    if (kind == PS_DCT2 || kind == PS_DST2) {
        return j % 2 == 0 ? j / 2 : n - 1 - j / 2;
    }
    return kind == PS_DST1 ? j + 1 : j;
}

/* Where value i of `size` is in a field of `given` values, or that of which it is the mirror
 * image; other values are zero. The places are computed before the values are read, and one is read in any case: a
 * read that depends on a branch would wait for the one before (218 instead of 100 us for
 * 4097 x 4097 nodes on an H200). */
struct ContinuedPlace {
    int place;
    bool is_zero, is_negative;

    __host__ __device__ __forceinline__ ContinuedPlace(ps_transform_kind kind, int i,
                                                       int size, int given)
    {
        const bool is_sine = kind == PS_DST1 || kind == PS_DST2;
        const int about = 2 * given - (kind == PS_DST1 ? 0 : kind == PS_DCT1 ? 2 : 1);
        const int mirrored = i < given ? i : about - i;

        is_zero = i >= size || mirrored < 0 || mirrored >= given;
        is_negative = is_sine && i >= given;
        place = mirrored < 0 ? 0 : mirrored < given ? mirrored : given - 1;
    }
    template <typename Real> __host__ __device__ __forceinline__ Real of(Real y) const
    {
        return is_zero ? Real(0) : is_negative ? -y : y;
    }
};

/* The tiles of the waves of a plane; `length` of the transform along the values. */
struct WaveTiles {
    int rows, length;
    int slots; /* a power of two, at least 4 */

    __host__ __device__ __forceinline__ bool are_paired() const
    {
        return rows > 1;
    }
    /* Distance of the slots of a real and its mirror image; 0 if there is one row. */
    __host__ __device__ __forceinline__ int reach() const
    {
        return are_paired() ? slots / 2 : 0;
    }
    /* Whether the wave length/2 has the place of the imaginary part of wave 0. Both are
     * real if there is one row; without it a row is a multiple of the width of tiles more
     * often. */
    __host__ __device__ __forceinline__ bool are_folded() const
    {
        return !are_paired() && length % 2 == 0;
    }
    /* Reals of a row, an even number. */
    __host__ __device__ __forceinline__ int reals() const
    {
        return are_folded() ? length : 2 * (length / 2 + 1);
    }
    __host__ __device__ __forceinline__ int reals_of_tile() const
    {
        return are_paired() ? slots / 2 : slots;
    }
    __host__ __device__ __forceinline__ int along() const
    {
        return (reals() + reals_of_tile() - 1) / reals_of_tile();
    }
    __host__ __device__ __forceinline__ int64_t count() const
    {
        return int64_t(along()) * ((rows + 1) / 2);
    }
};

/* The real of a slot. A slot without one has that of another slot of the tile. */
struct WavePlace {
    int row, mirror, real;
    int column;     /* place of the real in the line */
    bool is_second; /* whether the row is the second one of its pair */
    bool exists;

    __host__ __device__ __forceinline__ WavePlace(const WaveTiles &t, int64_t tile,
                                                  int slot)
    {
        const int along = t.along();
        const int pair =
            static_cast<int>(static_cast<uint32_t>(tile) / static_cast<uint32_t>(along));
        const int first = (static_cast<int>(tile) - pair * along) * t.reals_of_tile();

        is_second = slot >= t.reals_of_tile();
        real = first + (is_second ? slot - t.reals_of_tile() : slot);
        exists = real < t.reals();
        real = exists ? real : t.reals() - 2 + real % 2;
        column = real == 1 && t.are_folded() ? t.length : real;
        row = mirror = pair;
        if (pair > 0) {
            row = is_second ? t.rows - pair : pair;
            mirror = t.rows - row;
        }
        else if (is_second) { /* rows 0 and rows/2, which are their own mirror images */
            exists = exists && t.rows % 2 == 0;
            row = mirror = t.rows % 2 == 0 ? t.rows / 2 : 0;
        }
    }
};

/* The rotations of a real. */
template <typename Real> struct WaveTurns {
    struct Turn {
        Real c, s;

        __host__ __device__ __forceinline__ Real apply(Real own, Real other) const
        {
            return c * own + s * other;
        }
        __host__ __device__ __forceinline__ Real undo(Real own, Real other) const
        {
            return c * own - s * other;
        }
    } values, both, rows;

    /* `turn` and `row_turn`: cosine and sine for the wave along the values, and for the
     * first row of the pair. */
    __host__ __device__ __forceinline__ WaveTurns(const WavePlace &p,
                                                  const Complex<Real> &turn,
                                                  const Complex<Real> &row_turn)
    {
        const bool is_imaginary = p.real % 2 != 0;
        const Real half = static_cast<Real>(0.70710678118654752440);

        values = {turn.re, is_imaginary ? -turn.im : turn.im};
        if (p.row == p.mirror) {
            both = rows = {Real(1), Real(0)};
        }
        else {
            const bool is_negative = is_imaginary != p.is_second;

            both = {half, is_negative ? -half : half};
            rows = {row_turn.re, is_negative ? -row_turn.im : row_turn.im};
        }
    }
};

} // namespace pysolvers::transforms

#endif
