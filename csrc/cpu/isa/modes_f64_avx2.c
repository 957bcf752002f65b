/* modes_f64_avx2.c - products of double with eigenvectors for AVX2. */
#define PS_ISA avx2
#define PS_VECTOR_BYTES 32

#include "isa/f64.h"
#include "isa/modes.h"
