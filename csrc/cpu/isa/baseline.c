/* baseline.c - the kernels for any processor that the build targets. */
#define PS_ISA_NAME "baseline"
#define PS_ISA_TABLE ps_isa_baseline
#define PS_VECTOR_BYTES 16

#include "kernels.h"
