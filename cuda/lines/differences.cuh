/* differences.cuh - the right-hand sides of ps_differences.h on a device. */
#ifndef PS_CUDA_LINES_DIFFERENCES_CUH
#define PS_CUDA_LINES_DIFFERENCES_CUH

#include "device/number.cuh"
#include "ps_differences.h"

namespace pysolvers::lines {

/* The weights of the differences of a line of `rows` rows. */
template <typename Real> struct Differences {
    static constexpr int ends = PS_DIFFERENCE_ENDS, most = PS_DIFFERENCE_POINTS;
    Real near, far, sign;
    int32_t rows, points;
    int32_t
        first[ends]; /* the point of the first weight of an end; negative: of a ring */
    Real end[ends][most];

    explicit Differences(const ps_differences &d)
        : near(static_cast<Real>(d.near)), far(static_cast<Real>(d.far)),
          sign(static_cast<Real>(d.is_even ? 1 : -1)), rows(static_cast<int32_t>(d.rows)),
          points(d.points), first(), end()
    {
        const bool is_ring = (d.flags & PS_PERIODIC) != 0;
        const Real ring[] = {sign * far, sign * near, Real(0), near, far};

        points = is_ring ? 5 : points;
        for (int i = 0; i < ends; i++) {
            first[i] = is_ring ? i - 2 : 0;
            for (int k = 0; k < points; k++) {
                end[i][k] = is_ring ? ring[k] : static_cast<Real>(d.end[i][k]);
            }
        }
    }

    /* The difference in an inner row, from the values of five rows. */
    __device__ __forceinline__ Real inner(Real before2, Real before, Real own, Real after,
                                          Real after2) const
    {
        return near * ((after - own) + sign * (before - own)) +
               far * ((after2 - own) + sign * (before2 - own));
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

    /* The row of point k of an end. */
    __device__ __forceinline__ int32_t point_of(int which, int k) const
    {
        const int32_t at = first[which & 1] + k, point = at < 0 ? at + rows : at;

        return which < ends ? point : rows - 1 - point;
    }

    /* The difference in an end with the value `own`; value(k) is that of point k. */
    template <typename Value>
    __device__ __forceinline__ Real sum_at_end(int which, Real own,
                                               const Value &value) const
    {
        const int i = which & 1;
        Real sum = 0;

#pragma unroll
        for (int k = 0; k < most; k++) {
            if (k < points) {
                sum += end[i][k] * (value(k) - own);
            }
        }
        return which < ends ? sum : sign * sum;
    }

    /* The same; value(row) is f in a row. All values of float32 at once would displace twenty
     * multipliers of a tile kernel from its registers. */
    template <typename Value>
    __device__ __forceinline__ Real at_end(int which, const Value &value) const
    {
        const int i = which & 1;
        const Real own = value(row_of(which));
        Real sum = 0;

#pragma unroll(sizeof(Real) == 4 ? 2 : most)
        for (int k = 0; k < most; k++) {
            if (k < points) {
                sum += end[i][k] * (value(point_of(which, k)) - own);
            }
        }
        return which < ends ? sum : sign * sum;
    }
};

} // namespace pysolvers::lines

#endif
