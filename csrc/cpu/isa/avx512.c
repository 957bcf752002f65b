/* avx512.c - the table of the line kernels for AVX-512 (F, DQ, VL). */
#define PS_ISA avx512
#define PS_ISA_NAME "avx512"
#define PS_VECTOR_BYTES 64

#include "isa/table.h"
