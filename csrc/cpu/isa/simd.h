/* simd.h - the names of vectors of the current dtype, which all kernels of isa/ use.
 *
 * PS_BASE is f32 or f64, PS_REAL its type. The names follow a change of PS_BASE and
 * PS_REAL, so that a unit can compile kernels for both. Arithmetic and comparisons are
 * operators.
 */
#ifndef PS_CPU_ISA_SIMD_H
#define PS_CPU_ISA_SIMD_H

#include "isa/vector.h"

#define real PS_REAL
#define vec PS_CAT(ps_vec_, PS_BASE)
#define mask PS_CAT(ps_mask_, PS_BASE)
#define LANES ((int)(PS_VECTOR_BYTES / sizeof(PS_REAL)))

#define load(from) PS_CAT(ps_load_, PS_BASE)(from)
#define store(to, v) PS_CAT(ps_store_, PS_BASE)(to, v)
#define load_some(from, lanes) PS_CAT(ps_load_some_, PS_BASE)(from, lanes)
#define store_some(to, v, lanes) PS_CAT(ps_store_some_, PS_BASE)(to, v, lanes)
#define splat(a) PS_CAT(ps_splat_, PS_BASE)(a)
#define choose_vec(m, a, b) PS_CAT(ps_choose_, PS_BASE)(m, a, b)
#define abs_vec(a) PS_CAT(ps_abs_, PS_BASE)(a)
#define any(m) PS_CAT(ps_any_, PS_BASE)(m)
#define all(m) (!any(~(m)))
#define mask_of_bytes(from) PS_CAT(ps_of_bytes_, PS_BASE)(from)

/* transpose(vec v[LANES]): element k of vector i becomes element i of vector k.
 * load_square(from, offset, vec to[LANES]): the same for the rows from[i] + offset. */
#define transpose(v) PS_CAT(ps_transpose_, PS_BASE)(v)
#define load_square(from, offset, to) PS_CAT(ps_load_square_, PS_BASE)(from, offset, to)

/* Units for size (setup.py): the functions of the files that follow are inlined only where
 * that makes the code smaller. */
#ifdef PS_SMALL
#undef PS_INLINE
#define PS_INLINE static inline
#endif

#endif
