/* wave_lines.h - the tridiagonal systems of waves that are packed as cuFFT leaves them.
 *
 * wave_lines.cu chooses the shape, wave_lines_<dtype>.cu contain the kernels.
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
    Real scale; /* 1 / upper of the inner rows; the rows here are multiplied by it */
    Row<Real> first, inner, last; /* of the matrices, without the shift */
    Real null_diag, over_first;   /* over_first: 1 / first.upper */
    bool periodic;
    WaveTiles tiles;
    ColumnShape shape;
};

/* Blocks of a multiprocessor: one reads or writes while the other one computes. */
template <typename Real> static constexpr int wave_blocks = sizeof(Real) == 8 ? 2 : 1;

/* Words of shared memory of a block for the factors of a tile. */
template <int ROWS>
__host__ __device__ __forceinline__ int
wave_words(const ColumnShape &shape)
{
    return 2 * ROWS * 2 << shape.width;
}

/* Dynamic shared memory of a block. */
template <typename Real, int ROWS>
inline size_t
wave_bytes(const ColumnShape &shape)
{
    return wave_words<ROWS>(shape) * sizeof(Real) + ColumnExchange<Real>::bytes_of(shape);
}

cudaError_t ps_cuda_wave_lines_f32(const WaveJob<float> &job, cudaStream_t stream);
cudaError_t ps_cuda_wave_lines_f64(const WaveJob<double> &job, cudaStream_t stream);

} // namespace pysolvers::transforms

#endif
