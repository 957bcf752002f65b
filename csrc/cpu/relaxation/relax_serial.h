/* relax_serial.h - rows of interleaved colours, one node after the other. */
#ifndef PS_CPU_RELAX_SERIAL_H
#define PS_CPU_RELAX_SERIAL_H

#include "relaxation/relax.h"

/* They read the coefficients of the kinds skew and volumes, and relax whole rows only. */
ps_relax_function ps_relax_serial_skew(ps_dtype dtype);
ps_relax_function ps_relax_serial_volumes(ps_dtype dtype);

#endif
