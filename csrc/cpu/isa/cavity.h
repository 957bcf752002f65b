/* cavity.h - compile the half-sweeps of the cavity for one instruction set, as kernels.h
 * compiles the line kernels.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "flow/cavity_sweep.h"
#include "isa/simd.h"
#include "lines/line.h"
#include "runtime/tuning.h"

#include "flow/cavity_sweep.inc"

const ps_cavity_kernels PS_OF_UNIT(ps_cavity) = {
    .lanes = LANES,
    .team = SOURCE_TEAM,
    .kept = sweep_kept,
    .solve = solve_sweep,
    .store = store_rows,
    .take = take_solution,
};
