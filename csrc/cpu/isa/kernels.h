/* kernels.h - compile the line kernels for one instruction set and one dtype.
 *
 * A file <dtype>_<set>.c defines PS_ISA and PS_VECTOR_BYTES and includes <dtype>.h, which
 * defines the numbers, and this file; the compiler flags of the file select the
 * instructions. Each such file is a translation unit of its own, so that they compile in
 * parallel, and includes each kernel once, so that their functions need no names of their
 * own for the dtype and the instruction set.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lines/kernels.h"
#include "isa/simd.h"

#include "isa/engine.inc"
