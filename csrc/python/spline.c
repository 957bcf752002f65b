/* spline.c - splines: parse, borrow, compute without the GIL. */
#include "spline.h"

#include "call.h"
#include "codes.h"
#include "operand.h"
#include "ps_spline.h"

#define PS_TEXT_(name, text) text,
static const char *const ends[] = {PS_SPLINE_END_LIST(PS_TEXT_)};
static const char *const outsides[] = {PS_SPLINE_OUTSIDE_LIST(PS_TEXT_)};
static const char *const faults[] = {PS_SPLINE_FAULT_LIST(PS_TEXT_)};
#undef PS_TEXT_

/* Borrow an array with the batch and dtype of `like` and this number of rows. */
static int
borrow_input(PyObject *array, const char *name, const operand *like, int64_t rows,
             ps_input *in)
{
    operand op;

    if (operand_read(array, name, &op) < 0 || operand_match(&op, like, rows) < 0) {
        return -1;
    }
    *in = operand_input(&op);
    return 0;
}

static int
borrow_output(PyObject *array, const char *name, const operand *like, int64_t rows,
              ps_output *out)
{
    operand op;

    if (operand_write(array, name, &op) < 0 || operand_match(&op, like, rows) < 0) {
        return -1;
    }
    *out = operand_output(&op);
    return 0;
}

/* Borrow the arrays of a tuple. */
static int
borrow_outputs(PyObject *tuple, const char *name, const operand *like, int64_t rows,
               ps_output *const *out, int count)
{
    if (PyTuple_GET_SIZE(tuple) != count) {
        PyErr_Format(PyExc_TypeError, "%s: need a tuple of %d arrays", name, count);
        return -1;
    }
    for (int q = 0; q < count; q++) {
        if (borrow_output(PyTuple_GET_ITEM(tuple, q), name, like, rows, out[q]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Borrow coefficients, of the strides *stride. */
static int
borrow_coefficients(PyObject *tuple, const operand *like, int64_t rows, int count,
                    int writes, const void **data, ps_stride *stride)
{
    if (count > PS_SPLINE_ORDERS || PyTuple_GET_SIZE(tuple) != count) {
        PyErr_Format(PyExc_ValueError, "coefficients: need %d, at most %d, got %zd",
                     count, PS_SPLINE_ORDERS, PyTuple_GET_SIZE(tuple));
        return -1;
    }
    for (int q = 0; q < count; q++) {
        PyObject *const array = PyTuple_GET_ITEM(tuple, q);
        operand op;

        if ((writes ? operand_write(array, "coefficients", &op)
                    : operand_read(array, "coefficients", &op)) < 0 ||
            operand_match(&op, like, rows) < 0) {
            return -1;
        }
        if (q > 0 && (op.stride.row != stride->row || op.stride.outer != stride->outer ||
                      op.stride.inner != stride->inner)) {
            PyErr_SetString(PyExc_ValueError, "coefficients: the strides differ");
            return -1;
        }
        data[q] = op.data;
        *stride = op.stride;
    }
    return 0;
}

/* Borrow polynomials with knots x, whose order, power and is_sum are set. */
static int
borrow_polynomials(PyObject *x, PyObject *coefficients, operand *knots, ps_polynomials *s)
{
    const int order = s->order;

    if (operand_read(x, "x", knots) < 0 ||
        borrow_coefficients(coefficients, knots, knots->rows - (order > 0),
                            order > 0 ? order : 2, 0, s->coefficient, &s->stride) < 0) {
        return -1;
    }
    s->dtype = knots->dtype;
    s->knots = knots->rows;
    s->outer = knots->outer;
    s->inner = knots->inner;
    s->x = operand_input(knots);
    return 0;
}

/* Read lines of `rows` rows whose batch broadcasts to that of `like`; *own is set to their
 * own batch. */
static int
borrow_spread(PyObject *array, const char *name, const operand *like, int64_t rows,
              operand *own, ps_input *in)
{
    if (operand_read(array, name, own) < 0) {
        return -1;
    }
    operand op = *own;

    op.outer = op.outer == 1 ? like->outer : op.outer;
    op.inner = op.inner == 1 ? like->inner : op.inner;
    *in = operand_input(&op);
    return operand_match(&op, like, rows);
}

/* `sides` are the systems without their matrices, which are those of `matrix`. */
static int
borrow_rows(PyObject *x, PyObject *y, PyObject *const *given, PyObject *to_matrix,
            PyObject *to_sides, ps_spline_rows *sides, ps_spline_rows *matrix)
{
    ps_output *const of_matrix[] = {&matrix->lower, &matrix->diag, &matrix->upper};
    ps_output *const of_sides[] = {&sides->rhs, &sides->values};
    operand values, knots, end;

    if (operand_read(y, "y", &values) < 0 ||
        borrow_spread(x, "x", &values, values.rows, &knots, &sides->x) < 0) {
        return -1;
    }
    sides->y = operand_input(&values);
    for (int k = 0; k < 2; k++) {
        if (given[k] != Py_None &&
            borrow_spread(given[k], "given", &values, 1, &end, &sides->given[k]) < 0) {
            return -1;
        }
    }
    matrix->x = operand_input(&knots);
    sides->dtype = matrix->dtype = values.dtype;
    sides->knots = matrix->knots = values.rows;
    sides->outer = values.outer;
    sides->inner = values.inner;
    matrix->outer = knots.outer;
    matrix->inner = knots.inner;
    if (borrow_outputs(to_matrix, "matrix", &knots, knots.rows, of_matrix, 3) < 0) {
        return -1;
    }
    return borrow_outputs(to_sides, "sides", &values, values.rows, of_sides, 2);
}

static PyObject *
spline_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int first, last, parts, threads, device = 0;
    unsigned long long stream = 0;
    PyObject *x, *y, *given[2], *to_matrix, *to_sides, *found;
    ps_spline_rows sides = {0}, matrix = {0};
    call c;

    if (!PyArg_ParseTuple(args, "(ii)iOO(OO)O!O!Oi|iK:spline_rows", &first, &last, &parts,
                          &x, &y, &given[0], &given[1], &PyTuple_Type, &to_matrix,
                          &PyTuple_Type, &to_sides, &found, &threads, &device, &stream) ||
        borrow_rows(x, y, given, to_matrix, to_sides, &sides, &matrix) < 0 ||
        operand_info(found, PS_SPLINE_FAULTS, &sides.faults) < 0 ||
        call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    sides.end[0] = matrix.end[0] = (ps_spline_end)first;
    sides.end[1] = matrix.end[1] = (ps_spline_end)last;
    sides.parts = matrix.parts = parts;
    matrix.faults = sides.faults;
    const int is_own = matrix.outer == sides.outer && matrix.inner == sides.inner;

    if (is_own) { /* a matrix for each spline */
        sides.lower = matrix.lower;
        sides.diag = matrix.diag;
        sides.upper = matrix.upper;
    }
    call_enter(&c);
    ps_status status = backend->spline_rows(&sides, &c.exec);

    if (status == PS_OK && !is_own) {
        status = backend->spline_rows(&matrix, &c.exec);
    }
    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
spline_pieces(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int nu, is_absolute, threads, device = 0;
    unsigned long long stream = 0;
    PyObject *x, *coefficients, *result;
    const void *to[PS_SPLINE_ORDERS] = {NULL};
    ps_spline_pieces p = {0};
    operand knots;
    call c;

    if (!PyArg_ParseTuple(args, "(iip)ipOO!O!i|iK:spline_pieces", &p.from.order,
                          &p.from.power, &p.from.is_sum, &nu, &is_absolute, &x,
                          &PyTuple_Type, &coefficients, &PyTuple_Type, &result, &threads,
                          &device, &stream)) {
        return NULL;
    }
    if (nu < -1) {
        PyErr_Format(PyExc_ValueError, "nu: need at least -1, got %d", nu);
        return NULL;
    }
    if (borrow_polynomials(x, coefficients, &knots, &p.from) < 0 ||
        borrow_coefficients(result, &knots, knots.rows - 1,
                            ps_spline_order(p.from.order, nu), 1, to, &p.stride) < 0 ||
        call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    for (int q = 0; q < PS_SPLINE_ORDERS; q++) {
        p.coefficient[q] = (void *)(uintptr_t)to[q];
    }
    p.nu = nu;
    p.is_absolute = is_absolute;
    call_enter(&c);
    const ps_status status = backend->spline_pieces(&p, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
spline_points(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int nu, outside, threads, device = 0;
    unsigned long long stream = 0;
    PyObject *x, *coefficients, *at, *value;
    ps_spline_points p = {0};
    operand knots, points;
    call c;

    if (!PyArg_ParseTuple(args, "(iip)iiOO!OOi|iK:spline_points", &p.from.order,
                          &p.from.power, &p.from.is_sum, &nu, &outside, &x, &PyTuple_Type,
                          &coefficients, &at, &value, &threads, &device, &stream) ||
        borrow_polynomials(x, coefficients, &knots, &p.from) < 0 ||
        operand_write(value, "value", &points) < 0 ||
        operand_match(&points, &knots, points.rows) < 0 ||
        borrow_input(at, "at", &knots, points.rows, &p.at) < 0 ||
        call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    p.nu = nu;
    p.outside = (ps_spline_outside)outside;
    p.points = points.rows;
    p.value = operand_output(&points);
    call_enter(&c);
    const ps_status status = backend->spline_points(&p, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

PyDoc_STRVAR(spline_rows_doc,
             "spline_rows($module, ends, parts, x, y, given, matrix, sides, faults, "
             "threads, device=0, stream=0, /)\n--\n\n"
             "Write the systems for the slopes of splines; return status. x, given and "
             "matrix have the batch of y, or length 1 along its axes.");
PyDoc_STRVAR(spline_pieces_doc,
             "spline_pieces($module, form, nu, is_absolute, x, coefficients, result, "
             "threads, device=0, stream=0, /)\n--\n\n"
             "Write the coefficients of a derivative; return status.");
PyDoc_STRVAR(spline_points_doc,
             "spline_points($module, form, nu, outside, x, coefficients, at, value, "
             "threads, device=0, stream=0, /)\n--\n\n"
             "Evaluate splines at points; return status.");

static PyMethodDef methods[] = {
    {"spline_rows", spline_rows, METH_VARARGS, spline_rows_doc},
    {"spline_pieces", spline_pieces, METH_VARARGS, spline_pieces_doc},
    {"spline_points", spline_points, METH_VARARGS, spline_points_doc},
    {NULL, NULL, 0, NULL},
};

int
spline_add(PyObject *module)
{
    if (add_codes(module, "SPLINE_ENDS", ends, PS_SPLINE_ENDS) < 0 ||
        add_codes(module, "SPLINE_OUTSIDES", outsides, PS_SPLINE_OUTSIDES) < 0 ||
        add_codes(module, "SPLINE_FAULTS", faults, PS_SPLINE_FAULTS) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}
