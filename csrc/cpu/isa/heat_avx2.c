/* heat_avx2.c - the sweeps of the heat solver for AVX2. */
#define PS_HEAT_TABLE ps_heat_isa_avx2
#define PS_DIFFUSION_TABLE ps_diffusion_isa_avx2
#define PS_VECTOR_BYTES 32

#include "isa/heat.h"
