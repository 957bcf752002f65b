/* band.h - compile the kernels of bands for one instruction set and one dtype, as kernels.h
 * compiles the line kernels.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "isa/simd.h"
#include "lines/block_fields.h"

#include "lines/band.inc"
