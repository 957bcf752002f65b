/* isa.h - the instruction sets of this build, and the selected one. */
#ifndef PS_CPU_ISA_H
#define PS_CPU_ISA_H

#include "pysolvers.h"

/* The kernels of one dtype: lines/kernels.h. */
typedef struct ps_type_kernels ps_type_kernels;

typedef struct {
    const char *name;
    const ps_type_kernels *type[PS_DTYPE_COUNT];
    /* Copy with non-temporal stores. `to` is aligned to 64 bytes; `bytes` is a multiple
     * of 64. */
    void (*copy)(char *to, const char *from, size_t bytes);
} ps_isa;

/* The widest instruction set that this processor, this build and PYSOLVERS_ISA
 * allow; chosen once. */
const ps_isa *ps_isa_get(void);

/* That of the shortest vectors, which every build has. */
extern const ps_isa ps_isa_baseline;
#ifdef PS_HAVE_AVX2
extern const ps_isa ps_isa_avx2;
#endif
#ifdef PS_HAVE_AVX512
extern const ps_isa ps_isa_avx512;
#endif

/* The address of the selected one of the objects NAME_baseline, NAME_avx2, NAME_avx512,
 * which the files of isa/ define for each instruction set of this build. */
#ifdef PS_HAVE_AVX2
#define PS_ISA_AVX2_OR(name, other) \
    (ps_isa_get() == &ps_isa_avx2 ? &name##_avx2 : (other))
#else
#define PS_ISA_AVX2_OR(name, other) (other)
#endif
#ifdef PS_HAVE_AVX512
#define PS_ISA_AVX512_OR(name, other) \
    (ps_isa_get() == &ps_isa_avx512 ? &name##_avx512 : (other))
#else
#define PS_ISA_AVX512_OR(name, other) (other)
#endif
#define PS_ISA_OF(name) PS_ISA_AVX512_OR(name, PS_ISA_AVX2_OR(name, &name##_baseline))

/* The same with vectors of at most 32 bytes. */
#ifdef PS_HAVE_AVX2
#define PS_ISA_NARROW(name) \
    (ps_isa_get() == &ps_isa_baseline ? &name##_baseline : &name##_avx2)
#else
#define PS_ISA_NARROW(name) (&name##_baseline)
#endif

#endif
