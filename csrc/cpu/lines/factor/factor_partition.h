/* factor_partition.h - factors of long matrices by the partition method. */
#ifndef PS_CPU_FACTOR_PARTITION_H
#define PS_CPU_FACTOR_PARTITION_H

#include "lines/partition/partition.h"

/* Whether each matrix of a factor is kept in chunks, if its rows are dominant or need not
 * be. */
int ps_factor_is_long(const ps_factor *f);

/* Matrix i of a long factor and its right-hand sides; all of those of others. */
ps_tridiag ps_factor_matrix_of(const ps_factor *f, const ps_tridiag *t, int64_t i);
ps_factor_rhs ps_factor_rhs_of(const ps_factor *f, const ps_factor_rhs *b, int64_t i);

/* The following functions handle one long matrix. */

/* Bytes of the store, and of workspaces. */
size_t ps_factor_partition_store(const ps_factor *f, const ps_exec *exec);
size_t ps_factor_partition_make_work(const ps_factor *f, const ps_exec *exec);
size_t ps_factor_partition_work(const ps_factor *f, const ps_factor_rhs *b,
                                const ps_exec *exec, int threads);

/* Clears *sound where a row of t is not dominant, if that is to be looked at, or a pivot
 * is bad; the store then holds nothing. */
ps_status ps_factor_partition_make(const ps_factor *f, const ps_tridiag *t,
                                   const ps_exec *exec, int threads, int *sound);
ps_status ps_factor_partition_solve(const ps_factor *f, const ps_factor_rhs *b,
                                    const ps_exec *exec, int threads);

#endif
