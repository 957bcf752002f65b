/* recurrence_c128_avx512.c - recurrences of complex double for AVX-512 (F, DQ, VL).
 */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64

#include "isa/c128.h"
#include "isa/recurrence.h"
