/* differences.cuh - the right-hand sides of ps_differences.h on a device. */
#ifndef PS_CUDA_LINES_DIFFERENCES_CUH
#define PS_CUDA_LINES_DIFFERENCES_CUH

#include "device/number.cuh"
#include "ps_differences.h"

namespace pysolvers::lines {

/* The difference in an inner row, from the values of five rows. */
template <bool IS_EVEN, typename Real>
__device__ __forceinline__ Real
inner_difference(Real near, Real far, Real before2, Real before, Real own, Real after,
                 Real after2)
{
    return IS_EVEN ? near * ((after - own) + (before - own)) +
                         far * ((after2 - own) + (before2 - own))
                   : near * (after - before) + far * (after2 - before2);
}

/* The weights of the differences of a line of `rows` rows. */
template <typename Real> struct Differences {
    static constexpr int ends = PS_DIFFERENCE_ENDS, most = PS_DIFFERENCE_POINTS;
    /* Points of an end that are read at once: more of float32 displace multipliers of a tile
     * kernel from its registers. */
    static constexpr int together = sizeof(Real) == 4 ? 4 : 8;
    Real near, far, sign;
    int32_t rows;
    int32_t points[ends],
        first[ends]; /* first: that of the first weight; negative: of a ring */
    Real end[ends][most];

    Differences() = default;
    explicit Differences(const ps_differences &d)
        : near(static_cast<Real>(d.near)), far(static_cast<Real>(d.far)),
          sign(static_cast<Real>(d.is_even ? 1 : -1)), rows(static_cast<int32_t>(d.rows)),
          points(), first(), end()
    {
        const bool is_ring = (d.flags & PS_PERIODIC) != 0;
        const Real ring[] = {sign * far, sign * near, Real(0), near, far};

        for (int i = 0; i < ends; i++) {
            points[i] = is_ring ? 5 : d.points[i];
            first[i] = is_ring ? i - 2 : 0;
            for (int k = 0; k < points[i]; k++) {
                end[i][k] = is_ring ? ring[k] : static_cast<Real>(d.end[i][k]);
            }
        }
    }

    __device__ __forceinline__ bool is_even() const
    {
        return sign > Real(0);
    }

    template <bool IS_EVEN>
    __device__ __forceinline__ Real inner(Real before2, Real before, Real own, Real after,
                                          Real after2) const
    {
        return inner_difference<IS_EVEN>(near, far, before2, before, own, after, after2);
    }

    /* Rows 0, 1, rows-1 and rows-2 are the ends 0, 1, 2 and 3. */
    __device__ __forceinline__ int32_t row_of(int which) const
    {
        const int32_t i = which & 1;

        return which < ends ? i : rows - 1 - i;
    }
    __device__ __forceinline__ bool is_end(int32_t row) const
    {
        return row < ends || row >= rows - ends;
    }
    __device__ __forceinline__ int end_of(int32_t row) const
    {
        return row < ends ? row : ends + rows - 1 - row;
    }

    /* add(weight, row) for each point of an end. */
    template <typename Add>
    __device__ __forceinline__ void each_point(int which, const Add &add) const
    {
        const int i = which & 1, count = points[i];
        const Real scale = which < ends ? Real(1) : sign;

#pragma unroll 1
        for (int k = 0; k < count; k += together) {
#pragma unroll
            for (int q = 0; q < together; q++) {
                const int32_t at = first[i] + k + q, point = at < 0 ? at + rows : at;

                if (k + q < count) {
                    add(scale * end[i][k + q], which < ends ? point : rows - 1 - point);
                }
            }
        }
    }

    /* The difference in an end; value(row) is f in a row. */
    template <typename Value>
    __device__ __forceinline__ Real at_end(int which, const Value &value) const
    {
        const Real own = value(row_of(which));
        Real sum = 0;

        each_point(which,
                   [&](Real weight, int32_t row) { sum += weight * (value(row) - own); });
        return sum;
    }
};

} // namespace pysolvers::lines

#endif
