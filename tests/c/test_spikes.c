/* test_spikes.c - spikes_solve() on guarded buffers of many layouts. */
#include "guarded.h"

static ps_status
run(const ps_spikes *s, const ps_options *options, ps_exec exec, ps_report *report)
{
    const ps_backend *const backend = ps_backend_get();
    ps_status status = backend->spikes_work(s, options, &exec, &exec.work_bytes);

    if (status == PS_OK &&
        posix_memalign(&exec.work, 64, exec.work_bytes + !exec.work_bytes) == 0) {
        status = backend->spikes_solve(s, options, &exec, report);
        free(exec.work);
    }
    return status;
}

/* The largest |T y - b| / (|T| |y| + |b|) of one line, where b is the coupling of the
 * first row (LOWER) or of the last one (UPPER). */
static double
error_of_column(ps_dtype dtype, int64_t line, int64_t rows, int word,
                const double complex *y)
{
    const int64_t at = word == LOWER ? 0 : rows - 1;
    double worst = 0;

    for (int64_t i = 0; i < rows; i++) {
        const double complex below = i > 0 ? entry(dtype, line, i, LOWER) * y[i - 1] : 0;
        const double complex above =
            i < rows - 1 ? entry(dtype, line, i, UPPER) * y[i + 1] : 0;
        const double complex here = entry(dtype, line, i, DIAG) * y[i];
        const double complex b = i == at ? entry(dtype, line, i, word) : 0;
        const double size = cabs(below) + cabs(here) + cabs(above) + cabs(b);
        const double error = cabs(below + here + above - b) / (size > 1e-30 ? size : 1);

        if (!(error <= worst)) { /* a NaN counts */
            worst = error;
        }
    }
    return worst;
}

/* As check_output(), for a column. */
static void
check_column(const operand *y, const ps_tridiag *t, int word)
{
    double complex *const line = calloc((size_t)t->rows, sizeof *line);
    size_t touched = 0;

    for (int64_t s = 0; s < t->outer * t->inner; s++) {
        for (int64_t i = 0; i < t->rows; i++) {
            const int64_t here = at(y, i, s / t->inner, s % t->inner);

            line[i] = load(t->dtype, y->data, here);
            memset((char *)y->data + here * (int64_t)element_size(t->dtype), MARK,
                   element_size(t->dtype));
        }
        const double error = error_of_column(t->dtype, s, t->rows, word, line);

        CHECK(error <= 30 * epsilon(t->dtype), "column %d of system %d, %d rows: %g",
              word, (int)s, (int)t->rows, error / epsilon(t->dtype));
    }
    for (size_t byte = 0; byte < y->bytes; byte++) {
        touched += y->room[byte] != MARK;
    }
    CHECK(touched == 0, "%zu bytes outside column %d", touched, word);
    free(line);
}

/* `sides`: bit 0 for left, bit 1 for right. */
static void
solve_one(ps_dtype dtype, int kind, int sides, ps_pivot pivot, int64_t n, int64_t outer,
          int64_t inner, int threads)
{
    const ps_options options = {.method = PS_AUTO, .pivot = pivot};
    ps_spikes s = {.t = {.dtype = dtype, .rows = n, .outer = outer, .inner = inner}};
    ps_input *const inputs[WORDS] = {&s.t.lower, &s.t.diag, &s.t.upper, &s.t.rhs};
    operand words[WORDS], outputs[3];
    ps_report report = {0};

    for (int word = 0; word < WORDS; word++) {
        words[word] =
            operand_new(dtype, (kind + (word == UPPER)) % LAYOUTS, n, outer, inner);
        fill(&words[word], &s.t, word);
        *inputs[word] = (ps_input){words[word].data, words[word].stride};
    }
    for (int k = 0; k < 3; k++) {
        outputs[k] =
            operand_new(dtype, (kind + (k == 2 && n % 2)) % LAYOUTS, n, outer, inner);
    }
    s.t.x = (ps_output){outputs[0].data, outputs[0].stride};
    if (sides & 1) {
        s.left = (ps_output){outputs[1].data, outputs[1].stride};
    }
    if (sides & 2) {
        s.right = (ps_output){outputs[2].data, outputs[2].stride};
    }
    s.t.info = malloc((size_t)(outer * inner) * sizeof *s.t.info);
    const ps_status status = run(&s, &options, (ps_exec){.threads = threads}, &report);

    CHECK(status == PS_OK && report.pivoted == 0, "%s, %d pivoted",
          ps_status_text(status), (int)report.pivoted);
    for (int64_t k = 0; k < outer * inner; k++) {
        CHECK(s.t.info[k] == 0, "info of system %d: %d", (int)k, (int)s.t.info[k]);
    }
    check_output(&outputs[0], &s.t, 30, "x");
    for (int side = 0; side < 2; side++) {
        if (sides >> side & 1) {
            check_column(&outputs[1 + side], &s.t, side == 0 ? LOWER : UPPER);
        }
    }
    for (int word = 0; word < WORDS; word++) {
        free(words[word].room);
    }
    for (int k = 0; k < 3; k++) {
        free(outputs[k].room);
    }
    free(s.t.info);
}

int
main(void)
{
    static const int64_t counts[] = {1, 2, 3, 8, 17, 33, 64, 100};
    static const int64_t shapes[][2] = {{1, 1}, {3, 5}, {5, 1}, {2, 17}, {1, 65}};
    int turn = 0;

    for (int k = 0; k < COUNT(counts) * COUNT(shapes); k++) {
        const int64_t *const shape = shapes[k / COUNT(counts)];

        for (int kind = 0; kind < LAYOUTS; kind++) {
            for (int dtype = 0; dtype < PS_DTYPE_COUNT; dtype++, turn++) {
                solve_one((ps_dtype)dtype, kind, turn % 4 == 3 ? turn / 4 % 3 : 3,
                          turn % 3 == 0 ? PS_PIVOT_NEVER : PS_PIVOT_AUTO,
                          counts[k % COUNT(counts)], shape[0], shape[1], 1 + turn % 2);
            }
        }
    }
    /* outputs that are written with non-temporal stores */
    solve_one(PS_F64, ROWS_PACKED, 3, PS_PIVOT_AUTO, 1025, 1, 1030, 2);
    solve_one(PS_F64, INNER_PACKED, 3, PS_PIVOT_AUTO, 1025, 1, 1030, 2);
    return report();
}
