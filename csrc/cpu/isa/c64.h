/* c64.h - the dtype c64 of a unit. */
#define PS_TAG c64
#define PS_NUMBER "lines/complex.h"
#define PS_BASE f32 /* dtype of the parts */
#define PS_REAL float
#define PS_INT int32_t /* of the same size */
#define PS_LARGEST FLT_MAX
#define PS_TINY (4 * FLT_MIN) /* reciprocals of larger numbers do not overflow */
#define PS_EPSILON FLT_EPSILON
#define PS_SMALL_SQUARE 1e-18f
#define PS_SQRT sqrtf
