/* threads.h - how many threads a call uses, and loops that they share. */
#ifndef PS_CPU_THREADS_H
#define PS_CPU_THREADS_H

#include <stdint.h>

#include "pysolvers.h"

/* Threads that a call may use: exec->threads, or the default when it is 0. At least 1. */
int ps_thread_count(const ps_exec *exec);

/* The same for a call on `unknowns` unknowns: a thread is used only if its share of the
 * work takes several times longer than to wake it, or longer where exec->threads is set.
 */
int ps_thread_count_for(const ps_exec *exec, int64_t unknowns);

/* ps_wanted_threads(), found once. */
int32_t ps_default_threads(void);

/* PYSOLVERS_NUM_THREADS, or else OMP_NUM_THREADS, but at most ps_usable_cores(). */
int ps_wanted_threads(void);

/* Processors that this process may use: those of its affinity mask, but at most its
 * cgroup quota. At least 1. */
int ps_usable_cores(void);

/* The quota of CPU time of a process, in processors, rounded up; 0 for no quota.
 * `cgroups`: its /proc/self/cgroup; `mount`: where the cgroup file systems are. */
int ps_cgroup_cores(const char *cgroups, const char *mount);

/* The blocks of a shared loop that one thread takes. */
typedef struct {
    struct ps_loop *loop;
    int thread;    /* index of the thread that takes them */
    int share;     /* where it takes them */
    int64_t taken; /* iterations */
} ps_claims;

/* Take the next block [*begin, *end); 0 when none is left. */
int ps_claim(ps_claims *claims, int64_t *begin, int64_t *end);

/* Run body(self, claims, thread) on up to `threads` threads, which take blocks of
 * [0, count) from ps_claim() until none is left. `thread` is less than `threads` and
 * differs between the threads. The calling thread is thread 0. It waits only for
 * threads that are inside body, and finishes alone when the others never start. With one
 * thread the only block is [0, count). While teams cost time, because the processors are
 * busy with something else, it uses one thread. */
void ps_parallel(int threads, int64_t count,
                 void (*body)(void *self, ps_claims *claims, int thread), void *self);

/* The same with body(self, begin, end, thread) called once for each block. */
void ps_parallel_for(int threads, int64_t count,
                     void (*body)(void *self, int64_t begin, int64_t end, int thread),
                     void *self);

#endif
