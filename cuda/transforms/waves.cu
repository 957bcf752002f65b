/* waves.cu - values of a field in the order in which cuFFT transforms them to cosine or
 * sine waves, and back: struct ps_waves.
 *
 * A thread moves pairs of neighbouring values. Neighbouring threads write neighbours at
 * both ends of a line. One word read and one written per value; load() of an extended
 * line writes two.
 */
#include "device/operand.cuh"
#include "runtime/backend.h"
#include "runtime/engine.h"
#include "transforms/waves.cuh"

namespace pysolvers::transforms {

using namespace device;
using namespace runtime;

static constexpr int threads_a_block = 256;
static constexpr int batch = 4; /* pairs of a thread */

template <typename Real>
static __device__ __forceinline__ void
negate_if(bool negative, Real &value)
{
    value = negative ? -value : value;
}

/* A value or two neighbouring ones: of the field, and in the line `numbers`. */
template <typename Real> struct WavePair {
    Real *values, *numbers;
    int first, place[2];
    bool has_second, is_negative[2];

    __device__ __forceinline__ WavePair(const Output<Real> &field, const ps_waves &w,
                                        int64_t line, int i)
    {
        const int n = static_cast<int>(w.size), rows = static_cast<int>(w.rows);
        const int64_t plane = quotient(line, rows);
        const int row = static_cast<int>(line - plane * rows);
        const int64_t to = plane * rows + wave_place(w.row_kind, row, rows);

        values = field.system(plane, row) + i * field.row;
        numbers = static_cast<Real *>(w.waves) + to * w.pitch;
        first = i;
        place[0] = wave_place(w.kind, i, n);
        place[1] = wave_place(w.kind, i + 1, n);
        has_second = i + 1 < n;
        is_negative[0] = w.row_kind == PS_DST2 && row % 2 != 0;
        is_negative[1] = is_negative[0] != (w.kind == PS_DST2);
    }

    /* Write the mirror images of the values to the second half of an extended line. */
    __device__ __forceinline__ void extend(const ps_waves &w,
                                           const Complex<Real> &y) const
    {
        const bool is_odd = w.kind == PS_DST1;
        const int n = static_cast<int>(w.size), half = is_odd ? n + 1 : n - 1;

        if (place[0] > 0 && place[0] < half) {
            numbers[2 * half - place[0]] = is_odd ? -y.re : y.re;
        }
        if (has_second && place[1] < half) {
            numbers[2 * half - place[1]] = is_odd ? -y.im : y.im;
        }
        if (is_odd && first == 0) {
            numbers[0] = numbers[half] = Real(0);
        }
    }
};

/* Grid: blocks of threads_a_block threads, `batch` pairs for each. `by_pairs`: two values
 * can be moved at once. */
template <typename Real, bool LOADS>
static __global__ void
__launch_bounds__(threads_a_block)
    waves_kernel(const __grid_constant__ Output<Real> field,
                 const __grid_constant__ ps_waves w, bool by_pairs)
{
    using Two = Complex<Real>;
    const int64_t pairs = (w.size + 1) / 2, all = w.planes * w.rows * pairs;
    const int64_t first = int64_t(blockIdx.x) * (batch * threads_a_block) + threadIdx.x;
    const Real scale = static_cast<Real>(w.scale);
    Two two[batch];

#pragma unroll
    for (int k = 0; k < batch; k++) {
        const int64_t index = first + k * threads_a_block;

        if (index < all) {
            const int64_t line = quotient(index, pairs);
            const WavePair<Real> at(field, w, line,
                                    2 * static_cast<int>(index - line * pairs));

            if (!LOADS) {
                two[k].re = __ldcs(at.numbers + at.place[0]);
                two[k].im = at.has_second ? __ldcs(at.numbers + at.place[1]) : Real(0);
            }
            else if (by_pairs && at.has_second) {
                two[k] = *reinterpret_cast<const Two *>(at.values);
            }
            else {
                two[k].re = at.values[0];
                two[k].im = at.has_second ? at.values[field.row] : Real(0);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < batch; k++) {
        const int64_t index = first + k * threads_a_block;

        if (index < all) {
            const int64_t line = quotient(index, pairs);
            const WavePair<Real> at(field, w, line,
                                    2 * static_cast<int>(index - line * pairs));
            Two y = {scale * two[k].re, scale * two[k].im};

            negate_if(at.is_negative[0], y.re);
            negate_if(at.is_negative[1], y.im);
            if (!LOADS && by_pairs && at.has_second) {
                *reinterpret_cast<Two *>(at.values) = y;
                continue;
            }
            *(LOADS ? at.numbers + at.place[0] : at.values) = y.re;
            if (at.has_second) {
                *(LOADS ? at.numbers + at.place[1] : at.values + field.row) = y.im;
            }
            if (LOADS && is_extended(w.kind)) {
                at.extend(w, y);
            }
        }
    }
}

template <typename Real, bool LOADS>
static ps_status
move(const ps_waves *w, cudaStream_t stream)
{
    const Output<Real> field = output_of<Real>(w->field);
    const int64_t pairs = w->planes * w->rows * ((w->size + 1) / 2);
    const unsigned blocks =
        static_cast<unsigned>((pairs - 1) / (batch * threads_a_block) + 1);
    const bool by_pairs = field.row == 1 && field.outer % 2 == 0 &&
                          field.inner % 2 == 0 &&
                          reinterpret_cast<uintptr_t>(field.data) % sizeof(Real[2]) == 0;

    waves_kernel<Real, LOADS>
        <<<blocks, threads_a_block, 0, stream>>>(field, *w, by_pairs);
    return ps_cuda_status(cudaGetLastError());
}

template <bool LOADS>
static ps_status
run(const ps_waves *w, const ps_exec *exec)
{
    const ps_status status = ps_waves_check(w);

    if (status != PS_OK) {
        return status;
    }
    return w->dtype == PS_F32 ? move<float, LOADS>(w, ps_cuda_stream(exec))
                              : move<double, LOADS>(w, ps_cuda_stream(exec));
}

ps_status
ps_cuda_waves_load(const ps_waves *w, const ps_exec *exec)
{
    return run<true>(w, exec);
}

ps_status
ps_cuda_waves_store(const ps_waves *w, const ps_exec *exec)
{
    return run<false>(w, exec);
}

} // namespace pysolvers::transforms
