/* heat_f32.cu - the sweeps of the heat solver in single precision. */
#include "heat/heat_launch.cuh"
#include "heat/heat_team_launch.cuh"

namespace pysolvers::heat {

PS_INSTANTIATE(float)
PS_INSTANTIATE_TEAMS(float)

} // namespace pysolvers::heat
