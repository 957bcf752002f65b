/* blocks_f64_2_baseline.c - blocks of side 2 of double for any processor that the build targets.
 */
#define PS_ISA baseline
#define PS_VECTOR_BYTES 16
#define PS_SIDE 2

#include "isa/f64.h"
#include "isa/blocks.h"
