/* gceidd_f64_avx512.c - the sweeps of GCEIDD of double for AVX-512. */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64

#include "isa/f64.h"
#include "isa/gceidd.h"
