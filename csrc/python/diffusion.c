/* diffusion.c - diffusion_apply() and diffusion_solve(): parse, compute without the GIL;
 * and what ranks that share a solve need of ps_diffusion.h.
 */
#include "diffusion.h"

#include "binding.h"
#include "call.h"
#include "operand.h"
#include "ps_diffusion.h"

/* The entry of a tuple that has one for each axis; null with an exception. */
static PyObject *
entry(PyObject *tuple, const char *name, int axes, int axis)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != axes) {
        PyErr_Format(PyExc_TypeError, "%s: need a tuple of %d", name, axes);
        return NULL;
    }
    return PyTuple_GET_ITEM(tuple, axis);
}

static int
read_counts(PyObject *tuple, const char *name, int axes, int64_t *to)
{
    for (int axis = 0; axis < axes; axis++) {
        PyObject *const one = entry(tuple, name, axes, axis);

        to[axis] = one == NULL ? -1 : PyLong_AsLongLong(one);
        if (PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

/* Borrow an array of a number of values. */
static int
borrow_values(PyObject *object, const char *name, int type, int64_t count, int writes,
              const void **data)
{
    PyArrayObject *const array = operand_block(object, name, type, writes);

    if (array == NULL) {
        return -1;
    }
    if (PyArray_SIZE(array) != count) {
        PyErr_Format(PyExc_ValueError, "%s: need %lld values, got %lld", name,
                     (long long)count, (long long)PyArray_SIZE(array));
        return -1;
    }
    *data = PyArray_DATA(array);
    return 0;
}

static int64_t
nodes_of(const ps_diffusion_level *l)
{
    return l->nodes[0] * l->nodes[1] * l->nodes[2];
}

/* Read nodes, unknown nodes, conductances and row sums: the first 5 items of a tuple of
 * `items`. */
static int
read_operator(PyObject *object, const char *name, Py_ssize_t items, int axes, int type,
              ps_diffusion_level *l)
{
    PyObject *nodes, *first, *end, *faces, *sum;

    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != items) {
        PyErr_Format(PyExc_TypeError, "%s: need a tuple of %zd", name, items);
        return -1;
    }
    nodes = PyTuple_GET_ITEM(object, 0);
    first = PyTuple_GET_ITEM(object, 1);
    end = PyTuple_GET_ITEM(object, 2);
    faces = PyTuple_GET_ITEM(object, 3);
    sum = PyTuple_GET_ITEM(object, 4);
    l->nodes[2] = l->end[2] = 1;
    if (read_counts(nodes, "nodes", axes, l->nodes) < 0 ||
        read_counts(first, "first", axes, l->first) < 0 ||
        read_counts(end, "end", axes, l->end) < 0) {
        return -1;
    }
    for (int axis = 0; axis < axes; axis++) {
        PyObject *const face = entry(faces, "faces", axes, axis);

        if (l->nodes[axis] < 1 || l->nodes[axis] > INT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "nodes: need positive numbers");
            return -1;
        }
        if (face == NULL || borrow_values(face, "faces", type, nodes_of(l), 0,
                                          &l->conductance[axis]) < 0) {
            return -1;
        }
    }
    return borrow_values(sum, "sum", type, nodes_of(l), 0, &l->sum);
}

/* Factors, and weights to the nodes of the next level. */
static int
read_solver(PyObject *object, const ps_diffusion *d, PyObject *factor_type, int type,
            const ps_diffusion_level *next, ps_diffusion_level *l)
{
    int64_t nodes[PS_DIFFUSION_AXES] = {l->nodes[0], l->nodes[1], l->nodes[2]};

    for (int axis = d->axes - 1; axis >= 0; axis--) {
        PyObject *const factor =
            entry(PyTuple_GET_ITEM(object, 5), "factors", d->axes, axis);
        PyObject *const weight =
            entry(PyTuple_GET_ITEM(object, 6), "weights", d->axes, axis);

        if (factor == NULL || weight == NULL) {
            return -1;
        }
        const ps_factor *const f = factor_of(factor, factor_type);
        if (f == NULL) {
            return -1;
        }
        l->line[axis] = *f;
        if (weight == Py_None) {
            continue;
        }
        if (next == NULL) {
            PyErr_SetString(PyExc_ValueError, "weights: the last level has none");
            return -1;
        }
        int64_t count = nodes[axis] - next->nodes[axis];

        for (int a = 0; a < PS_DIFFUSION_AXES; a++) {
            count *= a == axis ? 1 : nodes[a];
        }
        if (borrow_values(weight, "weights", type, count, 0, &l->weight[axis]) < 0) {
            return -1;
        }
        nodes[axis] = next->nodes[axis];
    }
    return 0;
}

static int
read_ends(PyObject *ends, ps_diffusion *d)
{
    for (int axis = 0; axis < d->axes; axis++) {
        PyObject *const one = entry(ends, "ends", d->axes, axis);

        if (one == NULL || !PyTuple_Check(one)) {
            PyErr_SetString(PyExc_TypeError, "ends: need a tuple for each axis");
            return -1;
        }
        if (!PyArg_ParseTuple(one, "iii", &d->periodic[axis], &d->half[axis][0],
                              &d->half[axis][1])) {
            return -1;
        }
    }
    return 0;
}

/* Read x, its ends and the system. */
static int
read_system(PyObject *ends, PyObject *system, PyObject *x, int writes, ps_diffusion *d,
            int *type)
{
    const void *data;

    *type = PyArray_Check(x) ? PyArray_TYPE((PyArrayObject *)x) : NPY_DOUBLE;
    if (*type != NPY_FLOAT && *type != NPY_DOUBLE) {
        PyErr_SetString(PyExc_TypeError, "x: need float32 or float64");
        return -1;
    }
    PyArrayObject *const field = operand_block(x, "x", *type, writes);
    if (field == NULL) {
        return -1;
    }
    d->dtype = *type == NPY_FLOAT ? PS_F32 : PS_F64;
    d->axes = PyArray_NDIM(field);
    if (d->axes != 2 && d->axes != PS_DIFFUSION_AXES) {
        PyErr_SetString(PyExc_ValueError, "x: need 2 or 3 axes");
        return -1;
    }
    if (read_ends(ends, d) < 0 ||
        read_operator(system, "system", 5, d->axes, *type, &d->system) < 0 ||
        borrow_values(x, "x", *type, nodes_of(&d->system), writes, &data) < 0) {
        return -1;
    }
    d->x = PyArray_DATA(field);
    return 0;
}

/* The type of the levels: float32 if the row sums of the first one are, else that of x.
 */
static int
type_of_levels(PyObject *levels, int type)
{
    PyObject *const first = PyTuple_GET_ITEM(levels, 0);
    PyObject *const sum = PyTuple_Check(first) && PyTuple_GET_SIZE(first) > 4
                              ? PyTuple_GET_ITEM(first, 4)
                              : NULL;
    const int is_float = sum != NULL && PyArray_Check(sum) &&
                         PyArray_TYPE((PyArrayObject *)sum) == NPY_FLOAT;

    return is_float ? NPY_FLOAT : type;
}

static int
read_levels(PyObject *module, PyObject *levels, int type, ps_diffusion *d)
{
    const module_state *const state = PyModule_GetState(module);
    const Py_ssize_t count = PyTuple_GET_SIZE(levels);

    if (count < 1 || count > PS_DIFFUSION_LEVELS) {
        PyErr_Format(PyExc_ValueError, "diffusion_solve: levels: need 1 to %d, got %zd",
                     (int)PS_DIFFUSION_LEVELS, count);
        return -1;
    }
    const int cycle = type_of_levels(levels, type);
    d->cycle = cycle == NPY_FLOAT ? PS_F32 : PS_F64;
    d->levels = (int32_t)count;
    for (int k = 0; k < d->levels; k++) {
        if (read_operator(PyTuple_GET_ITEM(levels, k), "levels", 7, d->axes, cycle,
                          &d->level[k]) < 0) {
            return -1;
        }
    }
    for (int k = 0; k < d->levels; k++) {
        if (read_solver(PyTuple_GET_ITEM(levels, k), d, state->factor_type, cycle,
                        k + 1 < d->levels ? &d->level[k + 1] : NULL, &d->level[k]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Read the fields of the basis. */
static int
read_basis(PyObject *basis, int type, ps_diffusion *d)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(basis);

    if (count > PS_DIFFUSION_BASIS) {
        PyErr_Format(PyExc_ValueError,
                     "diffusion_solve: basis: need at most %d fields, got %zd",
                     (int)PS_DIFFUSION_BASIS, count);
        return -1;
    }
    d->fields = (int32_t)count;
    for (int k = 0; k < d->fields; k++) {
        if (borrow_values(PyTuple_GET_ITEM(basis, k), "basis", type, nodes_of(&d->system),
                          0, &d->basis[k]) < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *
diffusion_apply(PyObject *module, PyObject *args)
{
    (void)module;
    int threads, device = 0, type;
    unsigned long long stream = 0;
    PyObject *ends, *system, *x, *out;
    const void *data;
    ps_diffusion d = {0};
    ps_status status = PS_UNSUPPORTED;
    call in;

    if (!PyArg_ParseTuple(args, "O!O!OOi|iK:diffusion_apply", &PyTuple_Type, &ends,
                          &PyTuple_Type, &system, &x, &out, &threads, &device, &stream)) {
        return NULL;
    }
    if (read_system(ends, system, x, 0, &d, &type) < 0 ||
        borrow_values(out, "out", type, nodes_of(&d.system), 1, &data) < 0 ||
        call_begin(&in, threads, device, stream) < 0) {
        return NULL;
    }
    if (ps_backend_get()->diffusion_apply == NULL) {
        return PyLong_FromLong(status);
    }
    call_enter(&in);
    status = ps_backend_get()->diffusion_apply(&d, PyArray_DATA((PyArrayObject *)out),
                                               &in.exec);
    return call_leave(&in) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
report_of(ps_status status, const ps_diffusion_report *report)
{
    if (status != PS_OK) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue(
        "{s:L,s:O,s:i,s:s,s:d,s:d,s:d,s:d}", "iterations", (long long)report->iterations,
        "converged", report->converged ? Py_True : Py_False, "threads",
        (int)report->threads, "kernel", report->kernel ? report->kernel : "", "error",
        report->error, "norm", report->norm, "limit", report->limit, "least",
        report->least);
}

PyObject *
diffusion_solve(PyObject *module, PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int threads, device = 0, type;
    long long most;
    unsigned long long stream = 0;
    PyObject *ends, *system, *levels, *rhs, *x, *scale, *basis;
    ps_diffusion d = {0};
    ps_diffusion_report report = {0};
    ps_status status = PS_UNSUPPORTED;
    size_t bytes = 0;
    call in;

    if (!PyArg_ParseTuple(args, "(ddL)O!O!O!OOOO!i|iK:diffusion_solve", &d.rtol, &d.ratio,
                          &most, &PyTuple_Type, &ends, &PyTuple_Type, &system,
                          &PyTuple_Type, &levels, &rhs, &x, &scale, &PyTuple_Type, &basis,
                          &threads, &device, &stream)) {
        return NULL;
    }
    d.most = most;
    if (read_system(ends, system, x, 1, &d, &type) < 0 ||
        read_levels(module, levels, type, &d) < 0 ||
        borrow_values(rhs, "rhs", type, nodes_of(&d.system), 0, &d.rhs) < 0 ||
        (scale != Py_None &&
         borrow_values(scale, "scale", type, nodes_of(&d.system), 0, &d.scale) < 0) ||
        read_basis(basis, type, &d) < 0 || call_begin(&in, threads, device, stream) < 0) {
        return NULL;
    }
    if (backend->diffusion_solve != NULL) {
        status = backend->diffusion_work(&d, &in.exec, &bytes);
    }
    int started = call_start(&in, status, bytes);

    if (started > 0) {
        status = backend->diffusion_solve(&d, &in.exec, &report);
        started = call_finish(&in);
    }
    return started < 0 ? NULL
                       : Py_BuildValue("(iN)", (int)status, report_of(status, &report));
}

static PyObject *
diffusion_centre(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int device = 0, type;
    unsigned long long stream = 0;
    double mean;
    PyObject *ends, *system, *x;
    ps_diffusion d = {0};
    size_t bytes = 0;
    call in;

    if (!PyArg_ParseTuple(args, "O!O!Od|iK:diffusion_centre", &PyTuple_Type, &ends,
                          &PyTuple_Type, &system, &x, &mean, &device, &stream)) {
        return NULL;
    }
    if (read_system(ends, system, x, 1, &d, &type) < 0 ||
        call_begin(&in, 0, device, stream) < 0) {
        return NULL;
    }
    ps_status status = backend->diffusion_centre_work(&d, &in.exec, &bytes);
    int started = call_start(&in, status, bytes);

    if (started > 0) {
        status = backend->diffusion_centre(&d, mean, &in.exec);
        started = call_finish(&in);
    }
    return started < 0 ? NULL : PyLong_FromLong(status);
}

/* Read the rows of products, row i with i + 2 numbers. */
static int
read_products(PyObject *products, int32_t rows, double g[][PS_DIFFUSION_BASIS + 1])
{
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < i + 2; j++) {
            PyObject *const one =
                entry(PyTuple_GET_ITEM(products, i), "products", i + 2, j);

            g[i][j] = one == NULL ? -1 : PyFloat_AsDouble(one);
            if (PyErr_Occurred()) {
                return -1;
            }
        }
    }
    return 0;
}

static PyObject *
diffusion_combine(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *products;
    int is_float;
    double g[PS_DIFFUSION_BASIS][PS_DIFFUSION_BASIS + 1], y[PS_DIFFUSION_BASIS];
    ps_diffusion d = {0};

    if (!PyArg_ParseTuple(args, "O!p:diffusion_combine", &PyTuple_Type, &products,
                          &is_float)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(products) > PS_DIFFUSION_BASIS) {
        PyErr_Format(PyExc_ValueError,
                     "diffusion_combine: products: need at most %d rows, got %zd",
                     (int)PS_DIFFUSION_BASIS, PyTuple_GET_SIZE(products));
        return NULL;
    }
    d.dtype = is_float ? PS_F32 : PS_F64;
    d.fields = (int32_t)PyTuple_GET_SIZE(products);
    if (read_products(products, d.fields, g) < 0) {
        return NULL;
    }
    ps_diffusion_combine(&d, g, y);

    PyObject *const factors = PyTuple_New(d.fields);

    for (int i = 0; factors != NULL && i < d.fields; i++) {
        PyObject *const one = PyFloat_FromDouble(y[i]);

        if (one == NULL) {
            Py_DECREF(factors);
            return NULL;
        }
        PyTuple_SET_ITEM(factors, i, one);
    }
    return factors;
}

static PyObject *
diffusion_least(PyObject *Py_UNUSED(module), PyObject *args)
{
    ps_diffusion_least least;
    double alpha, beta;

    if (!PyArg_ParseTuple(args, "(dddd)dd:diffusion_least", &least.inverse,
                          &least.product, &least.row, &least.alpha, &alpha, &beta)) {
        return NULL;
    }
    ps_diffusion_least_add(&least, alpha, beta);
    return Py_BuildValue("(dddd)d", least.inverse, least.product, least.row, least.alpha,
                         ps_diffusion_least_of(&least));
}

static int
add_number(PyObject *module, const char *name, double value)
{
    PyObject *const number = PyFloat_FromDouble(value);
    const int status = number == NULL ? -1 : PyModule_AddObjectRef(module, name, number);

    Py_XDECREF(number);
    return status;
}

PyDoc_STRVAR(
    diffusion_centre_doc,
    "diffusion_centre($module, ends, system, x, mean, device=0, stream=0, /)\n"
    "--\n\n"
    "Add a constant to x, so that it has this mean with volumes; return status.");

PyDoc_STRVAR(diffusion_combine_doc,
             "diffusion_combine($module, products, is_float32, /)\n--\n\n"
             "Return the factors of the fields of a basis.");
PyDoc_STRVAR(diffusion_least_doc,
             "diffusion_least($module, state, alpha, beta, /)\n--\n\n"
             "Take an iteration; return the state and the least eigenvalue so far.");

static PyMethodDef of_devices[] = {
    {"diffusion_centre", diffusion_centre, METH_VARARGS, diffusion_centre_doc},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef of_hosts[] = {
    {"diffusion_combine", diffusion_combine, METH_VARARGS, diffusion_combine_doc},
    {"diffusion_least", diffusion_least, METH_VARARGS, diffusion_least_doc},
    {NULL, NULL, 0, NULL},
};

int
diffusion_add(PyObject *module)
{
    const int is_host = ps_backend_get()->memory == PS_HOST;

    if (add_number(module, "DIFFUSION_MARGIN", PS_DIFFUSION_MARGIN) < 0 ||
        add_number(module, "DIFFUSION_KEPT", PS_DIFFUSION_KEPT) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, is_host ? of_hosts : of_devices);
}
