/* heat.h - compile the kernels of the heat solver for one instruction set and one dtype,
 * as kernels.h compiles the line kernels. The order is from the bottom up.
 */
#include <float.h>
#include <stdint.h>
#include <string.h>

#include "heat/diffusion_kernels.h"
#include "heat/heat_sweep.h"
#include "isa/simd.h"
#include "lines/increment.h"
#include "lines/ratio.h"
#include "lines/transposed.h"

#include "heat/each_node.h"
#include "heat/heat_stencil.inc"
#include "heat/heat_band.inc"
#include "heat/heat_tables.inc"
#include "heat/heat_thomas.inc"
#include "heat/heat_varied.inc"
#include "heat/heat_solve.inc"
#include "heat/diffusion.inc"

/* Conjugate gradients for each dtype of the preconditioner, which is not wider than that
 * of the fields: the number of these dtypes. */
#define PS_CYCLES_f32 1
#define PS_CYCLES_f64 2
#define PS_CYCLES PS_CAT(PS_CYCLES_, PS_TAG)

#define PS_CYCLE float
#define PS_CYCLE_TAG f32
#include "heat/conjugate.inc"
#undef PS_CYCLE
#undef PS_CYCLE_TAG
#define PS_CYCLE double
#define PS_CYCLE_TAG f64
#if PS_CYCLES == 2
#include "heat/conjugate.inc"
#endif

const ps_heat_kernel_table PS_OF_UNIT(ps_heat) = {
    .tables = make_tables,
    .scratch = scratch,
    .band = solve_band,
    .half = half,
    .largest = largest,
};

const ps_diffusion_kernels PS_OF_UNIT(ps_diffusion) = {
    .apply = diffusion_apply,
    .add = diffusion_add,
    .move = diffusion_move,
    .product = diffusion_product,
    .restrict_row = diffusion_restrict,
    .interpolate_row = diffusion_interpolate,
    .gather = diffusion_gather,
    .mean = diffusion_mean,
    .conjugate = {[PS_F32] = &conjugate_with_f32,
#if PS_CYCLES == 2
                  [PS_F64] = &conjugate_with_f64
#endif
    },
};
