/* blocks.h - compile the kernels of blocks of PS_SIDE rows for one instruction set and one
 * dtype, as kernels.h compiles the line kernels.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#undef PS_TAG
#undef PS_NUMBER
#define PS_TAG PS_CAT(PS_CAT(PS_BASE, _), PS_SIDE)
#define PS_NUMBER "lines/block.h"

#include "isa/simd.h"
#include "lines/line.h"
#include "lines/block_fields.h"
#include "runtime/tuning.h"

#include "lines/blocks.inc"
