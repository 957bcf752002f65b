/* blocks_f64_3_avx512.c - blocks of side 3 of double for AVX-512 (F, DQ, VL).
 */
#define PS_ISA avx512
#define PS_VECTOR_BYTES 64
#define PS_SIDE 3

#include "isa/f64.h"
#include "isa/blocks.h"
