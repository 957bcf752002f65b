/* relax_f32_avx512.c - the relaxation of rows of float for AVX-512. */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64

#include "isa/f32.h"
#include "isa/relax_kernels.h"
