/* gceidd_f32.c - sweeps of GCEIDD in single precision. */
#define REAL float
#define REAL_NAME(name) name##_f32

#include "transport/gceidd_sweep.inc"
