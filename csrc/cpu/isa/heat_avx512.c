/* heat_avx512.c - the sweeps of the heat solver for AVX-512 (F, DQ, VL). */
#define PS_HEAT_TABLE ps_heat_isa_avx512
#define PS_DIFFUSION_TABLE ps_diffusion_isa_avx512
#define PS_VECTOR_BYTES 64

#include "isa/heat.h"
