/* test_gceidd.c - refusals of a ps_gceidd, and steps in buffers without a byte to spare.
 */
#include <math.h>

#include "check.h"
#include "ps_gceidd.h"

enum { NX = 13, NY = 9, NODES = (NX + 1) * (NY + 1), LENGTH = NX + 1 };

/* A problem, and what it points at. */
typedef struct {
    ps_gceidd g;
    void *numbers[8];
} problem;

static const double factors[] = {1, 2, 3};

/* `count` numbers between 0 and 1/2. */
static void *
numbers(problem *p, int which, ps_dtype dtype, int count)
{
    void *const data = malloc((size_t)count * element_size(dtype));

    for (int k = 0; k < count; k++) {
        store(dtype, data, k, (noise(which, k, 0) + 1) / 4);
    }
    return p->numbers[which] = data;
}

static problem
problem_new(ps_dtype dtype, ps_gceidd_scheme scheme, ps_gceidd_kind kind)
{
    problem p = {.g = {.dtype = dtype,
                       .scheme = scheme,
                       .cells = {NX, NY},
                       .strips = {4, 3},
                       .spacing = {0.1, 0.2},
                       .dt = 0.05,
                       .lowest = -INFINITY,
                       .highest = INFINITY,
                       .terms = 1}};
    ps_gceidd *const g = &p.g;

    g->u = numbers(&p, 0, dtype, NODES);
    g->older[0] = numbers(&p, 1, dtype, NODES);
    g->older[1] = numbers(&p, 2, dtype, NODES);
    g->velocity[0] = (ps_gceidd_data){numbers(&p, 3, dtype, NODES), 0, NX + 1, 1};
    g->velocity[1] = (ps_gceidd_data){numbers(&p, 4, dtype, NY + 1), 0, 1, 0};
    g->diffusion[0] = (ps_gceidd_data){numbers(&p, 5, dtype, NX + 1), 0, 0, 1};
    g->diffusion[1] = (ps_gceidd_data){numbers(&p, 6, dtype, 3), 1, 0, 0};
    g->source[0].field =
        (ps_gceidd_data){numbers(&p, 7, dtype, 3 * NODES), NODES, NX + 1, 1};
    g->source[0].factor = factors;
    for (int side = 0; side < PS_GCEIDD_SIDE_COUNT; side++) {
        g->edge[side].kind = kind;
        g->edge[side].data = (ps_gceidd_data){p.numbers[7], LENGTH, 1, 1};
        if (kind == PS_GCEIDD_ROBIN) {
            g->edge[side].exchange = g->edge[side].data;
        }
    }
    return p;
}

static void
problem_end(problem *p)
{
    for (int k = 0; k < COUNT(p->numbers); k++) {
        free(p->numbers[k]);
    }
}

static ps_status
step(const problem *p, int64_t count, int threads, ps_gceidd_report *interface)
{
    const ps_backend *const backend = ps_backend_get();
    ps_exec exec = {.threads = threads};
    void *work = NULL;
    ps_status status = backend->gceidd_work(&p->g, &exec, &exec.work_bytes);

    CHECK(status == PS_OK, "%s", ps_status_text(status));
    CHECK(posix_memalign(&work, 64, exec.work_bytes) == 0, "%zu bytes", exec.work_bytes);
    exec.work = work;
    exec.work_bytes--;
    status = backend->gceidd_step(&p->g, count, &exec, interface);
    CHECK(status == PS_WORK_TOO_SMALL, "%s", ps_status_text(status));
    exec.work_bytes++;
    status = backend->gceidd_step(&p->g, count, &exec, interface);
    free(work);
    return status;
}

static void
steps_stay_in_their_buffers(void)
{
    static const ps_dtype dtypes[] = {PS_F32, PS_F64};

    for (int d = 0; d < COUNT(dtypes); d++) {
        for (int scheme = 0; scheme < PS_GCEIDD_SCHEME_COUNT; scheme++) {
            for (int kind = 0; kind < PS_GCEIDD_KIND_COUNT; kind++) {
                problem p = problem_new(dtypes[d], (ps_gceidd_scheme)scheme,
                                        (ps_gceidd_kind)kind);
                ps_gceidd_report interface;
                const ps_status status = step(&p, 3, 1 + scheme, &interface);

                CHECK(status == PS_OK, "%s", ps_status_text(status));
                CHECK(interface.steps == 3 && !interface.grown, "%d steps",
                      (int)interface.steps);
                for (int k = 0; k < NODES; k++) {
                    const double u = creal(load(dtypes[d], p.g.u, k));

                    CHECK(fabs(u) < 10, "scheme %d, node %d: %g", scheme, k, u);
                }
                problem_end(&p);
            }
        }
    }
}

static void
a_call_ends_with_the_step_that_leaves_the_range(void)
{
    for (int k = 0; k < 3; k++) {
        problem p = problem_new(PS_F64, PS_GCEIDD_MU, PS_GCEIDD_NEUMANN);
        ps_gceidd_report interface;

        p.g.highest = k == 0 ? 1e-3 : INFINITY;
        p.g.lowest = k == 1 ? 1e3 : -INFINITY;
        CHECK(step(&p, 3, 2, &interface) == PS_OK, "refused");
        CHECK(interface.steps == (k == 2 ? 3 : 1) && interface.grown == (k != 2),
              "%d steps", (int)interface.steps);
        problem_end(&p);
    }
}

/* 9 cells along y are 3 strips of 3 cells, of which the second step has one. */
static void
a_grid_shrinks_in_its_buffers(void)
{
    for (int scheme = 0; scheme < PS_GCEIDD_SCHEME_COUNT; scheme++) {
        problem p = problem_new(PS_F64, (ps_gceidd_scheme)scheme, PS_GCEIDD_DIRICHLET);
        double *const before = malloc(NODES * sizeof *before);
        const double *const u = p.g.u;
        ps_gceidd_report interface;

        memcpy(before, p.g.u, NODES * sizeof *before);
        p.g.before = scheme == PS_GCEIDD_MU ? NULL : before;
        p.g.lost[0] = p.g.lost[1] = 1;
        CHECK(ps_gceidd_check_count(&p.g, 3) == PS_BAD_ARGUMENT, "nothing is left");
        CHECK(step(&p, 2, 1, &interface) == PS_OK, "refused");
        for (int k = 3 * (NX + 1); k < 7 * (NX + 1); k++) {
            CHECK(fabs(u[k]) < 10, "scheme %d, node %d: %g", scheme, k, u[k]);
        }
        free(before);
        problem_end(&p);
    }
}

static int
stop_at_once(void *self)
{
    return ++*(int *)self == 2;
}

static void
an_interrupted_call_leaves_whole_steps(void)
{
    problem whole = problem_new(PS_F64, PS_GCEIDD_MU, PS_GCEIDD_DIRICHLET);
    problem part = problem_new(PS_F64, PS_GCEIDD_MU, PS_GCEIDD_DIRICHLET);
    const ps_backend *const backend = ps_backend_get();
    ps_gceidd_report interface;
    int asked = 0;
    ps_exec exec = {.threads = 1, .poll = stop_at_once, .poll_self = &asked};

    CHECK(step(&whole, 2, 1, &interface) == PS_OK, "refused");
    CHECK(backend->gceidd_work(&part.g, &exec, &exec.work_bytes) == PS_OK, "refused");
    CHECK(posix_memalign(&exec.work, 64, exec.work_bytes) == 0, "%zu", exec.work_bytes);
    CHECK(backend->gceidd_step(&part.g, 3, &exec, &interface) == PS_INTERRUPTED,
          "went on");
    CHECK(interface.steps == 2, "%d steps", (int)interface.steps);
    for (int k = 0; k < 3; k++) {
        CHECK(memcmp(whole.numbers[k], part.numbers[k], NODES * sizeof(double)) == 0,
              "field %d", k);
    }
    free(exec.work);
    problem_end(&whole);
    problem_end(&part);
}

/* Check g as it is refused with `status`, then put `kept` back. */
static void
refused(ps_gceidd *g, const ps_gceidd *kept, ps_status status, int line)
{
    const ps_status found = ps_gceidd_check(g);

    CHECK(found == status, "line %d: %s", line, ps_status_text(found));
    *g = *kept;
}

#define REFUSED(change, status)              \
    do {                                     \
        change;                              \
        refused(g, &kept, status, __LINE__); \
    } while (0)

static void
what_is_wrong_is_refused(void)
{
    problem p = problem_new(PS_F64, PS_GCEIDD_MU, PS_GCEIDD_DIRICHLET);
    ps_gceidd *const g = &p.g;
    const ps_gceidd kept = *g;

    REFUSED((void)0, PS_OK);
    REFUSED(g->strips[PS_GCEIDD_Y] = 1, PS_OK);
    REFUSED(g->highest = -1, PS_OK);
    REFUSED(g->terms = 0, PS_OK);
    REFUSED(g->source[0].factor = NULL, PS_OK);
    REFUSED(g->dtype = PS_C64, PS_BAD_ARGUMENT);
    REFUSED(g->scheme = PS_GCEIDD_SCHEME_COUNT, PS_BAD_ARGUMENT);
    REFUSED(g->upwind = PS_GCEIDD_UPWIND_COUNT, PS_BAD_ARGUMENT);
    REFUSED(g->predictor = PS_GCEIDD_PREDICTOR_COUNT, PS_BAD_ARGUMENT);
    REFUSED(g->foot = PS_GCEIDD_FOOT_COUNT, PS_BAD_ARGUMENT);
    REFUSED(g->kernels = PS_GCEIDD_KERNELS_COUNT, PS_BAD_ARGUMENT);
    REFUSED(g->strategy = PS_GCEIDD_STRATEGY_COUNT, PS_BAD_ARGUMENT);
    REFUSED(g->strips[PS_GCEIDD_X] = 5, PS_BAD_ARGUMENT);
    REFUSED(g->strips[PS_GCEIDD_X] = 0, PS_BAD_ARGUMENT);
    REFUSED(g->cells[PS_GCEIDD_Y] = 8, PS_BAD_ARGUMENT);
    REFUSED(g->cells[PS_GCEIDD_X] = INT64_C(1) << 40, PS_BAD_ARGUMENT);
    REFUSED(g->cells[PS_GCEIDD_X] = -13, PS_BAD_ARGUMENT);
    REFUSED(g->spacing[PS_GCEIDD_Y] = 0, PS_BAD_ARGUMENT);
    REFUSED(g->spacing[PS_GCEIDD_X] = NAN, PS_BAD_ARGUMENT);
    REFUSED(g->dt = -1, PS_BAD_ARGUMENT);
    REFUSED(g->dt = INFINITY, PS_BAD_ARGUMENT);
    REFUSED((g->lowest = 1, g->highest = 0), PS_BAD_ARGUMENT);
    REFUSED(g->lowest = NAN, PS_BAD_ARGUMENT);
    REFUSED(g->highest = NAN, PS_BAD_ARGUMENT);
    REFUSED(g->terms = -1, PS_BAD_ARGUMENT);
    REFUSED(g->terms = 2, PS_BAD_ARGUMENT); /* the second has no data */
    REFUSED(g->terms = 3, PS_BAD_ARGUMENT);
    REFUSED(g->velocity[1].data = NULL, PS_BAD_ARGUMENT);
    REFUSED(g->diffusion[0].data = NULL, PS_BAD_ARGUMENT);
    REFUSED(g->edge[PS_GCEIDD_NORTH].data.data = NULL, PS_BAD_ARGUMENT);
    REFUSED(g->edge[PS_GCEIDD_EAST].kind = PS_GCEIDD_KIND_COUNT, PS_BAD_ARGUMENT);
    REFUSED(g->edge[PS_GCEIDD_EAST].kind = PS_GCEIDD_ROBIN, PS_BAD_ARGUMENT);
    REFUSED(g->edge[PS_GCEIDD_EAST].exchange = g->edge[PS_GCEIDD_EAST].data,
            PS_BAD_ARGUMENT);
    REFUSED(g->edge[PS_GCEIDD_EAST].kind = PS_GCEIDD_PERIODIC, PS_BAD_ARGUMENT);
    REFUSED(g->u = NULL, PS_BAD_ARGUMENT);
    REFUSED(g->older[1] = NULL, PS_BAD_ARGUMENT);
    REFUSED(g->older[1] = (double *)g->u + NODES - 1, PS_BAD_LAYOUT);
    REFUSED(g->older[0] = g->older[1], PS_BAD_LAYOUT);
    REFUSED(g->lost[1] = 2, PS_OK);
    REFUSED(g->lost[0] = 3, PS_BAD_ARGUMENT);
    REFUSED(g->lost[1] = -1, PS_BAD_ARGUMENT);
    REFUSED((g->strips[PS_GCEIDD_Y] = 2, g->lost[0] = 1), PS_OK); /* 4 and 5 cells */
    REFUSED((g->cells[PS_GCEIDD_Y] = 10, g->lost[0] = 1), PS_BAD_ARGUMENT);
    REFUSED(g->before = p.numbers[7], PS_BAD_ARGUMENT); /* of MU */
    REFUSED((g->scheme = PS_GCEIDD_CP, g->before = p.numbers[7]), PS_OK);
    REFUSED((g->scheme = PS_GCEIDD_CP, g->before = (double *)g->u + NODES - 1),
            PS_BAD_LAYOUT);
    REFUSED((g->scheme = PS_GCEIDD_CP, g->older[0] = NULL), PS_OK);
    CHECK(ps_gceidd_check(NULL) == PS_BAD_ARGUMENT, "null");
    problem_end(&p);
}

int
main(void)
{
    steps_stay_in_their_buffers();
    a_call_ends_with_the_step_that_leaves_the_range();
    a_grid_shrinks_in_its_buffers();
    an_interrupted_call_leaves_whole_steps();
    what_is_wrong_is_refused();
    return report();
}
