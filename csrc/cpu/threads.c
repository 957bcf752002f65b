/* threads.c - a range shared out over an OpenMP team: once, or until all is done. */
#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum { MAX_THREADS = 1024 };

/* About ten microseconds of work, what waking a team costs. */
enum { UNKNOWNS_A_THREAD = 8192 };

static atomic_int forked;
static pthread_once_t watching = PTHREAD_ONCE_INIT;

static void
note_fork(void)
{
    atomic_store(&forked, 1);
}

static void
watch_forks(void)
{
    pthread_atfork(NULL, NULL, note_fork);
}

int32_t
ps_default_threads(void)
{
    const char *const text = getenv("PYSOLVERS_NUM_THREADS");
    const long asked = text == NULL ? 0 : strtol(text, NULL, 10);

    if (asked >= 1) {
        return (int32_t)(asked < MAX_THREADS ? asked : MAX_THREADS);
    }
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

int
ps_thread_count(const ps_exec *exec)
{
    pthread_once(&watching, watch_forks);
    if (atomic_load(&forked)) {
        return 1;
    }
#ifdef _OPENMP
    const int threads = exec->threads > 0 ? exec->threads : ps_default_threads();

    return threads < MAX_THREADS ? threads : MAX_THREADS;
#else
    (void)exec;
    return 1;
#endif
}

int
ps_thread_count_for(const ps_exec *exec, int64_t unknowns)
{
    const int threads = ps_thread_count(exec);
    const int64_t worth = unknowns / UNKNOWNS_A_THREAD + 1;

    return worth < threads ? (int)worth : threads;
}

#ifdef _OPENMP
/* Where the share of thread `me` begins; that of `team` is the end. */
static int64_t
share_begin(int64_t count, int64_t team, int64_t me)
{
    const int64_t rest = count % team;

    return me * (count / team) + (me < rest ? me : rest);
}
#endif

void
ps_parallel_for(int threads, int64_t count,
                void (*body)(void *self, int64_t begin, int64_t end, int thread),
                void *self)
{
    if (count < threads) {
        threads = count > 0 ? (int)count : 1;
    }
    if (threads == 1) {
        body(self, 0, count, 0);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
    {
        /* The team may be smaller than asked for. */
        const int64_t team = omp_get_num_threads(), me = omp_get_thread_num();

        body(self, share_begin(count, team, me), share_begin(count, team, me + 1),
             (int)me);
    }
#endif
}

void
ps_parallel_each(int threads, int64_t count,
                 void (*body)(void *self, int64_t begin, int64_t end, int thread),
                 void *self)
{
#ifdef _OPENMP
    if (threads > 1 && count > 1) {
        _Atomic int64_t next[MAX_THREADS]; /* of each share */

#pragma omp parallel num_threads(threads)
        {
            const int64_t team = omp_get_num_threads(), me = omp_get_thread_num();

            atomic_init(&next[me], share_begin(count, team, me));
#pragma omp barrier
            for (int64_t k = 0; k < team; k++) {
                const int64_t whose = (me + k) % team;
                const int64_t end = share_begin(count, team, whose + 1);

                for (int64_t i; (i = atomic_fetch_add(&next[whose], 1)) < end;) {
                    body(self, i, i + 1, (int)me);
                }
            }
        }
        return;
    }
#endif
    (void)threads;
    body(self, 0, count, 0);
}
