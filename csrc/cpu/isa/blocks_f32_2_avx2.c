/* blocks_f32_2_avx2.c - blocks of side 2 of float for AVX2.
 */
#define PS_ISA avx2
#define PS_VECTOR_BYTES 32
#define PS_SIDE 2

#include "isa/f32.h"
#include "isa/blocks.h"
