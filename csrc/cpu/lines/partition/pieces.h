/* pieces.h - a long system with row exchanges, solved in order. */
#ifndef PS_CPU_PARTITION_PIECES_H
#define PS_CPU_PARTITION_PIECES_H

#include "pysolvers.h"

/* Workspace in bytes, and solution of the only system of t, in pieces that are eliminated
 * at once where that is possible. The result is that of the narrow kernels bit by bit. */
size_t ps_pieces_work(const ps_tridiag *t);
ps_status ps_pieces_solve(const ps_tridiag *t, const ps_exec *exec, int threads,
                          void *work);

#endif
