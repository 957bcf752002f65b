/* relax_kernels.h - compile the relaxation of rows for the instruction set of the
 * including file, which defines PS_ISA_TABLE and PS_VECTOR_BYTES.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "relaxation/relax_isa.h"

#define PS_CAT_(a, b) a##b
#define PS_CAT(a, b) PS_CAT_(a, b)
#define PS_FN(name) PS_CAT(name##_, PS_TAG)
#define PS_INLINE static inline __attribute__((always_inline))

#define PS_REAL float
#define PS_INT int32_t
#define PS_ABS_MASK INT32_MAX
#define PS_TAG f32
#include "relaxation/relax_rows.inc"
#undef PS_REAL
#undef PS_INT
#undef PS_ABS_MASK
#undef PS_TAG

#define PS_REAL double
#define PS_INT int64_t
#define PS_ABS_MASK INT64_MAX
#define PS_TAG f64
#include "relaxation/relax_rows.inc"

const ps_relax_isa PS_ISA_TABLE = {&kernels_f32, &kernels_f64};
