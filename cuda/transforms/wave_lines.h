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
    Row<Real> first, inner, last; /* of the matrices, without the shift */
    Real null_diag;
    bool periodic;
    WaveTiles tiles;
    ColumnShape shape;
};

/* Words of shared memory of a warp: two tiles of right-hand sides, of which one is
 * copied while the other one is solved, and the part of its chunks that is not in
 * registers. */
template <typename Real, int ROWS>
static constexpr int wave_words = 2 * ROWS * 32 + ColumnChunk<Real, ROWS>::words;

/* Dynamic shared memory of a block. */
template <typename Real, int ROWS>
inline size_t
wave_bytes(const ColumnShape &shape)
{
    return shape.warps * sizeof(Real) * wave_words<Real, ROWS> +
           ColumnExchange<Real>::bytes_of(shape);
}

cudaError_t ps_cuda_wave_lines_f32(const WaveJob<float> &job, cudaStream_t stream);
cudaError_t ps_cuda_wave_lines_f64(const WaveJob<double> &job, cudaStream_t stream);

} // namespace pysolvers::transforms

#endif
