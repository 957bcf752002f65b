/* avx2.c - the table of the line kernels for AVX2. */
#define PS_ISA avx2
#define PS_ISA_NAME "avx2"
#define PS_VECTOR_BYTES 32

#include "isa/table.h"
