/* recurrence_c64_baseline.c - recurrences of complex float for any processor that the build targets.
 */
#define PS_ISA baseline
#define PS_VECTOR_BYTES 16

#include "isa/c64.h"
#include "isa/recurrence.h"
