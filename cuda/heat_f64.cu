/* heat_f64.cu - the sweeps of the heat solver in double precision. */
#include "heat_launch.cuh"

PS_INSTANTIATE(double)
