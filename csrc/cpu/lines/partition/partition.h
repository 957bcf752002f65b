/* partition.h - the partition method for systems that are solved together. */
#ifndef PS_CPU_PARTITION_H
#define PS_CPU_PARTITION_H

#include "lines/kernels.h"

/* As separators, a system of so many rows is cut itself. */
enum { PS_MANY_CHUNKS = 512 };

typedef struct {
    const ps_type_kernels *kernels;
    ps_tridiag t;
    const ps_exec *exec;
    ps_pivot pivot;
    int64_t side; /* systems side by side, the whole of inner or one */
    int threads;  /* on them */
    int stream;   /* store x past the caches */
    int shared;   /* the systems along inner have one matrix */
} ps_partition_task;

/* A batch as it is worked on: one of one column goes along inner, as it does in
 * ps_job_init(). */
ps_tridiag ps_partition_in_line(const ps_tridiag *t);

/* Systems that go together: all along inner where they are neighbours in memory, or 1. */
int64_t ps_partition_side(const ps_tridiag *t);

/* Workspace for `side` systems of t, worked on by `threads` threads. */
size_t ps_partition_bytes(const ps_tridiag *t, int64_t side, ps_pivot pivot, int threads);

/* Solve the systems side by side from (j, k) on. Clears *dominant where a row of them is
 * not; *bad gets 0, or 1 + the row of a bad pivot. Several systems with one or the other
 * are left as they are. */
ps_status ps_partition_once(const ps_partition_task *d, int64_t j, int64_t k, char *work,
                            int *dominant, int32_t *bad);

/* A pass over the stretches of a cut: `with` has all but the job. */
ps_status ps_partition_run(const ps_partition *partition, const ps_tiles *with);

/* Systems of few separators, one lane a system: workspace, and the solution with the
 * threads of `d`; *bad as above. */
size_t ps_partition_few_bytes(const ps_tridiag *separators, int threads);
ps_status ps_partition_few(const ps_partition_task *d, const ps_tridiag *separators,
                           char *work, int32_t *bad);

/* Cut the matrix of cut->t alone, as factor_chunks.inc takes it. */
void ps_partition_tables(ps_partition *partition, const ps_type_kernels *kernels);

/* As ps_partition_bytes() and ps_partition_once(), for the systems along inner of t, or
 * (j, all) of d->t, which share a matrix. */
size_t ps_partition_shared_bytes(const ps_tridiag *t, int threads);
ps_status ps_partition_shared(const ps_partition_task *d, int64_t j, char *work,
                              int *dominant, int32_t *bad);

/* The partition method: work in bytes, and the solution of a whole batch. */
size_t ps_partition_work(const ps_tridiag *t, ps_pivot pivot, int threads);
ps_status ps_partition_solve(const ps_tridiag *t, ps_pivot pivot, const ps_exec *exec,
                             int threads, int64_t *pivoted);

#endif
