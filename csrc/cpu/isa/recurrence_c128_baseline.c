/* recurrence_c128_baseline.c - recurrences of complex double for any processor that the build targets.
 */
#define PS_ISA baseline
#define PS_VECTOR_BYTES 16

#include "isa/c128.h"
#include "isa/recurrence.h"
