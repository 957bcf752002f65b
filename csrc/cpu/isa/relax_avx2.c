/* relax_avx2.c - the relaxation of rows for AVX2. */
#define PS_ISA_TABLE ps_relax_avx2
#define PS_VECTOR_BYTES 32

#include "isa/relax_kernels.h"
