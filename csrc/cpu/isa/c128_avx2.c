/* c128_avx2.c - the line kernels of complex double for AVX2. */
#define PS_ISA avx2
#define PS_VECTOR_BYTES 32

#include "isa/c128.h"
#include "isa/kernels.h"
