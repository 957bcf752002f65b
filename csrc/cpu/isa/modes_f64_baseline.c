/* modes_f64_baseline.c - products of double with eigenvectors for any processor that the build targets. */
#define PS_ISA baseline
#define PS_VECTOR_BYTES 16

#include "isa/f64.h"
#include "isa/modes.h"
