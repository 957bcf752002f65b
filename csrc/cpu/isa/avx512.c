/* avx512.c - the kernels for AVX-512 (F, DQ, VL). */
#define PS_ISA_NAME "avx512"
#define PS_ISA_TABLE ps_isa_avx512
#define PS_VECTOR_BYTES 64

#include "kernels.h"
