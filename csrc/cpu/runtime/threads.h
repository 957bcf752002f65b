/* threads.h - the number of threads of a call, and parallel loops. */
#ifndef PS_CPU_THREADS_H
#define PS_CPU_THREADS_H

#include <stdint.h>

#include "pysolvers.h"

/* Threads that a call may use: exec->threads, or the default when it is 0. At least 1. */
int ps_thread_count(const ps_exec *exec);

/* Number of threads for a call with `unknowns` unknowns: limited so that the work of each
 * thread takes several times the time to wake a thread, or at least a fraction of that if
 * exec->threads is set. */
int ps_thread_count_for(const ps_exec *exec, int64_t unknowns);

/* ps_wanted_threads(), evaluated once per process. */
int32_t ps_default_threads(void);

/* The value of PYSOLVERS_NUM_THREADS, otherwise of OMP_NUM_THREADS, but at most
 * ps_usable_cores(), which is also the default. */
int ps_wanted_threads(void);

/* Number of processors that this process may use: the size of its affinity mask, but at
 * most its cgroup quota. At least 1. */
int ps_usable_cores(void);

/* CPU time quota of a process in processors, rounded up; 0 for no quota. `cgroups`: path
 * of its /proc/self/cgroup; `mount`: mount point of the cgroup file systems. */
int ps_cgroup_cores(const char *cgroups, const char *mount);

/* State of one thread of a parallel loop. */
typedef struct {
    struct ps_loop *loop;
    int thread;    /* index of the thread */
    int share;     /* share from which the thread takes blocks */
    int64_t taken; /* iterations taken by the thread so far */
} ps_blocks;

/* Take the next block [*begin, *end); 0 when none is left. */
int ps_next_block(ps_blocks *blocks, int64_t *begin, int64_t *end);

/* Run body(self, blocks, thread) on up to `threads` threads, which take blocks of
 * [0, count) from ps_next_block() until none is left. `thread` is less than `threads` and
 * differs between the threads. The calling thread is thread 0. The calling thread waits
 * only for threads that are inside body, and completes the loop alone if no other thread
 * starts. With one thread the only block is [0, count). After loops in which a team was
 * slower than one thread, because the processors were busy, one thread is used. */
void ps_parallel(int threads, int64_t count,
                 void (*body)(void *self, ps_blocks *blocks, int thread), void *self);

/* As ps_parallel(), with one call body(self, begin, end, thread) per block. */
void ps_parallel_for(int threads, int64_t count,
                     void (*body)(void *self, int64_t begin, int64_t end, int thread),
                     void *self);

#endif
