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
};

} // namespace pysolvers::transforms

#endif
