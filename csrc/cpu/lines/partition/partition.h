/* partition.h - the partition method: solution of a batch of long systems. */
#ifndef PS_CPU_PARTITION_H
#define PS_CPU_PARTITION_H

#include "lines/kernels.h"
#include "lines/partition/layout.h"
#include "runtime/threads.h"

typedef struct {
    const ps_type_kernels *kernels;
    ps_tridiag t;
    const ps_exec *exec;
    ps_pivot pivot;
    int64_t side; /* systems solved together: all systems along inner, or one */
    int threads;  /* threads for these systems */
    int stream;   /* store x with non-temporal stores */
    int shared;   /* the systems along inner have one matrix */
} ps_partition_task;

/* Workspace in bytes for `side` systems of t and `threads` threads. */
size_t ps_partition_bytes(const ps_tridiag *t, int64_t side, ps_pivot pivot, int threads);

/* Solve d->side systems from system (j, k) on. Clears *dominant if a row is not dominant;
 * *bad is set to 0, or to 1 + the row of a bad pivot. If either occurs with several
 * systems, x is not written. */
ps_status ps_partition_once(const ps_partition_task *d, int64_t j, int64_t k, char *work,
                            int *dominant, int32_t *bad);

/* Parallel loop over the blocks of groups of a partition. */
ps_status ps_partition_run(const ps_partition *partition, const ps_exec *exec,
                           int threads, ps_body body, void *self);

/* Reduced systems of few rows, one system per lane: workspace in bytes, and the solution
 * with the threads of `d`; *bad as above. */
size_t ps_partition_few_bytes(const ps_tridiag *separators, int threads);
ps_status ps_partition_few(const ps_partition_task *d, const ps_tridiag *separators,
                           char *work, int32_t *bad);

/* Divide the matrix of partition->t into chunks for factor_chunks.inc. */
void ps_partition_tables(ps_partition *partition, const ps_type_kernels *kernels);

/* As ps_partition_bytes() and ps_partition_once(), for systems that share one matrix: the
 * systems along inner of t, or (j, all) of d->t. */
size_t ps_partition_shared_bytes(const ps_tridiag *t, int threads);
ps_status ps_partition_shared(const ps_partition_task *d, int64_t j, char *work,
                              int *dominant, int32_t *bad);

/* The partition method: workspace in bytes, and the solution of a whole batch. */
size_t ps_partition_work(const ps_tridiag *t, ps_pivot pivot, int threads);
ps_status ps_partition_solve(const ps_tridiag *t, ps_pivot pivot, const ps_exec *exec,
                             int threads, int64_t *pivoted);

#endif
