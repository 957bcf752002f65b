/* test_check.c - each refusal of ps_tridiag_check and ps_factor_check, one at a time. */
#include "check.h"

enum { ROWS = 5, OUTER = 2, INNER = 3, SIZE = ROWS * OUTER * INNER };

static double lower[2 * SIZE], diag[2 * SIZE], upper[2 * SIZE], rhs[2 * SIZE],
    x[2 * SIZE];
static int32_t info[OUTER * INNER];
static _Alignas(64) char factor_store[64];

static const ps_stride packed = {1, ROWS *INNER, ROWS};
static const ps_options plain = {PS_AUTO, PS_PIVOT_AUTO, 0};

static ps_tridiag
good(void)
{
    return (ps_tridiag){
        .dtype = PS_F64,
        .rows = ROWS,
        .outer = OUTER,
        .inner = INNER,
        .lower = {lower, packed},
        .diag = {diag, packed},
        .upper = {upper, packed},
        .rhs = {rhs, packed},
        .x = {x, packed},
        .info = info,
    };
}

#define EXPECT(status, change)                                          \
    do {                                                                \
        ps_tridiag t = good();                                          \
        ps_options o = plain;                                           \
        change;                                                         \
        const ps_status got = ps_tridiag_check(&t, &o);                 \
        CHECK(got == (status), "%s: %s", #change, ps_status_text(got)); \
    } while (0)

static void
accept_legal_layouts(void)
{
    EXPECT(PS_OK, (void)0);
    EXPECT(PS_OK, t.info = NULL);
    EXPECT(PS_OK, t.rhs.data = x);
    EXPECT(PS_OK, t.diag.stride = ((ps_stride){1, 0, 0}));
    EXPECT(PS_OK, t.lower.stride = ((ps_stride){0, 0, 0}));
    EXPECT(PS_OK, (t.x.data = x + SIZE - 1, t.x.stride = ((ps_stride){-1, -15, -5})));
    EXPECT(PS_OK, t.flags = PS_PERIODIC);
    EXPECT(PS_OK, t.flags = PS_SHORT_LOWER | PS_SHORT_UPPER);
    EXPECT(PS_OK, t.x.stride = ((ps_stride){INNER, ROWS * INNER, 1}));
    EXPECT(PS_OK, (t.rhs = (ps_input){x + SIZE, packed}));
    EXPECT(PS_OK, (t.x.stride = (ps_stride){2, 30, 10}, /* odd places of x are the rhs */
                   t.rhs = (ps_input){x + 1, {2, 30, 10}}));
    EXPECT(PS_OK, (t.rows = 1, t.flags = PS_SHORT_LOWER, t.lower.data = NULL));
}

static void
accept_empty_batches_without_pointers(void)
{
    EXPECT(PS_OK, (t.outer = 0, t.x.data = NULL, t.rhs.data = NULL, t.diag.data = NULL));
    EXPECT(PS_OK, (t.inner = 0, t.lower.data = NULL, t.upper.data = NULL));
}

static void
refuse_arguments_out_of_range(void)
{
    EXPECT(PS_BAD_ARGUMENT, t.rows = 0);
    EXPECT(PS_BAD_ARGUMENT, t.rows = -1);
    EXPECT(PS_BAD_ARGUMENT, t.rows = INT32_MAX);
    EXPECT(PS_BAD_ARGUMENT, t.outer = -1);
    EXPECT(PS_BAD_ARGUMENT, t.inner = -1);
    EXPECT(PS_BAD_ARGUMENT, (t.outer = INT64_MAX / 2, t.inner = 3));
    EXPECT(PS_BAD_ARGUMENT, t.dtype = PS_DTYPE_COUNT);
    EXPECT(PS_BAD_ARGUMENT, t.dtype = (ps_dtype)-1);
    EXPECT(PS_BAD_ARGUMENT, t.flags = PS_ROW_SUMS);
    EXPECT(PS_BAD_ARGUMENT, (t.flags = PS_ROW_SUMS, o.method = PS_PARTITION));
    EXPECT(PS_OK, (t.flags = PS_ROW_SUMS, o.pivot = PS_PIVOT_NEVER));
    EXPECT(PS_BAD_ARGUMENT,
           (t.flags = PS_ROW_SUMS, o.pivot = PS_PIVOT_NEVER, t.dtype = PS_C64));
    EXPECT(PS_BAD_ARGUMENT, t.flags = 16);
    EXPECT(PS_BAD_ARGUMENT, t.flags = PS_PERIODIC | PS_SHORT_LOWER);
    EXPECT(PS_BAD_ARGUMENT, t.flags = PS_PERIODIC | PS_SHORT_UPPER);
    EXPECT(PS_BAD_ARGUMENT, t.rhs.stride.row = INT64_MAX / 4);
    EXPECT(PS_BAD_ARGUMENT, t.x.stride.outer = INT64_MIN);
}

static void
refuse_null_pointers(void)
{
    EXPECT(PS_BAD_ARGUMENT, t.lower.data = NULL);
    EXPECT(PS_BAD_ARGUMENT, t.diag.data = NULL);
    EXPECT(PS_BAD_ARGUMENT, t.upper.data = NULL);
    EXPECT(PS_BAD_ARGUMENT, t.rhs.data = NULL);
    EXPECT(PS_BAD_ARGUMENT, t.x.data = NULL);

    const ps_tridiag t = good();
    CHECK(ps_tridiag_check(NULL, &plain) == PS_BAD_ARGUMENT, "no system");
    CHECK(ps_tridiag_check(&t, NULL) == PS_BAD_ARGUMENT, "no options");
}

static void
refuse_overlaps(void)
{
    EXPECT(PS_BAD_LAYOUT, t.lower.data = x);
    EXPECT(PS_BAD_LAYOUT, t.diag.data = x);
    EXPECT(PS_BAD_LAYOUT, t.upper.data = x);
    EXPECT(PS_BAD_LAYOUT, t.diag.data = x + SIZE - 1);
    EXPECT(PS_BAD_LAYOUT, t.rhs.data = x + 1);
    EXPECT(PS_BAD_LAYOUT, (t.rhs.data = x, t.rhs.stride = (ps_stride){INNER, 15, 1}));
    EXPECT(PS_BAD_LAYOUT, (t.rhs.data = x, t.rhs.stride.row = 0));
    EXPECT(PS_BAD_LAYOUT, (t.rhs.data = x, t.rhs.stride.outer = 0));
    EXPECT(PS_BAD_LAYOUT, (t.rhs.data = x, t.rhs.stride.inner = 0));
    EXPECT(PS_BAD_LAYOUT, (t.rhs = (ps_input){x + ROWS - 1, {-1, 15, 5}}));
    EXPECT(PS_BAD_LAYOUT, (t.rhs = (ps_input){(char *)x + 4, packed}));
    EXPECT(PS_BAD_LAYOUT, (t.diag = (ps_input){x + 7, {0, 0, 0}}));
}

static void
refuse_outputs_that_repeat_an_element(void)
{
    EXPECT(PS_BAD_LAYOUT, t.x.stride.row = 0);
    EXPECT(PS_BAD_LAYOUT, t.x.stride.outer = 0);
    EXPECT(PS_BAD_LAYOUT, t.x.stride.inner = 0);
    EXPECT(PS_BAD_LAYOUT, t.x.stride.inner = ROWS - 1);
    EXPECT(PS_OK, (t.outer = 1, t.x.stride.outer = 0));
    EXPECT(PS_OK, (t.rows = 1, t.x.stride = (ps_stride){0, 3, 1}));
}

static void
refuse_unknown_options(void)
{
    static const ps_options bad[] = {
        {PS_METHOD_COUNT, PS_PIVOT_AUTO, 0},
        {(ps_method)-1, PS_PIVOT_AUTO, 0},
        {PS_AUTO, PS_PIVOT_COUNT, 0},
        {PS_AUTO, PS_PIVOT_AUTO, -1},
    };
    const ps_tridiag t = good();

    for (int k = 0; k < COUNT(bad); k++) {
        CHECK(ps_tridiag_check(&t, &bad[k]) == PS_BAD_ARGUMENT, "options %d", k);
    }
}

static ps_factor
good_factor(void)
{
    return (ps_factor){
        .dtype = PS_F64,
        .rows = ROWS,
        .outer = OUTER,
        .inner = INNER,
        .store = factor_store,
        .store_bytes = sizeof factor_store,
    };
}

static ps_factor_rhs
good_rhs(void)
{
    return (ps_factor_rhs){
        .outer = OUTER,
        .inner = INNER,
        .outer_step = 1,
        .inner_step = 1,
        .rhs = {rhs, packed},
        .x = {x, packed},
    };
}

#define EXPECT_FACTOR(status, change)                                   \
    do {                                                                \
        ps_factor f = good_factor();                                    \
        ps_factor_rhs b = good_rhs();                                   \
        change;                                                         \
        const ps_status got = ps_factor_check(&f, &b);                  \
        CHECK(got == (status), "%s: %s", #change, ps_status_text(got)); \
    } while (0)

static void
check_factor_and_its_right_hand_sides(void)
{
    EXPECT_FACTOR(PS_OK, (void)0);
    EXPECT_FACTOR(PS_OK, b.rhs.data = x);
    EXPECT_FACTOR(PS_OK, (f.outer = 1, b.outer_step = 0));
    EXPECT_FACTOR(PS_OK, (f.outer = f.inner = 1, b.outer_step = b.inner_step = 0));
    EXPECT_FACTOR(PS_OK, (b.outer = 0, b.x.data = NULL, b.rhs.data = NULL));

    EXPECT_FACTOR(PS_BAD_ARGUMENT, f.rows = 0);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, f.outer = -1);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, f.dtype = PS_DTYPE_COUNT);
    EXPECT_FACTOR(PS_OK, (f.flags = PS_ROW_SUMS, f.pivot = PS_PIVOT_NEVER));
    EXPECT_FACTOR(PS_BAD_ARGUMENT, (f.flags = PS_ROW_SUMS, f.pivot = PS_PIVOT_AUTO));
    EXPECT_FACTOR(PS_OK, (f.flags = PS_ROW_SUMS | PS_COLUMNS, f.pivot = PS_PIVOT_NEVER));
    EXPECT_FACTOR(PS_OK, f.flags = PS_COLUMNS);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, f.flags = 32);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, f.pivot = PS_PIVOT_COUNT);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, f.store = NULL);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, f.store = factor_store + 8);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, b.trans = PS_TRANS_COUNT);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, b.outer = -1);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, b.inner = -1);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, b.outer_step = 2);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, b.inner_step = -1);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, b.outer = OUTER + 1);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, b.inner = INNER + 1);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, b.inner = INNER - 1);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, b.x.data = NULL);
    EXPECT_FACTOR(PS_BAD_ARGUMENT, b.rhs.data = NULL);
    EXPECT_FACTOR(PS_BAD_LAYOUT, b.rhs.data = x + 1);
    EXPECT_FACTOR(PS_BAD_LAYOUT, b.x.stride.inner = 0);

    const ps_factor f = good_factor();
    const ps_factor_rhs b = good_rhs();
    CHECK(ps_factor_check(NULL, &b) == PS_BAD_ARGUMENT, "no factor");
    CHECK(ps_factor_check(&f, NULL) == PS_OK, "the factor alone");
}

static void
every_status_has_a_text(void)
{
    for (int status = 0; status < PS_STATUS_COUNT; status++) {
        const char *const text = ps_status_text((ps_status)status);
        CHECK(text != NULL && text[0] != '\0', "status %d", status);
    }
    CHECK(ps_status_text(PS_STATUS_COUNT) != NULL, "a status out of range");
}

int
main(void)
{
    accept_legal_layouts();
    accept_empty_batches_without_pointers();
    refuse_arguments_out_of_range();
    refuse_null_pointers();
    refuse_overlaps();
    refuse_outputs_that_repeat_an_element();
    refuse_unknown_options();
    check_factor_and_its_right_hand_sides();
    every_status_has_a_text();
    return report();
}
