/* spline.c - splines: parse, borrow, compute without the GIL. */
#include "spline.h"

#include "call.h"
#include "codes.h"
#include "memory.h"
#include "operand.h"
#include "plain.h"
#include "ps_spline.h"
#include "tridiag.h"

#define PS_TEXT_(name, text) text,
static const char *const ends[] = {PS_SPLINE_END_LIST(PS_TEXT_)};
static const char *const outsides[] = {PS_SPLINE_OUTSIDE_LIST(PS_TEXT_)};
static const char *const faults[] = {PS_SPLINE_FAULT_LIST(PS_TEXT_)};
#undef PS_TEXT_

/* Borrow an array with the batch and dtype of `like` and this number of rows. */
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

static int
check_coefficients(PyObject *tuple, int count)
{
    if (count < 1 || count > PS_SPLINE_ORDERS || PyTuple_GET_SIZE(tuple) != count) {
        PyErr_Format(PyExc_ValueError, "coefficients: need %d, at most %d, got %zd",
                     count, PS_SPLINE_ORDERS, PyTuple_GET_SIZE(tuple));
        return -1;
    }
    return 0;
}

/* Borrow coefficients, of the strides *stride. */
static int
borrow_coefficients(PyObject *tuple, const operand *like, int64_t rows, int count,
                    int writes, const void **data, ps_stride *stride)
{
    if (check_coefficients(tuple, count) < 0) {
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

/* Borrow polynomials with knots x, which can have length 1 along axes of the batch, and
 * whose order, power and is_sum are set; *like has the batch and the number of knots. */
static int
borrow_polynomials(PyObject *x, PyObject *coefficients, operand *like, ps_polynomials *s)
{
    const int order = s->order, count = order > 0 ? order : 2;
    operand own;

    if (check_coefficients(coefficients, count) < 0 ||
        operand_read(PyTuple_GET_ITEM(coefficients, 0), "coefficients", like) < 0) {
        return -1;
    }
    like->rows += order > 0;
    if (borrow_spread(x, "x", like, like->rows, &own, &s->x) < 0 ||
        borrow_coefficients(coefficients, like, like->rows - (order > 0), count, 0,
                            s->coefficient, &s->stride) < 0) {
        return -1;
    }
    s->dtype = like->dtype;
    s->knots = like->rows;
    s->outer = like->outer;
    s->inner = like->inner;
    return 0;
}

/* Splines whose slopes are computed. The matrices have the batch of the knots. */
typedef struct {
    ps_spline_rows rows, matrix; /* matrix: if some splines share theirs, but not all */
    operand knots, slopes;
} splines;

/* Whether there is a matrix for each spline. */
static int
has_own_matrices(const splines *s)
{
    return s->knots.outer == s->rows.outer && s->knots.inner == s->rows.inner;
}

static int
borrow_splines(PyObject *x, PyObject *y, PyObject *const *given, PyObject *to_knots,
               PyObject *cubic, splines *s)
{
    ps_spline_rows *const rows = &s->rows;
    ps_output *const of_cubic[] = {&rows->rhs, &rows->values};
    operand values, end;

    if (operand_read(y, "y", &values) < 0 ||
        borrow_spread(x, "x", &values, values.rows, &s->knots, &rows->x) < 0) {
        return -1;
    }
    rows->y = operand_input(&values);
    for (int k = 0; k < 2; k++) {
        if (given[k] != Py_None &&
            borrow_spread(given[k], "given", &values, 1, &end, &rows->given[k]) < 0) {
            return -1;
        }
    }
    rows->dtype = values.dtype;
    rows->knots = values.rows;
    rows->outer = values.outer;
    rows->inner = values.inner;
    if (borrow_output(to_knots, "knots", &s->knots, s->knots.rows, &rows->knots_copy) <
        0) {
        return -1;
    }
    if (borrow_outputs(cubic, "slopes and values", &values, values.rows, of_cubic, 2) <
        0) {
        return -1;
    }
    return operand_read(PyTuple_GET_ITEM(cubic, 0), "slopes", &s->slopes);
}

/* Set the matrices to parts of a block of 3 * outer * rows * inner numbers, and where they
 * are computed: with the right-hand sides, unless some splines share theirs. */
static void
place_matrices(splines *s, char *data)
{
    const int64_t rows = s->knots.rows, outer = s->knots.outer, inner = s->knots.inner;
    const int64_t bytes = rows * outer * inner * ps_dtype_size(s->rows.dtype);
    const ps_stride stride = {inner, outer > 1 ? rows * inner : 0, inner > 1};

    s->rows.lower = (ps_output){data, stride};
    s->rows.diag = (ps_output){data + bytes, stride};
    s->rows.upper = (ps_output){data + 2 * bytes, stride};
    s->rows.has_one_matrix = !has_own_matrices(s) && outer == 1 && inner == 1;
    s->matrix = s->rows;
    if (has_own_matrices(s) || s->rows.has_one_matrix) {
        return;
    }
    s->matrix.outer = outer;
    s->matrix.inner = inner;
    s->matrix.x = operand_input(&s->knots);
    s->matrix.y = s->matrix.given[0] = s->matrix.given[1] = (ps_input){0};
    s->matrix.rhs = s->matrix.values = (ps_output){0};
    s->rows.lower = s->rows.diag = s->rows.upper = (ps_output){0};
}

static ps_tridiag
systems_of(const splines *s, int is_periodic)
{
    const ps_spline_rows *const matrix = &s->matrix;

    return (ps_tridiag){.dtype = s->rows.dtype,
                        .flags = is_periodic ? PS_PERIODIC : 0,
                        .rows = s->rows.knots - is_periodic,
                        .outer = s->rows.outer,
                        .inner = s->rows.inner,
                        .lower = {matrix->lower.data, matrix->lower.stride},
                        .diag = {matrix->diag.data, matrix->diag.stride},
                        .upper = {matrix->upper.data, matrix->upper.stride},
                        .rhs = operand_input(&s->slopes),
                        .x = operand_output(&s->slopes)};
}

/* The slope of the last knot of a periodic spline is that of the first one. */
static ps_status
close_periods(const splines *s, const ps_exec *exec)
{
    const operand *const o = &s->slopes;
    const int64_t size = ps_dtype_size(o->dtype);
    const ps_relayout r = {
        .element = (int32_t)size,
        .axes = 2,
        .shape = {o->outer, o->inner},
        .to = (char *)o->data + (o->rows - 1) * o->stride.row * size,
        .to_stride = {o->stride.outer, o->stride.inner},
        .from = o->data,
        .from_stride = {o->stride.outer, o->stride.inner},
    };

    if (ps_backend_get()->memory == PS_DEVICE) {
        return ps_backend_get()->relayout(&r, exec);
    }
    for (int64_t j = 0; j < o->outer; j++) {
        for (int64_t k = 0; k < o->inner; k++) {
            const int64_t at = (j * o->stride.outer + k * o->stride.inner) * size;

            memcpy((char *)r.to + at, (const char *)r.from + at, (size_t)size);
        }
    }
    return PS_OK;
}

/* Compute all at once: 1, 0 if the backend cannot, or -1 with an exception. */
static int
compute_at_once(const splines *s, call *c, ps_status *status)
{
    const ps_backend *const backend = ps_backend_get();
    size_t bytes;

    if (backend->spline_slopes == NULL ||
        backend->spline_slopes_work(&s->rows, &c->exec, &bytes) != PS_OK) {
        return 0;
    }
    if (call_start(c, PS_OK, bytes) < 0) {
        return -1;
    }
    *status = backend->spline_slopes(&s->rows, &c->exec);
    return call_finish(c) < 0 ? -1 : 1;
}

/* Compute the rows, solve, and copy knots and values: 0, or -1 with an exception. */
static int
compute_slopes(splines *s, call *c, ps_status *status)
{
    const ps_backend *const backend = ps_backend_get();
    const ps_options options = {.method = PS_AUTO, .pivot = PS_PIVOT_NEVER};
    const int is_periodic = s->rows.end[0] == PS_SPLINE_PERIODIC;
    const int64_t size = 3 * s->knots.rows * s->knots.outer * s->knots.inner;
    ps_report report;
    block matrices;
    const int done = compute_at_once(s, c, status);

    if (done != 0) {
        return done < 0 ? -1 : 0;
    }
    if (block_allocate((size_t)(size * ps_dtype_size(s->rows.dtype)), FOR_STREAM,
                       &c->exec, &matrices) < 0) {
        return -1;
    }
    place_matrices(s, matrices.data);
    call_enter(c);
    *status = backend->spline_rows(&s->rows, &c->exec);
    if (*status == PS_OK && s->rows.diag.data == NULL) {
        *status = backend->spline_rows(&s->matrix, &c->exec);
    }
    int raised = call_leave(c);

    if (raised == 0 && *status == PS_OK) {
        const ps_tridiag t = systems_of(s, is_periodic);

        raised = tridiag_run(&t, &options, 0, c, status, &report);
    }
    if (raised == 0 && *status == PS_OK && is_periodic) {
        *status = close_periods(s, &c->exec);
    }
    block_free(&matrices);
    return raised;
}

static PyObject *
spline_make(PyObject *Py_UNUSED(module), PyObject *args)
{
    int first, last, parts, threads, device = 0;
    unsigned long long stream = 0;
    PyObject *x, *y, *given[2], *knots, *cubic, *found;
    splines s = {0};
    ps_status status = PS_OK;
    call c;

    if (!PyArg_ParseTuple(args, "(ii)iOO(OO)OO!Oi|iK:spline_make", &first, &last, &parts,
                          &x, &y, &given[0], &given[1], &knots, &PyTuple_Type, &cubic,
                          &found, &threads, &device, &stream) ||
        borrow_splines(x, y, given, knots, cubic, &s) < 0 ||
        operand_info(found, PS_SPLINE_FAULTS, &s.rows.faults) < 0 ||
        call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    s.rows.end[0] = (ps_spline_end)first;
    s.rows.end[1] = (ps_spline_end)last;
    s.rows.parts = parts;
    return compute_slopes(&s, &c, &status) < 0 ? NULL : PyLong_FromLong(status);
}

/* Splines of arrays that are used as they are: knots that all share, and values in C order.
 * 0 for others, without an exception. */
static int
read_plain(PyObject *x, PyObject *y, PyObject *axis, splines *s)
{
    PyArrayObject *const knots = (PyArrayObject *)x, *const values = (PyArrayObject *)y;
    ps_spline_rows *const rows = &s->rows;
    int64_t step;

    if (!PyArray_CheckExact(x) || !PyArray_CheckExact(y) || !PyLong_CheckExact(axis)) {
        return 0;
    }
    const int type = PyArray_TYPE(values), real = plain_real(type);
    const int axes = PyArray_NDIM(values), parts = type == real ? 1 : 2;
    const long given = PyLong_AsLong(axis);

    if (PyErr_Occurred() || given < -axes || given >= axes) {
        PyErr_Clear();
        return 0;
    }
    const int at = (int)(given < 0 ? given + axes : given);
    const npy_intp count = PyArray_DIM(values, at);

    if ((real != NPY_FLOAT && real != NPY_DOUBLE) || PyArray_TYPE(knots) != real ||
        PyArray_NDIM(knots) != 1 || PyArray_DIM(knots, 0) != count || count < 2 ||
        count >= INT32_MAX || PyArray_SIZE(values) == 0 || !PyArray_ISCARRAY_RO(values) ||
        !PyArray_ISBEHAVED_RO(knots) || !operand_stride(knots, 0, &step)) {
        return 0;
    }
    rows->dtype = real == NPY_FLOAT ? PS_F32 : PS_F64;
    rows->knots = count;
    rows->outer = 1;
    rows->inner = parts;
    rows->parts = parts;
    for (int k = 0; k < axes; k++) {
        *(k < at ? &rows->outer : &rows->inner) *= k == at ? 1 : PyArray_DIM(values, k);
    }
    const ps_stride stride = {rows->inner, rows->outer > 1 ? count * rows->inner : 0,
                              rows->inner > 1};

    rows->x = (ps_input){PyArray_DATA(knots), {.row = step}};
    rows->y = (ps_input){PyArray_DATA(values), stride};
    s->knots =
        (operand){"x", rows->dtype, count, 1, 1, PyArray_DATA(knots), {.row = step}};
    s->slopes =
        (operand){"slopes", rows->dtype, count, rows->outer, rows->inner, NULL, stride};
    return 1;
}

/* Values, slopes and knots in one block of memory. */
static void
place_plain(splines *s, char *data)
{
    ps_spline_rows *const rows = &s->rows;
    const int64_t bytes =
        rows->outer * rows->inner * rows->knots * ps_dtype_size(rows->dtype);

    rows->values = (ps_output){data, s->slopes.stride};
    rows->rhs = (ps_output){data + bytes, s->slopes.stride};
    rows->knots_copy = (ps_output){data + 2 * bytes, {.row = 1}};
    s->slopes.data = data + bytes;
}

static PyObject *
spline_create(PyObject *module, PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int first, last, threads, device;
    unsigned long long keeper, stream;
    PyObject *x, *y, *axis, *buffer, *answer;
    void *data = NULL, *faults = NULL;
    splines s = {0};
    ps_status status;
    call c;

    if (!PyArg_ParseTuple(args, "OOO(ii)KiiK:spline_create", &x, &y, &axis, &first, &last,
                          &keeper, &threads, &device, &stream)) {
        return NULL;
    }
    if (!read_plain(x, y, axis, &s)) {
        Py_RETURN_NONE;
    }
    if (call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    answer = answer_of(module, device, stream, &faults);
    if (answer == NULL) { /* none is free */
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    const int64_t count = 2 * s.rows.outer * s.rows.inner * s.rows.knots + s.rows.knots;

    buffer = buffer_of(module, (size_t)(count * ps_dtype_size(s.rows.dtype)), device,
                       keeper, &data);
    if (buffer == NULL) {
        Py_DECREF(answer);
        return NULL;
    }
    place_plain(&s, data);
    s.rows.faults = faults;
    s.rows.end[0] = (ps_spline_end)first;
    s.rows.end[1] = (ps_spline_end)last;
    call_enter(&c);
    status = backend->order((void *)(uintptr_t)keeper, &c.exec);
    int raised = call_leave(&c);

    if (raised == 0 && status == PS_OK) {
        raised = compute_slopes(&s, &c, &status);
    }
    if (raised < 0) {
        Py_DECREF(answer);
        Py_DECREF(buffer);
        return NULL;
    }
    return Py_BuildValue("(iNN)", (int)status, buffer, answer);
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
    operand knots, points, own;
    call c;

    if (!PyArg_ParseTuple(args, "(iip)iiOO!OOi|iK:spline_points", &p.from.order,
                          &p.from.power, &p.from.is_sum, &nu, &outside, &x, &PyTuple_Type,
                          &coefficients, &at, &value, &threads, &device, &stream) ||
        borrow_polynomials(x, coefficients, &knots, &p.from) < 0 ||
        operand_write(value, "value", &points) < 0 ||
        operand_match(&points, &knots, points.rows) < 0 ||
        borrow_spread(at, "at", &knots, points.rows, &own, &p.at) < 0 ||
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

PyDoc_STRVAR(spline_make_doc,
             "spline_make($module, ends, parts, x, y, given, knots, cubic, "
             "faults, threads, device=0, stream=0, /)\n--\n\n"
             "Compute the slopes of splines, and copy their knots and values; return "
             "status. cubic: the arrays of slopes and of values. x, given and knots have "
             "the batch of y, or length 1 along its "
             "axes.");
PyDoc_STRVAR(
    spline_create_doc,
    "spline_create($module, x, y, axis, ends, keeper, threads, device, stream, "
    "/)\n--\n\n"
    "Compute the slopes of splines through arrays in C order, with the memory for "
    "them; return status, a Buffer of the stream `keeper` with values, slopes and "
    "knots, and an Answer that will have the faults; None for other arrays.");
PyDoc_STRVAR(spline_pieces_doc,
             "spline_pieces($module, form, nu, is_absolute, x, coefficients, result, "
             "threads, device=0, stream=0, /)\n--\n\n"
             "Write the coefficients of a derivative; return status.");
PyDoc_STRVAR(spline_points_doc,
             "spline_points($module, form, nu, outside, x, coefficients, at, value, "
             "threads, device=0, stream=0, /)\n--\n\n"
             "Evaluate splines at points; return status.");

static PyMethodDef methods[] = {
    {"spline_make", spline_make, METH_VARARGS, spline_make_doc},
    {"spline_pieces", spline_pieces, METH_VARARGS, spline_pieces_doc},
    {"spline_points", spline_points, METH_VARARGS, spline_points_doc},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef device_methods[] = {
    {"spline_create", spline_create, METH_VARARGS, spline_create_doc},
    {NULL, NULL, 0, NULL},
};

int
spline_add(PyObject *module)
{
    if (ps_backend_get()->memory == PS_DEVICE &&
        PyModule_AddFunctions(module, device_methods) < 0) {
        return -1;
    }
    if (add_codes(module, "SPLINE_ENDS", ends, PS_SPLINE_ENDS) < 0 ||
        add_codes(module, "SPLINE_OUTSIDES", outsides, PS_SPLINE_OUTSIDES) < 0 ||
        add_codes(module, "SPLINE_FAULTS", faults, PS_SPLINE_FAULTS) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}
