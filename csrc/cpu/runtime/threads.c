/* threads.c - a pool of threads that share the iterations of a loop.
 *
 * The range [0, count) is divided into one contiguous share per thread, and each share
 * into blocks. A thread takes the blocks of its share in order and then the remaining
 * blocks of the other shares, by atomic addition to the counter of the share (work
 * stealing: Blumofe and Leiserson 1999). A thread that is not scheduled delays the loop
 * by at most the block that the thread is computing. A worker that has not started causes
 * no delay, because the calling thread withdraws the offer. The result of a block does
 * not depend on the thread that computes it.
 *
 * A worker polls its state for PS_SPIN_NS, which covers the serial part between two loops
 * of one call, and then sleeps on a condition variable; so does a calling thread at the
 * end of its loop. Loops of several calling threads run concurrently, each with the
 * workers that are idle when the loop starts, possibly none.
 *
 * On a busy machine a worker often starts late or loses its processor during a block.
 * Short loops therefore compare the elapsed time with an estimate for one thread; if the
 * team was slower, the following loops run on the calling thread only.
 *
 * States of a worker, and who changes them:
 *
 *   IDLE -> HELD        a calling thread reserves it
 *   HELD -> OFFERED     the calling thread: the loop is ready
 *   OFFERED -> RUNNING  the worker
 *   RUNNING -> HELD     the worker, finished
 *   OFFERED -> HELD     the calling thread withdraws the offer
 *   HELD -> IDLE        the calling thread, after all workers of its loop have finished,
 *                       because a worker also reads the counters of the other workers
 *
 * After a fork the child process has no workers: it empties the pool and starts new ones.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* pthread_sigmask */
#endif

#include "runtime/threads.h"

#include "runtime/fp_mode.h"
#include "runtime/tuning.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_THREADS = 1024, CACHE_LINE = 128, STACK_BYTES = 1 << 22 };

enum { IDLE, HELD, OFFERED, RUNNING };

/* The blocks that one thread takes of a loop. */
typedef struct {
    struct loop *loop;
    int thread;    /* index of the thread */
    int share;     /* share from which the thread takes blocks */
    int64_t taken; /* iterations taken by the thread so far */
} blocks;

typedef struct {
    atomic_int state;
    atomic_int sleepers; /* threads that wait for `changed` */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    blocks blocks;        /* of the loop that is offered */
    _Atomic int64_t next; /* first iteration of the worker's share that is not taken */
} worker;

typedef struct loop {
    ps_body body;
    void *self;
    const ps_exec *exec; /* whose poll can end the loop, or null */
    int64_t count, block;
    int64_t slice;        /* iterations of a thread between two checks of `stop` */
    atomic_int stop;      /* the loop was interrupted */
    int team;             /* threads */
    atomic_int woken;     /* workers that are awake or being woken */
    _Atomic int64_t next; /* first iteration of share 0 that is not taken */
    worker *workers[MAX_THREADS]; /* of threads 1 .. team - 1 */
} loop;

static worker *pool[MAX_THREADS];
static atomic_int pool_size;
static atomic_int forks; /* forks between the process that first used the pool and this */
static _Atomic int64_t alone_until; /* monotonic time until which no team is used */
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int default_threads;

static void
forget_workers(void)
{
    atomic_fetch_add(&forks, 1);
    atomic_store(&pool_size, 0);
    pthread_mutex_init(&growing, NULL);
}

static void
start(void)
{
    const int wanted = ps_wanted_threads();

    default_threads = wanted < MAX_THREADS ? wanted : MAX_THREADS;
    pthread_atfork(NULL, NULL, forget_workers);
}

int32_t
ps_default_threads(void)
{
    pthread_once(&once, start);
    return default_threads;
}

int
ps_thread_count(const ps_exec *exec)
{
    const int threads = exec->threads > 0 ? exec->threads : ps_default_threads();

    return threads < MAX_THREADS ? threads : MAX_THREADS;
}

int
ps_thread_count_for(const ps_exec *exec, int64_t unknowns)
{
    const int threads = ps_thread_count(exec);
    const int64_t worth = exec->threads > 0 ? unknowns / PS_UNKNOWNS_IF_REQUESTED + 1
                                            : unknowns / PS_UNKNOWNS_PER_THREAD;

    return worth < 1 ? 1 : worth < threads ? (int)worth : threads;
}

static void
relax_processor(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t
now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Whether a worker reaches a state within PS_SPIN_NS. */
static int
is_soon(worker *w, int state)
{
    int64_t end = 0;

    for (;;) {
        for (int k = 0; k < PS_SPINS; k++) {
            if (atomic_load(&w->state) == state) {
                return 1;
            }
            relax_processor();
        }
        const int64_t time = now(CLOCK_MONOTONIC);

        end = end == 0 ? time + PS_SPIN_NS : end;
        if (time >= end) {
            return 0;
        }
    }
}

static void
wait_for(worker *w, int state)
{
    if (is_soon(w, state)) {
        return;
    }
    pthread_mutex_lock(&w->mutex);
    atomic_fetch_add(&w->sleepers, 1);
    while (atomic_load(&w->state) != state) {
        pthread_cond_wait(&w->changed, &w->mutex);
    }
    atomic_fetch_sub(&w->sleepers, 1);
    pthread_mutex_unlock(&w->mutex);
}

/* Wake the threads that wait for the state that was just stored. Locking the mutex
 * between the store and the broadcast ensures that a thread that read the old state is
 * already waiting on the condition variable. */
static void
wake(worker *w)
{
    if (atomic_load(&w->sleepers) > 0) {
        pthread_mutex_lock(&w->mutex);
        pthread_mutex_unlock(&w->mutex);
        pthread_cond_broadcast(&w->changed);
    }
}

static void
wake_next(loop *l, int count)
{
    for (int k = 0; k < count && atomic_load(&l->woken) < l->team - 1; k++) {
        const int next = atomic_fetch_add(&l->woken, 1);

        if (next < l->team - 1) {
            wake(l->workers[next]);
        }
    }
}

/* Take the next block [*begin, *end); 0 when none is left. */
static int next_block(blocks *own, int64_t *begin, int64_t *end);

/* The part of a thread in a loop. */
static void
run_blocks(blocks *own)
{
    loop *const l = own->loop;
    int64_t begin, end, done = 0; /* iterations since the last check of `stop` */

    while (!atomic_load(&l->stop) && next_block(own, &begin, &end)) {
        while (begin < end) {
            const int64_t left = l->slice - done;
            const int64_t to = end - begin < left ? end : begin + left;

            l->body(l->self, begin, to, own->thread);
            done += to - begin;
            begin = to;
            if (done < l->slice) {
                continue;
            }
            done = 0;
            if (own->thread == 0 && l->exec->poll(l->exec->poll_self)) {
                atomic_store(&l->stop, 1);
            }
            if (atomic_load(&l->stop)) {
                break;
            }
        }
    }
    atomic_thread_fence(memory_order_seq_cst); /* non-temporal stores, too */
}

static void *
work(void *self)
{
    worker *const w = self;

    (void)ps_fp_mode_enter(); /* for the life of the thread */
    for (;;) {
        int state = OFFERED;

        wait_for(w, OFFERED);
        if (atomic_compare_exchange_strong(&w->state, &state, RUNNING)) {
            wake_next(w->blocks.loop, 2);
            run_blocks(&w->blocks);
            atomic_exchange(&w->state, HELD); /* a full barrier: non-temporal stores */
            wake(w);
        }
    }
    return NULL;
}

/* Start a worker in the state HELD; null if memory or threads are exhausted. The worker
 * blocks all signals, so that the threads of the program handle them. */
static worker *
new_worker(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    worker *const w = aligned_alloc(CACHE_LINE, (sizeof(worker) + CACHE_LINE - 1) /
                                                    CACHE_LINE * CACHE_LINE);

    if (w == NULL) {
        return NULL;
    }
    atomic_init(&w->state, HELD);
    atomic_init(&w->sleepers, 0);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&thread, &attributes, work, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed) {
        free(w);
        return NULL;
    }
    return w;
}

/* Add a worker to the pool if the pool has fewer than `most` workers; otherwise null. */
static worker *
grow(int most)
{
    worker *w = NULL;

    pthread_mutex_lock(&growing);
    const int size = atomic_load(&pool_size);
    if (size < most && size < MAX_THREADS) {
        w = new_worker();
        if (w != NULL) {
            pool[size] = w;
            atomic_store(&pool_size, size + 1);
        }
    }
    pthread_mutex_unlock(&growing);
    return w;
}

/* Reserve up to `wanted` workers. New workers are started only up to the larger of the
 * default number and `wanted`. */
static void
hold_workers(loop *l, int wanted)
{
    const int usual = ps_default_threads() - 1;
    const int most = wanted > usual ? wanted : usual;
    const int size = atomic_load(&pool_size);

    for (int k = 0; k < size && l->team <= wanted; k++) {
        int state = IDLE;

        if (atomic_load(&pool[k]->state) == IDLE &&
            atomic_compare_exchange_strong(&pool[k]->state, &state, HELD)) {
            l->workers[l->team++ - 1] = pool[k];
        }
    }
    for (worker *w; l->team <= wanted && (w = grow(most)) != NULL;) {
        l->workers[l->team++ - 1] = w;
    }
}

/* First iteration of a share; for share == team the end of the range. */
static int64_t
share_begin(const loop *l, int64_t share)
{
    const int64_t rest = l->count % l->team;

    return share * (l->count / l->team) + (share < rest ? share : rest);
}

static void
offer(loop *l)
{
    const int64_t block = l->count / ((int64_t)l->team * PS_SHARE_BLOCKS);

    l->block = l->team == 1 ? l->count : block > 1 ? block : 1;
    atomic_init(&l->next, 0);
    atomic_init(&l->woken, 0);
    for (int k = 1; k < l->team; k++) {
        atomic_store(&l->workers[k - 1]->next, share_begin(l, k));
    }
    for (int k = 1; k < l->team; k++) {
        worker *const w = l->workers[k - 1];

        w->blocks = (blocks){l, k, k, 0};
        atomic_store(&w->state, OFFERED);
    }
    wake_next(l, PS_WAKES);
}

/* Withdraw the open offers, wait for the workers that have started, and release all. */
static void
finish(loop *l)
{
    for (int k = 0; k < l->team - 1; k++) {
        int state = OFFERED;

        atomic_compare_exchange_strong(&l->workers[k]->state, &state, HELD);
    }
    for (int k = 0; k < l->team - 1; k++) {
        wait_for(l->workers[k], HELD);
    }
    for (int k = 0; k < l->team - 1; k++) {
        atomic_store(&l->workers[k]->state, IDLE);
    }
}

static int
next_block(blocks *own, int64_t *begin, int64_t *end)
{
    loop *const l = own->loop;

    for (;;) {
        const int share = own->share;
        _Atomic int64_t *const next =
            share == 0 ? &l->next : &l->workers[share - 1]->next;
        const int64_t last = share_begin(l, share + 1);

        if (atomic_load(next) < last) {
            *begin = atomic_fetch_add(next, l->block);
            if (*begin < last) {
                *end = *begin + l->block < last ? *begin + l->block : last;
                own->taken += *end - *begin;
                return 1;
            }
        }
        const int other = (share + 1) % l->team;
        if (other == own->thread) {
            return 0;
        }
        own->share = other;
    }
}

/* Compare the time since `begin` with the estimated time of the calling thread alone: the
 * CPU time of its iterations divided by its share of the iterations. If the team was
 * slower, use no team for PS_REPAYMENT times the lost time, so that the loss is at most 5
 * percent. Loops estimated above PS_LONG_LOOP are not judged, because one thread would
 * not keep a processor for that time either. */
static void
judge(const blocks *own, int64_t spent, int64_t begin)
{
    const int64_t end = now(CLOCK_MONOTONIC);
    const double share = (double)own->taken / (double)own->loop->count;
    const int64_t alone = (int64_t)((double)spent / (share > 0.01 ? share : 0.01));
    const int64_t lost = end - begin - alone;

    if (lost > 0 && alone < PS_LONG_LOOP) {
        const int64_t pause = PS_REPAYMENT * lost;

        atomic_store(&alone_until,
                     end + (pause < PS_LONGEST_PAUSE ? pause : PS_LONGEST_PAUSE));
    }
}

ps_status
ps_run(const ps_exec *exec, int threads, int64_t count, int64_t cost, ps_body body,
       void *self)
{
    const int polls = exec != NULL && exec->poll != NULL;
    loop l;
    blocks own = {&l, 0, 0, 0};

    l.body = body;
    l.self = self;
    l.exec = exec;
    l.count = count;
    l.slice = !polls                         ? INT64_MAX
              : cost < PS_ROWS_BETWEEN_POLLS ? PS_ROWS_BETWEEN_POLLS / cost
                                             : 1;
    l.team = 1;
    atomic_init(&l.stop, 0);
    if (count < threads) {
        threads = (int)count;
    }
    const int64_t begin = threads > 1 ? now(CLOCK_MONOTONIC) : 0;
    if (threads > 1 && begin >= atomic_load(&alone_until)) {
        hold_workers(&l, threads - 1);
    }
    const int forks_before = atomic_load(&forks);
    offer(&l);
    if (l.team == 1) {
        run_blocks(&own);
    }
    else {
        const int64_t offered = now(CLOCK_THREAD_CPUTIME_ID);

        run_blocks(&own);
        if (atomic_load(&forks) == forks_before) { /* otherwise body forked: no workers */
            const int64_t spent = now(CLOCK_THREAD_CPUTIME_ID) - offered;

            finish(&l);
            judge(&own, spent, begin);
        }
    }
    return atomic_load(&l.stop) ? PS_INTERRUPTED : PS_OK;
}
