/* blocks_f32_3_avx512.c - blocks of side 3 of float for AVX-512 (F, DQ, VL).
 */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64
#define PS_SIDE 3

#include "isa/f32.h"
#include "isa/blocks.h"
