/* test_lines.c - the line engine on a source and a sink that watch how they are called.
 */
#include "check.h"
#include "lines/lines.h"

typedef struct {
    ps_dtype dtype;
    int64_t rows, systems;
    int lane_major;
    unsigned char *read;    /* rows * systems: 1 when asked for */
    unsigned char *written; /* rows * systems: times written */
    double complex *x;      /* systems * rows */
} problem;

static int64_t
place(int lane_major, int width, int word, int r, int v)
{
    return lane_major ? (word * width + v) * PS_BLOCK_ROWS + r
                      : (word * PS_BLOCK_ROWS + r) * width + v;
}

static void
check_window(const problem *p, int64_t first, int lanes, int width, int64_t row,
             int count)
{
    CHECK(lanes >= 1 && lanes <= width && width <= PS_MAX_LANES, "%d of %d", lanes,
          width);
    CHECK(first >= 0 && first + lanes <= p->systems, "lines from %d", (int)first);
    CHECK(count >= 1 && count <= PS_BLOCK_ROWS, "%d rows", count);
    CHECK(row >= 0 && row + count <= p->rows, "rows from %d", (int)row);
}

static void
rows(const void *self, int64_t first, int lanes, int width, int64_t row, int count,
     void *block)
{
    const problem *const p = self;

    check_window(p, first, lanes, width, row, count);
    for (int v = 0; v < lanes; v++) {
        for (int r = 0; r < count; r++) {
            const int64_t at = (first + v) * p->rows + row + r;

            CHECK(p->written[at] == 0, "row %d read after it was put", (int)(row + r));
            p->read[at] = 1;
            for (int word = 0; word < PS_WORDS; word++) {
                store(p->dtype, block, place(p->lane_major, width, word, r, v),
                      entry(p->dtype, first + v, row + r, word));
            }
        }
    }
}

static void
put(void *self, int64_t first, int lanes, int width, int64_t row, int count,
    const void *x)
{
    problem *const p = self;

    check_window(p, first, lanes, width, row, count);
    for (int v = 0; v < lanes; v++) {
        for (int r = 0; r < count; r++) {
            const int64_t at = (first + v) * p->rows + row + r;

            CHECK(p->read[at] == 1, "row %d put before it was read", (int)(row + r));
            p->written[at]++;
            p->x[at] = load(p->dtype, x, place(p->lane_major, width, 0, r, v));
        }
    }
}

static void *
work_of(size_t bytes)
{
    void *work = NULL;

    CHECK(posix_memalign(&work, 64, bytes > 0 ? bytes : 1) == 0, "%zu bytes", bytes);
    return work;
}

static ps_status
run(const ps_lines *lines, const ps_options *options, ps_exec exec)
{
    ps_report interface;
    ps_status status = ps_lines_work(lines, options, &exec, &exec.work_bytes);

    if (status == PS_OK) {
        exec.work = work_of(exec.work_bytes);
        status = ps_lines_solve(lines, options, &exec, &interface);
        free(exec.work);
    }
    return status;
}

static void
solve_and_check(ps_dtype dtype, ps_options options, int64_t count, int64_t systems,
                int lane_major, int threads)
{
    const size_t entries = (size_t)(count * systems);
    problem p = {dtype,
                 count,
                 systems,
                 lane_major,
                 calloc(entries, 1),
                 calloc(entries, 1),
                 calloc(entries, sizeof *p.x)};
    int32_t *const info = malloc((size_t)systems * sizeof *info);
    const ps_lines lines = {
        dtype, count, systems, {&p, lane_major, rows}, {&p, lane_major, put}, info};
    const ps_status status = run(&lines, &options, (ps_exec){.threads = threads});

    CHECK(status == PS_OK, "%s", ps_status_text(status));
    for (int64_t line = 0; line < systems; line++) {
        const double error = backward_error(dtype, line, count, 0, p.x + line * count);

        CHECK(error <= 10 * epsilon(dtype),
              "method %d pivot %d dtype %d rows %d line %d of %d: %g",
              (int)options.method, (int)options.pivot, (int)dtype, (int)count, (int)line,
              (int)systems, error / epsilon(dtype));
        CHECK(info[line] == 0, "info %d", (int)info[line]);
        for (int64_t row = 0; row < count; row++) {
            CHECK(p.written[line * count + row] == 1, "row %d put %d times", (int)row,
                  p.written[line * count + row]);
        }
    }
    free(p.read), free(p.written), free(p.x), free(info);
}

static void
solve_at_odd_sizes(void)
{
    static const int64_t counts[] = {1,  2,  3,  4,  15, 16,  31, 32,
                                     33, 63, 64, 65, 96, 100, 129};
    static const int64_t batches[] = {1, 3, 4, 5, 8, 9, 16, 17, 35};
    static const ps_options all[] = {
        {PS_THOMAS, PS_PIVOT_AUTO, 0},     {PS_CR, PS_PIVOT_AUTO, 0},
        {PS_PCR, PS_PIVOT_AUTO, 0},        {PS_CR_PCR, PS_PIVOT_AUTO, 0},
        {PS_PCR_THOMAS, PS_PIVOT_AUTO, 0}, {PS_PIVOTED, PS_PIVOT_AUTO, 0},
        {PS_AUTO, PS_PIVOT_AUTO, 0},       {PS_AUTO, PS_PIVOT_NEVER, 0},
        {PS_AUTO, PS_PIVOT_ALWAYS, 0},
    };

    for (int k = 0; k < COUNT(all) * COUNT(counts) * COUNT(batches); k++) {
        const int64_t count = counts[k % COUNT(counts)];
        const int64_t systems = batches[k / COUNT(counts) % COUNT(batches)];
        const ps_options options = all[k / COUNT(counts) / COUNT(batches)];

        for (int lane_major = 0; lane_major < 2; lane_major++) {
            solve_and_check(PS_F64, options, count, systems, lane_major, 1);
        }
        solve_and_check(k % 2 ? PS_F32 : PS_F64, options, count, systems, k / 7 % 2, 2);
    }
}

static int
stop_at_once(void *self)
{
    (void)self;
    return 1;
}

static void
tell_what_cannot_be_done(void)
{
    problem p = {PS_F64,
                 40,
                 20000,
                 0,
                 calloc(800000, 1),
                 calloc(800000, 1),
                 calloc(800000, sizeof *p.x)};
    const ps_lines lines = {PS_F64, 40, 20000, {&p, 0, rows}, {&p, 0, put}, NULL};
    const ps_options partition = {PS_PARTITION, PS_PIVOT_AUTO, 0};
    const ps_options thomas = {PS_THOMAS, PS_PIVOT_AUTO, 0};
    ps_exec exec = {.threads = 1, .poll = stop_at_once};
    ps_report interface;

    CHECK(run(&lines, &partition, exec) == PS_UNSUPPORTED, "partition");
    CHECK(run(&lines, &thomas, exec) == PS_INTERRUPTED, "poll");

    ps_lines is_complex = lines;
    is_complex.dtype = PS_C128;
    CHECK(run(&is_complex, &thomas, exec) == PS_UNSUPPORTED, "complex lines");

    CHECK(ps_lines_work(&lines, &thomas, &exec, &exec.work_bytes) == PS_OK, "work");
    exec.work = work_of(exec.work_bytes);
    exec.work_bytes--;
    CHECK(ps_lines_solve(&lines, &thomas, &exec, &interface) == PS_WORK_TOO_SMALL,
          "one byte less");
    free(exec.work), free(p.read), free(p.written), free(p.x);
}

static void
no_lines_are_no_work(void)
{
    problem p = {.dtype = PS_F64, .rows = 5};
    const ps_lines lines = {PS_F64, 5, 0, {&p, 0, rows}, {&p, 0, put}, NULL};
    const ps_options thomas = {PS_THOMAS, PS_PIVOT_AUTO, 0};

    CHECK(run(&lines, &thomas, (ps_exec){0}) == PS_OK, "empty batch");
}

int
main(void)
{
    solve_at_odd_sizes();
    tell_what_cannot_be_done();
    no_lines_are_no_work();
    return report();
}
