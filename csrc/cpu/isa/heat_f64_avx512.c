/* heat_f64_avx512.c - the kernels of the heat solver of double for AVX-512 (F, DQ, VL).
 */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64

#include "isa/f64.h"
#include "isa/heat.h"
