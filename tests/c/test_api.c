/* test_api.c - the functions for C programs: memory of all sizes, factors, wrong arguments. */
#include <math.h>

#include "../../pysolvers/include/pysolvers_api.h"
#include "check.h"

typedef double complex complex_double;

/* Systems of which each has entries of its own, in arrays (outer, rows, inner). */
typedef struct {
    pysolvers_systems s;
    complex_double *lower, *diag, *upper, *rhs, *x;
    int64_t size;
} batch;

static complex_double
number(int64_t e, int which)
{
    const double re = (double)((e * 7 + which * 5) % 13) / 13 - 0.5;
    const double im = (double)((e * 5 + which * 3) % 11) / 11 - 0.5;

    return re + (which == 1 ? 2.5 : 0) + im * I; /* Clang 14 has no CMPLX */
}

static batch
batch_new(int64_t rows, int64_t outer, int64_t inner)
{
    batch b = {.size = rows * outer * inner};
    complex_double **const words[] = {&b.lower, &b.diag, &b.upper, &b.rhs, &b.x};

    for (int w = 0; w < 5; w++) {
        *words[w] = malloc((size_t)b.size * sizeof **words[w]);
        for (int64_t e = 0; e < b.size; e++) {
            (*words[w])[e] = number(e, w);
        }
    }
    b.s = (pysolvers_systems){.dtype = PYSOLVERS_C128,
                              .rows = rows,
                              .outer = outer,
                              .inner = inner,
                              .lower = {b.lower, inner, rows * inner, 1},
                              .diag = {b.diag, inner, rows * inner, 1},
                              .upper = {b.upper, inner, rows * inner, 1},
                              .rhs = {b.rhs, inner, rows * inner, 1},
                              .x = {b.x, inner, rows * inner, 1}};
    return b;
}

static void
batch_free(batch *b)
{
    free(b->lower), free(b->diag), free(b->upper), free(b->rhs), free(b->x);
}

/* The largest |A x - rhs|, of A, A^T or A^H, over the systems that have no NaN. */
static double
residual(const batch *b, char trans)
{
    const int64_t rows = b->s.rows, step = b->s.inner;
    double most = 0;

    for (int64_t e = 0; e < b->size; e++) {
        const int64_t i = e / step % rows;
        const complex_double low = trans == 'N' ? b->lower[e]
                                   : i > 0      ? b->upper[e - step]
                                                : 0;
        const complex_double up = trans == 'N'   ? b->upper[e]
                                  : i + 1 < rows ? b->lower[e + step]
                                                 : 0;
        const complex_double entries[] = {low, b->diag[e], up};
        complex_double sum = -b->rhs[e];

        for (int w = -1; w <= 1; w++) {
            if (i + w >= 0 && i + w < rows) {
                sum += (trans == 'H' ? conj(entries[w + 1]) : entries[w + 1]) *
                       b->x[e + w * step];
            }
        }
        most = isnan(creal(sum)) ? most : fmax(most, cabs(sum));
    }
    return most;
}

static int64_t
count_nan(const batch *b)
{
    int64_t count = 0;

    for (int64_t e = 0; e < b->size; e++) {
        count += isnan(creal(b->x[e])) && isnan(cimag(b->x[e]));
    }
    return count;
}

static void
solve_and_factor_batches_of_all_sizes(void)
{
    static const int64_t shapes[][3] = {{1, 1, 1},   {5, 1, 3},   {33, 2, 70},
                                        {300, 1, 2}, {9, 40, 41}, {20011, 1, 1}};

    for (int k = 0; k < COUNT(shapes); k++) {
        batch b = batch_new(shapes[k][0], shapes[k][1], shapes[k][2]);
        const pysolvers_options options = {(pysolvers_pivot)(k % 3), 1 + k % 2};
        pysolvers_factors *factors = NULL;

        CHECK(pysolvers_solve(&b.s, k == 0 ? NULL : &options) == PYSOLVERS_OK, "solve %d",
              k);
        CHECK(residual(&b, 'N') < 1e-13, "solve %d: %g", k, residual(&b, 'N'));
        CHECK(pysolvers_factor(&b.s, &options, &factors) == PYSOLVERS_OK, "factor %d", k);
        for (const char *trans = "NTH"; *trans != 0; trans++) {
            memset(b.x, 0, (size_t)b.size * sizeof *b.x);
            CHECK(pysolvers_factor_solve(factors, *trans, b.s.outer, b.s.inner, &b.s.rhs,
                                         &b.s.x, 2) == PYSOLVERS_OK,
                  "factor %d", k);
            CHECK(residual(&b, *trans) < 1e-13, "factor %d %c: %g", k, *trans,
                  residual(&b, *trans));
        }
        pysolvers_factor_free(factors);
        batch_free(&b);
    }
}

/* System (1, 2) of (3, 300) has a row of zeros: its x is NaN, all others are right. */
static void
singular_systems_become_nan(void)
{
    enum { ROWS = 6, OUTER = 3, INNER = 300, BAD = (1 * ROWS + 4) * INNER + 2 };
    batch b = batch_new(ROWS, OUTER, INNER);
    int32_t info[OUTER * INNER];
    pysolvers_factors *factors = NULL;

    b.lower[BAD] = b.diag[BAD] = b.upper[BAD] = 0;
    CHECK(pysolvers_solve(&b.s, NULL) == PYSOLVERS_SINGULAR, "solve");
    CHECK(count_nan(&b) == ROWS, "%d", (int)count_nan(&b));
    CHECK(residual(&b, 'N') < 1e-13, "%g", residual(&b, 'N'));
    b.s.info = info;
    CHECK(pysolvers_factor(&b.s, NULL, &factors) == PYSOLVERS_SINGULAR, "factor");
    for (int s = 0; s < OUTER * INNER; s++) {
        CHECK((info[s] != 0) == (s == INNER + 2), "info %d", s);
    }
    memset(b.x, 0, (size_t)b.size * sizeof *b.x);
    CHECK(pysolvers_factor_solve(factors, 'T', OUTER, INNER, &b.s.rhs, &b.s.x, 0) ==
              PYSOLVERS_SINGULAR,
          "factor");
    CHECK(count_nan(&b) == ROWS && residual(&b, 'T') < 1e-13, "%d", (int)count_nan(&b));
    pysolvers_factor_free(factors);
    batch_free(&b);
}

static void
wrong_arguments_write_nothing(void)
{
    batch b = batch_new(4, 1, 5);
    const pysolvers_systems good = b.s;
    const pysolvers_options negative = {PYSOLVERS_PIVOT_AUTO, -1};
    pysolvers_factors *factors = NULL;

    memset(b.x, 0x55, (size_t)b.size * sizeof *b.x);
    const complex_double before = b.x[3];

    CHECK(pysolvers_solve(NULL, NULL) == PYSOLVERS_BAD_ARGUMENT, "null");
    CHECK(pysolvers_solve(&b.s, &negative) == PYSOLVERS_BAD_ARGUMENT, "threads");
    b.s.rows = 0;
    CHECK(pysolvers_solve(&b.s, NULL) == PYSOLVERS_BAD_ARGUMENT, "rows");
    b.s = good;
    b.s.outer = -1;
    CHECK(pysolvers_solve(&b.s, NULL) == PYSOLVERS_BAD_ARGUMENT, "outer");
    CHECK(pysolvers_factor(&b.s, NULL, &factors) == PYSOLVERS_BAD_ARGUMENT && !factors,
          "outer");
    b.s = good;
    b.s.diag.data = NULL;
    CHECK(pysolvers_solve(&b.s, NULL) == PYSOLVERS_BAD_ARGUMENT, "diag");
    CHECK(pysolvers_factor(&b.s, NULL, &factors) == PYSOLVERS_BAD_ARGUMENT && !factors,
          "diag");
    b.s = good;
    b.s.flags = 64;
    CHECK(pysolvers_solve(&b.s, NULL) == PYSOLVERS_BAD_ARGUMENT, "flags");
    b.s = good;
    b.s.flags = PYSOLVERS_ROW_SUMS;
    CHECK(pysolvers_solve(&b.s, NULL) == PYSOLVERS_UNSUPPORTED, "complex row sums");
    CHECK(pysolvers_factor(&b.s, NULL, &factors) == PYSOLVERS_UNSUPPORTED && !factors,
          "complex row sums");
    b.s = good;
    b.s.outer = b.s.inner = (int64_t)1 << 28;
    CHECK(pysolvers_solve(&b.s, NULL) < 0, "sizes");
    b.s = good;
    b.s.dtype = (pysolvers_dtype)9;
    CHECK(pysolvers_solve(&b.s, NULL) == PYSOLVERS_BAD_ARGUMENT, "dtype");
    b.s = good;
    b.s.x.data = b.rhs + 1;
    CHECK(pysolvers_solve(&b.s, NULL) == PYSOLVERS_BAD_LAYOUT, "overlap");
    b.s = good;
    b.s.outer = 0;
    CHECK(pysolvers_solve(&b.s, NULL) == PYSOLVERS_OK, "no systems");
    CHECK(memcmp(&b.x[3], &before, sizeof before) == 0, "x was written");
    CHECK(pysolvers_factor(&good, NULL, NULL) == PYSOLVERS_BAD_ARGUMENT, "no place");
    CHECK(pysolvers_factor(&good, NULL, &factors) == PYSOLVERS_OK, "factor");
    CHECK(pysolvers_factor_solve(factors, 'X', 1, 5, &good.rhs, &good.x, 0) ==
              PYSOLVERS_BAD_ARGUMENT,
          "trans");
    CHECK(pysolvers_factor_solve(factors, 'N', 1, 4, &good.rhs, &good.x, 0) ==
              PYSOLVERS_BAD_ARGUMENT,
          "systems");
    CHECK(pysolvers_factor_solve(factors, 'N', 1, 0, &good.rhs, &good.x, 0) ==
              PYSOLVERS_OK,
          "no systems along inner");
    CHECK(pysolvers_factor_solve(factors, 'N', 0, 5, &good.rhs, &good.x, 0) ==
              PYSOLVERS_OK,
          "no systems along outer");
    pysolvers_factor_free(factors);
    pysolvers_factor_free(NULL);
    batch_free(&b);
}

/* One matrix in row-sum form, for more right-hand sides than it has systems. */
static void
row_sums_keep_the_digits_of_a_diffusion_matrix(void)
{
    enum { ROWS = 100, SIDES = 3 };
    const double off = -1e12;
    double sums[ROWS] = {1.0}, x[SIDES * ROWS];
    const pysolvers_systems s = {.dtype = PYSOLVERS_F64,
                                 .flags = PYSOLVERS_ROW_SUMS,
                                 .rows = ROWS,
                                 .outer = 1,
                                 .inner = 1,
                                 .lower = {&off, 0, 0, 0},
                                 .diag = {sums, 1, 0, 0},
                                 .upper = {&off, 0, 0, 0}};
    const pysolvers_input rhs = {x, 1, 0, ROWS};
    const pysolvers_output out = {x, 1, 0, ROWS};
    pysolvers_factors *factors = NULL;

    for (int e = 0; e < SIDES * ROWS; e++) {
        x[e] = e % ROWS == 0 ? 1 + e / ROWS : 0; /* the solution is constant */
    }
    CHECK(pysolvers_factor(&s, NULL, &factors) == PYSOLVERS_OK, "factor");
    CHECK(pysolvers_factor_solve(factors, 'N', 1, SIDES, &rhs, &out, 0) == PYSOLVERS_OK,
          "solve");
    for (int e = 0; e < SIDES * ROWS; e++) {
        CHECK(fabs(x[e] - (1 + e / ROWS)) < 1e-13, "%d: %g", e, x[e]);
    }
    pysolvers_factor_free(factors);
}

int
main(void)
{
    solve_and_factor_batches_of_all_sizes();
    singular_systems_become_nan();
    wrong_arguments_write_nothing();
    row_sums_keep_the_digits_of_a_diffusion_matrix();
    return report();
}
