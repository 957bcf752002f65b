/* rates.h - compile the kernels of rates for one instruction set and one dtype. */
#include <stdint.h>
#include <string.h>

#include "isa/vector.h"
#include "lines/rates.h"

#include "lines/rates.inc"
