/* relax_kernels.h - compile the relaxation of rows for one instruction set and one dtype,
 * as kernels.h compiles the line kernels.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ps_lmsor.h"
#include "isa/simd.h"
#include "relaxation/relax.h"

#include "relaxation/relax_rows.inc"

const ps_relax_kernels PS_OF_UNIT(ps_relax) = {
    .row = {[PS_ROW_FULL] = relax_full,
            [PS_ROW_SKEW] = relax_skew,
            [PS_ROW_TABLES] = relax_tables,
            [PS_ROW_VOLUMES] = relax_volumes},
    .omega = omega,
};
