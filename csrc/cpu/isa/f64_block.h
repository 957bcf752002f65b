/* f64_block.h - blocks of 2 x 2 numbers of type double as the dtype of a unit. */
#include "isa/f64.h"

#undef PS_TAG
#undef PS_NUMBER
#define PS_TAG f64_block
#define PS_NUMBER "lines/block.h"
#define PS_SIDE 2
