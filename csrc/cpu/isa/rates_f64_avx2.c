/* rates_f64_avx2.c - rates of double for AVX2. */
#define PS_ISA avx2
#define PS_VECTOR_BYTES 32

#include "isa/f64.h"
#include "isa/rates.h"
