/* laplace_rule.cuh - the relaxation of a cell of the plate: the arithmetic of
 * ps_laplace.h.
 */
#ifndef PS_CUDA_RELAXATION_LAPLACE_RULE_CUH
#define PS_CUDA_RELAXATION_LAPLACE_RULE_CUH

#include "relaxation/relax.cuh"

namespace pysolvers::relaxation {

template <typename T, bool SOURCE> struct PlateRule {
    using value = T;
    /* For the rows between the first and the last. */
    struct Column {
        T diag, gain;
        int64_t at; /* index in a row of the tables */
        bool inside;
    };
    struct Line {
        int row; /* of the tables; -1 outside of the plate */
    };
    static constexpr int fields = SOURCE;
    static constexpr bool masks_field = false, computes_weight = false;
    static constexpr int inner = 1;
    const T *field[1];
    const T *diag, *gain;
    T ax, ay;
    int nx, ny;
    int64_t pitch;

    __device__ __forceinline__ Column column(int p, int parity) const
    {
        const int i = 2 * p + parity;
        const bool inside = i >= 1 && i <= nx;
        const int64_t at = parity * pitch + p, middle = 2 * inner * pitch + at;

        return {__ldg(diag + middle), inside ? __ldg(gain + middle) : T(0), at, inside};
    }
    __device__ __forceinline__ Line line(int j) const
    {
        return {j < 1 || j > ny ? -1 : j == 1 ? 0 : j == ny ? 2 : inner};
    }
    __device__ __forceinline__ Relaxed<T> relax(const Column &c, const Line &l,
                                                const T *f, int, const Around<T> &around,
                                                T t) const
    {
        const T across = times(ax, plus(around.west, around.east));
        const T flow = plus(across, times(ay, plus(around.north, around.south)));
        T own = c.diag, factor = c.gain;

        if (l.row != inner) {
            const int64_t at = 2 * max(l.row, 0) * pitch + c.at;

            own = __ldg(diag + at);
            factor = c.inside && l.row >= 0 ? __ldg(gain + at) : T(0);
        }
        const T residual = minus(SOURCE ? plus(flow, f[0]) : flow, times(own, t));

        return {residual, t, plus(t, times(factor, residual))};
    }
};

} // namespace pysolvers::relaxation

#endif
