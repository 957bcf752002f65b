/* rates_f32_avx512.c - rates of float for AVX-512. */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64

#include "isa/f32.h"
#include "isa/rates.h"
