/* cavity_f64_avx512.c - the half-sweeps of the cavity for AVX-512. */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64

#include "isa/f64.h"
#include "isa/cavity.h"
