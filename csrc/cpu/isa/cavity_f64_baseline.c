/* cavity_f64_baseline.c - the half-sweeps of the cavity for any processor that the build
 * targets. */
#define PS_ISA baseline
#define PS_VECTOR_BYTES 16

#include "isa/f64.h"
#include "isa/cavity.h"
