/* wave_lines_reals.cu - the kernels of wave_lines.cuh, compiled once per dtype. */
#include "transforms/wave_lines.cuh"

namespace pysolvers::transforms {

template ps_status launch_wave_ends(const WaveJob<PS_NUMBER> &, cudaStream_t);
template ps_status launch_wave_lines<PS_NUMBER, false>(const WaveJob<PS_NUMBER> &,
                                                       cudaStream_t);
template ps_status launch_wave_lines<PS_NUMBER, true>(const WaveJob<PS_NUMBER> &,
                                                      cudaStream_t);

} // namespace pysolvers::transforms
