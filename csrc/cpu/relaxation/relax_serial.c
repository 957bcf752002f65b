/* relax_serial.c - the single-threaded relaxation with which the papers compare. */
#include "relaxation/relax_serial.h"

#include <math.h>

#define PS_CAT_(a, b) a##b
#define PS_CAT(a, b) PS_CAT_(a, b)
#define PS_FN(name) PS_CAT(name##_, PS_TAG)

#define PS_REAL float
#define PS_ABS fabsf
#define PS_TAG f32
#include "relaxation/relax_serial.inc"
#undef PS_REAL
#undef PS_ABS
#undef PS_TAG

#define PS_REAL double
#define PS_ABS fabs
#define PS_TAG f64
#include "relaxation/relax_serial.inc"

ps_relax_function
ps_relax_serial_skew(ps_dtype dtype)
{
    return dtype == PS_F32 ? skew_f32 : skew_f64;
}

ps_relax_function
ps_relax_serial_volumes(ps_dtype dtype)
{
    return dtype == PS_F32 ? volumes_f32 : volumes_f64;
}
