/* narrow.c - the kernels with lanes of 8 bytes, for a few long systems: their
 * eliminated rows would fill memory at full lane width. Same arithmetic. */
#define PS_ISA_NAME "scalar"
#define PS_ISA_TABLE ps_isa_narrow
#define PS_VECTOR_BYTES 8

#include "kernels.h"
