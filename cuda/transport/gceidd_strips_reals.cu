/* gceidd_strips_reals.cu - the sweeps of gceidd_strips_launch.cuh, compiled once per
 * dtype.
 */
#include "transport/gceidd_strips_launch.cuh"

namespace pysolvers::transport {

template struct GceiddStrips<PS_NUMBER>;

} // namespace pysolvers::transport
