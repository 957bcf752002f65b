/* recurrence_c128_avx2.c - recurrences of complex double for AVX2.
 */
#define PS_ISA avx2
#define PS_VECTOR_BYTES 32

#include "isa/c128.h"
#include "isa/recurrence.h"
