/* gceidd.h - compile the sweeps of GCEIDD for one instruction set and one dtype, as
 * kernels.h compiles the line kernels.
 */
#include <float.h>
#include <stdint.h>
#include <string.h>

#include "isa/simd.h"
#include "transport/gceidd_sweep.h"

#include "lines/increment.h"
#include "lines/transposed.h"
#include "transport/gceidd_lines.inc"
#include "transport/gceidd_sweep.inc"

const ps_gceidd_kernel_table PS_OF_UNIT(ps_gceidd) = {
    .sweep = sweep,
    .is_idle = is_idle,
    .keep = keep,
    .sides = sides,
};
