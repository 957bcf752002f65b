/* test_fp_mode.c - the floating-point mode of a call and of the workers. The program has
 * started no thread when it flushes subnormal numbers to zero. */
#include <fenv.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"
#include "runtime/fp_mode.h"
#include "runtime/threads.h"

enum { ROWS = 400, SYSTEMS = 200, TEAM = 3 };

/* The control word of the thread, and one that flushes subnormal numbers or rounds
 * upward, or both; elsewhere only the rounding is set. */
#if defined(__x86_64__)
static const uint32_t modes[] = {0x1f80, 0x9fc0, 0x5f80, 0xdfc0};
#define GET() (__builtin_ia32_stmxcsr() & 0xffc0)
#define SET(mode) __builtin_ia32_ldmxcsr(mode)
#elif defined(__aarch64__)
static const uint64_t modes[] = {0, 1 << 24, 1 << 22, 5 << 22};

static uint64_t
get_mode(void)
{
    uint64_t mode;

    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
#define GET() get_mode()
#define SET(mode) __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)(mode)))
#else
static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD};
#define GET() fegetround()
#define SET(mode) fesetround(mode)
#endif

static double lower[SYSTEMS * ROWS], diag[SYSTEMS * ROWS], rhs[SYSTEMS * ROWS];

static ps_status
solve(double *x, int32_t *info, int threads)
{
    const ps_backend *const backend = ps_backend_get();
    const ps_stride s = {1, ROWS, 0};
    const ps_tridiag t = {.dtype = PS_F64,
                          .rows = ROWS,
                          .outer = SYSTEMS,
                          .inner = 1,
                          .lower = {lower, s},
                          .diag = {diag, s},
                          .upper = {lower, s},
                          .rhs = {rhs, s},
                          .x = {x, s},
                          .info = info};
    const ps_options options = {.method = PS_AUTO, .pivot = PS_PIVOT_AUTO};
    ps_exec exec = {.threads = threads};
    ps_report done;
    ps_status status = backend->tridiag_work(&t, &options, &exec, &exec.work_bytes);

    if (status == PS_OK &&
        posix_memalign(&exec.work, 64, exec.work_bytes + !exec.work_bytes) == 0) {
        status = backend->tridiag_solve(&t, &options, &exec, &done);
        free(exec.work);
    }
    return status;
}

typedef struct {
    atomic_int seen, wrong;
} workers;

/* Look at the mode of the workers; the calling thread leaves them time to start. */
static void
see_mode(void *self, int64_t begin, int64_t end, int thread)
{
    workers *const w = self;

    (void)begin, (void)end;
    if (thread == 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    else {
        atomic_store(&w->wrong, atomic_load(&w->wrong) || GET() != modes[0]);
        atomic_fetch_add(&w->seen, 1);
    }
}

static void
check_bits(void)
{
    static double expected[SYSTEMS * ROWS], x[SYSTEMS * ROWS];
    static int32_t info[SYSTEMS];

    for (int64_t k = 0; k < SYSTEMS * ROWS; k++) {
        lower[k] = noise(k / ROWS, k % ROWS, LOWER);
        diag[k] = 4 + noise(k / ROWS, k % ROWS, DIAG);
        rhs[k] = 0x1p-1070 * (double)(k % 13);
    }
    /* The workers start in the last mode. */
    for (int k = COUNT(modes) - 1; k >= 0; k--) {
        for (int threads = TEAM; threads > 0; threads--) {
            SET(modes[k]);
            const ps_status status = solve(x, info, threads);
            const int is_restored = GET() == modes[k];
            SET(modes[0]);

            CHECK(status == PS_OK && is_restored, "mode %d, %d threads", k, threads);
            CHECK(solve(expected, info, 1) == PS_OK, "mode %d", k);
            CHECK(memcmp(x, expected, sizeof x) == 0, "mode %d, %d threads", k, threads);
        }
    }
}

static void
check_workers(void)
{
    workers w = {0};

    SET(modes[1]);
    for (int run = 0; run < 1000 && atomic_load(&w.seen) == 0; run++) {
        ps_parallel_for(TEAM, TEAM, see_mode, &w);
    }
    SET(modes[0]);
    CHECK(atomic_load(&w.seen) > 0 && !atomic_load(&w.wrong), "a worker has the mode 1");
}

/* A call that fails restores the mode, too. */
static void
check_errors(void)
{
    static double x[SYSTEMS * ROWS];
    static int32_t info[SYSTEMS];

    for (int k = 0; k < COUNT(modes); k++) {
        const ps_backend *const backend = ps_backend_get();
        const ps_tridiag bad = {.dtype = PS_F64, .rows = -1};
        const ps_options options = {.method = PS_AUTO};
        ps_report done;

        memset(diag, 0, sizeof diag);
        memset(lower, 0, sizeof lower);
        SET(modes[k]);
        const ps_status status = solve(x, info, TEAM);
        const ps_status refused =
            backend->tridiag_solve(&bad, &options, &(ps_exec){0}, &done);
        const int is_restored = GET() == modes[k];
        SET(modes[0]);
        CHECK(status == PS_OK && info[0] == 1, "singular, mode %d", k);
        CHECK(refused == PS_BAD_ARGUMENT, "refused, mode %d", k);
        CHECK(is_restored, "after errors, mode %d", k);
    }
}

static void
read_mode(void *self)
{
    *(int *)self = GET() == modes[0];
}

static void
check_body(void)
{
    for (int k = 0; k < COUNT(modes); k++) {
        int is_default = 0;

        SET(modes[k]);
        ps_backend_get()->in_default_fp_mode(read_mode, &is_default);
        const int is_restored = GET() == modes[k];
        SET(modes[0]);
        CHECK(is_default && is_restored, "mode %d", k);
    }
}

int
main(void)
{
    check_workers();
    check_bits();
    check_errors();
    check_body();
    return report();
}
