/* halved.cuh - lines of the transforms of kind 1 in parts of half the length and less:
 * struct ps_waves, `halvings`.
 *
 * Sums and differences of the values in places j and N - j have the waves of odd and of
 * even order, in those of one sign each (N even):
 *
 *   sine    odd waves k = 2q + 1 of  f[j] + f[N-j],  even ones of  f[j] - f[N-j]
 *   cosine  odd waves k = 2q + 1 of  f[j] - f[N-j],  even ones of  f[j] + f[N-j]
 *
 * The odd waves are a transform of kind 3 of N/2 values, which has a complex transform of
 * a quarter of the length of the extension (element.cuh), the even ones the transform of
 * kind 1 of N/2 intervals. This is applied `LEVELS` times (the split radix of FFTW 3,
 * reodft00e-splitradix.c, describes one of them). The last transform of kind 1 is that of
 * its extension. No output is summed up, as it is in the algorithms of the same length.
 * With three levels the parts have 9/8 reals per value, the extension of a whole line has 2.
 * 3001 x 3001 nodes in float64 on an H200: 525 us in parts, 1040 us by the extension.
 *
 * A thread has the values whose places differ from multiples of m = N / 2^LEVELS by t or
 * -t: they determine each other's sums and differences on all levels. Slot s of them is
 * place s/2 m + t for even s, (s+1)/2 m - t for odd s; slots s and n-1-s of the n slots of
 * a level are mirror images. LEVELS + 1 additions and 3 operations of the factor per value;
 * a value is read and written once, and the last part twice.
 */
#ifndef PS_CUDA_TRANSFORMS_HALVED_CUH
#define PS_CUDA_TRANSFORMS_HALVED_CUH

#include "transforms/element.cuh"

namespace pysolvers::transforms {

template <typename Real, int LEVELS> struct HalvedLine {
    static constexpr int slots = 2 << LEVELS;
    static constexpr int numbers = (1 << LEVELS) - 1; /* complex ones of kind 3 */
    int t, m;
    Complex<Real> factors[numbers]; /* of load_factor(), level after level */

    __device__ __forceinline__ HalvedLine(int own, int last) : t(own), m(last)
    {
        find_factors<1>(turn(t, m << LEVELS, Real()));
    }
    __device__ __forceinline__ int place(int s) const
    {
        return s % 2 == 0 ? s / 2 * m + t : (s + 1) / 2 * m - t;
    }

    /* Pass the numbers of kind 3 to put(level, index, number), level from 1 on, and leave
     * the values of places t and m - t of the last transform of kind 1 in x[0] and x[1]. */
    template <int level = 1, typename Put>
    __device__ __forceinline__ void split(bool is_sine, Real (&x)[slots],
                                          const Put &put) const
    {
        constexpr int n = slots_of(level);

#pragma unroll
        for (int s = 0; s < n / 4; s++) {
            const int p = n / 2 - 1 - s;
            const Real a = x[s], a_mirror = x[n - 1 - s];
            const Real b = x[p], b_mirror = x[n - 1 - p];
            const Complex<Real> sums(a + a_mirror, b + b_mirror);
            const Complex<Real> rests(a - a_mirror, b - b_mirror);
            const Complex<Real> number = is_sine ? Complex<Real>(sums.im, -sums.re)
                                                 : Complex<Real>(rests.re, -rests.im);

            put(level, place(s), factors[before(level) + s] * number);
            x[s] = is_sine ? rests.re : sums.re;
            x[p] = is_sine ? rests.im : sums.im;
        }
        if constexpr (level < LEVELS) {
            split<level + 1>(is_sine, x, put);
        }
    }

    /* The inverse of split(), but for a factor 2N: x[0] and x[1] are values of the last
     * transform, get(level, index) the numbers of kind 2. */
    template <int level = LEVELS, typename Get>
    __device__ __forceinline__ void merge(bool is_sine, Real (&x)[slots],
                                          const Get &get) const
    {
        constexpr int n = slots_of(level);

#pragma unroll
        for (int s = 0; s < n / 4; s++) {
            const int p = n / 2 - 1 - s;
            const Complex<Real> turned = factors[before(level) + s];
            const Complex<Real> given = get(level, place(s));
            const Real first = 2 * (turned.re * given.re + turned.im * given.im);
            const Real second = 2 * (turned.im * given.re - turned.re * given.im);
            const Real a = is_sine ? second : first, b = is_sine ? first : second;
            const Real a_rest = x[s], b_rest = x[p];

            x[s] = a + a_rest;
            x[p] = b + b_rest;
            x[n - 1 - s] = is_sine ? a - a_rest : a_rest - a;
            x[n - 1 - p] = is_sine ? b - b_rest : b_rest - b;
        }
        if constexpr (level > 1) {
            merge<level - 1>(is_sine, x, get);
        }
    }

  private:
    __host__ __device__ static constexpr int slots_of(int level)
    {
        return slots >> (level - 1);
    }
    /* Numbers of the levels before. */
    __host__ __device__ static constexpr int before(int level)
    {
        return slots / 2 - (slots >> level);
    }
    /* The factors of level p, exp(i pi place(s) / 2^(LEVELS-p+1) / m), from `own`, that of
     * place t: the next level has its square. */
    template <int level>
    __device__ __forceinline__ void find_factors(const Complex<Real> &own)
    {
#pragma unroll
        for (int s = 0; s < slots_of(level) / 4; s++) {
            const Complex<Real> number(own.re, s % 2 == 0 ? own.im : -own.im);

            factors[before(level) + s] =
                turned(number, ((s + 1) / 2) << (level - 1) << (3 - LEVELS));
        }
        if constexpr (level < LEVELS) {
            find_factors<level + 1>(own * own);
        }
    }
    /* A number times exp(i pi eighths / 8); at most two of them. */
    __device__ __forceinline__ static Complex<Real> turned(const Complex<Real> &z,
                                                           int eighths)
    {
        const Complex<Real> eighth(static_cast<Real>(0.92387953251128675613),
                                   static_cast<Real>(0.38268343236508977173));
        const Real half = static_cast<Real>(0.70710678118654752440);

        return eighths == 0   ? z
               : eighths == 1 ? eighth * z
                              : Complex<Real>(half * (z.re - z.im), half * (z.re + z.im));
    }
};

/* The places of the parts of lines: part 0 has the last transforms of kind 1, part p those
 * of kind 3 of intervals / 2^p values. Each has `planes` lines next to each other. */
struct HalvedParts {
    int intervals, levels;

    __host__ __device__ __forceinline__ int pitch(int part) const
    {
        return part == 0 ? 2 * ((intervals >> levels) + 1)
                         : 2 * ((intervals >> part) / 2 + 1);
    }
    /* Reals of a line in the parts before. */
    __host__ __device__ __forceinline__ int before(int part) const
    {
        int total = part == 0 ? 0 : pitch(0);

        for (int p = 1; p < part; p++) {
            total += pitch(p);
        }
        return total;
    }
};

/* The parts of PS_MIRRORED_ROWS: as those of two halvings, but for part 0, which has the sums
 * and the differences of the values in mirror places of the last transform. */
struct HalvedRows {
    static constexpr int levels = 2;
    int intervals;
    bool is_sine;

    /* Intervals of the last transform, an even number. */
    __host__ __device__ __forceinline__ int last() const
    {
        return intervals >> levels;
    }
    /* Groups of values that determine each other: t = 0 .. groups() - 1. */
    __host__ __device__ __forceinline__ int groups() const
    {
        return last() / 2 + 1;
    }
    /* The number of the sum in group t, and of the difference; below 0: there is none. */
    __host__ __device__ __forceinline__ int sum(int t) const
    {
        return is_sine ? t - 1 : t;
    }
    __host__ __device__ __forceinline__ int rest(int t) const
    {
        return 2 * t == last() ? -1 : sum(t);
    }
    /* Where the differences begin. */
    __host__ __device__ __forceinline__ int half() const
    {
        return (groups() - is_sine + 3) / 4 * 4;
    }
    /* Numbers from one line to the next. */
    __host__ __device__ __forceinline__ int pitch(int part) const
    {
        return part == 0 ? 2 * half() : HalvedParts{intervals, levels}.pitch(part);
    }
    /* Numbers of a line in the parts before. */
    __host__ __device__ __forceinline__ int before(int part) const
    {
        return (part > 0 ? pitch(0) : 0) + (part > 1 ? pitch(1) : 0);
    }
    /* Numbers between the sums and the differences, or after these, at most 4. */
    __host__ __device__ __forceinline__ int between(bool is_rest) const
    {
        return half() - (sum(groups() - 1) + 1) + is_rest;
    }
};

} // namespace pysolvers::transforms

#endif
