/* modes_f32_avx512.c - products of float with eigenvectors for AVX-512. */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64

#include "isa/f32.h"
#include "isa/modes.h"
