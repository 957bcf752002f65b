/* test_tridiag.c - the entries of the backend on guarded buffers of many layouts. */
#include "guarded.h"

static ps_status
run(const ps_tridiag *t, const ps_options *options, ps_exec exec, ps_report *interface)
{
    const ps_backend *const backend = ps_backend_get();
    ps_status status = backend->tridiag_work(t, options, &exec, &exec.work_bytes);

    if (status == PS_OK &&
        posix_memalign(&exec.work, 64, exec.work_bytes + !exec.work_bytes) == 0) {
        status = backend->tridiag_solve(t, options, &exec, interface);
        free(exec.work);
    }
    return status;
}

typedef struct {
    operand words[WORDS], x;
    int32_t *info;
    ps_tridiag t;
} batch;

static batch
batch_new(ps_dtype dtype, int kind, uint32_t flags, int64_t n, int64_t outer,
          int64_t inner)
{
    batch b = {
        .t = {.dtype = dtype, .flags = flags, .rows = n, .outer = outer, .inner = inner}};
    ps_input *const inputs[WORDS] = {&b.t.lower, &b.t.diag, &b.t.upper, &b.t.rhs};

    for (int word = 0; word < WORDS; word++) {
        b.words[word] =
            operand_new(dtype, (kind + (word == UPPER)) % LAYOUTS, n, outer, inner);
        fill(&b.words[word], &b.t, word);
        *inputs[word] = (ps_input){b.words[word].data, b.words[word].stride};
    }
    b.x = operand_new(dtype, kind, n, outer, inner);
    b.t.x = (ps_output){b.x.data, b.x.stride};
    b.t.info = b.info = malloc((size_t)(outer * inner) * sizeof *b.info);
    return b;
}

static void
batch_free(batch *b)
{
    for (int word = 0; word < WORDS; word++) {
        free(b->words[word].room);
    }
    free(b->x.room), free(b->info);
}

static void
solve_one(ps_dtype dtype, int kind, uint32_t flags, ps_options options, int64_t n,
          int64_t outer, int64_t inner, int threads)
{
    batch b = batch_new(dtype, kind, flags, n, outer, inner);
    ps_report interface;
    const ps_status status =
        run(&b.t, &options, (ps_exec){.threads = threads}, &interface);

    CHECK(status == PS_OK, "%s", ps_status_text(status));
    CHECK(interface.method != PS_AUTO && interface.kernel != NULL, "method %d",
          (int)interface.method);
    for (int64_t s = 0; s < outer * inner; s++) {
        CHECK(b.info[s] == 0, "method %d system %d: info %d", (int)options.method, (int)s,
              (int)b.info[s]);
    }
    check_output(&b.x, &b.t, 30, "x");
    batch_free(&b);
}

static void
solve_every_layout(void)
{
    static const int64_t counts[] = {1, 2, 3, 5, 8, 17, 31, 33, 64, 100, 257};
    static const int64_t shapes[][2] = {{1, 1}, {1, 7}, {3, 5}, {5, 1}, {2, 17}};
    int turn = 0;

    for (int method = 0; method < PS_METHOD_COUNT; method++) {
        for (int k = 0; k < COUNT(counts) * COUNT(shapes); k++) {
            const int64_t *const shape = shapes[k / COUNT(counts)];

            for (int kind = 0; kind < LAYOUTS; kind++, turn++) {
                const ps_options options = {(ps_method)method, PS_PIVOT_AUTO, 0};
                const uint32_t flags = turn % 3 == 0 ? PS_PERIODIC : 0;

                solve_one((ps_dtype)(turn % PS_DTYPE_COUNT), kind, flags, options,
                          counts[k % COUNT(counts)], shape[0], shape[1], 1 + turn % 2);
            }
        }
    }
}

static void
solve_long_systems(void)
{
    for (int method = 0; method < PS_METHOD_COUNT; method++) {
        const ps_options options = {(ps_method)method, PS_PIVOT_AUTO, 0};

        solve_one(PS_F64, ROWS_PACKED, 0, options, 40007, 1, 2, 2);
        solve_one(PS_C64, INNER_PACKED, PS_PERIODIC, options, 9001, 1, 3, 2);
    }
}

/* Short off-diagonals end at the edges of their buffers. */
static void
solve_short_off_diagonals(void)
{
    static const int64_t counts[] = {1, 2, 3, 8, 33, 65};

    for (int k = 0; k < COUNT(counts) * PS_METHOD_COUNT; k++) {
        const int64_t n = counts[k % COUNT(counts)], systems = 9;
        const ps_options options = {(ps_method)(k / COUNT(counts)), PS_PIVOT_AUTO, 0};
        batch b = batch_new(PS_F64, ROWS_PACKED, PS_SHORT_LOWER | PS_SHORT_UPPER, n, 1,
                            systems);
        double *const lower = malloc((size_t)((n - 1) * systems) * sizeof *lower + 1);
        double *const upper = malloc((size_t)((n - 1) * systems) * sizeof *upper + 1);
        const ps_stride tight = {1, (n - 1) * systems, n - 1};
        ps_report interface;

        for (int64_t e = 0; e < (n - 1) * systems; e++) {
            const int64_t s = e / (n - 1), i = e % (n - 1);

            lower[e] = creal(entry(PS_F64, s, i + 1, LOWER));
            upper[e] = creal(entry(PS_F64, s, i, UPPER));
        }
        b.t.lower = (ps_input){lower, tight};
        b.t.upper = (ps_input){upper, tight};
        CHECK(run(&b.t, &options, (ps_exec){.threads = 1}, &interface) == PS_OK, "short");
        check_output(&b.x, &b.t, 10, "short off-diagonals");
        free(lower), free(upper);
        batch_free(&b);
    }
}

static void
name_the_bad_systems(void)
{
    batch b = batch_new(PS_F64, MIDDLE, 0, 9, 3, 4);
    const ps_options options = {PS_THOMAS, PS_PIVOT_NEVER, 0};
    ps_report interface;

    store(PS_F64, b.words[DIAG].data, at(&b.words[DIAG], 0, 1, 2), 0);
    CHECK(run(&b.t, &options, (ps_exec){0}, &interface) == PS_OK,
          "a bad pivot is no bad call");
    for (int s = 0; s < 12; s++) {
        CHECK(b.info[s] == (s == 6), "info of system %d is %d", s, (int)b.info[s]);
    }
    batch_free(&b);
}

static int
stop_at_once(void *self)
{
    ++*(int *)self;
    return 1;
}

static void
stop_when_told(void)
{
    batch b = batch_new(PS_F64, ROWS_PACKED, 0, 300, 1, 4000);
    int asked = 0;
    const ps_exec exec = {.threads = 1, .poll = stop_at_once, .poll_self = &asked};
    ps_report interface;

    for (int method = 0; method < PS_METHOD_COUNT; method++) {
        const ps_options options = {(ps_method)method, PS_PIVOT_AUTO, 0};
        const ps_status status = run(&b.t, &options, exec, &interface);

        CHECK(status == PS_INTERRUPTED, "method %d: %s", method, ps_status_text(status));
    }
    CHECK(asked >= PS_METHOD_COUNT, "asked %d times", asked);
    batch_free(&b);
}

static void
refuse_too_little_work(void)
{
    const ps_backend *const backend = ps_backend_get();
    batch b = batch_new(PS_F64, ROWS_PACKED, 0, 33, 1, 50);
    const ps_options options = {PS_AUTO, PS_PIVOT_AUTO, 0};
    ps_exec exec = {.threads = 1};
    ps_report interface;

    CHECK(backend->tridiag_work(&b.t, &options, &exec, &exec.work_bytes) == PS_OK,
          "work");
    CHECK(exec.work_bytes > 0, "no work");
    CHECK(posix_memalign(&exec.work, 64, exec.work_bytes) == 0, "memory");
    exec.work_bytes--;
    CHECK(backend->tridiag_solve(&b.t, &options, &exec, &interface) == PS_WORK_TOO_SMALL,
          "one less");
    free(exec.work);
    batch_free(&b);
}

static void
the_table_is_complete(void)
{
    const ps_backend *const b = ps_backend_get();

    CHECK(b == ps_backend_get(), "one table");
    CHECK(b->memory == PS_HOST && strcmp(b->name, "cpu") == 0, "%s", b->name);
    CHECK(b->describe() != NULL && b->default_threads() >= 1, "%s", b->describe());
}

int
main(void)
{
    the_table_is_complete();
    solve_every_layout();
    solve_long_systems();
    solve_short_off_diagonals();
    name_the_bad_systems();
    stop_when_told();
    refuse_too_little_work();
    return report();
}
