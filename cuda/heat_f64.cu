/* heat_f64.cu - the sweeps of the heat solver in double precision. */
#include "heat_launch.cuh"
#include "heat_team_launch.cuh"

PS_INSTANTIATE(double)
PS_INSTANTIATE_TEAMS(double)
