/* test_factor.c - factors in a store of exactly the size asked for, on guarded buffers.
 */
#include "guarded.h"

typedef struct {
    ps_factor f;
    operand words[RHS];
    ps_exec exec;
} factored;

static void *
aligned(size_t bytes)
{
    void *room = NULL;

    CHECK(posix_memalign(&room, 64, bytes > 0 ? bytes : 1) == 0, "%zu bytes", bytes);
    return room;
}

static factored
factor_new(ps_dtype dtype, int kind, uint32_t flags, ps_pivot pivot, int64_t n,
           int64_t outer, int64_t inner)
{
    const ps_backend *const backend = ps_backend_get();
    factored a = {.f = {.dtype = dtype,
                        .flags = flags,
                        .rows = n,
                        .outer = outer,
                        .inner = inner,
                        .pivot = pivot},
                  .exec = {.threads = 2}};
    ps_tridiag t = {
        .dtype = dtype, .flags = flags, .rows = n, .outer = outer, .inner = inner};
    ps_input *const inputs[RHS] = {&t.lower, &t.diag, &t.upper};
    int32_t *const info = malloc((size_t)(outer * inner) * sizeof *info);
    ps_report interface;

    for (int word = 0; word < RHS; word++) {
        a.words[word] = operand_new(dtype, kind, n, outer, inner);
        fill(&a.words[word], &t, word);
        *inputs[word] = (ps_input){a.words[word].data, a.words[word].stride};
    }
    t.info = info;
    CHECK(backend->factor_store(&a.f, &a.exec, &a.f.store_bytes) == PS_OK, "store");
    a.f.store = aligned(a.f.store_bytes);
    ps_exec exec = a.exec;
    CHECK(backend->factor_make_work(&a.f, &exec, &exec.work_bytes) == PS_OK,
          "work of make");
    exec.work = aligned(exec.work_bytes);
    CHECK(backend->factor_make(&a.f, &t, &exec, &interface) == PS_OK, "make");
    free(exec.work);
    for (int64_t s = 0; s < outer * inner; s++) {
        CHECK(info[s] == 0, "info of system %d is %d", (int)s, (int)info[s]);
    }
    free(info);
    return a;
}

static void
factor_free(factored *a)
{
    for (int word = 0; word < RHS; word++) {
        free(a->words[word].room);
    }
    free(a->f.store);
}

static ps_status
solve(const factored *a, const ps_factor_rhs *b)
{
    const ps_backend *const backend = ps_backend_get();
    ps_exec exec = a->exec;
    ps_status status = backend->factor_work(&a->f, b, &exec, &exec.work_bytes);

    if (status == PS_OK) {
        exec.work = aligned(exec.work_bytes);
        status = backend->factor_solve(&a->f, b, &exec);
        free(exec.work);
    }
    return status;
}

static void
make_and_solve(ps_dtype dtype, int kind, uint32_t flags, ps_pivot pivot, int64_t n,
               int64_t outer, int64_t inner)
{
    factored a = factor_new(dtype, kind, flags, pivot, n, outer, inner);
    const ps_tridiag t = {
        .dtype = dtype, .flags = flags, .rows = n, .outer = outer, .inner = inner};
    operand rhs = operand_new(dtype, kind, n, outer, inner);
    operand x = operand_new(dtype, (kind + 1) % LAYOUTS, n, outer, inner);
    ps_factor_rhs b = {.outer = outer,
                       .inner = inner,
                       .outer_step = 1,
                       .inner_step = 1,
                       .rhs = {rhs.data, rhs.stride},
                       .x = {x.data, x.stride}};

    fill(&rhs, &t, RHS);
    CHECK(solve(&a, &b) == PS_OK, "out of place");
    check_output(&x, &t, 50, "x");

    b.x = (ps_output){rhs.data, rhs.stride};
    CHECK(solve(&a, &b) == PS_OK, "in place");
    check_output(&rhs, &t, 50, "in place");
    free(rhs.room), free(x.room);
    factor_free(&a);
}

/* Solve A^T x = b or A^H x = b, and compare b with the product row by row. */
static void
solve_transposed(ps_dtype dtype, ps_trans trans, ps_pivot pivot, int64_t n)
{
    factored a = factor_new(dtype, ROWS_PACKED, 0, pivot, n, 1, 1);
    const ps_tridiag t = {.dtype = dtype, .rows = n, .outer = 1, .inner = 1};
    operand rhs = operand_new(dtype, ROWS_PACKED, n, 1, 1);
    const ps_factor_rhs b = {.trans = trans,
                             .outer = 1,
                             .inner = 1,
                             .rhs = {rhs.data, rhs.stride},
                             .x = {rhs.data, rhs.stride}};

    fill(&rhs, &t, RHS);
    CHECK(solve(&a, &b) == PS_OK, "trans %d", (int)trans);
    for (int64_t i = 0; i < n; i++) {
        double complex sum = 0;

        for (int64_t k = i > 0 ? i - 1 : 0; k < n && k <= i + 1; k++) {
            const int word = k < i ? UPPER : k > i ? LOWER : DIAG;
            const double complex coupling = entry(dtype, 0, k, word);

            sum += (trans == PS_TRANS_ADJOINT ? conj(coupling) : coupling) *
                   load(dtype, rhs.data, k);
        }
        CHECK(cabs(sum - entry(dtype, 0, i, RHS)) <= 100 * epsilon(dtype),
              "trans %d pivot %d dtype %d rows %d row %d", (int)trans, (int)pivot,
              (int)dtype, (int)n, (int)i);
    }
    free(rhs.room);
    factor_free(&a);
}

/* One matrix for 3 x 7 right-hand sides. */
static void
share_one_matrix(ps_dtype dtype, ps_pivot pivot, int64_t n)
{
    factored a = factor_new(dtype, ROWS_PACKED, 0, pivot, n, 1, 1);
    const ps_tridiag t = {.dtype = dtype, .rows = n, .outer = 3, .inner = 7};
    operand rhs = operand_new(dtype, MIDDLE, n, 3, 7);
    operand x = operand_new(dtype, GAPS, n, 3, 7);
    const ps_factor_rhs b = {
        .outer = 3, .inner = 7, .rhs = {rhs.data, rhs.stride}, .x = {x.data, x.stride}};

    fill(&rhs, &t, RHS);
    CHECK(solve(&a, &b) == PS_OK, "shared");
    for (int64_t s = 0; s < 21; s++) {
        for (int64_t i = 0; i < n; i++) {
            const double complex below =
                i > 0 ? entry(dtype, 0, i, LOWER) *
                            load(dtype, x.data, at(&x, i - 1, s / 7, s % 7))
                      : 0;
            const double complex above =
                i < n - 1 ? entry(dtype, 0, i, UPPER) *
                                load(dtype, x.data, at(&x, i + 1, s / 7, s % 7))
                          : 0;
            const double complex here =
                entry(dtype, 0, i, DIAG) * load(dtype, x.data, at(&x, i, s / 7, s % 7));

            CHECK(cabs(below + here + above - entry(dtype, s, i, RHS)) <=
                      100 * epsilon(dtype),
                  "rows %d system %d row %d", (int)n, (int)s, (int)i);
        }
    }
    free(rhs.room), free(x.room);
    factor_free(&a);
}

int
main(void)
{
    static const int64_t counts[] = {1, 2, 3, 5, 8, 17, 31, 33, 64, 65, 100, 257};
    static const int64_t shapes[][2] = {{1, 1}, {1, 7}, {3, 5}, {5, 1}, {2, 17}};
    int turn = 0;

    for (int pivot = 0; pivot < PS_PIVOT_COUNT; pivot++) {
        for (int k = 0; k < COUNT(counts); k++) {
            for (int dtype = 0; dtype < PS_DTYPE_COUNT; dtype++) {
                for (int shape = 0; shape < COUNT(shapes); shape++, turn++) {
                    make_and_solve((ps_dtype)dtype, turn % LAYOUTS,
                                   turn % 3 == 0 ? PS_PERIODIC : 0, (ps_pivot)pivot,
                                   counts[k], shapes[shape][0], shapes[shape][1]);
                }
                solve_transposed((ps_dtype)dtype, PS_TRANS_TRANSPOSE, (ps_pivot)pivot,
                                 counts[k]);
                solve_transposed((ps_dtype)dtype, PS_TRANS_ADJOINT, (ps_pivot)pivot,
                                 counts[k]);
                share_one_matrix((ps_dtype)dtype, (ps_pivot)pivot, counts[k]);
            }
        }
    }
    return report();
}
