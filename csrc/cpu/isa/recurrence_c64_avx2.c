/* recurrence_c64_avx2.c - recurrences of complex float for AVX2.
 */
#define PS_ISA avx2
#define PS_VECTOR_BYTES 32

#include "isa/c64.h"
#include "isa/recurrence.h"
