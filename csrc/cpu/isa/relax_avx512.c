/* relax_avx512.c - the relaxation of rows for AVX-512. */
#define PS_ISA_TABLE ps_relax_avx512
#define PS_VECTOR_BYTES 64

#include "isa/relax_kernels.h"
