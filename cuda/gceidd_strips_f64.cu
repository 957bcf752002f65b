/* gceidd_strips_f64.cu - short strips of double. */
#include "gceidd_strips_launch.cuh"

template struct GceiddStrips<double>;
