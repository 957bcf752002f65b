/* step.c - products and implicit steps: parse, borrow, compute without the GIL. */
#include "step.h"

#include "binding.h"
#include "call.h"
#include "codes.h"
#include "operand.h"
#include "plain.h"

#define PS_TEXT_(name, text) text,
static const char *const kinds[] = {PS_STEP_LIST(PS_TEXT_)};
#undef PS_TEXT_

/* Borrow a mask of booleans with the shape of `like`, or none for None. */
static int
read_mask(PyObject *object, const operand *like, ps_mask *where)
{
    const int64_t shape[] = {like->outer, like->inner, like->rows};
    int64_t *const strides[] = {&where->stride.outer, &where->stride.inner,
                                &where->stride.row};

    *where = (ps_mask){0};
    if (object == Py_None) {
        return 0;
    }
    if (!PyArray_Check(object) || PyArray_TYPE((PyArrayObject *)object) != NPY_BOOL ||
        PyArray_NDIM((PyArrayObject *)object) != 3) {
        PyErr_SetString(PyExc_TypeError,
                        "where: need an ndarray of booleans (outer, inner, rows)");
        return -1;
    }
    PyArrayObject *const array = (PyArrayObject *)object;

    for (int k = 0; k < 3; k++) {
        if (PyArray_DIM(array, k) != shape[k]) {
            PyErr_Format(PyExc_ValueError, "where: need %lld along axis %d, got %lld",
                         (long long)shape[k], k, (long long)PyArray_DIM(array, k));
            return -1;
        }
        operand_stride(array, k, strides[k]);
    }
    where->data = PyArray_DATA(array);
    return 0;
}

static PyObject *
product(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int is_extended, threads, device = 0;
    unsigned flags;
    unsigned long long stream = 0;
    PyObject *lower, *diag, *upper, *x, *b, *out;
    ps_product p = {0};
    ps_tridiag t = {0};
    operand d, to;
    call c;

    if (!PyArg_ParseTuple(args, "IOOOOOOddpi|iK:product", &flags, &lower, &diag, &upper,
                          &x, &b, &out, &p.scale, &p.weight, &is_extended, &threads,
                          &device, &stream) ||
        operand_matrix(flags, lower, diag, upper, &t) < 0 ||
        operand_read(diag, "diag", &d) < 0 || operand_write(out, "out", &to) < 0 ||
        operand_match(&to, &d, d.rows) < 0 ||
        operand_optional(x, "x", &d, d.rows, &p.x) < 0 ||
        operand_optional(b, "b", &d, d.rows, &p.b) < 0) {
        return NULL;
    }
    p.dtype = t.dtype;
    p.flags = t.flags;
    p.rows = t.rows;
    p.outer = t.outer;
    p.inner = t.inner;
    p.is_extended = is_extended;
    p.lower = t.lower;
    p.diag = t.diag;
    p.upper = t.upper;
    p.out = operand_output(&to);
    if (backend->product == NULL) {
        return PyLong_FromLong(PS_UNSUPPORTED);
    }
    if (call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status = backend->product(&p, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

/* product_direct(): A x and b - A x of calls that need no planning, as those of direct.c,
 * for which planning in Python takes 60 us. LEADER: b, or x if X is None. */
enum {
    LOWER,
    DIAG,
    UPPER,
    X,
    LEADER,
    INPUTS,
    AXIS = INPUTS,
    OUT,
    PERIODIC,
    THREADS,
    EXTENDED,
    ARGUMENTS
};

/* Rows from which each entry of a periodic matrix has a place of its own. */
enum { LEAST_PERIODIC = 3 };

/* Read the operands; 0 if they are not plain. */
static int
read_product(ps_product *p, plain *sides, PyObject *const *args, double numbers[4][2])
{
    const PyArrayObject *const leader = plain_sides(sides, args[LEADER], args[AXIS]);
    const int is_residual = args[X] != Py_None;
    ps_input *const inputs[] = {&p->lower, &p->diag, &p->upper, &p->x};
    ps_input *const leading = is_residual ? &p->b : &p->x;
    static const uint32_t shorter[] = {PS_SHORT_LOWER, 0, PS_SHORT_UPPER, 0};
    const int is_periodic = args[PERIODIC] == Py_True;

    if (leader == NULL || !operand_dtype(sides->type, &p->dtype) ||
        !plain_stride(sides, leader, &leading->stride) ||
        (is_periodic && sides->rows < LEAST_PERIODIC)) {
        return 0;
    }
    p->scale = is_residual ? -1 : 1;
    p->weight = is_residual;
    p->flags = is_periodic ? PS_PERIODIC : 0;
    for (int k = LOWER; k <= (is_residual ? X : UPPER); k++) {
        const int least = k != DIAG && k != X && !is_periodic;
        int lacks;

        if (!plain_input(sides, args[k], leader, least, numbers[k], inputs[k], &lacks)) {
            return 0;
        }
        p->flags |= lacks ? shorter[k] : 0;
    }
    leading->data = PyArray_DATA(leader);
    p->rows = sides->rows;
    p->outer = sides->outer;
    p->inner = sides->inner;
    return 1;
}

static PyObject *
product_direct(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    const ps_backend *const backend = ps_backend_get();
    ps_product p = {0};
    double numbers[4][2];
    plain sides = {0};
    int threads;
    call c;

    if (count != ARGUMENTS) {
        PyErr_Format(PyExc_TypeError, "product_direct: need %d arguments, got %zd",
                     (int)ARGUMENTS, count);
        return NULL;
    }
    if (backend->memory != PS_HOST || backend->product == NULL ||
        !plain_threads(args[THREADS], &threads) ||
        !read_product(&p, &sides, args, numbers)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    p.is_extended = args[EXTENDED] == Py_True;
    PyArrayObject *const out = plain_result(&sides, args[OUT], args, INPUTS);

    if (out == NULL || !plain_stride(&sides, out, &p.out.stride) ||
        PyArray_DATA(out) == p.x.data) {
        Py_XDECREF(out);
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NOTIMPLEMENTED;
    }
    p.out.data = PyArray_DATA(out);
    if (call_begin(&c, threads, 0, 0) < 0) {
        Py_DECREF(out);
        return NULL;
    }
    call_enter(&c);
    const ps_status status = backend->product(&p, &c.exec);
    const int raised = call_leave(&c);

    if (raised < 0 || status != PS_OK) {
        Py_DECREF(out);
        return raised < 0 ? NULL : PyLong_FromLong(status);
    }
    return (PyObject *)out;
}

/* Borrow contiguous arrays of one dtype and size for the derivatives of solves, the last two of
 * them for those of steps alone. */
static int
read_products(PyObject *const arrays[7], ps_products *p)
{
    static const char *const names[] = {"g", "x", "lower", "diag", "upper", "of", "u"};
    void *data[7] = {NULL};
    npy_intp size = 0;
    int type = 0;

    for (int k = 0; k < 7 && arrays[k] != NULL; k++) {
        if (k == 0 && PyArray_Check(arrays[0])) {
            type = PyArray_TYPE((PyArrayObject *)arrays[0]);
            size = PyArray_SIZE((PyArrayObject *)arrays[0]);
        }
        PyArrayObject *const array =
            operand_block(arrays[k], names[k], type, k >= 2 && k < 5);

        if (array == NULL) {
            return -1;
        }
        if (PyArray_SIZE(array) != size) {
            PyErr_Format(PyExc_ValueError, "%s: need %zd numbers, got %zd", names[k],
                         size, PyArray_SIZE(array));
            return -1;
        }
        data[k] = PyArray_DATA(array);
    }
    if (!operand_dtype(type, &p->dtype) ||
        (data[6] != NULL && p->dtype != PS_F32 && p->dtype != PS_F64)) {
        PyErr_SetString(PyExc_TypeError, "g: unsupported dtype");
        return -1;
    }
    if (p->rows < 1 || p->inner < 1 || size % p->rows != 0 ||
        size / p->rows % p->inner != 0) {
        PyErr_Format(PyExc_ValueError,
                     "%zd numbers are no systems of %lld rows, %lld apart", size,
                     (long long)p->rows, (long long)p->inner);
        return -1;
    }
    p->outer = size / p->rows / p->inner;
    p->g = data[0];
    p->x = data[1];
    p->lower = data[2];
    p->diag = data[3];
    p->upper = data[4];
    p->of = data[5];
    p->u = data[6];
    return 0;
}

static PyObject *
products(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int threads, device = 0;
    unsigned flags;
    unsigned long long stream = 0;
    long long rows, inner;
    PyObject *arrays[7] = {NULL}, *of_step = NULL;
    ps_products p = {0};
    call c;

    if (!PyArg_ParseTuple(args, "ILLOOOOOi|O!iK:products", &flags, &rows, &inner,
                          &arrays[0], &arrays[1], &arrays[2], &arrays[3], &arrays[4],
                          &threads, &PyTuple_Type, &of_step, &device, &stream) ||
        (of_step != NULL && PyTuple_GET_SIZE(of_step) > 0 &&
         !PyArg_ParseTuple(of_step, "OOddd:products", &arrays[5], &arrays[6], &p.share,
                           &p.theta, &p.scale))) {
        return NULL;
    }
    p.flags = flags;
    p.rows = rows;
    p.inner = inner;
    if (read_products(arrays, &p) < 0 || call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status = backend->products(&p, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

/* Borrow what a step has apart from its matrix, right-hand sides and x. */
static int
read_extras(PyObject *source, PyObject *least, PyObject *where, PyObject *const *ends,
            const operand *like, ps_step *s)
{
    ps_input *const to[] = {&s->flux[0], &s->flux[1], &s->value[0], &s->value[1]};

    for (int k = 0; k < 4; k++) {
        if (operand_optional(ends[k], k < 2 ? "flux" : "value", like, 1, to[k]) < 0) {
            return -1;
        }
    }
    return operand_optional(source, "source", like, like->rows, &s->source) < 0 ||
                   operand_optional(least, "least", like, like->rows, &s->least) < 0
               ? -1
               : read_mask(where, like, &s->where);
}

int
step_run(const ps_step *s, ps_pivot pivot, int count, call *c, ps_status *status,
         ps_report *report)
{
    const ps_backend *const backend = ps_backend_get();
    size_t bytes = 0;

    *status = backend->step_work == NULL ? PS_UNSUPPORTED
                                         : backend->step_work(s, pivot, &c->exec, &bytes);
    const int started = call_start(c, *status, bytes);

    if (started <= 0) {
        return started;
    }
    *status = backend->step_solve(s, pivot, &c->exec, report);
    if (*status == PS_OK && count) {
        *status = call_count_pivoted(c, s->t.outer * s->t.inner, report);
    }
    return call_finish(c);
}

static PyObject *
step_solve(PyObject *Py_UNUSED(module), PyObject *args)
{
    int kind, pivot, threads, device = 0, count = 0;
    unsigned flags;
    unsigned long long stream = 0;
    PyObject *lower, *diag, *upper, *rhs, *x, *info, *source, *least, *where, *ends[4];
    ps_report report = {0};
    ps_status status;
    ps_step s = {0};
    operand d, r, out;
    call c;

    if (!PyArg_ParseTuple(args, "iiIOOOOOOddOOO(OOOO)i|iKi:step_solve", &kind, &pivot,
                          &flags, &lower, &diag, &upper, &rhs, &x, &info, &s.step,
                          &s.gain, &source, &least, &where, &ends[0], &ends[1], &ends[2],
                          &ends[3], &threads, &device, &stream, &count) ||
        operand_matrix(flags, lower, diag, upper, &s.t) < 0 ||
        operand_read(diag, "diag", &d) < 0 || operand_read(rhs, "rhs", &r) < 0 ||
        operand_write(x, "x", &out) < 0 || operand_match(&r, &d, d.rows) < 0 ||
        operand_match(&out, &d, d.rows) < 0 ||
        read_extras(source, least, where, ends, &d, &s) < 0 ||
        operand_info(info, s.t.outer * s.t.inner, &s.t.info) < 0) {
        return NULL;
    }
    s.kind = kind;
    s.t.rhs = operand_input(&r);
    s.t.x = operand_output(&out);
    if (call_begin(&c, threads, device, stream) < 0 ||
        step_run(&s, (ps_pivot)pivot, count, &c, &status, &report) < 0) {
        return NULL;
    }
    return Py_BuildValue("(iN)", (int)status, call_report(status, &report));
}

static PyObject *
masked_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    const ps_backend *const backend = ps_backend_get();
    int device = 0;
    unsigned flags;
    unsigned long long stream = 0;
    PyObject *lower, *diag, *upper, *where, *made[3];
    const char *const names[] = {"lower", "diag", "upper"};
    double outside;
    ps_output to[3];
    ps_step s = {0};
    operand d, out;
    call c;

    if (!PyArg_ParseTuple(args, "IOOOOdOOO|iK:masked_rows", &flags, &lower, &diag, &upper,
                          &where, &outside, &made[0], &made[1], &made[2], &device,
                          &stream) ||
        operand_matrix(flags, lower, diag, upper, &s.t) < 0 ||
        operand_read(diag, "diag", &d) < 0 || read_mask(where, &d, &s.where) < 0) {
        return NULL;
    }
    for (int k = 0; k < 3; k++) {
        if (operand_write(made[k], names[k], &out) < 0 ||
            operand_match(&out, &d, d.rows) < 0) {
            return NULL;
        }
        to[k] = operand_output(&out);
    }
    if (backend->masked_rows == NULL) {
        return PyLong_FromLong(PS_UNSUPPORTED);
    }
    if (call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    s.kind = PS_STEP_MATRIX;
    call_enter(&c);
    const ps_status status = backend->masked_rows(&s, outside, to, &c.exec);

    return call_leave(&c) < 0 ? NULL : PyLong_FromLong(status);
}

static int
run_factor(const ps_factor *f, const ps_factor_step *s, call *c, ps_status *status)
{
    const ps_backend *const backend = ps_backend_get();
    size_t bytes = 0;

    *status = backend->factor_step_work == NULL
                  ? PS_UNSUPPORTED
                  : backend->factor_step_work(f, s, &c->exec, &bytes);
    const int started = call_start(c, *status, bytes);

    if (started <= 0) {
        return started;
    }
    *status = backend->factor_step(f, s, &c->exec);
    return call_finish(c);
}

static PyObject *
factor_step(PyObject *module, PyObject *args)
{
    const module_state *const state = PyModule_GetState(module);
    int trans, outer_step, inner_step, threads, device = 0;
    unsigned long long stream = 0;
    PyObject *made, *rhs, *x, *source, *where;
    ps_factor_step s = {0};
    ps_status status;
    operand r, out;
    call c;

    if (!PyArg_ParseTuple(args, "OiOOiiddOOi|iK:factor_step", &made, &trans, &rhs, &x,
                          &outer_step, &inner_step, &s.step, &s.gain, &source, &where,
                          &threads, &device, &stream)) {
        return NULL;
    }
    const ps_factor *const f = factor_of(made, state->factor_type);

    if (f == NULL || operand_read(rhs, "rhs", &r) < 0 ||
        operand_write(x, "x", &out) < 0 || operand_match(&out, &r, r.rows) < 0 ||
        operand_optional(source, "source", &r, r.rows, &s.source) < 0 ||
        read_mask(where, &r, &s.where) < 0) {
        return NULL;
    }
    if (r.dtype != f->dtype || r.rows != f->rows) {
        PyErr_Format(PyExc_ValueError,
                     "rhs: need the dtype and the %lld rows of the factor, got %lld rows",
                     (long long)f->rows, (long long)r.rows);
        return NULL;
    }
    s.b = (ps_factor_rhs){.trans = (ps_trans)trans,
                          .outer = r.outer,
                          .inner = r.inner,
                          .outer_step = outer_step,
                          .inner_step = inner_step,
                          .rhs = operand_input(&r),
                          .x = operand_output(&out)};
    if (call_begin(&c, threads, device, stream) < 0 ||
        run_factor(f, &s, &c, &status) < 0) {
        return NULL;
    }
    return PyLong_FromLong(status);
}

PyDoc_STRVAR(product_doc,
             "product($module, flags, lower, diag, upper, x, b, out, scale, weight, "
             "extended, threads, device=0, stream=0, /)\n--\n\n"
             "Write scale * A x + weight * b; return status.");
PyDoc_STRVAR(product_direct_doc,
             "product_direct($module, lower, diag, upper, x, leader, axis, out, "
             "periodic, threads, extended, /)\n--\n\n"
             "Return leader - A x, or A leader if x is None; a status that is not OK, or "
             "NotImplemented if the call needs planning.");
PyDoc_STRVAR(
    products_doc,
    "products($module, flags, rows, inner, g, x, lower, diag, upper, threads, "
    "of_step=(), device=0, stream=0, /)\n--\n\n"
    "Write the products of g and neighbours of x, or with of_step=(of, u, share, "
    "theta, scale) those of a step; return status.");
PyDoc_STRVAR(step_solve_doc,
             "step_solve($module, kind, pivot, flags, lower, diag, upper, rhs, x, info, "
             "step, gain, source, least, where, ends, threads, device=0, stream=0, "
             "count=0, /)\n--\n\n"
             "Make an implicit step, or solve; return status and report.");
PyDoc_STRVAR(masked_rows_doc,
             "masked_rows($module, flags, lower, diag, upper, where, outside, below, "
             "middle, above, device=0, stream=0, /)\n--\n\n"
             "Write matrices with rows of the identity outside a mask; return status.");
PyDoc_STRVAR(factor_step_doc,
             "factor_step($module, factor, trans, rhs, x, outer_step, inner_step, step, "
             "gain, source, where, threads, device=0, stream=0, /)\n--\n\n"
             "Make an implicit step with factors; return status.");

static PyMethodDef methods[] = {
    {"product", product, METH_VARARGS, product_doc},
    {"product_direct", (PyCFunction)(void (*)(void))product_direct, METH_FASTCALL,
     product_direct_doc},
    {"products", products, METH_VARARGS, products_doc},
    {"step_solve", step_solve, METH_VARARGS, step_solve_doc},
    {"masked_rows", masked_rows, METH_VARARGS, masked_rows_doc},
    {"factor_step", factor_step, METH_VARARGS, factor_step_doc},
    {NULL, NULL, 0, NULL},
};

int
step_add(PyObject *module)
{
    if (add_codes(module, "STEP_KINDS", kinds, PS_STEP_COUNT) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}
