/* heat.h - compile the sweeps of the heat solver for the instruction set of the including
 * file, which defines PS_HEAT_TABLE and PS_VECTOR_BYTES.
 */
#include <stdint.h>
#include <string.h>

#include "heat/diffusion_kernels.h"
#include "heat/each_node.h"
#include "heat/heat_sweep.h"
#include "isa/vector.h"

#define PS_CAT_(a, b) a##b
#define PS_CAT(a, b) PS_CAT_(a, b)
#define PS_FN(name) PS_CAT(name##_, PS_TAG)
#define PS_INLINE static inline __attribute__((always_inline))

#define PS_TAG f32
#define PS_REAL float
#include "isa/heat.inc"
#undef PS_TAG
#undef PS_REAL

#define PS_TAG f64
#define PS_REAL double
#include "isa/heat.inc"
#undef PS_TAG
#undef PS_REAL

/* Conjugate gradients for each dtype of the fields and of the preconditioner. */
#define PS_CYCLE float
#define PS_CYCLE_TAG f32
#define PS_TAG f32
#define PS_REAL float
#include "heat/conjugate.inc"
#undef PS_TAG
#undef PS_REAL

#define PS_TAG f64
#define PS_REAL double
#include "heat/conjugate.inc"
#undef PS_CYCLE
#undef PS_CYCLE_TAG

#define PS_CYCLE double
#define PS_CYCLE_TAG f64
#include "heat/conjugate.inc"

#define PS_KERNELS_OF(tag) {scratch_##tag, solve_band_##tag, half_##tag, largest_##tag}

const ps_heat_isa PS_HEAT_TABLE = {
    {[PS_F32] = PS_KERNELS_OF(f32), [PS_F64] = PS_KERNELS_OF(f64)}};

#define PS_DIFFUSION_OF(tag)                                                         \
    {diffusion_apply_##tag,   diffusion_add_##tag,      diffusion_move_##tag,        \
     diffusion_product_##tag, diffusion_restrict_##tag, diffusion_interpolate_##tag, \
     diffusion_gather_##tag,  diffusion_mean_##tag}

const ps_diffusion_isa PS_DIFFUSION_TABLE = {
    {[PS_F32] = PS_DIFFUSION_OF(f32), [PS_F64] = PS_DIFFUSION_OF(f64)},
    {[PS_F32] = {[PS_F32] = &conjugate_f32_with_f32},
     [PS_F64] = {
         [PS_F32] = &conjugate_f64_with_f32, [PS_F64] = &conjugate_f64_with_f64}}};
