/* wave_lines.h - the tridiagonal systems of waves that are packed as cuFFT leaves them.
 *
 * wave_lines.cu chooses the shape; wave_lines.cuh has the kernels, which
 * wave_lines_reals.cu compiles once per dtype.
 */
#ifndef PS_CUDA_TRANSFORMS_WAVE_LINES_H
#define PS_CUDA_TRANSFORMS_WAVE_LINES_H

#include "lines/columns/column.h"
#include "transforms/waves.cuh"

namespace pysolvers::transforms {

using namespace columns;

template <typename Real> struct WaveJob {
    Real *waves;
    int64_t plane, pitch; /* reals from one plane, and from one line, to the next */
    const Real *shifts;
    const Complex<Real> *turns, *row_turns;
    Row<Real> first, inner, last; /* diag: the row sums without the shift */
    Real null_sum;                /* instead of that of the first row if the shift is 0 */
    Real gap, null_gap;           /* of the first row, without what the shift adds */
    Real excess;                 /* of the inner rows without the shift: -row sum/upper */
    Real over_inner, over_first; /* 1 / upper */
    Real first_factor;           /* inner upper / first upper */
    bool periodic;
    WaveTiles tiles;
    ColumnShape shape;
    /* of a part of the systems: as in struct ps_wave_lines */
    Real *ends, *couplings;
    const Real *y_left, *y;

    __host__ __device__ __forceinline__ bool is_part() const
    {
        return ends != nullptr || y != nullptr;
    }
};

/* The first step of many systems of a part. */
template <typename Real>
ps_status launch_wave_ends(const WaveJob<Real> &job, cudaStream_t stream);
template <typename Real, bool IS_PART>
ps_status launch_wave_lines(const WaveJob<Real> &job, cudaStream_t stream);

} // namespace pysolvers::transforms

#endif
