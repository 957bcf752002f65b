/* mirrored.cuh - sums and differences of the values in mirror places of an axis, and back:
 * struct ps_waves, PS_MIRRORED.
 *
 * The products with the eigenvectors of an axis that is symmetric about its middle take half
 * the operations: sums of mirror places have the even ones, differences the odd ones. Those of
 * sines and of cosines of nodes that are waves of half the intervals are symmetric about a
 * quarter of the axis, too: with an even number N = 2m of intervals they take sums and
 * differences once more, so that 3/8 of the operations remain.
 *
 * A thread has the values of four places, which determine each other: t, m - t, m + t and
 * N - t, of nodes from 0 on, or two of them, i and n - 1 - i. A place that is its own mirror
 * image is added to itself. 2 or 4 additions per value.
 *
 * Rows of a multiple of 8 intervals are in five parts, so that 7/32 of the operations remain
 * (MirroredRows).
 */
#ifndef PS_CUDA_TRANSFORMS_MIRRORED_CUH
#define PS_CUDA_TRANSFORMS_MIRRORED_CUH

#include "ps_transform.h"

namespace pysolvers::transforms {

/* How the n values of an axis are folded. The parts of a line begin at places 0, `quarter` (of
 * cosines), 2 quarter and, of sines, 3 quarter. */
struct Mirroring {
    int n;
    ps_transform_kind kind; /* PS_DST1, PS_DCT1: twice; otherwise once */

    __host__ __device__ __forceinline__ bool is_twice() const
    {
        return (kind == PS_DST1 || kind == PS_DCT1) && n % 2 != 0;
    }
    __host__ __device__ __forceinline__ bool is_sine() const
    {
        return kind == PS_DST1;
    }
    /* Half the intervals of a line that is folded twice. */
    __host__ __device__ __forceinline__ int m() const
    {
        return is_sine() ? (n + 1) / 2 : (n - 1) / 2;
    }
    /* Groups of places: t = 0 .. groups() - 1. */
    __host__ __device__ __forceinline__ int groups() const
    {
        return is_twice() ? m() / 2 + 1 : (n + 1) / 2;
    }
    /* The value in slot 0 .. 3 of group t, or -1. */
    __host__ __device__ __forceinline__ int value(int t, int slot) const
    {
        if (!is_twice()) {
            return slot == 0 ? t : slot == 3 ? n - 1 - t : -1;
        }
        const int j = slot == 0   ? t
                      : slot == 1 ? m() - t
                      : slot == 2 ? m() + t
                                  : 2 * m() - t;

        return !is_sine() ? j : j == 0 || j == 2 * m() ? -1 : j - 1;
    }
    /* The number of a part in slot 0 .. 3 of group t, or -1; the part of the slot. */
    __host__ __device__ __forceinline__ int number(int t, int slot) const
    {
        if (!is_twice()) {
            return slot == 0 ? t : slot == 1 && 2 * t + 1 < n ? t : -1;
        }
        if (is_sine()) {
            return slot == 1                               ? m() - t - 1
                   : t == 0 || (slot == 3 && 2 * t == m()) ? -1
                                                           : t - 1;
        }
        return slot == 0   ? t
               : slot == 1 ? (2 * t < m() ? t : -1)
               : slot == 2 ? t
               : t > 0     ? m() - t
                           : -1;
    }
    __host__ __device__ __forceinline__ int part(int slot) const
    {
        return is_twice() && is_sine() ? (slot < 2 ? 0 : slot - 1) : slot < 2 ? slot : 2;
    }
    /* Numbers of a part; of a line that is folded once there are two, otherwise three. */
    __host__ __device__ __forceinline__ int size(int part) const
    {
        if (!is_twice()) {
            return part == 0 ? (n + 1) / 2 : n / 2;
        }
        if (is_sine()) {
            return part == 0 ? m() : part == 1 ? m() / 2 : (m() - 1) / 2;
        }
        return part == 0 ? m() / 2 + 1 : part == 1 ? (m() + 1) / 2 : m();
    }
    __host__ __device__ __forceinline__ int parts() const
    {
        return is_twice() ? 3 : 2;
    }
    /* Where a part begins in lines without gaps, and in those of `pitch` numbers. */
    __host__ __device__ __forceinline__ int start(int part) const
    {
        return (part > 0 ? size(0) : 0) + (part > 1 ? size(1) : 0);
    }
    __host__ __device__ __forceinline__ int start(int part, int pitch) const
    {
        const int quarter = pitch / 4;

        if (!is_twice()) {
            return 2 * quarter * part;
        }
        return part == 0 ? 0 : is_sine() ? quarter * (part + 1) : quarter * part;
    }
    __host__ __device__ __forceinline__ int end(int part, int pitch) const
    {
        return part + 1 < parts() ? start(part + 1, pitch) : pitch;
    }
    /* Numbers from one line to the next: the parts begin at multiples of 4. */
    __host__ __device__ __forceinline__ int pitch() const
    {
        return (((n + 1) / 2 + 1) / 2 + 3) / 4 * 16;
    }

    /* Numbers of the parts from the values of a group, in the slots. Values that do not exist
     * are zero. */
    template <typename Real>
    __host__ __device__ __forceinline__ void load(Real &a, Real &b, Real &c,
                                                  Real &d) const
    {
        const Real sum = a + d, rest = a - d, sum_mirror = b + c, rest_mirror = b - c;

        if (!is_twice()) {
            a = sum;
            b = rest;
        }
        else if (is_sine()) {
            a = sum;
            b = sum_mirror;
            c = rest + rest_mirror;
            d = rest - rest_mirror;
        }
        else {
            a = sum + sum_mirror;
            b = sum - sum_mirror;
            c = rest;
            d = rest_mirror;
        }
    }
    /* Values from what the products make of the numbers; those that do not exist are zero. */
    template <typename Real>
    __host__ __device__ __forceinline__ void store(Real &a, Real &b, Real &c,
                                                   Real &d) const
    {
        if (!is_twice()) {
            const Real sum = a, rest = b;

            a = sum + rest;
            d = sum - rest;
            return;
        }
        const bool sine = is_sine();
        const Real sum = sine ? a : a + b, sum_mirror = sine ? b : a - b;
        const Real rest = sine ? c + d : c, rest_mirror = sine ? c - d : d;

        a = sum + rest;
        d = sum - rest;
        b = sum_mirror + rest_mirror;
        c = sum_mirror - rest_mirror;
    }

    static constexpr int slots = 4;

    template <typename Real>
    __host__ __device__ __forceinline__ void load(Real (&x)[slots]) const
    {
        load(x[0], x[1], x[2], x[3]);
    }
    template <typename Real>
    __host__ __device__ __forceinline__ void store(Real (&x)[slots]) const
    {
        store(x[0], x[1], x[2], x[3]);
    }
};

/* An axis of nodes with N = 4m intervals, m even, in five parts: struct ps_waves,
 * PS_MIRRORED_IN_FIVE.
 *
 * The waves of odd order of sines are those of sums a[j] of mirror places, 1 <= j <= 2m, with
 * the angles theta = (q + 1/2) pi / 2m. From cos m theta = +-sqrt(1/2) and
 *
 *   sin (m + j) theta = 2 cos m theta sin j theta + sin (m - j) theta
 *
 * follows that the waves of one sign of cos m theta, q = 0, 3, 4, 7, 8, ... or the others, need m
 * numbers of all 2m (the first step of the polynomial transforms of Pueschel and Moura 2008):
 *
 *   sum_j a[j] sin j theta = sum_j b[j] sin j theta,   1 <= j <= m
 *   b[j] = a[j] + a[2m-j] +- sqrt(2) a[m+j],  b[m] = a[m] +- sqrt(2) a[2m]
 *
 * Those of cosines are the same of the differences of mirror places in reverse order, but for
 * signs of waves. The waves of even order are folded twice more, as those of half the intervals.
 *
 * A thread has the values of the eight places that differ from multiples of m by t or -t, in
 * the slots of HalvedLine<Real, 2>. 5 operations per value. */
struct MirroredRows {
    static constexpr int slots = 8;
    int n;
    ps_transform_kind kind; /* PS_DST1 or PS_DCT1 */

    __host__ __device__ __forceinline__ bool is_sine() const
    {
        return kind == PS_DST1;
    }
    __host__ __device__ __forceinline__ int m() const
    {
        return (is_sine() ? n + 1 : n - 1) / 4;
    }
    /* Groups of places: t = 0 .. groups() - 1. */
    __host__ __device__ __forceinline__ int groups() const
    {
        return m() / 2 + 1;
    }
    /* The value in slot 0 .. 7 of group t, or -1. */
    __host__ __device__ __forceinline__ int value(int t, int slot) const
    {
        const int j = slot % 2 == 0 ? slot / 2 * m() + t : (slot + 1) / 2 * m() - t;

        return !is_sine() ? j : j == 0 || j == 4 * m() ? -1 : j - 1;
    }
    /* The part of slot 0 .. 7 after load(): even and odd waves of a quarter of the intervals, with
     * the constant wave first; those of odd order of half the intervals; and those of odd
     * order with cos m theta > 0 and < 0. */
    __host__ __device__ __forceinline__ int part(int slot) const
    {
        return slot < 4 ? 3 + slot / 2 : slot < 6 ? 2 : slot - 6;
    }
    /* The number of the part in a slot of group t, or -1. */
    __host__ __device__ __forceinline__ int number(int t, int slot) const
    {
        if (slot < 4 || (slot < 6 && is_sine())) {
            return slot % 2 == 0 ? t - 1 : m() - t - 1;
        }
        if (slot < 6) {
            return slot == 4 ? t : t > 0 ? m() - t : -1;
        }
        const bool is_none = slot == 7 && 2 * t == m();

        return is_none ? -1 : is_sine() ? t - 1 : t;
    }
    /* Where a part begins; part 5 is the end. */
    __host__ __device__ __forceinline__ int start(int part) const
    {
        return part < 2 ? part * (m() / 2 + !is_sine()) : n - (5 - part) * m();
    }

    /* Numbers of the parts from the values of a group, in the slots. Values that do not exist
     * are zero. */
    template <typename Real>
    __host__ __device__ __forceinline__ void load(Real (&x)[slots]) const
    {
        const Real root = static_cast<Real>(1.41421356237309504880);
        const bool sine = is_sine();
        Real a[4], d[4];

#pragma unroll
        for (int s = 0; s < 4; s++) {
            const Real sum = x[s] + x[7 - s], rest = x[s] - x[7 - s];
            const Real mirror_rest = x[3 - s] - x[4 + s];

            a[s] = sine ? sum : mirror_rest;
            d[s] = sine ? rest : sum;
        }
        const Real first = a[0] + a[3], second = a[1] + a[2];
        const Real first_root = root * a[2], second_root = root * a[3];
        const Real sums[2] = {d[0] + d[3], d[1] + d[2]};
        const Real rests[2] = {d[0] - d[3], d[1] - d[2]};
        const Real last = sine ? rests[0] : sums[0],
                   last_mirror = sine ? rests[1] : sums[1];

        x[0] = first + first_root;
        x[1] = second + second_root;
        x[2] = first - first_root;
        x[3] = second - second_root;
        x[4] = sine ? sums[0] : rests[0];
        x[5] = sine ? sums[1] : rests[1];
        x[6] = last + last_mirror;
        x[7] = last - last_mirror;
    }
    /* Values from what the products make of the numbers; those that do not exist are zero. */
    template <typename Real>
    __host__ __device__ __forceinline__ void store(Real (&x)[slots]) const
    {
        const Real root = static_cast<Real>(1.41421356237309504880);
        const bool sine = is_sine();
        const Real first = x[0] + x[2], second = x[1] + x[3];
        const Real a[4] = {first, second, root * (x[0] - x[2]) + second,
                           root * (x[1] - x[3]) + first};
        const Real last = x[6] + x[7], last_mirror = x[6] - x[7];
        const Real sums[2] = {sine ? x[4] : last, sine ? x[5] : last_mirror};
        const Real rests[2] = {sine ? last : x[4], sine ? last_mirror : x[5]};
        const Real d[4] = {sums[0] + rests[0], sums[1] + rests[1], sums[1] - rests[1],
                           sums[0] - rests[0]};

#pragma unroll
        for (int s = 0; s < 4; s++) {
            const Real own = sine ? a[s] : d[s], other = sine ? d[s] : a[3 - s];

            x[s] = own + other;
            x[7 - s] = own - other;
        }
    }
};

} // namespace pysolvers::transforms

#endif
