/* spline_f32.c - splines in single precision. */
#define REAL float
#define REAL_NAME(name) name##_f32

#include "spline/spline_parts.inc"
