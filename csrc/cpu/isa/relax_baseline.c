/* relax_baseline.c - the relaxation of rows for any processor that the build targets. */
#define PS_ISA_TABLE ps_relax_baseline
#define PS_VECTOR_BYTES 16

#include "isa/relax_kernels.h"
