/* cylinder.c - cylinder_step(): parse, step without the GIL, report. */
#include "cylinder.h"

#include "call.h"
#include "codes.h"
#include "operand.h"
#include "ps_cylinder.h"

#define PS_TEXT_(name, text) text,
static const char *const stages[] = {PS_CYLINDER_STAGE_LIST(PS_TEXT_)};
static const char *const tables[] = {PS_CYLINDER_TABLE_LIST(PS_TEXT_)};
static const char *const columns[] = {PS_CYLINDER_COLUMN_LIST(PS_TEXT_)};
#undef PS_TEXT_

/* Set *data to a field of the shape (c->ny, c->nx), writeable and in C order. The first
 * field sets the shape and the dtype. */
static int
borrow_field(PyObject *object, const char *name, ps_cylinder *c, void **data)
{
    const int known = c->ny != 0;

    if (!known && (!PyArray_Check(object) ||
                   !operand_dtype(PyArray_TYPE((PyArrayObject *)object), &c->dtype) ||
                   !ps_is_real(c->dtype))) {
        PyErr_Format(PyExc_TypeError, "%s: need an array of float32 or float64", name);
        return -1;
    }
    PyArrayObject *const array =
        operand_block(object, name, c->dtype == PS_F32 ? NPY_FLOAT : NPY_DOUBLE, 1);

    if (array == NULL) {
        return -1;
    }
    if (PyArray_NDIM(array) != 2 ||
        (known && (PyArray_DIM(array, 0) != c->ny || PyArray_DIM(array, 1) != c->nx))) {
        PyErr_Format(PyExc_ValueError, "%s: need one shape (ny, nx) for all fields",
                     name);
        return -1;
    }
    c->ny = PyArray_DIM(array, 0);
    c->nx = PyArray_DIM(array, 1);
    *data = PyArray_DATA(array);
    return 0;
}

/* Set the addresses of the tables, and of the history, which comes last. */
static int
read_addresses(PyObject *tuple, ps_cylinder *c)
{
    if (PyTuple_GET_SIZE(tuple) != PS_CYLINDER_TABLES + 1) {
        PyErr_Format(PyExc_ValueError, "addresses: need %d", PS_CYLINDER_TABLES + 1);
        return -1;
    }
    for (int k = 0; k <= PS_CYLINDER_TABLES; k++) {
        void *const address = PyLong_AsVoidPtr(PyTuple_GET_ITEM(tuple, k));

        if (address == NULL && PyErr_Occurred() != NULL) {
            return -1;
        }
        if (k < PS_CYLINDER_TABLES) {
            c->tables[k] = address;
        }
        else {
            c->history = address;
        }
    }
    return 0;
}

static int
read_shifts(PyObject *tuple, ps_cylinder *c)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(tuple);

    if (count > PS_CYLINDER_SHIFTS) {
        PyErr_Format(PyExc_ValueError, "shifts: need at most %d", PS_CYLINDER_SHIFTS);
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        c->shifts[k] = PyFloat_AsDouble(PyTuple_GET_ITEM(tuple, k));
    }
    c->shift_count = (int32_t)count;
    return PyErr_Occurred() != NULL ? -1 : 0;
}

static PyObject *
step_report(ps_status status, const ps_cylinder_report *report)
{
    if (status != PS_OK) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("{s:N,s:i}", "seconds",
                         call_seconds(stages, report->seconds, PS_CYLINDER_STAGES),
                         "threads", (int)report->threads);
}

static PyObject *
make_steps(const ps_cylinder *c, int64_t count, call *in, int64_t *made)
{
    const ps_backend *const backend = ps_backend_get();
    ps_cylinder_report report = {0};
    size_t bytes = 0;
    ps_status status = backend->cylinder_work(c, &in->exec, &bytes);
    int started = call_start(in, status, bytes);

    if (started > 0) {
        status = backend->cylinder_step(c, count, &in->exec, &report);
        started = call_finish(in);
    }
    *made = report.steps;
    return started < 0 ? NULL
                       : Py_BuildValue("(iN)", (int)status, step_report(status, &report));
}

static PyObject *
cylinder_step(PyObject *Py_UNUSED(module), PyObject *args)
{
    int threads, device = 0;
    long long count, ranges[8], sizes[4];
    unsigned long long stream = 0;
    PyObject *fields[4], *scalars_array, *shifts, *addresses, *made_array;
    int64_t *made;
    ps_cylinder c = {0};
    call in;

    if (!PyArg_ParseTuple(
            args, "(iiii)(dddddddddddd)O!(LLLLLLLL)(LLLL)(OOOO)OO!LiO|iK:cylinder_step",
            &c.steady, &c.free, &c.thomas, &c.block, &c.hx, &c.hy, &c.viscosity, &c.dt,
            &c.dt_old, &c.wall[0], &c.wall[1], &c.wall[2], &c.weight, &c.unit_sum,
            &c.psi_tol, &c.unit_circulation, &PyTuple_Type, &shifts, &ranges[0],
            &ranges[1], &ranges[2], &ranges[3], &ranges[4], &ranges[5], &ranges[6],
            &ranges[7], &sizes[0], &sizes[1], &sizes[2], &sizes[3], &fields[0],
            &fields[1], &fields[2], &fields[3], &scalars_array, &PyTuple_Type, &addresses,
            &count, &threads, &made_array, &device, &stream)) {
        return NULL;
    }
    c.rows = (ps_node_range){ranges[0], ranges[1]};
    c.columns = (ps_node_range){ranges[2], ranges[3]};
    c.box_rows = (ps_node_range){ranges[4], ranges[5]};
    c.box_columns = (ps_node_range){ranges[6], ranges[7]};
    c.steps = sizes[0];
    c.surface_nodes = sizes[1];
    c.probes = sizes[2];
    c.force_nodes = sizes[3];
    if (borrow_field(fields[0], "psi", &c, &c.psi) < 0 ||
        borrow_field(fields[1], "psi_old", &c, &c.psi_old) < 0 ||
        borrow_field(fields[2], "omega", &c, &c.omega) < 0 ||
        borrow_field(fields[3], "omega_old", &c, &c.omega_old) < 0) {
        return NULL;
    }
    PyArrayObject *const scalars = operand_block(scalars_array, "scalars", NPY_DOUBLE, 1);

    if (scalars == NULL) {
        return NULL;
    }
    if (PyArray_SIZE(scalars) != 3) {
        PyErr_SetString(PyExc_ValueError, "scalars: need 3 elements");
        return NULL;
    }
    c.scalars = PyArray_DATA(scalars);
    if (read_shifts(shifts, &c) < 0 || read_addresses(addresses, &c) < 0 ||
        operand_made(made_array, &made) < 0 ||
        call_begin(&in, threads, device, stream) < 0) {
        return NULL;
    }
    return make_steps(&c, count, &in, made);
}

PyDoc_STRVAR(
    cylinder_step_doc,
    "cylinder_step($module, switches, numbers, shifts, ranges, sizes, fields, scalars, "
    "addresses, count, threads, made, device=0, stream=0, /)\n--\n\n"
    "Make steps of the flow around a cylinder; return status and report.");

static PyMethodDef methods[] = {
    {"cylinder_step", cylinder_step, METH_VARARGS, cylinder_step_doc},
    {NULL, NULL, 0, NULL},
};

int
cylinder_add(PyObject *module)
{
    if (add_codes(module, "CYLINDER_TABLES", tables, PS_CYLINDER_TABLES) < 0 ||
        add_codes(module, "CYLINDER_COLUMNS", columns, PS_CYLINDER_COLUMNS) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}
