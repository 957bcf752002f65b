/* heat.c - heat_step(): parse, step without the GIL, report.
 *
 * A capsule of heat_keep() has the memory of the factors that a solver keeps. It is changed by
 * heat_step() alone, whose calls with the same capsule follow each other, as those with the same t.
 */
#include "heat.h"

#include "call.h"
#include "codes.h"
#include "operand.h"
#include "ps_heat.h"

#define PS_TEXT_(name, text) text,
static const char *const schemes[] = {PS_HEAT_SCHEME_LIST(PS_TEXT_)};
static const char *const sides[] = {PS_HEAT_SIDE_LIST(PS_TEXT_)};
static const char *const kernels[] = {PS_HEAT_KERNELS_LIST(PS_TEXT_)};
static const char *const memories[] = {PS_HEAT_MEMORY_LIST(PS_TEXT_)};
static const char *const stages[] = {PS_HEAT_STAGE_LIST(PS_TEXT_)};
#undef PS_TEXT_

/* Read sizes, dtype and data of t. */
static int
borrow_t(PyObject *object, ps_heat *h, int *type)
{
    *type = PyArray_Check(object) ? PyArray_TYPE((PyArrayObject *)object) : NPY_DOUBLE;
    if (*type != NPY_FLOAT && *type != NPY_DOUBLE) {
        PyErr_SetString(PyExc_TypeError, "t: need float32 or float64");
        return -1;
    }
    PyArrayObject *const t = operand_block(object, "t", *type, 1);
    if (t == NULL) {
        return -1;
    }
    h->axes = PyArray_NDIM(t);
    if (h->axes != 2 && h->axes != PS_HEAT_AXES) {
        PyErr_Format(PyExc_ValueError, "t: need 2 or 3 axes, got %d", (int)h->axes);
        return -1;
    }
    h->dtype = *type == NPY_FLOAT ? PS_F32 : PS_F64;
    h->t = PyArray_DATA(t);
    for (int axis = 0; axis < PS_HEAT_AXES; axis++) {
        h->nodes[axis] = axis < h->axes ? PyArray_DIM(t, h->axes - 1 - axis) : 1;
    }
    return 0;
}

static int64_t
node_count(const ps_heat *h)
{
    return h->nodes[0] * h->nodes[1] * h->nodes[2];
}

/* Set *data to a field, or to null for None. */
static int
borrow_field(PyObject *object, const char *name, const ps_heat *h, int type, int writes,
             void **data)
{
    PyArrayObject *const array =
        object == Py_None ? NULL : operand_block(object, name, type, writes);

    if (array == NULL) {
        return object == Py_None && !writes ? 0 : -1;
    }
    if (PyArray_SIZE(array) != node_count(h)) {
        PyErr_Format(PyExc_ValueError, "%s: need %lld values, got %lld", name,
                     (long long)node_count(h), (long long)PyArray_SIZE(array));
        return -1;
    }
    *data = PyArray_DATA(array);
    return 0;
}

/* The array to which the offsets of tables refer. */
typedef struct {
    char *data;
    int64_t size; /* number of values */
    int64_t element;
} pool;

static int
borrow_pool(PyObject *object, const char *name, int type, pool *p)
{
    *p = (pool){NULL, 0, 1};
    if (object == Py_None) {
        return 0;
    }
    PyArrayObject *const array = operand_block(object, name, type, 0);
    if (array == NULL) {
        return -1;
    }
    *p = (pool){PyArray_DATA(array), PyArray_SIZE(array), PyArray_ITEMSIZE(array)};
    return 0;
}

/* Make a table of the values from `start` of the pool on, for levels 0 .. levels-1 and
 * nodes 0 .. nodes-1. */
static int
point_table(const pool *p, const char *name, int64_t start, int64_t levels, int64_t nodes,
            ps_heat_table *table)
{
    if (start < 0 || levels < 1) {
        *table = (ps_heat_table){0};
        return 0;
    }
    const int64_t steps = table->level_step;

    if (start >= p->size || steps < 0 || (table->node_step & ~(int64_t)1) != 0 ||
        (levels > 1 && steps > (p->size - start) / (levels - 1)) ||
        start + (levels - 1) * steps + (nodes - 1) * table->node_step >= p->size) {
        PyErr_Format(PyExc_ValueError, "%s: a table leaves its array of %lld values",
                     name, (long long)p->size);
        return -1;
    }
    table->data = p->data + start * p->element;
    return 0;
}

static int
parse_side(PyObject *object, const pool *p, int64_t count, int64_t nodes,
           ps_heat_side *side)
{
    long long at[2], level[2], step[2];
    int kind;

    if (!PyTuple_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "sides: need tuples");
        return -1;
    }
    if (!PyArg_ParseTuple(object, "id(LLL)(LLL)", &kind, &side->exchange, &at[0],
                          &level[0], &step[0], &at[1], &level[1], &step[1])) {
        return -1;
    }
    side->kind = (ps_heat_side_kind)kind;
    side->level = (ps_heat_table){NULL, level[0], step[0]};
    side->sweep = (ps_heat_table){NULL, level[1], step[1]};
    if (point_table(p, "sides", at[0], count + 1, nodes, &side->level) < 0) {
        return -1;
    }
    return point_table(p, "sides", at[1], count, nodes, &side->sweep);
}

static int
parse_sides(PyObject *object, const pool *p, int64_t count, ps_heat *h)
{
    if (PyTuple_GET_SIZE(object) != 2 * h->axes) {
        PyErr_Format(PyExc_ValueError, "sides: need %d", 2 * (int)h->axes);
        return -1;
    }
    for (int axis = 0; axis < h->axes; axis++) {
        const int64_t nodes = h->nodes[axis] > 0 ? node_count(h) / h->nodes[axis] : 0;

        for (int end = 0; end < 2; end++) {
            if (parse_side(PyTuple_GET_ITEM(object, 2 * axis + end), p, count, nodes,
                           &h->side[axis][end]) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int
borrow_largest(PyObject *object, double **largest)
{
    *largest = NULL;
    if (object == Py_None) {
        return 0;
    }
    if (!PyArray_Check(object) || PyArray_TYPE((PyArrayObject *)object) != NPY_DOUBLE ||
        !PyArray_ISCARRAY((PyArrayObject *)object) ||
        PyArray_SIZE((PyArrayObject *)object) != 1) {
        PyErr_SetString(PyExc_TypeError, "largest: need one writeable float64, or None");
        return -1;
    }
    *largest = PyArray_DATA((PyArrayObject *)object);
    return 0;
}

static PyObject *
heat_report(ps_status status, const ps_heat_report *report)
{
    if (status != PS_OK) {
        Py_RETURN_NONE;
    }
    PyObject *const seconds = call_seconds(stages, report->seconds, PS_HEAT_STAGE_COUNT);

    if (seconds == NULL) {
        return NULL;
    }
    return Py_BuildValue("{s:N,s:i,s:s}", "seconds", seconds, "threads",
                         (int)report->threads, "kernel",
                         report->kernel ? report->kernel : "");
}

/* What the calls of a solver keep, and the number that the backend gave it. */
typedef struct {
    block store;
    int64_t as;
} keeper;

static const char keeper_name[] = "pysolvers.heat_kept";

static void
keeper_free(PyObject *capsule)
{
    keeper *const own = PyCapsule_GetPointer(capsule, keeper_name);

    block_free(&own->store);
    PyMem_Free(own);
}

PyObject *
heat_keep(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    keeper *const own = PyMem_Calloc(1, sizeof *own);

    if (own == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *const capsule = PyCapsule_New(own, keeper_name, keeper_free);

    if (capsule == NULL) {
        PyMem_Free(own);
    }
    return capsule;
}

/* Let a call use a keeper, with enough memory; -1 with an exception. */
static int
keep(keeper *own, int changed, const ps_exec *exec, ps_heat *h)
{
    const ps_backend *const backend = ps_backend_get();
    size_t bytes = 0;

    if (backend->heat_kept == NULL || backend->heat_kept(h, exec, &bytes) != PS_OK ||
        bytes == 0) {
        return 0; /* heat_step() reports what is wrong */
    }
    if (own->store.bytes < bytes || own->store.device != exec->device) {
        own->as = 0;
        block_free(&own->store);
        if (block_allocate(bytes, FOR_LONG, exec, &own->store) < 0) {
            return -1;
        }
    }
    if (changed) {
        own->as = 0;
    }
    h->kept = own->store.data;
    h->kept_as = &own->as;
    return 0;
}

static PyObject *
make_steps(const ps_heat *h, int64_t count, call *in, int64_t *made)
{
    const ps_backend *const backend = ps_backend_get();
    ps_heat_report report = {0};
    ps_status status = PS_UNSUPPORTED;
    size_t bytes = 0;

    if (backend->heat_work != NULL) {
        status = backend->heat_work(h, &in->exec, &bytes);
    }
    int started = call_start(in, status, bytes);

    if (started > 0) {
        status = backend->heat_step(h, count, &in->exec, &report);
        started = call_finish(in);
    }
    *made = report.steps;
    return started < 0 ? NULL
                       : Py_BuildValue("(iN)", (int)status, heat_report(status, &report));
}

PyObject *
heat_step(PyObject *Py_UNUSED(module), PyObject *args)
{
    int scheme, kernel, memory, type, threads, changed, device = 0;
    long long level_step, node_step, count, before;
    unsigned long long stream = 0;
    PyObject *side, *tables, *source, *k, *t, *w, *largest, *kept, *made_array;
    void *fields[2] = {NULL, NULL};
    pool of_sides, of_source;
    int64_t *made;
    ps_heat h = {0};
    call in;

    if (!PyArg_ParseTuple(args, "(iiiii)(iiiiL)(ddd)O!OO(LL)OOOOOLiO|iK:heat_step",
                          &scheme, &kernel, &memory, &h.mapping, &h.block, &h.fresh,
                          &h.timed, &h.goes_on, &changed, &before, &h.ratio[0],
                          &h.ratio[1], &h.ratio[2], &PyTuple_Type, &side, &tables,
                          &source, &level_step, &node_step, &k, &t, &w, &largest, &kept,
                          &count, &threads, &made_array, &device, &stream)) {
        return NULL;
    }
    keeper *const own = kept == Py_None ? NULL : PyCapsule_GetPointer(kept, keeper_name);

    if (kept != Py_None && own == NULL) {
        return NULL;
    }
    if (borrow_t(t, &h, &type) < 0 || borrow_field(w, "w", &h, type, 1, &fields[0]) < 0 ||
        borrow_field(k, "k", &h, type, 0, &fields[1]) < 0 ||
        borrow_pool(tables, "tables", type, &of_sides) < 0 ||
        borrow_pool(source, "source", type, &of_source) < 0 ||
        borrow_largest(largest, &h.largest) < 0 || operand_made(made_array, &made) < 0) {
        return NULL;
    }
    h.before = before;
    h.scheme = (ps_heat_scheme)scheme;
    h.kernels = (ps_heat_kernels)kernel;
    h.memory = (ps_heat_memory)memory;
    h.w = fields[0];
    h.k = fields[1];
    h.source = (ps_heat_table){NULL, level_step, node_step};
    if (parse_sides(side, &of_sides, count, &h) < 0 ||
        point_table(&of_source, "source", source == Py_None ? -1 : 0, count,
                    node_count(&h), &h.source) < 0 ||
        call_begin(&in, threads, device, stream) < 0 ||
        (own != NULL && keep(own, changed, &in.exec, &h) < 0)) {
        return NULL;
    }
    return make_steps(&h, count, &in, made);
}

/* The data of an array of `count` numbers, or null with an exception. */
static void *
borrow_numbers(PyObject *object, const char *name, int type, int64_t count)
{
    PyArrayObject *const array = operand_block(object, name, type, 0);

    if (array != NULL && PyArray_SIZE(array) != count) {
        PyErr_Format(PyExc_ValueError, "%s: need %lld values, got %lld", name,
                     (long long)count, (long long)PyArray_SIZE(array));
        return NULL;
    }
    return array == NULL ? NULL : PyArray_DATA(array);
}

/* Read a spike, which lies in the nodes of t. */
static int
borrow_spike(PyObject *object, int type, int64_t plane, int64_t nodes, ps_heat_spike *s)
{
    if (object == Py_None) {
        *s = (ps_heat_spike){0};
        return 0;
    }
    PyArrayObject *const array = operand_block(object, "spikes", type, 0);

    if (array == NULL) {
        return -1;
    }
    s->count = PyArray_NDIM(array) > 0 ? PyArray_DIM(array, 0) : 0;
    s->node_step = PyArray_SIZE(array) == s->count ? 0 : 1;
    s->data = PyArray_DATA(array);
    if ((s->node_step == 1 && PyArray_SIZE(array) != s->count * plane) || s->first < 0 ||
        s->count > nodes - s->first) {
        PyErr_SetString(PyExc_ValueError, "spikes: they leave the nodes of t");
        return -1;
    }
    return 0;
}

PyObject *
heat_cut(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int applies, type, device = 0, is_inside = 1;
    long long end[2], beyond[2], first[2];
    unsigned long long stream = 0;
    PyObject *t, *before, *ends, *outer, *weights, *spike[2];
    ps_heat_cut c = {0};
    call in;

    if (!PyArg_ParseTuple(args, "p(ii)(LL)(LL)(LL)((ii)(ii))OOOOO(OO)|iK:heat_cut",
                          &applies, &c.rank, &c.ranks, &end[0], &end[1], &beyond[0],
                          &beyond[1], &first[0], &first[1], &c.from[0], &c.to[0],
                          &c.from[1], &c.to[1], &t, &before, &ends, &outer, &weights,
                          &spike[0], &spike[1], &device, &stream)) {
        return NULL;
    }
    type = PyArray_Check(t) ? PyArray_TYPE((PyArrayObject *)t) : NPY_DOUBLE;
    PyArrayObject *const field = operand_block(t, "t", type, 1);

    if (field == NULL || !operand_dtype(type, &c.dtype) || !ps_is_real(c.dtype) ||
        PyArray_NDIM(field) < 1 || PyArray_SIZE(field) == 0 || c.rank < 0 ||
        c.rank >= c.ranks) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "heat_cut: need a real field, and a rank");
        }
        return NULL;
    }
    const int64_t nodes = PyArray_DIM(field, 0);

    c.plane = PyArray_SIZE(field) / nodes;
    c.t = PyArray_DATA(field);
    for (int k = 0; k < 2; k++) {
        c.end[k] = end[k];
        c.beyond[k] = beyond[k];
        c.spike[k].first = first[k];
        is_inside = is_inside && end[k] < nodes && beyond[k] < nodes && c.from[k] >= 0 &&
                    c.to[k] <= 2 * c.ranks;
        if (!is_inside) {
            PyErr_SetString(PyExc_ValueError, "heat_cut: a node or a rank is outside");
            return NULL;
        }
        if (borrow_spike(spike[k], type, c.plane, nodes, &c.spike[k]) < 0) {
            return NULL;
        }
    }
    c.before = borrow_numbers(before, "before", type, 2 * c.plane);
    c.ends = c.before ? borrow_numbers(ends, "ends", type, 2 * c.ranks * c.plane) : NULL;
    c.outer = c.ends ? borrow_numbers(outer, "outer", type, 2 * c.plane) : NULL;
    c.weights =
        c.outer ? borrow_numbers(weights, "weights", type, 4 * c.ranks * c.plane) : NULL;
    if (c.weights == NULL || call_begin(&in, 0, device, stream) < 0) {
        return NULL;
    }
    call_enter(&in);
    const ps_status status =
        backend->heat_cut ? backend->heat_cut(&c, applies, &in.exec) : PS_UNSUPPORTED;

    return call_leave(&in) < 0 ? NULL : PyLong_FromLong(status);
}

int
heat_add_constants(PyObject *module)
{
    if (add_codes(module, "HEAT_SCHEMES", schemes, PS_HEAT_SCHEME_COUNT) < 0 ||
        add_codes(module, "HEAT_SIDES", sides, PS_HEAT_SIDE_COUNT) < 0 ||
        add_codes(module, "HEAT_KERNELS", kernels, PS_HEAT_KERNELS_COUNT) < 0 ||
        add_codes(module, "HEAT_MEMORY", memories, PS_HEAT_MEMORY_COUNT) < 0) {
        return -1;
    }
    return add_codes(module, "HEAT_STAGES", stages, PS_HEAT_STAGE_COUNT);
}
