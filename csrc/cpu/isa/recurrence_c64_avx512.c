/* recurrence_c64_avx512.c - recurrences of complex float for AVX-512 (F, DQ, VL).
 */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64

#include "isa/c64.h"
#include "isa/recurrence.h"
