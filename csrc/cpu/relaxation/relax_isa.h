/* relax_isa.h - the relaxation of rows, compiled for several instruction sets. */
#ifndef PS_CPU_RELAX_ISA_H
#define PS_CPU_RELAX_ISA_H

#include "ps_lmsor.h"
#include "relaxation/relax.h"

typedef struct {
    const ps_relax_kernels *f32, *f64;
} ps_relax_isa;

extern const ps_relax_isa ps_relax_baseline, ps_relax_avx2, ps_relax_avx512;

#endif
