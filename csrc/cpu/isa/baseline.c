/* baseline.c - the table of the line kernels for any processor that the build targets. */
#define PS_ISA baseline
#define PS_ISA_NAME "baseline"
#define PS_VECTOR_BYTES 16

#include "isa/table.h"
