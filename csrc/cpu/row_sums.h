/* row_sums.h - systems whose matrices are given by off-diagonals and row sums. */
#ifndef PS_CPU_ROW_SUMS_H
#define PS_CPU_ROW_SUMS_H

#include "pysolvers.h"

/* tridiag_work() and tridiag_solve() of at least one system with PS_ROW_SUMS; the
 * workspace has these bytes. */
ps_status ps_row_sums_work(const ps_tridiag *t, const ps_exec *exec, size_t *bytes);
ps_status ps_row_sums_solve(const ps_tridiag *t, const ps_exec *exec, ps_report *report);

#endif
