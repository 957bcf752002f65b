/* band_f32_baseline.c - bands of float for any processor that the build targets. */
#define PS_ISA baseline
#define PS_VECTOR_BYTES 16

#include "isa/f32.h"
#include "isa/band.h"
