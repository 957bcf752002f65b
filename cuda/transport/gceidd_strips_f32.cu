/* gceidd_strips_f32.cu - short strips in float. */
#include "transport/gceidd_strips_launch.cuh"

namespace pysolvers::transport {

template struct GceiddStrips<float>;

} // namespace pysolvers::transport
