/* modes_f32_avx2.c - products of float with eigenvectors for AVX2. */
#define PS_ISA avx2
#define PS_VECTOR_BYTES 32

#include "isa/f32.h"
#include "isa/modes.h"
