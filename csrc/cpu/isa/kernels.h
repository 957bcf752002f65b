/* kernels.h - compile all kernels for the instruction set of the including file.
 *
 * The including file defines PS_ISA_NAME, PS_ISA_TABLE and PS_VECTOR_BYTES; its
 * compiler flags decide the rest.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../kernels.h"
#include "vector.h"

#define PS_CAT_(a, b) a##b
#define PS_CAT(a, b) PS_CAT_(a, b)
#define PS_FN(name) PS_CAT(name##_, PS_TAG)
#define PS_INLINE static inline __attribute__((always_inline))

#define PS_BASE f32
#define PS_REAL float
#define PS_INT int32_t
#define PS_LARGEST FLT_MAX
#define PS_SMALL_SQUARE 1e-18f
#define PS_SQRT sqrtf
#define PS_COMPLEX 0
#define PS_TAG f32
#include "../engine.inc"
#undef PS_COMPLEX
#undef PS_TAG
#define PS_COMPLEX 1
#define PS_TAG c64
#include "../engine.inc"
#undef PS_COMPLEX
#undef PS_TAG
#undef PS_BASE
#undef PS_REAL
#undef PS_INT
#undef PS_LARGEST
#undef PS_SMALL_SQUARE
#undef PS_SQRT

#define PS_BASE f64
#define PS_REAL double
#define PS_INT int64_t
#define PS_LARGEST DBL_MAX
#define PS_SMALL_SQUARE 1e-150
#define PS_SQRT sqrt
#define PS_COMPLEX 0
#define PS_TAG f64
#include "../engine.inc"
#undef PS_COMPLEX
#undef PS_TAG
#define PS_COMPLEX 1
#define PS_TAG c128
#include "../engine.inc"

static void
copy_past_caches(char *to, const char *from, size_t bytes)
{
    for (size_t k = 0; k < bytes; k += PS_VECTOR_BYTES) {
        ps_stream(to + k, from + k);
    }
    ps_stream_fence();
}

const ps_isa PS_ISA_TABLE = {
    PS_ISA_NAME,
    {
        [PS_F32] = &kernels_f32,
        [PS_F64] = &kernels_f64,
        [PS_C64] = &kernels_c64,
        [PS_C128] = &kernels_c128,
    },
    copy_past_caches,
};
