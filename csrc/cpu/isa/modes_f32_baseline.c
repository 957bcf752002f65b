/* modes_f32_baseline.c - products of float with eigenvectors for any processor that the build targets. */
#define PS_ISA baseline
#define PS_VECTOR_BYTES 16

#include "isa/f32.h"
#include "isa/modes.h"
