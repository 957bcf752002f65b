/* blocks_f32_4_avx512.c - blocks of side 4 of float for AVX-512 (F, DQ, VL).
 */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64
#define PS_SIDE 4

#include "isa/f32.h"
#include "isa/blocks.h"
