/* test_threads.c - shared loops: every iteration once, one caller or several, after a
 * fork; interrupts; quotas of cgroups. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "runtime/threads.h"
#include "runtime/tuning.h"

enum { MOST = 5000, THREADS = 8 };

typedef struct {
    atomic_int visits[MOST];
    atomic_int inside[THREADS]; /* calls of body in progress with this index */
    atomic_int wrong;
    int threads;
} visits;

static void
visit(void *self, int64_t begin, int64_t end, int thread)
{
    visits *const v = self;

    if (thread < 0 || thread >= v->threads || begin >= end ||
        atomic_fetch_add(&v->inside[thread], 1) != 0) {
        atomic_store(&v->wrong, 1);
        return;
    }
    for (int64_t k = begin; k < end; k++) {
        atomic_fetch_add(&v->visits[k], 1);
    }
    atomic_fetch_sub(&v->inside[thread], 1);
}

/* 0 if every iteration was visited once and every index was used by one thread. */
static int
wrong_visits(int threads, int64_t count)
{
    visits *const v = calloc(1, sizeof *v);
    int wrong;

    v->threads = threads;
    ps_parallel_for(threads, count, visit, v);
    wrong = atomic_load(&v->wrong);
    for (int64_t k = 0; k < MOST; k++) {
        wrong |= atomic_load(&v->visits[k]) != (k < count);
    }
    free(v);
    return wrong;
}

static void
check_visits(void)
{
    static const int64_t counts[] = {1, 2, 3, 7, 8, 9, 63, 64, 65, 129, 1000, MOST};

    for (int threads = 1; threads <= THREADS; threads++) {
        for (int k = 0; k < COUNT(counts); k++) {
            for (int run = 0; run < 20; run++) {
                CHECK(!wrong_visits(threads, counts[k]), "%d threads, %lld iterations",
                      threads, (long long)counts[k]);
            }
        }
    }
}

/* A loop that its poll ends: number of polls so far, and from which on they end it. */
typedef struct {
    visits *v;
    int polls, last;
    pthread_t caller;
    int elsewhere; /* polls on another thread than the calling one */
} interrupted;

static int
poll_visits(void *self)
{
    interrupted *const i = self;

    i->elsewhere += !pthread_equal(pthread_self(), i->caller);
    return ++i->polls >= i->last;
}

/* Loops of MOST iterations, of which 100 pass between two polls. */
static void
check_interrupts(void)
{
    for (int threads = 1; threads <= THREADS; threads++) {
        for (int last = 1; last <= MOST; last += last < 4 ? 1 : MOST) {
            interrupted i = {.v = calloc(1, sizeof(visits)), .last = last};
            const ps_exec exec = {.poll = poll_visits, .poll_self = &i};
            int64_t done = 0;

            i.v->threads = threads;
            i.caller = pthread_self();
            const ps_status status =
                ps_run(&exec, threads, MOST, PS_ROWS_BETWEEN_POLLS / 100, visit, i.v);

            for (int64_t k = 0; k < MOST; k++) {
                CHECK(atomic_load(&i.v->visits[k]) <= 1, "iteration %lld", (long long)k);
                done += atomic_load(&i.v->visits[k]);
            }
            CHECK(!atomic_load(&i.v->wrong) && !i.elsewhere, "%d threads", threads);
            if (i.polls < i.last) {
                CHECK(status == PS_OK && done == MOST, "%d threads", threads);
            }
            else {
                CHECK(status == PS_INTERRUPTED, "%d threads", threads);
                CHECK(threads > 1 || done == 100 * last, "%lld iterations",
                      (long long)done);
            }
            free(i.v);
        }
    }
}

static void *
visit_often(void *self)
{
    (void)self;
    for (int run = 0; run < 100; run++) {
        if (wrong_visits(1 + run % THREADS, 1 + run * 37 % MOST)) {
            return (void *)1;
        }
    }
    return NULL;
}

/* Several calling threads at once, with fewer workers than they ask for. */
static void
check_callers(void)
{
    pthread_t callers[6];

    for (int k = 0; k < COUNT(callers); k++) {
        pthread_create(&callers[k], NULL, visit_often, NULL);
    }
    for (int k = 0; k < COUNT(callers); k++) {
        void *wrong;

        pthread_join(callers[k], &wrong);
        CHECK(wrong == NULL, "calling thread %d", k);
    }
}

static void
nest(void *self, int64_t begin, int64_t end, int thread)
{
    atomic_int *const wrong = self;
    (void)thread;

    for (int64_t k = begin; k < end; k++) {
        atomic_fetch_or(wrong, wrong_visits(3, 100 + k));
    }
}

/* A loop inside the body of another. */
static void
check_nested(void)
{
    atomic_int wrong = 0;

    ps_parallel_for(4, 50, nest, &wrong);
    CHECK(!atomic_load(&wrong), "nested loops");
}

static atomic_int occupied, released, seen[THREADS];

/* Wait until teams are used again, whatever earlier loops lost. */
static void
pass_pause(void)
{
    nanosleep(&(struct timespec){0, 250000000}, NULL);
}

static void
occupy(void *self, int64_t begin, int64_t end, int thread)
{
    (void)self;
    (void)begin;
    (void)end;
    atomic_fetch_add(&seen[thread], 1);
    atomic_fetch_add(&occupied, 1);
    while (!atomic_load(&released)) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

static void *
occupy_workers(void *self)
{
    const int *const threads = self;

    ps_parallel_for(*threads, *threads, occupy, NULL);
    return NULL;
}

/* A call that finds every worker in use finishes on its own thread. If it waited for one,
 * it would wait for ever, as they are released after it. */
static void
check_occupied(void)
{
    pthread_t other;
    int threads = THREADS;

    atomic_store(&occupied, 0);
    atomic_store(&released, 0);
    pass_pause();
    pthread_create(&other, NULL, occupy_workers, &threads);
    while (atomic_load(&occupied) < THREADS) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    for (int k = 0; k < THREADS; k++) {
        CHECK(atomic_load(&seen[k]) == 1, "index %d", k);
    }
    for (int run = 0; run < 20; run++) {
        CHECK(!wrong_visits(THREADS, 1000), "all workers in use");
    }
    atomic_store(&released, 1);
    pthread_join(other, NULL);
}

enum { MEETING = 3 };

static void
meet(void *self, int64_t begin, int64_t end, int thread)
{
    (void)self;
    (void)begin;
    (void)end;
    (void)thread;
    atomic_fetch_add(&occupied, 1);
    while (atomic_load(&occupied) < MEETING) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

/* A child has workers of its own: as many threads have to meet for it to end. */
static void
check_fork(void)
{
    for (int run = 0; run < 3; run++) {
        const pid_t child = fork();

        if (child == 0) {
            alarm(60);
            atomic_store(&occupied, 0);
            pass_pause();
            ps_parallel_for(MEETING, MEETING, meet, NULL);
            _exit(wrong_visits(4, 1000) || wrong_visits(2, 3));
        }
        int status = -1;
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
        CHECK(!wrong_visits(4, 1000), "the parent after a fork");
    }
}

static void
check_counts(void)
{
    const ps_exec usual = {.threads = 0}, asked = {.threads = 5};
    const int most = ps_default_threads();

    CHECK(most >= 1 && most <= ps_usable_cores(), "%d", most);
    CHECK(ps_thread_count(&usual) == most, "%d", ps_thread_count(&usual));
    CHECK(ps_thread_count(&asked) == 5, "%d", ps_thread_count(&asked));
    CHECK(ps_thread_count_for(&usual, 0) == 1, "no unknowns");
    CHECK(ps_thread_count_for(&usual, 50000) == 1, "few unknowns");
    CHECK(ps_thread_count_for(&usual, (int64_t)1 << 40) == most, "many unknowns");
    CHECK(ps_thread_count_for(&asked, 100) == 1, "few unknowns");
    CHECK(ps_thread_count_for(&asked, 20000) == 3, "some unknowns");
    CHECK(ps_thread_count_for(&asked, (int64_t)1 << 40) == 5, "many unknowns");
}

static char root[] = "/tmp/pysolvers-XXXXXX";
static char path[300];

static const char *
at(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void
put(const char *name, const char *text)
{
    FILE *const file = fopen(at(name), "w");

    fputs(text, file);
    fclose(file);
}

static int
cores(const char *cgroups)
{
    char list[300];

    put("list", cgroups);
    snprintf(list, sizeof list, "%s", at("list"));
    return ps_cgroup_cores(list, root);
}

static void
check_quotas(void)
{
    static const char *const folders[] = {"a", "a/b", "cpu,cpuacct", "cpu,cpuacct/d"};
    static const char *const files[] = {"list",
                                        "cpu.max",
                                        "a/cpu.max",
                                        "a/b/cpu.max",
                                        "cpu,cpuacct/cpu.cfs_quota_us",
                                        "cpu,cpuacct/cpu.cfs_period_us",
                                        "cpu,cpuacct/d/cpu.cfs_quota_us",
                                        "cpu,cpuacct/d/cpu.cfs_period_us"};

    CHECK(mkdtemp(root) != NULL, "%s", root);
    CHECK(ps_cgroup_cores(at("missing"), root) == 0, "no list");
    for (int k = 0; k < COUNT(folders); k++) {
        mkdir(at(folders[k]), 0700);
    }
    CHECK(cores("0::/a/b\n") == 0, "no files");
    put("a/b/cpu.max", "max 100000\n");
    CHECK(cores("0::/a/b\n") == 0, "no quota");
    put("a/b/cpu.max", "250000 100000\n");
    CHECK(cores("0::/a/b\n") == 3, "2.5 processors");
    put("a/cpu.max", "200000 100000\n");
    CHECK(cores("0::/a/b\n") == 2, "the parent has less");
    put("cpu.max", "800000 100000\n");
    CHECK(cores("0::/a/b\n") == 2, "the root has more");
    put("cpu.max", "50000 100000\n");
    CHECK(cores("0::/a/b\n") == 1, "the root has less");
    CHECK(cores("0::/x/y\n") == 1, "a path of the host");
    CHECK(cores("5:memory:/a/b\nnonsense\n") == 0, "another controller");
    put("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    CHECK(cores("3:cpu,cpuacct:/d\n") == 0, "version 1, no quota");
    put("cpu,cpuacct/d/cpu.cfs_period_us", "50000\n");
    put("cpu,cpuacct/d/cpu.cfs_quota_us", "200000\n");
    CHECK(cores("3:cpu,cpuacct:/d\n") == 4, "version 1");
    CHECK(cores("7:cpuset:/d\n3:cpu,cpuacct:/d\n0::/\n") == 1, "both versions");
    for (int k = 0; k < COUNT(files); k++) {
        remove(at(files[k]));
    }
    for (int k = COUNT(folders) - 1; k >= 0; k--) {
        rmdir(at(folders[k]));
    }
    rmdir(root);
}

int
main(void)
{
    check_counts();
    check_visits();
    check_interrupts();
    check_callers();
    check_nested();
    check_occupied();
    check_fork();
    check_quotas();
    return report();
}
