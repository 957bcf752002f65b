/* relax_isa.c - the choice of the row functions of the relaxation for this processor.
 */
#include "relaxation/relax_isa.h"
#include "runtime/isa.h"

const ps_relax_kernels *
ps_relax_kernels_get(ps_dtype dtype)
{
    const ps_relax_isa *const isa = PS_ISA_OF(ps_relax);

    return dtype == PS_F32 ? isa->f32 : isa->f64;
}
