/* pivoted_dtypes.h - the pivoted solver by dtype, one module each. */
#ifndef PS_CUDA_PIVOTED_DTYPES_H
#define PS_CUDA_PIVOTED_DTYPES_H

#include "pysolvers.h"

/* Name in the contract, name of the module. */
#define PS_PIVOTED_DTYPES(X) X(PS_F32, f32) X(PS_F64, f64) X(PS_C64, c64) X(PS_C128, c128)

/* Marks and work as in ps_cuda_pivoted_marked(). */
#define PS_PIVOTED_DECLARE_(dtype, name)                                            \
    ps_status ps_cuda_pivoted_work_##name(const ps_tridiag *t, size_t *bytes);      \
    ps_status ps_cuda_pivoted_run_##name(const ps_tridiag *t, const uint8_t *marks, \
                                         const ps_exec *exec, void *work);
PS_PIVOTED_DTYPES(PS_PIVOTED_DECLARE_)
#undef PS_PIVOTED_DECLARE_

#endif
