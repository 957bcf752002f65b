/* gceidd_strips_f32.cu - short strips of float. */
#include "gceidd_strips_launch.cuh"

template struct GceiddStrips<float>;
