/* spline_f64.c - splines in double precision. */
#define REAL double
#define REAL_NAME(name) name##_f64

#include "spline/spline_parts.inc"
