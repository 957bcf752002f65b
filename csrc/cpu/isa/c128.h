/* c128.h - the dtype c128 of a unit. */
#define PS_TAG c128
#define PS_NUMBER "lines/complex.h"
#define PS_BASE f64 /* dtype of the parts */
#define PS_REAL double
#define PS_INT int64_t /* of the same size */
#define PS_LARGEST DBL_MAX
#define PS_TINY (4 * DBL_MIN) /* reciprocals of larger numbers do not overflow */
#define PS_EPSILON DBL_EPSILON
#define PS_SMALL_SQUARE 1e-150
#define PS_SQRT sqrt
