/* heat_baseline.c - the sweeps of the heat solver for any processor that the build
 * targets. */
#define PS_HEAT_TABLE ps_heat_isa_baseline
#define PS_DIFFUSION_TABLE ps_diffusion_isa_baseline
#define PS_VECTOR_BYTES 16

#include "isa/heat.h"
