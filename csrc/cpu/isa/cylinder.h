/* cylinder.h - compile the kernels of the cylinder for one instruction set and one dtype,
 * as kernels.h compiles the line kernels.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "flow/cylinder_kernels.h"
#include "isa/simd.h"
#include "lines/line.h"
#include "runtime/tuning.h"

#include "flow/cylinder_sweep.inc"
#include "flow/cylinder_sines.inc"
#include "flow/cylinder_waves.inc"
#include "flow/cylinder_psi.inc"
#include "flow/cylinder_stages.inc"

const ps_cylinder_kernels PS_OF_UNIT(ps_cylinder) = {
    .lanes = LANES,
    .team = SOURCE_TEAM,
    .kept = sweep_kept,
    .solve = solve_sweep,
    .outlet = convect_outlet,
    .rate = circulation_rate,
    .close_outlet = copy_outlet,
    .pack = pack_sines,
    .to_waves = columns_to_waves,
    .add_ends = add_ends,
    .body_waves = solve_body_waves,
    .surface = solve_surface,
    .box_sum = sum_box,
    .add_charges = add_charges,
    .all_waves = solve_waves,
    .from_waves = waves_to_columns,
    .estimate = estimate_psi,
    .residual = measure_residual,
    .flux = flux_of_psi,
    .body_value = body_value,
    .finish = finish_psi,
    .walls = relax_walls,
    .probes = record_probes,
    .forces = record_forces,
};
