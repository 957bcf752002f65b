/* pieces.h - long systems with row exchanges, shorter than those of
 * pivoted_partition.h. */
#ifndef PS_CPU_PARTITION_PIECES_H
#define PS_CPU_PARTITION_PIECES_H

#include "pysolvers.h"

/* Whether the systems of a batch of at least PS_PIECES_ROWS rows are solved in order:
 * *fit is 1 if all of them are, -1 if none is, otherwise 0. Those of at least
 * PS_SPANS_ROWS rows that are not are solved in spans, whatever the batch. */
ps_status ps_pieces_fit(const ps_tridiag *t, const ps_exec *exec, int threads, int *fit);

/* Workspace in bytes, and solution of the only system of t: in spans, or in order, in
 * pieces that are eliminated at once where that is possible. The result in order is that
 * of direct.inc bit by bit. */
size_t ps_pieces_work(const ps_tridiag *t, int threads);
ps_status ps_pieces_solve(const ps_tridiag *t, const ps_exec *exec, int threads,
                          void *work);

#endif
