/* test_relax.c - refusals of ps_lmsor and ps_laplace, and their entries in blocks of
 * exactly the size asked for, so that a sanitizer sees each overrun. */
#include <math.h>

#include "check.h"
#include "ps_laplace.h"
#include "ps_lmsor.h"

enum { NX = 9, NY = 5, PITCH = 16, FIELD = 2 * (NY + 2) * PITCH };

static double u[FIELD], other[FIELD], x_table[PS_TABLE_ROWS * 2 * PITCH],
    y_table[PS_TABLE_ROWS * (NY + 2)], tables[6 * PITCH];

static ps_lmsor
good(ps_lmsor_kernel kernel)
{
    return (ps_lmsor){
        .dtype = PS_F64,
        .kernel = kernel,
        .nx = NX,
        .ny = NY,
        .pitch = PITCH,
        .cx = 0.25,
        .cy = 0.25,
        .u = u,
        .omega = other,
        .west = other,
        .east = other,
        .north = other,
        .south = other,
        .skew_x = other,
        .skew_y = other,
        .x_table = x_table,
        .y_table = y_table,
        .omega_constant = 1,
    };
}

static ps_laplace
good_plate(void)
{
    return (ps_laplace){
        .dtype = PS_F64,
        .nx = NX,
        .ny = NY,
        .pitch = PITCH,
        .ax = 1,
        .ay = 1,
        .t = u,
        .diag = tables,
        .gain = tables,
    };
}

#define EXPECT_OF(solver, good, status, change)                         \
    do {                                                                \
        ps_##solver l = good;                                           \
        change;                                                         \
        const ps_status got = ps_##solver##_check(&l);                  \
        CHECK(got == (status), "%s: %s", #change, ps_status_text(got)); \
    } while (0)
#define EXPECT(status, kernel, change) EXPECT_OF(lmsor, good(kernel), status, change)
#define EXPECT_PLATE(status, change) EXPECT_OF(laplace, good_plate(), status, change)

static void
check_lmsor(void)
{
    for (int kernel = 0; kernel < PS_LMSOR_KERNELS; kernel++) {
        EXPECT(PS_OK, (ps_lmsor_kernel)kernel, (void)0);
        EXPECT(PS_OK, (ps_lmsor_kernel)kernel, l.source = other);
        EXPECT(PS_BAD_ARGUMENT, (ps_lmsor_kernel)kernel, l.u = NULL);
        EXPECT(PS_BAD_LAYOUT, (ps_lmsor_kernel)kernel, l.source = u + FIELD - 1);
    }
    EXPECT(PS_OK, PS_LMSOR_1, (l.skew_x = l.skew_y = NULL, l.x_table = NULL));
    EXPECT(PS_OK, PS_LMSOR_2, (l.west = l.east = NULL, l.y_table = NULL));
    EXPECT(PS_OK, PS_LMSOR_3, (l.omega = l.west = l.skew_x = NULL));
    EXPECT(PS_OK, PS_LMSOR_AUTO, (l.skew_x = l.skew_y = NULL));
    EXPECT(PS_OK, PS_LMSOR_AUTO, (l.x_table = l.y_table = NULL));
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_AUTO, (l.skew_x = NULL, l.x_table = NULL));
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_AUTO, l.omega = NULL);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.south = NULL);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_2, l.skew_y = NULL);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_3, l.y_table = NULL);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_SERIAL, l.skew_x = NULL);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.dtype = PS_C64);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.nx = 0);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.ny = 0);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.nx = 31);
    EXPECT(PS_OK, PS_LMSOR_1, l.nx = 30);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.pitch = 24);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.pitch = INT64_MAX / 16 * 16);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.kernel = PS_LMSOR_KERNELS);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.relaxation = PS_RELAXATIONS);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.cx = (double)INFINITY);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.omega_constant = (double)NAN);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.stop.criterion = PS_CRITERION_COUNT);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.stop.norm = PS_NORM_COUNT);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.stop.every = -1);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.stop.tolerance = (double)NAN);
    EXPECT(PS_OK, PS_LMSOR_1, (l.stop.first_row = 1, l.stop.rows = NY));
    EXPECT(PS_OK, PS_LMSOR_1, (l.stop.first_row = NY, l.stop.rows = 1));
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.stop.first_row = 1);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, l.stop.rows = 1);
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, (l.stop.first_row = 1, l.stop.rows = -1));
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, (l.stop.first_row = 2, l.stop.rows = NY));
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, (l.stop.first_row = NY + 1, l.stop.rows = 1));
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, (l.stop.first_row = 2, l.stop.rows = INT64_MAX));
    EXPECT(PS_BAD_ARGUMENT, PS_LMSOR_1, (l.nx = 5, l.periodic = PS_PERIODIC_X));
    EXPECT(PS_OK, PS_LMSOR_1, (l.nx = 6, l.periodic = PS_PERIODIC_X));
    EXPECT(PS_BAD_LAYOUT, PS_LMSOR_1, l.omega = u);
    EXPECT(PS_BAD_LAYOUT, PS_LMSOR_3, l.x_table = u + 1);
    CHECK(ps_lmsor_check(NULL) == PS_BAD_ARGUMENT, "no struct");
}

static void
check_laplace(void)
{
    EXPECT_PLATE(PS_OK, (void)0);
    EXPECT_PLATE(PS_OK, l.source = other);
    EXPECT_PLATE(PS_BAD_ARGUMENT, l.t = NULL);
    EXPECT_PLATE(PS_BAD_ARGUMENT, l.diag = NULL);
    EXPECT_PLATE(PS_BAD_ARGUMENT, l.gain = NULL);
    EXPECT_PLATE(PS_BAD_ARGUMENT, l.pitch = 17);
    EXPECT_PLATE(PS_BAD_ARGUMENT, l.variant = PS_LAPLACE_VARIANTS);
    EXPECT_PLATE(PS_BAD_ARGUMENT, l.coefficients = PS_LAPLACE_ARRAYS);
    EXPECT_PLATE(PS_OK,
                 (l.coefficients = PS_LAPLACE_TEXTURE, l.variant = PS_LAPLACE_SPLIT));
    EXPECT_PLATE(PS_BAD_ARGUMENT, (l.coefficients = PS_LAPLACE_COEFFICIENT_COUNT,
                                   l.variant = PS_LAPLACE_SPLIT));
    EXPECT_PLATE(PS_BAD_ARGUMENT, l.ax = (double)NAN);
    EXPECT_PLATE(PS_OK, (l.nx = 6, l.periodic = PS_PERIODIC_X));
    EXPECT_PLATE(PS_BAD_ARGUMENT, (l.nx = 5, l.periodic = PS_PERIODIC_X));
    EXPECT_PLATE(PS_OK, (l.nx = 5, l.ny = 4, l.periodic = PS_PERIODIC_Y));
    EXPECT_PLATE(PS_BAD_ARGUMENT, (l.ny = 5, l.periodic = PS_PERIODIC_Y));
    EXPECT_PLATE(PS_BAD_ARGUMENT, (l.nx = 6, l.ny = 4, l.periodic = 4));
    EXPECT_PLATE(PS_BAD_ARGUMENT, l.stop.every = -1);
    EXPECT_PLATE(PS_OK, (l.stop.first_row = 2, l.stop.rows = NY - 1));
    EXPECT_PLATE(PS_BAD_ARGUMENT, (l.stop.first_row = 2, l.stop.rows = NY));
    EXPECT_PLATE(PS_BAD_LAYOUT, l.source = u);
    EXPECT_PLATE(PS_BAD_LAYOUT, l.diag = u + FIELD - 1);
    EXPECT_PLATE(PS_BAD_LAYOUT, l.gain = u);
    CHECK(ps_laplace_check(NULL) == PS_BAD_ARGUMENT, "no struct");
}

/* A block of elements that `value` gives, by their place. */
static void *
block(ps_dtype dtype, int64_t count, double (*value)(int64_t))
{
    void *const data = malloc((size_t)count * element_size(dtype));

    for (int64_t k = 0; k < count; k++) {
        store(dtype, data, k, value(k));
    }
    return data;
}

static double
some(int64_t k)
{
    return noise(0, k, 0);
}

static double
small(int64_t k)
{
    return 0.1 * noise(1, k, 0);
}

static double
about_one(int64_t k)
{
    return 1 + 0.2 * noise(2, k, 0);
}

/* run_lmsor() and run_laplace(): make the work asked for, iterate, and end it. */
#define DEFINE_RUN(solver)                                                               \
    static ps_relax_report run_##solver(const ps_##solver *l, int64_t count,             \
                                        int threads)                                     \
    {                                                                                    \
        const ps_backend *const backend = ps_backend_get();                              \
        ps_exec exec = {.threads = threads};                                             \
        ps_##solver##_report interface = {0};                                            \
        size_t bytes = 0;                                                                \
                                                                                         \
        CHECK(backend->solver##_work(l, &exec, &bytes) == PS_OK, "work");                \
        exec.work = aligned_alloc(64, bytes);                                            \
        exec.work_bytes = bytes - 1;                                                     \
        CHECK(backend->solver##_iterate(l, count, &exec, &interface) ==                  \
                  PS_WORK_TOO_SMALL,                                                     \
              "%zu", bytes);                                                             \
        exec.work_bytes = bytes;                                                         \
        CHECK(backend->solver##_iterate(l, count, &exec, &interface) == PS_OK, #solver); \
        free(exec.work);                                                                 \
        return interface.relax;                                                          \
    }
DEFINE_RUN(lmsor)
DEFINE_RUN(laplace)

/* All kernels but serial, on every measure: the same bits as kernel 2 on one thread. */
static void
iterate_lmsor(ps_dtype dtype, int64_t nx, int64_t ny, int64_t pitch)
{
    const int64_t count = 11, size = 2 * (ny + 2) * pitch;
    void *const skew = block(dtype, size, small), *const omega =
                                                      block(dtype, size, about_one);
    void *const source = block(dtype, size, some), *const wanted =
                                                       block(dtype, size, some);
    double *const x = block(PS_F64, PS_TABLE_ROWS * 2 * pitch, small);
    double *const y = block(PS_F64, PS_TABLE_ROWS * (ny + 2), small);
    double *const history = malloc((size_t)count * sizeof *history);
    ps_lmsor l = {.dtype = dtype,
                  .kernel = PS_LMSOR_2,
                  .nx = nx,
                  .ny = ny,
                  .pitch = pitch,
                  .cx = 0.3,
                  .cy = 0.2,
                  .u = wanted,
                  .omega = omega,
                  .skew_x = skew,
                  .skew_y = skew,
                  .west = skew,
                  .east = skew,
                  .north = skew,
                  .south = skew,
                  .source = source,
                  .stop = {.tolerance = -1}};

    run_lmsor(&l, count, 1);
    for (int way = 0; way < 12; way++) {
        void *const field = block(dtype, size, some);

        l.u = field;
        l.kernel = way % 4 == 3 ? PS_LMSOR_SERIAL : (ps_lmsor_kernel)(way % 4);
        l.stop = (ps_stop){.criterion = (ps_criterion)(way / 4),
                           .norm = (ps_norm)(way % 2),
                           .every = 1,
                           .tolerance = -1,
                           .history = history,
                           .first_row = way % 3 > 0 ? ny - ny / 2 : 0,
                           .rows = way % 3 > 0 ? 1 + ny / 2 : 0};
        const ps_relax_report interface = run_lmsor(&l, count, 1 + way % 3);
        CHECK(interface.iterations == count && interface.measures == count &&
                  interface.measure >= 0 && interface.measure == history[count - 1],
              "way %d: %g", way, interface.measure);
        if (l.kernel == PS_LMSOR_AUTO || l.kernel == PS_LMSOR_2) {
            CHECK(memcmp(field, wanted, (size_t)size * element_size(dtype)) == 0,
                  "way %d", way);
        }
        l.kernel = PS_LMSOR_3;
        l.x_table = x;
        l.y_table = y;
        run_lmsor(&l, count, 1 + way % 3);
        l.x_table = l.y_table = NULL;
        free(field);
    }
    free(skew);
    free(omega);
    free(source);
    free(wanted);
    free(x);
    free(y);
    free(history);
}

/* The same for a plate; naive has another layout. */
static void
iterate_laplace(ps_dtype dtype, int64_t nx, int64_t ny, int64_t pitch)
{
    const int64_t size = 2 * (ny + 2) * pitch;
    void *const diag = block(dtype, 6 * pitch, about_one);
    void *const gain = block(dtype, 6 * pitch, small);
    void *const source = block(dtype, size, some), *const wanted =
                                                       block(dtype, size, some);
    ps_laplace l = {.dtype = dtype,
                    .variant = PS_LAPLACE_SPLIT,
                    .nx = nx,
                    .ny = ny,
                    .pitch = pitch,
                    .ax = 0.3,
                    .ay = 0.2,
                    .t = wanted,
                    .diag = diag,
                    .gain = gain,
                    .source = source};

    run_laplace(&l, 11, 1);
    for (int threads = 1; threads < 4; threads++) {
        void *const field = block(dtype, size, some);

        l.t = field;
        l.variant = PS_LAPLACE_AUTO;
        run_laplace(&l, 11, threads);
        CHECK(memcmp(field, wanted, (size_t)size * element_size(dtype)) == 0, "%d",
              threads);
        l.variant = PS_LAPLACE_NAIVE;
        run_laplace(&l, 2, threads);
        free(field);
    }
    free(diag);
    free(gain);
    free(source);
    free(wanted);
}

static void
iterate_everywhere(void)
{
    static const int64_t shapes[][2] = {{1, 1},  {2, 1},   {1, 3},   {7, 2},  {13, 40},
                                        {14, 9}, {29, 33}, {30, 64}, {61, 50}};

    for (int k = 0; k < COUNT(shapes); k++) {
        const int64_t nx = shapes[k][0], ny = shapes[k][1];
        const int64_t pitch = (nx + 3) / 2 <= 16 ? 16 : 32;

        for (int dtype = PS_F32; dtype <= PS_F64; dtype++) {
            iterate_lmsor((ps_dtype)dtype, nx, ny, pitch);
            iterate_laplace((ps_dtype)dtype, nx, ny, pitch);
        }
    }
}

int
main(void)
{
    check_lmsor();
    check_laplace();
    iterate_everywhere();
    return report();
}
