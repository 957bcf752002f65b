/* gceidd_f64.c - sweeps of GCEIDD in double precision. */
#define REAL double
#define REAL_NAME(name) name##_f64

#include "transport/gceidd_sweep.inc"
