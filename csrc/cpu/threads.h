/* threads.h - the only place that knows OpenMP. */
#ifndef PS_CPU_THREADS_H
#define PS_CPU_THREADS_H

#include <stdint.h>

#include "pysolvers.h"

/* Threads that a call may use: exec->threads, or the default when it is 0; 1 in
 * a forked child, whose OpenMP pool did not survive the fork. At least 1. */
int ps_thread_count(const ps_exec *exec);

/* The same for a call on `unknowns` unknowns: a small one is not worth a team. */
int ps_thread_count_for(const ps_exec *exec, int64_t unknowns);

/* PYSOLVERS_NUM_THREADS, or what OpenMP would take. */
int32_t ps_default_threads(void);

/* Call body(self, begin, end, thread) for ranges that together cover
 * [0, count), one contiguous share a thread. The calling thread takes part as
 * thread 0 and does everything itself when threads is 1. */
void ps_parallel_for(int threads, int64_t count,
                     void (*body)(void *self, int64_t begin, int64_t end, int thread),
                     void *self);

/* The same in ranges of one: a thread takes its own contiguous share in order, and then
 * what slower ones have left of theirs. */
void ps_parallel_each(int threads, int64_t count,
                      void (*body)(void *self, int64_t begin, int64_t end, int thread),
                      void *self);

#endif
