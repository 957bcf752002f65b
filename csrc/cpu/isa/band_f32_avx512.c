/* band_f32_avx512.c - bands of float for AVX-512 (F, DQ, VL). */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64

#include "isa/f32.h"
#include "isa/band.h"
