/* heat_f32.cu - the sweeps of the heat solver in single precision. */
#include "heat_launch.cuh"
#include "heat_team_launch.cuh"

PS_INSTANTIATE(float)
PS_INSTANTIATE_TEAMS(float)
