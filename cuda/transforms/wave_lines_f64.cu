/* wave_lines_f64.cu - the kernels of waves for float64. */
#include "transforms/wave_lines.cuh"

namespace pysolvers::transforms {

cudaError_t
ps_cuda_wave_lines_f64(const WaveJob<double> &job, cudaStream_t stream)
{
    return launch_wave_lines(job, stream);
}

} // namespace pysolvers::transforms
