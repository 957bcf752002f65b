/* blocks_f64_3_avx2.c - blocks of side 3 of double for AVX2.
 */
#define PS_ISA avx2
#define PS_VECTOR_BYTES 32
#define PS_SIDE 3

#include "isa/f64.h"
#include "isa/blocks.h"
