/* recurrence.h - compile the kernels of recurrences for one instruction set and one dtype,
 * as kernels.h compiles the line kernels.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "isa/simd.h"
#include "lines/field.h"
#include "lines/number.h"
#include "lines/recurrence.h"
#include "runtime/tuning.h"

#include "lines/recurrence.inc"
