/* relax_isa.c - the choice of the row functions of the relaxation for this processor.
 */
#include "relaxation/relax.h"
#include "runtime/isa.h"

extern const ps_relax_kernels ps_relax_f32_baseline, ps_relax_f32_avx2,
    ps_relax_f32_avx512, ps_relax_f64_baseline, ps_relax_f64_avx2, ps_relax_f64_avx512;

const ps_relax_kernels *
ps_relax_kernels_get(ps_dtype dtype)
{
    return dtype == PS_F32 ? PS_ISA_OF(ps_relax_f32) : PS_ISA_OF(ps_relax_f64);
}
