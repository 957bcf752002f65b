/* heat_f64.cu - the sweeps of the heat solver in double precision. */
#include "heat/heat_launch.cuh"
#include "heat/heat_team_launch.cuh"

namespace pysolvers::heat {

PS_INSTANTIATE(double)
PS_INSTANTIATE_TEAMS(double)

} // namespace pysolvers::heat
