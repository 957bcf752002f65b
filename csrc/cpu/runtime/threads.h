/* threads.h - the number of threads of a call, and parallel loops. */
#ifndef PS_CPU_THREADS_H
#define PS_CPU_THREADS_H

#include <stddef.h>
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

/* The body of a parallel loop: iterations begin .. end-1, by one of its threads. */
typedef void (*ps_body)(void *self, int64_t begin, int64_t end, int thread);

/* Run body on up to `threads` threads, for parts of [0, count) that are not empty and
 * together are all of it. `thread` is less than `threads` and differs between the
 * threads. The calling thread is thread 0. The calling thread waits only for threads that
 * are inside body, and completes the loop alone if no other thread starts. After loops in
 * which a team was slower than one thread, because the processors were busy, one thread
 * is used.
 *
 * If exec is not null and has a poll, the calling thread calls exec->poll after about
 * PS_ROWS_BETWEEN_POLLS unknowns, of which an iteration has `cost`. If the result is not
 * 0, all threads end the loop within about as many unknowns. Without a poll, one thread
 * has the single part [0, count). Returns PS_OK or PS_INTERRUPTED. */
ps_status ps_run(const ps_exec *exec, int threads, int64_t count, int64_t cost,
                 ps_body body, void *self);

/* ps_run() of a loop that is not interrupted. */
static inline void
ps_parallel_for(int threads, int64_t count, ps_body body, void *self)
{
    (void)ps_run(NULL, threads, count, 1, body, self);
}

#endif
