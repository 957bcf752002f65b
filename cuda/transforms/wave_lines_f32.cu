/* wave_lines_f32.cu - the kernels of waves for float32. */
#include "transforms/wave_lines.cuh"

namespace pysolvers::transforms {

cudaError_t
ps_cuda_wave_lines_f32(const WaveJob<float> &job, cudaStream_t stream)
{
    return launch_wave_lines(job, stream);
}

} // namespace pysolvers::transforms
