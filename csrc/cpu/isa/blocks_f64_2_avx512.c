/* blocks_f64_2_avx512.c - blocks of side 2 of double for AVX-512 (F, DQ, VL).
 */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64
#define PS_SIDE 2

#include "isa/f64.h"
#include "isa/blocks.h"
