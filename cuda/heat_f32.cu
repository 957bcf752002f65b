/* heat_f32.cu - the sweeps of the heat solver in single precision. */
#include "heat_launch.cuh"

PS_INSTANTIATE(float)
