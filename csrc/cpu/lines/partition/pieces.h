/* pieces.h - a long system with row exchanges, solved in order. */
#ifndef PS_CPU_PARTITION_PIECES_H
#define PS_CPU_PARTITION_PIECES_H

#include "pysolvers.h"

/* Workspace in bytes, and solution of the only system of t, as the narrow kernels solve
 * it bit by bit, in pieces that are eliminated at once where that is possible. */
size_t ps_pieces_work(const ps_tridiag *t);
ps_status ps_pieces_solve(const ps_tridiag *t, const ps_exec *exec, int threads,
                          void *work);

#endif
