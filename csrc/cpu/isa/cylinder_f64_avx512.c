/* cylinder_f64_avx512.c - the kernels of the cylinder for AVX-512. */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64

#include "isa/f64.h"
#include "isa/cylinder.h"
