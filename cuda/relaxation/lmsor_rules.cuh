/* lmsor_rules.cuh - the relaxation rules of LMSOR: the arithmetic of ps_lmsor.h. */
#ifndef PS_CUDA_RELAXATION_LMSOR_RULES_CUH
#define PS_CUDA_RELAXATION_LMSOR_RULES_CUH

#include <climits>

#include "ps_lmsor.h"
#include "relaxation/relax.cuh"

namespace pysolvers::relaxation {

struct Nothing {};

/* The common part of all LMSOR rules. With SOURCE there is one field more. */
template <typename T, int FIELDS, bool SOURCE> struct LmsorRule {
    using value = T;
    using Column = Nothing;
    using Line = Nothing;
    static constexpr int fields = FIELDS + SOURCE;
    static constexpr bool masks_field = true, computes_weight = false;
    const T *field[fields > 0 ? fields : 1];

    __device__ __forceinline__ Nothing column(int, int) const
    {
        return {};
    }
    __device__ __forceinline__ Nothing line(int) const
    {
        return {};
    }

    static __device__ __forceinline__ Relaxed<T>
    step(const Around<T> &weight, T omega, const T *f, const Around<T> &around, T u)
    {
        const T across =
            plus(times(weight.west, around.west), times(weight.east, around.east));
        const T along =
            plus(times(weight.north, around.north), times(weight.south, around.south));
        const T mean = plus(across, along);
        const T residual = minus(SOURCE ? plus(mean, f[FIELDS]) : mean, u);

        return {residual, u, plus(u, times(omega, residual))};
    }
};

/* omega, west, east, north, south */
template <typename T, bool SOURCE> struct LmsorStencil : LmsorRule<T, 5, SOURCE> {
    __device__ __forceinline__ Relaxed<T> relax(Nothing, Nothing, const T *f, int,
                                                const Around<T> &around, T u) const
    {
        return this->step({f[1], f[2], f[3], f[4]}, f[0], f, around, u);
    }
};

/* omega, skew_x, skew_y */
template <typename T, bool SOURCE> struct LmsorSkew : LmsorRule<T, 3, SOURCE> {
    T cx, cy;

    __device__ __forceinline__ Relaxed<T> relax(Nothing, Nothing, const T *f, int,
                                                const Around<T> &around, T u) const
    {
        const Around<T> weight = {plus(cx, f[1]), minus(cx, f[1]), minus(cy, f[2]),
                                  plus(cy, f[2])};

        return this->step(weight, f[0], f, around, u);
    }
};

/* Tables along x, split by the parity of i, and along y. */
struct Tables {
    const double *x, *y;
    int64_t pitch, lines;

    __device__ __forceinline__ double along_x(ps_table_row row, int p, int parity) const
    {
        return __ldg(x + (2 * row + parity) * pitch + p);
    }
    __device__ __forceinline__ double along_y(ps_table_row row, int j) const
    {
        return __ldg(y + row * lines + j);
    }
};

/* omega, and skews from tables */
template <typename T, bool SOURCE> struct LmsorTabled : LmsorRule<T, 1, SOURCE> {
    struct Column {
        T west, east;
    };
    struct Line {
        T north, south;
    };
    T cx, cy;
    Tables tables;

    __device__ __forceinline__ Column column(int p, int parity) const
    {
        const T skew = static_cast<T>(tables.along_x(PS_TABLE_SKEW, p, parity));

        return {plus(cx, skew), minus(cx, skew)};
    }
    __device__ __forceinline__ Line line(int j) const
    {
        const T skew = static_cast<T>(tables.along_y(PS_TABLE_SKEW, j));

        return {minus(cy, skew), plus(cy, skew)};
    }
    __device__ __forceinline__ Relaxed<T> relax(const Column &c, const Line &l,
                                                const T *f, int, const Around<T> &around,
                                                T u) const
    {
        return this->step({c.west, c.east, l.north, l.south}, f[0], f, around, u);
    }
};

/* The numbers from which omega is computed, along one axis. */
struct Extremes {
    double mu_max, mu_min;
    int sign; /* of l r */
};

/* Whether x is in the middle of the range of positive numbers. */
__device__ __forceinline__ bool
is_in_range(double x)
{
    constexpr unsigned least = 0x20000000u, most = 0x60000000u; /* 2^-511 to 2^513 */

    return static_cast<unsigned>(__double2hiint(x)) - least < most - least;
}

/* omega = 2 / (d + sqrt(square)) */
struct OmegaParts {
    double d, square;

    __device__ __forceinline__ double omega() const
    {
        return times(2, __drcp_rn(plus(d, __dsqrt_rn(square))));
    }
    /* The same without a branch, if `in_range` stays true: approximations of the
     * hardware, and Newton steps of which the last ones round like the exact
     * operations. */
    __device__ __forceinline__ double fast_omega(bool &in_range) const
    {
        double seed;

        asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(seed) : "d"(square));
        const double error = fma(-times(seed, seed), square, 1.0);
        const double inverse = fma(fma(error, 0.375, 0.5), times(seed, error), seed);
        const double near = times(inverse, square);
        const double root = fma(fma(-near, near, square), times(0.5, inverse), near);
        const double sum = plus(d, root);

        in_range = in_range & is_in_range(square) & is_in_range(sum);
        asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(seed) : "d"(sum));
        const double miss = fma(-sum, seed, 1.0);
        const double better = fma(seed, fma(miss, miss, miss), seed);

        return times(2, fma(better, fma(-sum, better, 1.0), better));
    }
};

/* x, or -x if the highest bit of `sign` is set. */
__device__ __forceinline__ double
flipped(double x, int sign)
{
    return __hiloint2double(__double2hiint(x) ^ (sign & INT_MIN), __double2loint(x));
}

/* For products of equal sign along both axes. LSOR is LMSOR with mu_min = 0. */
__device__ __forceinline__ OmegaParts
omega_parts(const Extremes &x, const Extremes &y, int colour)
{
    const int real = ~(x.sign | y.sign); /* the highest bit is set if both are real */
    const double most = plus(x.mu_max, y.mu_max), least = plus(x.mu_min, y.mu_min);

    return {plus(1, flipped(times(most, least), colour - 1)),
            times(plus(1, times(flipped(most, real), most)),
                  plus(1, times(flipped(least, real), least)))};
}

/* The same at a real node in the version of 2012, which has no squares. */
__device__ __forceinline__ OmegaParts
omega_parts_2012(const Extremes &x, const Extremes &y, int colour)
{
    const double most = plus(x.mu_max, y.mu_max), least = plus(x.mu_min, y.mu_min);

    return {omega_parts(x, y, colour).d, times(minus(1, most), minus(1, least))};
}

/* For products of different signs: `real` and `imaginary` are mu_max of the positive
 * and of the negative product. */
__device__ __forceinline__ OmegaParts
omega_parts_mixed(double real, double imaginary, double gain)
{
    return {1,
            plus(minus(1, times(real, real)), times(times(imaginary, imaginary), gain))};
}

/* Skews from tables, omega computed from tables: field 0 is not read. */
template <typename T, bool SOURCE> struct LmsorComputed : LmsorRule<T, 1, SOURCE> {
    static constexpr bool computes_weight = true;
    static constexpr int opposite = 1 ^ -1;
    struct Column {
        T west, east;
        Extremes extremes;
        double gain;
    };
    struct Line {
        T north, south;
        Extremes extremes;
        double gain;
    };
    T cx, cy;
    Tables tables;
    ps_relaxation relaxation;
    double omega_constant;

    __device__ __forceinline__ Extremes extremes(double most, double least,
                                                 double sign) const
    {
        return {most, relaxation == PS_RELAXATION_LSOR ? 0 : least,
                static_cast<int>(sign)};
    }
    __device__ __forceinline__ Column column(int p, int parity) const
    {
        const T skew = static_cast<T>(tables.along_x(PS_TABLE_SKEW, p, parity));

        return {plus(cx, skew), minus(cx, skew),
                extremes(tables.along_x(PS_TABLE_MU_MAX, p, parity),
                         tables.along_x(PS_TABLE_MU_MIN, p, parity),
                         tables.along_x(PS_TABLE_SIGN, p, parity)),
                tables.along_x(PS_TABLE_GAIN, p, parity)};
    }
    __device__ __forceinline__ Line line(int j) const
    {
        const T skew = static_cast<T>(tables.along_y(PS_TABLE_SKEW, j));

        return {minus(cy, skew), plus(cy, skew),
                extremes(tables.along_y(PS_TABLE_MU_MAX, j),
                         tables.along_y(PS_TABLE_MU_MIN, j),
                         tables.along_y(PS_TABLE_SIGN, j)),
                tables.along_y(PS_TABLE_GAIN, j)};
    }
    /* Whether fast_weight() can be correct. */
    __device__ __forceinline__ bool is_usual() const
    {
        return relaxation == PS_RELAXATION_LMSOR || relaxation == PS_RELAXATION_LSOR;
    }
    /* omega, if `usual` stays true; otherwise weight() must be called. */
    __device__ __forceinline__ T fast_weight(const Column &c, const Line &l, int colour,
                                             bool &usual) const
    {
        usual = usual & ((c.extremes.sign ^ l.extremes.sign) != opposite);
        return static_cast<T>(
            omega_parts(c.extremes, l.extremes, colour).fast_omega(usual));
    }
    __device__ __forceinline__ T weight(const Column &c, const Line &l, int colour) const
    {
        const Extremes &x = c.extremes, &y = l.extremes;
        OmegaParts parts = omega_parts(x, y, colour);

        if (relaxation == PS_RELAXATION_CONSTANT) {
            return static_cast<T>(omega_constant);
        }
        if ((x.sign ^ y.sign) == opposite) {
            parts = x.sign > 0 ? omega_parts_mixed(x.mu_max, y.mu_max, c.gain)
                               : omega_parts_mixed(y.mu_max, x.mu_max, l.gain);
        }
        else if (relaxation == PS_RELAXATION_LMSOR_2012 && (x.sign | y.sign) >= 0) {
            parts = omega_parts_2012(x, y, colour);
        }
        return static_cast<T>(parts.omega());
    }
    __device__ __forceinline__ Relaxed<T> relax(const Column &c, const Line &l,
                                                const T *f, int, const Around<T> &around,
                                                T u) const
    {
        return this->step({c.west, c.east, l.north, l.south}, f[0], f, around, u);
    }
};

} // namespace pysolvers::relaxation

#endif
