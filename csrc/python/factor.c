/* factor.c - the type Factor: the factors of a batch of matrices.
 *
 * A Factor does not change after factor_make() has returned it. Any number of threads
 * may therefore solve with it at the same time without a lock, with or without the GIL.
 * Other matrices require another Factor.
 */
#include "binding.h"
#include "call.h"
#include "borrowed.h"
#include "operand.h"
#include "plain.h"

typedef struct {
    PyObject ob_base;
    ps_factor factor;
    /* any stream may use it, also one that is destroyed before this object */
    block store;
    int is_dominant; /* the host knows that a device exchanges no rows; not so of the
                        transposes */
} factor_object;

static void
factor_dealloc(PyObject *self)
{
    PyTypeObject *const type = Py_TYPE(self);

    block_free(&((factor_object *)self)->store);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
factor_nbytes(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(((factor_object *)self)->store.bytes);
}

/* Allocate the store of the object, for the matrices that `factor` describes. */
static int
allocate_store(factor_object *self, const ps_exec *exec, ps_status *status)
{
    const ps_backend *const backend = ps_backend_get();
    size_t bytes = 0;

    *status = backend->factor_store == NULL ? PS_UNSUPPORTED
                                            : ps_factor_check(&self->factor, NULL);
    if (*status == PS_OK) {
        *status = backend->factor_store(&self->factor, exec, &bytes);
    }
    if (*status == PS_OK && block_allocate(bytes, FOR_LONG, exec, &self->store) < 0) {
        return -1;
    }
    self->factor.store = self->store.data;
    self->factor.store_bytes = self->store.bytes;
    return 0;
}

/* Factor the matrices of `t`; if `count` is set, wait for the number of matrices with
 * row exchanges; -1 with an exception. */
static int
make(factor_object *self, const ps_tridiag *t, int count, call *c, ps_status *status,
     ps_report *report)
{
    size_t bytes = 0;

    if (allocate_store(self, &c->exec, status) < 0) {
        return -1;
    }
    if (*status == PS_OK) {
        *status = ps_backend_get()->factor_make_work(&self->factor, &c->exec, &bytes);
    }
    const int started = call_start(c, *status, bytes);

    if (started <= 0) {
        return started;
    }
    *status = ps_backend_get()->factor_make(&self->factor, t, &c->exec, report);
    if (*status == PS_OK && count) {
        *status = call_count_pivoted(c, t->outer * t->inner, report);
    }
    self->is_dominant = ps_backend_get()->memory == PS_DEVICE && report->pivoted == 0 &&
                        self->factor.pivot == PS_PIVOT_AUTO;
    return call_finish(c);
}

PyObject *
factor_make(PyObject *module, PyObject *args)
{
    int pivot, threads, device = 0, count = 0;
    unsigned flags;
    unsigned long long stream = 0;
    PyObject *lower, *diag, *upper, *info;

    if (!PyArg_ParseTuple(args, "iIOOOOi|iKi:factor_make", &pivot, &flags, &lower, &diag,
                          &upper, &info, &threads, &device, &stream, &count)) {
        return NULL;
    }

    ps_tridiag t = {0};
    call c;
    if (operand_matrix(flags, lower, diag, upper, &t) < 0 ||
        operand_info(info, t.outer * t.inner, &t.info) < 0 ||
        call_begin(&c, threads, device, stream) < 0) {
        return NULL;
    }

    const module_state *const state = PyModule_GetState(module);
    PyTypeObject *const type = (PyTypeObject *)state->factor_type;
    factor_object *const self = (factor_object *)type->tp_alloc(type, 0);
    ps_status status = PS_OK;
    ps_report report = {0};
    if (self == NULL) {
        return NULL;
    }
    self->factor = (ps_factor){.dtype = t.dtype,
                               .flags = t.flags,
                               .rows = t.rows,
                               .outer = t.outer,
                               .inner = t.inner,
                               .pivot = (ps_pivot)pivot};
    t.flags &= ~(uint32_t)PS_COLUMNS; /* of the factor, not of the operands */
    if (make(self, &t, count, &c, &status, &report) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (status != PS_OK) {
        Py_DECREF(self);
        return Py_BuildValue("(iOO)", (int)status, Py_None, Py_None);
    }
    return Py_BuildValue("(iNN)", (int)status, call_report(status, &report),
                         (PyObject *)self);
}

const ps_factor *
factor_of(PyObject *object, PyObject *type)
{
    if (!PyObject_TypeCheck(object, (PyTypeObject *)type)) {
        PyErr_Format(PyExc_TypeError, "need a Factor, got %.100s",
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    return &((const factor_object *)object)->factor;
}

/* The factors for a solve: without the search for matrices whose rows are exchanged, if
 * there are none. */
static ps_factor
factor_for(const factor_object *made, ps_trans trans)
{
    ps_factor f = made->factor;

    if (made->is_dominant && trans == PS_TRANS_NONE) {
        f.pivot = PS_PIVOT_NEVER;
    }
    return f;
}

static PyObject *
solve(const factor_object *made, const ps_factor_rhs *b, call *c)
{
    const ps_backend *const backend = ps_backend_get();
    const ps_factor f = factor_for(made, b->trans);
    size_t bytes = 0;
    ps_status status = backend->factor_work(&f, b, &c->exec, &bytes);
    int started = call_start(c, status, bytes);

    if (started > 0) {
        status = backend->factor_solve(&f, b, &c->exec);
        started = call_finish(c);
    }
    return started < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *
factor_solve(PyObject *self, PyObject *args)
{
    const factor_object *const made = (factor_object *)self;
    const ps_factor *const f = &made->factor;
    int trans, outer_step, inner_step, threads;
    unsigned long long stream = 0;
    PyObject *rhs, *x;
    operand r, out;
    call c;

    if (!PyArg_ParseTuple(args, "iOOiii|K:solve", &trans, &rhs, &x, &outer_step,
                          &inner_step, &threads, &stream)) {
        return NULL;
    }
    if (operand_read(rhs, "rhs", &r) < 0 || operand_write(x, "x", &out) < 0 ||
        operand_match(&out, &r, r.rows) < 0) {
        return NULL;
    }
    if (r.dtype != f->dtype || r.rows != f->rows) {
        PyErr_Format(PyExc_ValueError,
                     "rhs: need the dtype and the %lld rows of the factor, got %lld rows",
                     (long long)f->rows, (long long)r.rows);
        return NULL;
    }

    const ps_factor_rhs b = {.trans = (ps_trans)trans,
                             .outer = r.outer,
                             .inner = r.inner,
                             .outer_step = outer_step,
                             .inner_step = inner_step,
                             .rhs = operand_input(&r),
                             .x = operand_output(&out)};
    if (call_begin(&c, threads, made->store.device, stream) < 0) {
        return NULL;
    }
    return solve(made, &b, &c);
}

PyDoc_STRVAR(factor_solve_doc,
             "solve($self, trans, rhs, x, outer_step, inner_step, threads, stream=0, /)\n"
             "--\n\n"
             "Solve for every system of rhs, write x and return the status.");
PyDoc_STRVAR(factor_doc, "Factors of a batch of tridiagonal matrices; immutable.");

/* Whether right-hand sides have the shape of the matrices, perhaps after further axes along
 * which all have the same matrix, or any shape if there is one matrix, with at least as many
 * axes. *matrices describes the axes of the matrices. */
static int
fits(const ps_factor *f, const plain *p, const PyArrayObject *rhs, PyObject *shape,
     plain *matrices)
{
    int same = PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) <= p->axes;

    *matrices = *p;
    if (!same || f->outer * f->inner == 1) {
        return same;
    }
    const int axes = (int)PyTuple_GET_SIZE(shape), lacks = p->axes - axes;

    same = plain_matrices(p, rhs, axes, matrices) && f->outer == matrices->outer &&
           f->inner == matrices->inner;
    for (int k = 0; same && k < axes; k++) {
        same =
            PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k)) == PyArray_DIM(rhs, lacks + k);
    }
    return same;
}

/* Describe the batch of *b, whose strides are those of the arrays. Returns how often the
 * factors are used: twice if real and imaginary parts are a third batch axis, with *b
 * for the real parts, if the arrays have the axes of the matrices only. */
static int
describe(const ps_factor *f, const plain *p, const plain *matrices, int is_divided,
         ps_factor_rhs *b)
{
    const int is_own = f->outer * f->inner > 1;

    b->outer = p->outer;
    b->inner = p->inner;
    b->outer_step = is_own && p->outer > 1;
    b->inner_step = is_own && p->inner > 1;
    if (is_own && matrices->axes < p->axes) {
        b->outer = p->outer * p->inner / matrices->inner;
        b->inner = matrices->inner;
        b->outer_step = 0;
        b->inner_step = 1;
        for (int k = 0; k < 2 && p->axis == p->axes - 1; k++) {
            ps_stride *const s = k ? &b->x.stride : &b->rhs.stride;

            s->outer = b->outer > 1 ? p->rows * b->inner : 0;
        }
        return 1;
    }
    if (!is_divided) {
        return 1;
    }
    if (is_own && p->outer > 1) {
        plain_split(&b->rhs.stride);
        plain_split(&b->x.stride);
        return 2;
    }
    plain_divide(p, &b->rhs.stride);
    plain_divide(p, &b->x.stride);
    b->outer = p->outer > 1 ? p->outer : p->inner;
    b->inner = p->outer > 1 ? 2 * p->inner : 2;
    if (is_own) { /* the axis of the matrices is the inner one */
        for (int k = 0; k < 2; k++) {
            ps_stride *const s = k ? &b->x.stride : &b->rhs.stride;

            *s = (ps_stride){.row = s->row, .outer = s->inner, .inner = s->outer};
        }
        b->outer = 2;
        b->inner = p->inner;
    }
    return 1;
}

/* Solve for the arguments rhs, axis, out, trans, shape and threads of direct(). */
static PyObject *
solve_arguments(PyObject *self, PyObject *const *args, unsigned long long stream)
{
    const factor_object *const made = (factor_object *)self;
    const ps_factor *const f = &made->factor;
    plain p = {.on_device = ps_backend_get()->memory == PS_DEVICE}, matrices;
    ps_factor_rhs b = {0};
    ps_dtype dtype = f->dtype, part = f->dtype;
    call c;

    const long trans = PyLong_AsLong(args[3]), threads = PyLong_AsLong(args[5]);

    if (PyErr_Occurred()) {
        return NULL;
    }
    PyArrayObject *const rhs = plain_sides(&p, args[0], args[1]);

    if (rhs == NULL || p.rows != f->rows || !fits(f, &p, rhs, args[4], &matrices) ||
        !operand_dtype(p.type, &dtype) || !operand_dtype(plain_real(p.type), &part) ||
        (dtype != f->dtype && (part != f->dtype || matrices.axes < p.axes))) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    PyArrayObject *const x = plain_result(&p, args[2], args, 1);

    b.trans = (ps_trans)trans;
    if (x == NULL || !plain_stride(&p, rhs, &b.rhs.stride) ||
        !plain_stride(&p, x, &b.x.stride)) {
        Py_XDECREF((PyObject *)x);
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NOTIMPLEMENTED;
    }
    const int passes = describe(f, &p, &matrices, dtype != f->dtype, &b);

    if (passes == 2 && !plain_is_small(rhs)) {
        Py_DECREF((PyObject *)x);
        Py_RETURN_NOTIMPLEMENTED;
    }
    b.rhs.data = PyArray_DATA(rhs);
    b.x.data = PyArray_DATA(x);
    for (int k = 0; k < passes; k++) {
        PyObject *const answer =
            call_begin(&c, (int)threads, made->store.device, stream) < 0
                ? NULL
                : solve(made, &b, &c);

        if (answer == NULL || PyLong_AsLong(answer) != PS_OK) {
            Py_DECREF((PyObject *)x);
            return answer;
        }
        Py_DECREF(answer);
        b.rhs.data = (const char *)b.rhs.data + PyArray_ITEMSIZE(x) / 2;
        b.x.data = (char *)b.x.data + PyArray_ITEMSIZE(x) / 2;
    }
    return (PyObject *)x;
}

/* direct(rhs, axis, out, trans, shape, threads, stream=0): solve, if rhs and out are
 * plain, see plain.h; otherwise NotImplemented. */
static PyObject *
factor_direct(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 6 && count != 7) {
        return PyErr_Format(PyExc_TypeError, "direct: need 6 or 7 arguments, got %zd",
                            count);
    }
    const unsigned long long stream = count == 7 ? PyLong_AsUnsignedLongLong(args[6]) : 0;

    return PyErr_Occurred() ? NULL : solve_arguments(self, args, stream);
}

/* borrowed(rhs, axis, out, trans, shape, threads, library): the same for arrays of a
 * library, see borrowed.h. */
static PyObject *
factor_borrowed(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *answer = NULL;
    borrowed l;

    if (count != 7) {
        return PyErr_Format(PyExc_TypeError, "borrowed: need 7 arguments, got %zd",
                            count);
    }
    const int taken = borrowed_begin(&l, args, 1, args[2],
                                     ((factor_object *)self)->store.device, args[6]);

    if (taken > 0) {
        PyObject *const given[] = {l.arrays[0], args[1], l.arrays[1],
                                   args[3],     args[4], args[5]};

        answer = borrowed_answer(&l, solve_arguments(self, given, l.stream));
    }
    else if (taken == 0) {
        answer = Py_NewRef(Py_NotImplemented);
    }
    borrowed_end(&l);
    return answer;
}

PyDoc_STRVAR(factor_direct_doc,
             "direct($self, rhs, axis, out, trans, shape, threads, stream=0, /)\n"
             "--\n\n"
             "Solve for rhs and out that need no planning; return x, a status or "
             "NotImplemented.");

PyDoc_STRVAR(
    factor_borrowed_doc,
    "borrowed($self, rhs, axis, out, trans, shape, threads, library, /)\n"
    "--\n\n"
    "Solve for arrays of a library that need no planning; return as direct does.");

static PyMethodDef factor_methods[] = {
    {"solve", factor_solve, METH_VARARGS, factor_solve_doc},
    {"direct", (PyCFunction)(void (*)(void))factor_direct, METH_FASTCALL,
     factor_direct_doc},
    {"borrowed", (PyCFunction)(void (*)(void))factor_borrowed, METH_FASTCALL,
     factor_borrowed_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef factor_getset[] = {
    {"nbytes", factor_nbytes, NULL, "Size of the factors in bytes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot factor_slots[] = {
    {Py_tp_doc, (void *)factor_doc},
    {Py_tp_dealloc, (void *)factor_dealloc},
    {Py_tp_methods, factor_methods},
    {Py_tp_getset, factor_getset},
    {0, NULL},
};

static PyType_Spec factor_spec = {
    .name = PS_QUALIFIED("Factor"),
    .basicsize = sizeof(factor_object),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = factor_slots,
};

PyObject *
factor_type_new(PyObject *module)
{
    return PyType_FromModuleAndSpec(module, &factor_spec, NULL);
}
