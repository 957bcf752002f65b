/* modes.h - compile the kernels of products with eigenvectors for one instruction set and
 * one dtype.
 */
#include <stdint.h>
#include <string.h>

#include "isa/simd.h"
#include "lines/modes.h"

#include "lines/modes.inc"
