/* threads.c - a static partition of a range over an OpenMP team. */
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
        const int64_t share = count / team, rest = count % team;
        const int64_t begin = me * share + (me < rest ? me : rest);

        body(self, begin, begin + share + (me < rest), (int)me);
    }
#endif
}
