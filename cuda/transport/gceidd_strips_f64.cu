/* gceidd_strips_f64.cu - short strips in double. */
#include "transport/gceidd_strips_launch.cuh"

namespace pysolvers::transport {

template struct GceiddStrips<double>;

} // namespace pysolvers::transport
