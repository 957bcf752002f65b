/* test_heat.c - refusals of a ps_heat, and steps in buffers without a byte to spare.
 */
#include <math.h>

#include "check.h"
#include "ps_heat.h"

enum { NX = 70, NY = 37, NZ = 5, LEVELS = 3 };

static double t[NX * NY], w[NX * NY], k[NX * NY];

static ps_heat
good(void)
{
    return (ps_heat){
        .dtype = PS_F64,
        .scheme = PS_HEAT_PR,
        .axes = 2,
        .nodes = {NX, NY, 1},
        .ratio = {1, 2, 0},
        .t = t,
        .w = w,
        .fresh = 1,
    };
}

#define EXPECT(status, change)                                          \
    do {                                                                \
        ps_heat h = good();                                             \
        change;                                                         \
        const ps_status got = ps_heat_check(&h, 1);                     \
        CHECK(got == (status), "%s: %s", #change, ps_status_text(got)); \
    } while (0)

static ps_heat *
with_sides(ps_heat *h, int axis, ps_heat_side_kind lower, ps_heat_side_kind upper)
{
    h->side[axis][0].kind = lower;
    h->side[axis][1].kind = upper;
    return h;
}

static void
accept_what_is_legal(void)
{
    EXPECT(PS_OK, (void)0);
    EXPECT(PS_OK, h.k = k);
    EXPECT(PS_OK, h.dtype = PS_F32);
    EXPECT(PS_OK, h.scheme = PS_HEAT_DOUGLAS_GUNN);
    EXPECT(PS_OK, h.scheme = PS_HEAT_WEI2013);
    EXPECT(PS_OK, with_sides(&h, 0, PS_HEAT_PERIODIC, PS_HEAT_PERIODIC));
    EXPECT(PS_OK,
           with_sides(&h, 1, PS_HEAT_FLUX, PS_HEAT_FLUX)->side[1][0].exchange = 0.5);
    EXPECT(PS_OK, (with_sides(&h, 0, PS_HEAT_FLUX, PS_HEAT_FLUX), h.nodes[0] = 2));
    EXPECT(PS_OK, (h.axes = 3, h.nodes[1] = 5, h.nodes[2] = 4, h.ratio[2] = 1,
                   h.scheme = PS_HEAT_DOUGLAS_GUNN));
    EXPECT(PS_OK, (h.kernels = PS_HEAT_KERNELS_PAPER, h.mapping = 4, h.block = 512));
}

static void
refuse_what_is_not(void)
{
    CHECK(ps_heat_check(NULL, 1) == PS_BAD_ARGUMENT, "null");
    CHECK(ps_heat_check(&(ps_heat){0}, 1) == PS_BAD_ARGUMENT, "empty");
    EXPECT(PS_BAD_ARGUMENT, h.t = NULL);
    EXPECT(PS_BAD_ARGUMENT, h.w = NULL);
    EXPECT(PS_BAD_ARGUMENT, h.dtype = PS_C64);
    EXPECT(PS_BAD_ARGUMENT, h.scheme = PS_HEAT_SCHEME_COUNT);
    EXPECT(PS_BAD_ARGUMENT, h.kernels = PS_HEAT_KERNELS_COUNT);
    EXPECT(PS_BAD_ARGUMENT, h.memory = PS_HEAT_MEMORY_COUNT);
    EXPECT(PS_BAD_ARGUMENT, h.axes = 1);
    EXPECT(PS_BAD_ARGUMENT, (h.axes = 3, h.nodes[2] = 4, h.ratio[2] = 1));
    EXPECT(PS_BAD_ARGUMENT, h.nodes[2] = 2);
    EXPECT(PS_BAD_ARGUMENT, h.nodes[0] = 2);
    EXPECT(PS_BAD_ARGUMENT, h.nodes[1] = INT32_MAX);
    EXPECT(PS_BAD_ARGUMENT, h.ratio[0] = 0);
    EXPECT(PS_BAD_ARGUMENT, h.ratio[1] = -1);
    EXPECT(PS_BAD_ARGUMENT, h.ratio[1] = NAN);
    EXPECT(PS_BAD_ARGUMENT, h.side[0][0].kind = PS_HEAT_PERIODIC);
    EXPECT(PS_BAD_ARGUMENT, h.side[0][1].kind = PS_HEAT_SIDE_COUNT);
    EXPECT(PS_BAD_ARGUMENT, h.side[1][1].exchange = -1);
    EXPECT(PS_BAD_ARGUMENT, h.side[1][1].exchange = INFINITY);
    EXPECT(PS_BAD_ARGUMENT, h.side[0][0].level.node_step = 2);
    EXPECT(PS_BAD_ARGUMENT, h.side[0][0].sweep.level_step = -1);
    EXPECT(PS_BAD_ARGUMENT, h.source.node_step = -1);
    EXPECT(PS_BAD_LAYOUT, h.w = t);
    EXPECT(PS_BAD_LAYOUT, h.k = t + 5);
    EXPECT(PS_BAD_LAYOUT, h.k = w);
}

/* The paper's scheme and kernels are for constant data and two axes. */
static void
refuse_what_the_paper_has_not(void)
{
    static const double value = 1;

    EXPECT(PS_BAD_ARGUMENT, (h.scheme = PS_HEAT_WEI2013, h.k = k));
    EXPECT(PS_BAD_ARGUMENT, (h.scheme = PS_HEAT_WEI2013, h.source.data = &value));
    EXPECT(PS_BAD_ARGUMENT,
           (h.scheme = PS_HEAT_WEI2013, with_sides(&h, 0, PS_HEAT_FLUX, PS_HEAT_VALUE)));
    EXPECT(PS_BAD_ARGUMENT, (h.scheme = PS_HEAT_WEI2013,
                             h.side[0][0].level = (ps_heat_table){&value, 1, 0}));
    EXPECT(PS_BAD_ARGUMENT, (h.kernels = PS_HEAT_KERNELS_PAPER, h.mapping = 0));
    EXPECT(PS_BAD_ARGUMENT, (h.kernels = PS_HEAT_KERNELS_PAPER, h.mapping = 5));
    EXPECT(PS_BAD_ARGUMENT,
           (h.kernels = PS_HEAT_KERNELS_PAPER, h.mapping = 1, h.block = 31));
    EXPECT(PS_BAD_ARGUMENT,
           (h.kernels = PS_HEAT_KERNELS_PAPER, h.mapping = 1, h.block = 1024));
    EXPECT(PS_BAD_ARGUMENT, (h.kernels = PS_HEAT_KERNELS_PAPER, h.mapping = 1,
                             h.scheme = PS_HEAT_DOUGLAS_GUNN));
}

/* `count` values of dtype in (1, 2), alone in their memory. */
static void *
values_new(ps_dtype dtype, int64_t count)
{
    void *const data = malloc((size_t)count * element_size(dtype));

    for (int64_t v = 0; v < count; v++) {
        store(dtype, data, v, 1.5 + noise(v, count, 0) / 2);
    }
    return data;
}

/* Tables of all sides and of the source, each of its own size; to be freed. */
static int
fill_tables(ps_heat *h, void **owned)
{
    const int64_t nodes = h->nodes[0] * h->nodes[1] * h->nodes[2];
    int used = 0;

    for (int side = 0; side < 2 * h->axes; side++) {
        ps_heat_side *const s = &h->side[side / 2][side % 2];
        const int64_t count = nodes / h->nodes[side / 2];

        owned[used] = values_new(h->dtype, LEVELS * count);
        s->level = (ps_heat_table){owned[used++], count, 1};
        owned[used] = values_new(h->dtype, (LEVELS - 1) * count);
        s->sweep = (ps_heat_table){owned[used++], count, 1};
    }
    owned[used] = values_new(h->dtype, (LEVELS - 1) * nodes);
    h->source = (ps_heat_table){owned[used++], nodes, 1};
    return used;
}

static void
step_in_exact_memory(ps_heat h)
{
    const ps_backend *const backend = ps_backend_get();
    const int64_t nodes = h.nodes[0] * h.nodes[1] * h.nodes[2];
    void *owned[4 * PS_HEAT_AXES + 1];
    ps_exec exec = {.threads = 2};
    ps_heat_report interface;
    double largest = -1;

    h.ratio[2] = h.axes == 3;
    h.k = h.k == NULL ? NULL : values_new(h.dtype, nodes);
    h.t = values_new(h.dtype, nodes);
    h.w = values_new(h.dtype, nodes);
    h.largest = &largest;
    const int used = fill_tables(&h, owned);

    CHECK(backend->heat_work(&h, &exec, &exec.work_bytes) == PS_OK, "work");
    CHECK(posix_memalign(&exec.work, 64, exec.work_bytes) == 0, "memory");
    exec.work_bytes--;
    CHECK(backend->heat_step(&h, LEVELS - 1, &exec, &interface) == PS_WORK_TOO_SMALL,
          "a byte less");
    exec.work_bytes++;
    CHECK(backend->heat_step(&h, LEVELS - 1, &exec, &interface) == PS_OK, "steps");
    CHECK(interface.steps == LEVELS - 1 && interface.threads >= 1, "%d steps",
          (int)interface.steps);
    CHECK(largest > 0 && isfinite(largest), "largest %g", largest);

    for (int v = 0; v < used; v++) {
        free(owned[v]);
    }
    free((void *)h.k);
    free(h.t);
    free(h.w);
    free(exec.work);
}

static void
step_with_all_sides(ps_dtype dtype, int varied)
{
    static const ps_heat_side_kind kinds[][2] = {
        {PS_HEAT_VALUE, PS_HEAT_VALUE},
        {PS_HEAT_FLUX, PS_HEAT_VALUE},
        {PS_HEAT_FLUX, PS_HEAT_FLUX},
        {PS_HEAT_PERIODIC, PS_HEAT_PERIODIC},
    };

    for (int contiguous_x = 0; contiguous_x < COUNT(kinds); contiguous_x++) {
        for (int contiguous_y = 0; contiguous_y < COUNT(kinds); contiguous_y++) {
            ps_heat h = good();

            h.dtype = dtype;
            h.k = varied ? k : NULL;
            with_sides(&h, 0, kinds[contiguous_x][0], kinds[contiguous_x][1]);
            with_sides(&h, 1, kinds[contiguous_y][0], kinds[contiguous_y][1]);
            step_in_exact_memory(h);
            h.scheme = PS_HEAT_DOUGLAS_GUNN;
            step_in_exact_memory(h);
            h.axes = 3;
            h.nodes[2] = NZ;
            with_sides(&h, 2, kinds[contiguous_y][0], kinds[contiguous_y][1]);
            step_in_exact_memory(h);
        }
    }
}

static int
stop(void *self)
{
    int *const left = self;

    return --*left < 0;
}

/* An interrupted call ends with a whole step. */
static void
end_early(void)
{
    const ps_backend *const backend = ps_backend_get();
    int left = 4;
    ps_heat h = good();
    ps_exec exec = {.threads = 1, .poll = stop, .poll_self = &left};
    ps_heat_report interface;

    for (int v = 0; v < NX * NY; v++) {
        t[v] = 1;
    }
    CHECK(backend->heat_work(&h, &exec, &exec.work_bytes) == PS_OK, "work");
    CHECK(posix_memalign(&exec.work, 64, exec.work_bytes) == 0, "memory");
    CHECK(backend->heat_step(&h, 10, &exec, &interface) == PS_INTERRUPTED, "not stopped");
    CHECK(interface.steps == 5, "%d steps", (int)interface.steps);
    CHECK(t[NX + 1] < 1 && t[NX + 1] > -1, "t is %g", t[NX + 1]);
    free(exec.work);
}

int
main(void)
{
    accept_what_is_legal();
    refuse_what_is_not();
    refuse_what_the_paper_has_not();
    for (int varied = 0; varied < 2; varied++) {
        step_with_all_sides(PS_F32, varied);
        step_with_all_sides(PS_F64, varied);
    }
    end_early();
    return report();
}
