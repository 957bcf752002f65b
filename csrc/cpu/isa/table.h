/* table.h - the line kernels of one instruction set, for all dtypes.
 *
 * The including file defines PS_ISA, PS_ISA_NAME and PS_VECTOR_BYTES.
 */
#include "lines/kernels.h"
#include "isa/vector.h"

#define PS_KERNELS(tag) PS_CAT(ps_kernels_##tag##_, PS_ISA)

extern const ps_type_kernels PS_KERNELS(f32), PS_KERNELS(f64), PS_KERNELS(c64),
    PS_KERNELS(c128);

static void
copy_past_caches(char *to, const char *from, size_t bytes)
{
    for (size_t k = 0; k < bytes; k += PS_VECTOR_BYTES) {
        ps_stream(to + k, from + k);
    }
    ps_stream_fence();
}

const ps_isa PS_CAT(ps_isa_, PS_ISA) = {
    PS_ISA_NAME,
    {
        [PS_F32] = &PS_KERNELS(f32),
        [PS_F64] = &PS_KERNELS(f64),
        [PS_C64] = &PS_KERNELS(c64),
        [PS_C128] = &PS_KERNELS(c128),
    },
    copy_past_caches,
};
