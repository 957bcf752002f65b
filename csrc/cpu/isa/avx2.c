/* avx2.c - the kernels for AVX2. */
#define PS_ISA_NAME "avx2"
#define PS_ISA_TABLE ps_isa_avx2
#define PS_VECTOR_BYTES 32

#include "kernels.h"
