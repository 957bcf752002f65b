/* gceidd.c - gceidd_step(): parse, step without the GIL, report. */
#include "gceidd.h"

#include "call.h"
#include "codes.h"
#include "operand.h"
#include "ps_gceidd.h"

#define PS_TEXT_(name, text) text,
static const char *const schemes[] = {PS_GCEIDD_SCHEME_LIST(PS_TEXT_)};
static const char *const upwinds[] = {PS_GCEIDD_UPWIND_LIST(PS_TEXT_)};
static const char *const predictors[] = {PS_GCEIDD_PREDICTOR_LIST(PS_TEXT_)};
static const char *const feet[] = {PS_GCEIDD_FOOT_LIST(PS_TEXT_)};
static const char *const kernels[] = {PS_GCEIDD_KERNELS_LIST(PS_TEXT_)};
static const char *const strategies[] = {PS_GCEIDD_STRATEGY_LIST(PS_TEXT_)};
static const char *const sides[] = {PS_GCEIDD_SIDE_LIST(PS_TEXT_)};
static const char *const kinds[] = {PS_GCEIDD_KIND_LIST(PS_TEXT_)};
static const char *const parts[] = {PS_GCEIDD_PART_LIST(PS_TEXT_)};
#undef PS_TEXT_

/* The arguments that are objects. */
typedef struct {
    PyObject *fields[1 + PS_GCEIDD_OLDER], *before;
    PyObject *velocity[PS_GCEIDD_AXES], *diffusion[PS_GCEIDD_AXES];
    PyObject *source, *edges[PS_GCEIDD_SIDE_COUNT];
    PyObject *exchange[PS_GCEIDD_SIDE_COUNT], *made; /* exchange: or None */
} arguments;

/* Whether an operand is a field, which lies in memory without gaps. */
static int
is_field(const operand *field, const char *name)
{
    if (field->outer != 1 || field->stride.row != 1 ||
        field->stride.inner != field->rows) {
        PyErr_Format(PyExc_ValueError, "%s: need shape (1, ny+1, nx+1) in C order", name);
        return 0;
    }
    return 1;
}

/* Borrow u, which determines dtype and grid, the older half levels, and `before`. */
static int
borrow_fields(const arguments *in, ps_gceidd *g, operand *like)
{
    void **const to[] = {&g->u, &g->older[0], &g->older[1]};
    static const char *const names[] = {"u", "older", "oldest"};

    for (int k = 0; k <= PS_GCEIDD_OLDER; k++) {
        operand field;

        if (k > 0 && in->fields[k] == Py_None) {
            continue;
        }
        if (operand_write(in->fields[k], names[k], &field) < 0 ||
            (k > 0 && operand_match(&field, like, like->rows) < 0)) {
            return -1;
        }
        if (!is_field(&field, names[k])) {
            return -1;
        }
        *to[k] = field.data;
        if (k == 0) {
            *like = field;
        }
    }
    if (in->before != Py_None) {
        operand before;

        if (operand_read(in->before, "before", &before) < 0 ||
            operand_match(&before, like, like->rows) < 0 ||
            !is_field(&before, "before")) {
            return -1;
        }
        g->before = before.data;
    }
    g->dtype = like->dtype;
    g->cells[PS_GCEIDD_X] = like->rows - 1;
    g->cells[PS_GCEIDD_Y] = like->inner - 1;
    return 0;
}

/* Borrow an array of the shape and dtype of `like`. */
static int
borrow_data(PyObject *object, const char *name, const operand *like, ps_gceidd_data *data)
{
    operand op;

    if (operand_read(object, name, &op) < 0 || operand_match(&op, like, like->rows) < 0) {
        return -1;
    }
    *data = (ps_gceidd_data){op.data, op.stride.outer, op.stride.inner, op.stride.row};
    return 0;
}

static int
borrow_factor(PyObject *object, int64_t count, const double **factor)
{
    static const char rule[] = "source: a factor has a float64 for every step";

    *factor = NULL;
    if (object == Py_None) {
        return 0;
    }
    PyArrayObject *const array = operand_block(object, rule, NPY_DOUBLE, 0);

    if (array == NULL) {
        return -1;
    }
    if (PyArray_SIZE(array) != count) {
        PyErr_SetString(PyExc_TypeError, rule);
        return -1;
    }
    *factor = PyArray_DATA(array);
    return 0;
}

static int
borrow_source(PyObject *source, const operand *like, ps_gceidd *g)
{
    const Py_ssize_t terms = PyTuple_GET_SIZE(source);

    if (terms > PS_GCEIDD_TERMS) {
        PyErr_Format(PyExc_ValueError, "source: at most %d terms, got %zd",
                     PS_GCEIDD_TERMS, terms);
        return -1;
    }
    g->terms = (int32_t)terms;
    for (Py_ssize_t k = 0; k < terms; k++) {
        PyObject *const term = PyTuple_GET_ITEM(source, k);

        if (!PyTuple_Check(term) || PyTuple_GET_SIZE(term) != 2) {
            PyErr_SetString(PyExc_TypeError, "source: need pairs of field and factor");
            return -1;
        }
        if (borrow_data(PyTuple_GET_ITEM(term, 0), "source", like, &g->source[k].field) <
                0 ||
            borrow_factor(PyTuple_GET_ITEM(term, 1), like->outer, &g->source[k].factor) <
                0) {
            return -1;
        }
    }
    return 0;
}

/* Borrow all arrays that `count` steps read. */
static int
borrow_data_of_steps(const arguments *in, int64_t count, operand like, ps_gceidd *g)
{
    operand across_x = like, across_y = like;

    like.name = across_x.name = across_y.name = "u and the steps";
    like.outer = across_x.outer = across_y.outer = count;
    across_x.rows = across_y.inner = 1;
    for (int axis = 0; axis < PS_GCEIDD_AXES; axis++) {
        if (borrow_data(in->velocity[axis], "velocity", &like, &g->velocity[axis]) < 0 ||
            borrow_data(in->diffusion[axis], "diffusion", &like, &g->diffusion[axis]) <
                0) {
            return -1;
        }
    }
    for (int side = 0; side < PS_GCEIDD_SIDE_COUNT; side++) {
        const operand *const shape = side < PS_GCEIDD_SOUTH ? &across_x : &across_y;

        if (borrow_data(in->edges[side], sides[side], shape, &g->edge[side].data) < 0 ||
            (in->exchange[side] != Py_None &&
             borrow_data(in->exchange[side], "exchange", shape, &g->edge[side].exchange) <
                 0)) {
            return -1;
        }
    }
    return borrow_source(in->source, &like, g);
}

/* Numbers of the parts of a sweep by name. */
static PyObject *
along(const double *numbers)
{
    return call_seconds(parts, numbers, PS_GCEIDD_PART_COUNT);
}

static PyObject *
gceidd_report(ps_status status, const ps_gceidd_report *report)
{
    if (status != PS_OK) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue(
        "{s:L,s:O,s:i,s:s,s:N,s:N,s:N,s:N}", "steps", (long long)report->steps, "grown",
        report->grown ? Py_True : Py_False, "threads", (int)report->threads, "kernel",
        report->kernel != NULL ? report->kernel : "", "x",
        along(report->seconds[PS_GCEIDD_X]), "y", along(report->seconds[PS_GCEIDD_Y]),
        "x occupancy", along(report->occupancy[PS_GCEIDD_X]), "y occupancy",
        along(report->occupancy[PS_GCEIDD_Y]));
}

static PyObject *
step(const ps_gceidd *g, int64_t count, call *in, int64_t *made)
{
    const ps_backend *const backend = ps_backend_get();
    ps_gceidd_report report = {0};
    ps_status status = PS_UNSUPPORTED;
    size_t bytes = 0;

    if (backend->gceidd_work != NULL) {
        status = backend->gceidd_work(g, &in->exec, &bytes);
    }
    int started = call_start(in, status, bytes);

    if (started > 0) {
        status = backend->gceidd_step(g, count, &in->exec, &report);
        started = call_finish(in);
    }
    *made = report.steps;
    return started < 0
               ? NULL
               : Py_BuildValue("(iN)", (int)status, gceidd_report(status, &report));
}

PyObject *
gceidd_step(PyObject *Py_UNUSED(module), PyObject *args)
{
    int codes[6], kind[PS_GCEIDD_SIDE_COUNT], threads, device = 0;
    long long strips[PS_GCEIDD_AXES], lost[PS_GCEIDD_ENDS], count;
    unsigned long long stream = 0;
    arguments in;
    ps_gceidd g = {0};
    operand like;
    int64_t *made;
    call c;

    if (!PyArg_ParseTuple(
            args,
            "(iiiiiiiii)(LL)(LL)(dd)d(dd)(OOO)O(OO)(OO)O!(iiii)(OOOO)(OOOO)LiO|iK:gceidd_"
            "step",
            &codes[0], &codes[1], &codes[2], &codes[3], &codes[4], &codes[5],
            &g.few_strips, &g.short_strip, &g.throttle, &strips[0], &strips[1], &lost[0],
            &lost[1], &g.spacing[0], &g.spacing[1], &g.dt, &g.lowest, &g.highest,
            &in.fields[0], &in.fields[1], &in.fields[2], &in.before, &in.velocity[0],
            &in.velocity[1], &in.diffusion[0], &in.diffusion[1], &PyTuple_Type,
            &in.source, &kind[0], &kind[1], &kind[2], &kind[3], &in.edges[0],
            &in.edges[1], &in.edges[2], &in.edges[3], &in.exchange[0], &in.exchange[1],
            &in.exchange[2], &in.exchange[3], &count, &threads, &in.made, &device,
            &stream)) {
        return NULL;
    }
    g.scheme = (ps_gceidd_scheme)codes[0];
    g.upwind = (ps_gceidd_upwind)codes[1];
    g.predictor = (ps_gceidd_predictor)codes[2];
    g.foot = (ps_gceidd_foot)codes[3];
    g.kernels = (ps_gceidd_kernels)codes[4];
    g.strategy = (ps_gceidd_strategy)codes[5];
    for (int axis = 0; axis < PS_GCEIDD_AXES; axis++) {
        g.strips[axis] = strips[axis];
    }
    for (int end = 0; end < PS_GCEIDD_ENDS; end++) {
        g.lost[end] = lost[end];
    }
    for (int side = 0; side < PS_GCEIDD_SIDE_COUNT; side++) {
        g.edge[side].kind = (ps_gceidd_kind)kind[side];
    }
    if (borrow_fields(&in, &g, &like) < 0 ||
        borrow_data_of_steps(&in, count, like, &g) < 0 ||
        operand_made(in.made, &made) < 0 || call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    return step(&g, count, &c, made);
}

int
gceidd_add_constants(PyObject *module)
{
    static const struct {
        const char *name;
        const char *const *texts;
        int count;
    } lists[] = {
        {"GCEIDD_SCHEMES", schemes, PS_GCEIDD_SCHEME_COUNT},
        {"GCEIDD_UPWINDS", upwinds, PS_GCEIDD_UPWIND_COUNT},
        {"GCEIDD_PREDICTORS", predictors, PS_GCEIDD_PREDICTOR_COUNT},
        {"GCEIDD_FEET", feet, PS_GCEIDD_FOOT_COUNT},
        {"GCEIDD_KERNELS", kernels, PS_GCEIDD_KERNELS_COUNT},
        {"GCEIDD_STRATEGIES", strategies, PS_GCEIDD_STRATEGY_COUNT},
        {"GCEIDD_SIDES", sides, PS_GCEIDD_SIDE_COUNT},
        {"GCEIDD_KINDS", kinds, PS_GCEIDD_KIND_COUNT},
        {"GCEIDD_PARTS", parts, PS_GCEIDD_PART_COUNT},
    };

    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        if (add_codes(module, lists[k].name, lists[k].texts, lists[k].count) < 0) {
            return -1;
        }
    }
    return 0;
}
