/* cut.h - the partition method for systems that are solved together. */
#ifndef PS_CPU_CUT_H
#define PS_CPU_CUT_H

#include "kernels.h"

typedef struct {
    const ps_type_kernels *kernels;
    ps_tridiag t;
    const ps_exec *exec;
    ps_pivot pivot;
    int64_t side; /* systems side by side, the whole of inner or one */
    int threads;  /* on them */
    int stream;   /* store x past the caches */
} ps_cut_task;

/* Workspace for `side` systems of t, worked on by `threads` threads. */
size_t ps_cut_bytes(const ps_tridiag *t, int64_t side, ps_pivot pivot, int threads);

/* Solve the systems side by side from (j, k) on. Clears *dominant where a row of them is
 * not; *bad gets 0, or 1 + the row of a bad pivot. Several systems with one or the other
 * are left as they are. */
ps_status ps_cut_once(const ps_cut_task *d, int64_t j, int64_t k, char *work,
                      int *dominant, int32_t *bad);

#endif
