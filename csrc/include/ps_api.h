/* ps_api.h - what the functions for C programs need apart from the table of a backend. */
#ifndef PS_API_H
#define PS_API_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The functions for C programs, a pysolvers_functions of pysolvers_api.h; null in a device
 * backend. */
const void *ps_c_api(void);

/* ps_factor_check() without the store, and the diagonals of `t`, which has the same dtype
 * and sizes. */
ps_status ps_matrix_check(const ps_factor *f, const ps_tridiag *t);

#ifdef __cplusplus
}
#endif
#endif
