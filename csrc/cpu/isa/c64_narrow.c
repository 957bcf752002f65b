/* c64_narrow.c - the line kernels of complex float for systems too long for full vectors:
 * one element of 8 bytes a vector. */
#define PS_ISA narrow
#define PS_VECTOR_BYTES 8
#define PS_WHOLE_SYSTEMS

#include "isa/c64.h"
#include "isa/kernels.h"
