/* blocks_f64_4_baseline.c - blocks of side 4 of double for any processor that the build targets.
 */
#define PS_ISA baseline
#define PS_VECTOR_BYTES 16
#define PS_SIDE 4

#include "isa/f64.h"
#include "isa/blocks.h"
