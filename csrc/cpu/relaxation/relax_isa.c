/* relax_isa.c - the choice of the row functions of the relaxation for this processor.
 */
#include "relaxation/relax_isa.h"
#include "runtime/isa.h"

#include <string.h>

static const ps_relax_isa *
chosen(void)
{
    const char *const name = ps_isa_get()->name;

#ifdef PS_HAVE_AVX512
    if (strcmp(name, "avx512") == 0) {
        return &ps_relax_avx512;
    }
#endif
#ifdef PS_HAVE_AVX2
    if (strcmp(name, "avx2") == 0) {
        return &ps_relax_avx2;
    }
#endif
    (void)name;
    return &ps_relax_baseline;
}

const ps_relax_kernels *
ps_relax_kernels_get(ps_dtype dtype)
{
    return dtype == PS_F32 ? chosen()->f32 : chosen()->f64;
}
