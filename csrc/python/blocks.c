/* blocks.c - block tridiagonal systems and systems of five diagonals: parse, borrow,
 * compute without the GIL.
 *
 * Operands are arrays of shape (outer, inner, rows, side, side), right-hand sides of shape
 * (outer, inner, rows, side); diagonals, and their right-hand sides, of shape (outer, inner,
 * rows). An off-diagonal without the entries that do not count has so many rows less.
 */
#include "blocks.h"

#include "borrowed.h"
#include "call.h"
#include "codes.h"
#include "operand.h"
#include "plain.h"
#include "ps_numbers.h"

#define PS_TEXT_(name, text) text,
static const char *const tasks[] = {PS_BLOCKS_LIST(PS_TEXT_)};
#undef PS_TEXT_

enum { OUTER, INNER, ROWS, DOWN, ACROSS, MOST_AXES };

/* Borrow an array of the batch and dtype of *b, of `rows` rows and of blocks of `axes` - 3
 * axes, or none for None. */
static int
read_block(PyObject *object, const char *name, const ps_blocks *b, int64_t rows, int axes,
           int writes, ps_block_diagonal *to)
{
    const int64_t side = b->side == 0 ? 2 : b->side;
    const int64_t shape[MOST_AXES] = {b->outer, b->inner, rows, side, side};
    int64_t *const strides[MOST_AXES] = {&to->stride.outer, &to->stride.inner,
                                         &to->stride.row, &to->down, &to->across};
    ps_dtype dtype;

    *to = (ps_block_diagonal){.data = NULL};
    if (object == Py_None) {
        return 0;
    }
    if (!PyArray_Check(object) || PyArray_NDIM((PyArrayObject *)object) != axes) {
        PyErr_Format(PyExc_TypeError, "%s: need an ndarray of %d axes", name, axes);
        return -1;
    }
    PyArrayObject *const array = (PyArrayObject *)object;

    if (!operand_dtype(PyArray_TYPE(array), &dtype) || dtype != b->dtype ||
        !PyArray_ISBEHAVED_RO(array) || (writes && !PyArray_ISWRITEABLE(array))) {
        PyErr_Format(PyExc_TypeError,
                     "%s: need aligned%s values of the dtype of the call", name,
                     writes ? " and writeable" : "");
        return -1;
    }
    for (int k = 0; k < axes; k++) {
        if (PyArray_DIM(array, k) != shape[k] || !operand_stride(array, k, strides[k])) {
            PyErr_Format(PyExc_ValueError,
                         "%s: need %lld along axis %d and strides of whole values, got "
                         "%lld",
                         name, (long long)shape[k], k, (long long)PyArray_DIM(array, k));
            return -1;
        }
    }
    to->data = PyArray_DATA(array);
    return 0;
}

/* The same for an off-diagonal of the matrix that may lack `least` rows: the first ones if
 * `is_lower`. */
static int
read_matrix(PyObject *object, const char *name, const ps_blocks *b, int least,
            int is_lower, int axes, ps_block_diagonal *to)
{
    const int has_rows =
        PyArray_Check(object) && PyArray_NDIM((PyArrayObject *)object) == axes;
    const int64_t found = has_rows ? PyArray_DIM((PyArrayObject *)object, ROWS) : b->rows;
    const int lacks = least > 0 && found == b->rows - least;

    if (read_block(object, name, b, lacks ? found : b->rows, axes, 0, to) < 0) {
        return -1;
    }
    if (lacks && is_lower) {
        to->data = (void *)((uintptr_t)to->data - (uintptr_t)(least * to->stride.row *
                                                              ps_dtype_size(b->dtype)));
    }
    return 0;
}

/* Borrow the matrix: a tuple of three blocks, or of five diagonals for side 0, or None. */
static int
borrow_matrix(PyObject *matrix, ps_blocks *b)
{
    const int count = b->side == 0 ? 5 : 3;
    ps_block_diagonal *const diagonals[] = {&b->lower, &b->diag, &b->upper};

    if (matrix == Py_None) {
        return 0;
    }
    if (!PyTuple_Check(matrix) || PyTuple_GET_SIZE(matrix) != count) {
        PyErr_Format(PyExc_TypeError, "matrix: need a tuple of %d arrays", count);
        return -1;
    }
    for (int k = 0; k < count; k++) {
        const int d = k - count / 2;
        ps_block_diagonal found;

        if (read_matrix(PyTuple_GET_ITEM(matrix, k), "matrix", b, d < 0 ? -d : d, d < 0,
                        b->side == 0 ? 3 : MOST_AXES, &found) < 0) {
            return -1;
        }
        if (b->side == 0) {
            b->bands[k] = (ps_input){found.data, found.stride};
        }
        else {
            *diagonals[k] = found;
        }
    }
    return 0;
}

static int
borrow_inverse(PyObject *inverse, ps_blocks *b)
{
    if (inverse == Py_None) {
        return 0;
    }
    if (!PyTuple_Check(inverse) || PyTuple_GET_SIZE(inverse) != 3) {
        PyErr_SetString(PyExc_TypeError, "inverse: need a tuple of 3 arrays");
        return -1;
    }
    for (int k = 0; k < 3; k++) {
        if (read_block(PyTuple_GET_ITEM(inverse, k), "inverse", b,
                       b->side == 0 ? (b->rows + 1) / 2 : b->rows, MOST_AXES, 1,
                       &b->inverse[k]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Borrow the two arrays of logarithms and signs. */
static int
borrow_logdet(PyObject *pair, ps_blocks *b)
{
    if (pair == Py_None) {
        return 0;
    }
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "logdet: need a tuple of 2 arrays");
        return -1;
    }
    for (int k = 0; k < 2; k++) {
        PyArrayObject *const array =
            operand_block(PyTuple_GET_ITEM(pair, k), "logdet", NPY_DOUBLE, 1);

        if (array == NULL) {
            return -1;
        }
        if (PyArray_SIZE(array) != b->outer * b->inner) {
            PyErr_Format(PyExc_ValueError, "logdet: need %lld numbers, got %zd",
                         (long long)(b->outer * b->inner), PyArray_SIZE(array));
            return -1;
        }
        *(k == 0 ? &b->logdet : &b->sign) = PyArray_DATA(array);
    }
    return 0;
}

/* Borrow the weights of a penalty, of the rows, and its scales, of one row. */
static int
borrow_penalty(PyObject *weight, PyObject *scale, ps_blocks *b)
{
    ps_block_diagonal weights, scales;

    if (weight != Py_None && ps_backend_get()->memory != PS_HOST) {
        PyErr_SetString(PyExc_ValueError, "weight: penalties are of the host only");
        return -1;
    }
    if (read_block(weight, "weight", b, b->rows, 3, 0, &weights) < 0 ||
        read_block(scale, "scale", b, 1, 3, 0, &scales) < 0) {
        return -1;
    }
    b->weight = (ps_input){weights.data, weights.stride};
    b->scale = (ps_input){scales.data, scales.stride};
    return 0;
}

static int
run(const ps_blocks *b, call *c, ps_status *status, ps_report *report)
{
    const ps_number_entries *const entries = ps_number_entries_get();
    size_t bytes = 0;

    *status = entries->blocks_work == NULL ? PS_UNSUPPORTED
                                           : entries->blocks_work(b, &c->exec, &bytes);
    const int started = call_start(c, *status, bytes);

    if (started <= 0) {
        return started;
    }
    *status = entries->blocks_run(b, &c->exec, report);
    return call_finish(c);
}

/* Read codes and sizes of a call; 0 with an exception if they are not legal. */
static int
is_legal(const ps_blocks *b)
{
    if ((unsigned)b->task < PS_BLOCKS_TASKS && b->side >= 0 && b->side <= PS_MOST_SIDE &&
        ps_is_real(b->dtype) && b->rows >= 1 && b->outer >= 0 && b->inner >= 0) {
        return 1;
    }
    PyErr_SetString(PyExc_ValueError, "blocks: a code or a size is out of range");
    return 0;
}

static PyObject *
blocks_store(PyObject *Py_UNUSED(module), PyObject *args)
{
    int dtype, pivot, side;
    long long rows, inner;
    size_t bytes = 0;

    if (!PyArg_ParseTuple(args, "iiiLL:blocks_store", &dtype, &pivot, &side, &rows,
                          &inner)) {
        return NULL;
    }
    const ps_number_entries *const entries = ps_number_entries_get();
    const ps_exec exec = {0};
    const ps_blocks b = {.dtype = (ps_dtype)dtype,
                         .pivot = (ps_pivot)pivot,
                         .side = side,
                         .rows = rows,
                         .outer = 1,
                         .inner = inner};

    if (!is_legal(&b)) {
        return NULL;
    }
    const ps_status status = entries->blocks_store == NULL
                                 ? PS_UNSUPPORTED
                                 : entries->blocks_store(&b, &exec, &bytes);
    if (status != PS_OK) {
        PyErr_SetString(PyExc_RuntimeError, ps_status_text(status));
        return NULL;
    }
    return PyLong_FromSize_t(bytes);
}

static PyObject *
blocks_run(PyObject *Py_UNUSED(module), PyObject *args)
{
    int task, dtype, pivot, trans, side, definite, threads, inner_step, device = 0;
    unsigned long long stream = 0;
    long long rows, outer, inner, matrices;
    PyObject *matrix, *rhs, *x, *info, *store, *inverse, *logdet;
    PyObject *weight = Py_None, *scale = Py_None;
    ps_report report = {0};
    ps_blocks b = {0};
    ps_status status;
    call c;

    if (!PyArg_ParseTuple(args, "iiiiii(LLL)OOOOO(Li)OOi|iKOO:blocks_run", &task, &dtype,
                          &pivot, &trans, &side, &definite, &rows, &outer, &inner,
                          &matrix, &rhs, &x, &info, &store, &matrices, &inner_step,
                          &inverse, &logdet, &threads, &device, &stream, &weight,
                          &scale)) {
        return NULL;
    }
    b.task = (ps_blocks_task)task;
    b.dtype = (ps_dtype)dtype;
    b.pivot = (ps_pivot)pivot;
    b.trans = (ps_trans)trans;
    b.side = side;
    b.definite = definite;
    b.rows = rows;
    b.outer = outer;
    b.inner = inner;
    b.factor_outer = 1;
    b.factor_inner = matrices;
    b.inner_step = inner_step;
    const int axes = side == 0 ? 3 : 4;

    if (!is_legal(&b) || borrow_matrix(matrix, &b) < 0 ||
        read_block(rhs, "rhs", &b, rows, axes, 0, &b.rhs) < 0 ||
        read_block(x, "x", &b, rows, axes, 1, &b.x) < 0 ||
        operand_info(info, outer * inner, &b.info) < 0 ||
        borrow_inverse(inverse, &b) < 0 || borrow_logdet(logdet, &b) < 0 ||
        borrow_penalty(weight, scale, &b) < 0) {
        return NULL;
    }
    if (store != Py_None) {
        PyArrayObject *const array =
            operand_block(store, "store", NPY_UINT8, task == PS_BLOCKS_FACTOR);

        if (array == NULL) {
            return NULL;
        }
        b.store = PyArray_DATA(array);
        b.store_bytes = (size_t)PyArray_SIZE(array);
    }
    if (call_begin(&c, threads, device, stream) < 0 ||
        run(&b, &c, &status, &report) < 0) {
        return NULL;
    }
    return Py_BuildValue("(iN)", (int)status, call_report(status, &report));
}

/* bands_direct(): solves with five diagonals that need no planning, as those of direct.c;
 * planning in Python takes 250 us. blocks_borrowed() is that of arrays on a device. */
enum { BANDS = 5, RHS = BANDS, INPUTS, AXIS = INPUTS, OUT, PIVOT, DEFINITE, COUNT };
enum { ARGUMENTS = COUNT + 1 };

/* Systems whose info needs no allocation. */
enum { FEW_SYSTEMS = 256 };

/* Read the operands, where the lower diagonals of symmetric matrices can be None; 0 if the
 * call is not a plain case. */
static int
read_bands(ps_blocks *b, plain *p, PyObject *const *args, double numbers[BANDS][2])
{
    const PyArrayObject *const rhs = plain_sides(p, args[RHS], args[AXIS]);

    if (rhs == NULL || !operand_dtype(p->type, &b->dtype) || !ps_is_real(b->dtype) ||
        !plain_stride(p, rhs, &b->rhs.stride) || p->rows > INT32_MAX / PS_MOST_SIDE - 1) {
        return 0;
    }
    const int64_t size = ps_dtype_size(b->dtype);

    b->rhs.data = PyArray_DATA(rhs);
    for (int k = BANDS - 1; k >= 0; k--) {
        const int least = k < 2 ? 2 - k : k - 2, from = 4 - k;
        int64_t shift = 0;
        int lacks;

        if (args[k] == Py_None && k < 2 && b->definite && args[1 - k] == Py_None) {
            b->bands[k] = b->bands[from];
            shift = least * b->bands[k].stride.row;
        }
        else if (!plain_input(p, args[k], rhs, least, numbers[k], &b->bands[k], &lacks)) {
            return 0;
        }
        else if (k < 2) {
            shift = lacks * b->bands[k].stride.row;
        }
        /* the rows before those that are read need not exist */
        b->bands[k].data =
            (const void *)((uintptr_t)b->bands[k].data - (uintptr_t)(shift * size));
    }
    b->rows = p->rows;
    b->outer = p->outer;
    b->inner = p->inner;
    return 1;
}

/* Where a call runs, and whether a singular system is looked for, which waits for a device. */
typedef struct {
    int device, is_reported;
    unsigned long long stream;
} place;

/* Whether the solution can be written: `out` must not be the right-hand sides, which a
 * second call needs if a system is singular. */
static PyArrayObject *
new_result(const plain *p, PyObject *const *args, ps_blocks *b, int is_reported)
{
    PyArrayObject *const x = plain_result(p, args[OUT], args, INPUTS);

    if (x != NULL && (!plain_stride(p, x, &b->x.stride) ||
                      (is_reported && args[OUT] != Py_None &&
                       PyArray_DATA(x) == PyArray_DATA((PyArrayObject *)args[RHS])))) {
        Py_DECREF(x);
        return NULL;
    }
    return x;
}

/* Compute on a device, and copy the numbers of the systems to `info`, which is 0, if they are
 * looked for; 0, or -1 with an exception. */
static int
run_on_device(ps_blocks *b, int threads, const place *where, int32_t *info,
              ps_status *status)
{
    const int64_t systems = b->outer * b->inner;
    const size_t bytes = (size_t)systems * sizeof *info;
    ps_report report = {0};
    block there = {0};
    int is_clear = 0;
    call c;

    if (call_begin(&c, threads, where->device, where->stream) < 0) {
        return -1;
    }
    /* rows are exchanged in the systems that the numbers mark */
    if ((where->is_reported || b->pivot == PS_PIVOT_AUTO) &&
        block_allocate(bytes + sizeof(float), FOR_STREAM, &c.exec, &there) < 0) {
        return -1;
    }
    b->info = there.data;
    int raised = run(b, &c, status, &report);

    if (raised == 0 && *status == PS_OK && where->is_reported) {
        float *const flag = (float *)((char *)there.data + bytes);

        call_enter(&c);
        *status = call_download_info(&c, info, there.data, systems, flag, &is_clear);
        raised = call_leave(&c);
    }
    block_free(&there);
    return raised;
}

/* Compute into the new reference `x`: the answer of a call, or NotImplemented if a system
 * is singular. */
static PyObject *
answer_of(ps_blocks *b, PyArrayObject *x, int threads, const place *where)
{
    const int64_t systems = b->task == PS_BLOCKS_SOLVE ? b->outer * b->inner : 0;
    int32_t few[FEW_SYSTEMS] = {0}, *info = few;
    ps_report report = {0};
    ps_status status = PS_OK;
    int failed = 0, raised;
    call c;

    if (systems > FEW_SYSTEMS && where->is_reported) {
        info = PyMem_Calloc((size_t)systems, sizeof *info);
    }
    if (info == NULL) {
        Py_DECREF(x);
        return PyErr_NoMemory();
    }
    b->x.data = PyArray_DATA(x);
    if (ps_backend_get()->memory == PS_DEVICE) {
        raised = run_on_device(b, threads, where, info, &status) < 0;
    }
    else {
        b->info = systems > 0 ? info : NULL;
        raised = call_begin(&c, threads, 0, 0) < 0 || run(b, &c, &status, &report) < 0;
    }
    for (int64_t k = 0; k < systems && !raised && where->is_reported; k++) {
        failed |= info[k] != 0;
    }
    if (info != few) {
        PyMem_Free(info);
    }
    if (raised || failed || status != PS_OK) {
        Py_DECREF(x);
        if (raised) {
            return NULL;
        }
        Py_RETURN_NOTIMPLEMENTED;
    }
    return (PyObject *)x;
}

/* The answer of a call without result: it has an exception, or needs planning. */
static PyObject *
no_answer(void)
{
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NOTIMPLEMENTED;
}

/* Where calls of the host run. */
static const place on_host = {0, 1, 0};

/* Solve for the arguments of bands_direct(). */
static PyObject *
solve_bands(PyObject *const *args, const place *where)
{
    double numbers[BANDS][2];
    ps_blocks b = {.task = PS_BLOCKS_SOLVE, .side = 0};
    plain p = {.on_device = ps_backend_get()->memory == PS_DEVICE};
    int threads;

    b.pivot = (ps_pivot)PyLong_AsLong(args[PIVOT]);
    b.definite = args[DEFINITE] == Py_True;
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (!plain_threads(args[COUNT], &threads) || !read_bands(&b, &p, args, numbers)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    for (int k = 0; k < BANDS && p.on_device; k++) { /* they are not in its memory */
        if (plain_is_number(args[k])) {
            Py_RETURN_NOTIMPLEMENTED;
        }
    }
    PyArrayObject *const x = new_result(&p, args, &b, where->is_reported);

    return x == NULL ? no_answer() : answer_of(&b, x, threads, where);
}

/* Refuse another number of arguments; 0, or -1 with an exception. */
static int
require_arguments(const char *name, Py_ssize_t found, int wanted)
{
    if (found != wanted) {
        PyErr_Format(PyExc_TypeError, "%s: need %d arguments, got %zd", name, wanted,
                     found);
        return -1;
    }
    return 0;
}

static PyObject *
bands_direct(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (require_arguments("bands_direct", count, ARGUMENTS) < 0) {
        return NULL;
    }
    if (ps_backend_get()->memory != PS_HOST) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return solve_bands(args, &on_host);
}

/* solve(arguments, place) for arrays of a library: `operands` of them, the result, and the
 * other arguments as `solve` takes them; then the device, whether singular systems are looked
 * for, and the library. */
static PyObject *
solve_borrowed(PyObject *const *args, int operands, int arguments,
               PyObject *(*solve)(PyObject *const *, const place *))
{
    const int device = (int)PyLong_AsLong(args[arguments]);
    PyObject *given[ARGUMENTS], *answer = NULL;
    borrowed l;

    if (PyErr_Occurred()) {
        return NULL;
    }
    memcpy(given, args, (size_t)arguments * sizeof *given);
    const int taken = borrowed_begin(&l, args, operands, args[operands + 1], device,
                                     args[arguments + 2]);

    if (taken > 0) {
        const place where = {l.device, args[arguments + 1] == Py_True, l.stream};

        memcpy(given, l.arrays, (size_t)operands * sizeof *given);
        given[operands + 1] = l.arrays[operands];
        answer = borrowed_answer(&l, solve(given, &where));
    }
    else if (taken == 0) {
        answer = Py_NewRef(Py_NotImplemented);
    }
    borrowed_end(&l);
    return answer;
}

static PyObject *
bands_borrowed(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    return require_arguments("bands_borrowed", count, ARGUMENTS + 3) < 0
               ? NULL
               : solve_borrowed(args, INPUTS, ARGUMENTS, solve_bands);
}

/* blocks_direct(): the same with blocks, all operands in C order and the rows along the
 * axis before those of the blocks. */
enum {
    LOWER,
    DIAG,
    UPPER,
    SIDES,
    OPERANDS,
    LINE = OPERANDS,
    TO,
    EXCHANGES,
    SYMMETRIC,
    TEAM
};
enum { BLOCK_ARGUMENTS = TEAM + 1 };

/* Right-hand sides up to which the elimination of a matrix for each column costs less than
 * planning in Python. */
enum { SMALL_SIDES = 4096 };

/* Right-hand sides in C order, (..., rows, side, columns): the columns of one system fill
 * the lanes if there is one, otherwise the systems do. 0 if they are not plain. */
static const PyArrayObject *
read_columns(ps_blocks *b, plain *p, PyObject *object, PyObject *axis)
{
    if (!PyArray_CheckExact(object) || !PyLong_CheckExact(axis)) {
        return NULL;
    }
    const PyArrayObject *const rhs =
        plain_array(object, PyArray_TYPE((PyArrayObject *)object));
    const int axes = rhs == NULL ? 0 : PyArray_NDIM(rhs);

    if (axes < 3 || !PyArray_IS_C_CONTIGUOUS(rhs) || PyArray_SIZE(rhs) == 0 ||
        !operand_dtype(PyArray_TYPE(rhs), &b->dtype) || !ps_is_real(b->dtype)) {
        return NULL;
    }
    const int64_t rows = PyArray_DIM(rhs, axes - 3), side = PyArray_DIM(rhs, axes - 2),
                  columns = PyArray_DIM(rhs, axes - 1), line = rows * side * columns,
                  systems = PyArray_SIZE(rhs) / line;

    int is_beyond; /* of a C long */
    const long place = PyLong_AsLongAndOverflow(axis, &is_beyond);

    if (is_beyond || (place != -1 && place != axes - 3) || side < 2 ||
        side > PS_MOST_SIDE || rows > INT32_MAX / PS_MOST_SIDE - 1) {
        return NULL;
    }
    *p = (plain){.type = PyArray_TYPE(rhs), .axes = axes, .axis = axes - 3, .rows = rows};
    b->side = (int32_t)side;
    b->rows = rows;
    b->outer = systems == 1 ? 1 : columns;
    b->inner = systems == 1 ? columns : systems;
    b->rhs = (ps_block_diagonal){.data = PyArray_DATA(rhs), .down = columns, .across = 1};
    b->rhs.stride = (ps_stride){.row = side * columns,
                                .outer = systems == 1 ? 0 : 1,
                                .inner = systems == 1 ? 1 : line};
    b->x = b->rhs;
    return rhs;
}

/* Whether the right-hand sides are the columns of one system. */
static int
is_single(const ps_blocks *b)
{
    return b->side != 0 && b->rhs.stride.inner == 1;
}

/* Blocks in C order of every system, of one for all systems, or one block for all rows; an
 * off-diagonal can lack `least` rows, the first ones if `is_lower`. 0 if not plain. */
static int
read_plain_block(const ps_blocks *b, const plain *p, PyObject *object,
                 const PyArrayObject *rhs, int least, int is_lower, ps_block_diagonal *to)
{
    const PyArrayObject *const array = plain_array(object, p->type);
    const int axes = array == NULL ? 0 : PyArray_NDIM(array);
    const int64_t side = b->side, entries = side * side;

    if (axes < 2 || !PyArray_IS_C_CONTIGUOUS(array) || PyArray_SIZE(array) == 0 ||
        PyArray_DIM(array, axes - 1) != side || PyArray_DIM(array, axes - 2) != side) {
        return 0;
    }
    *to = (ps_block_diagonal){.data = PyArray_DATA(array), .down = side, .across = 1};
    if (axes == 2) {
        return 1;
    }
    const int64_t found = PyArray_DIM(array, axes - 3);
    const int lacks = least > 0 && found == b->rows - least;

    if ((!lacks && found != b->rows) || (axes > 3 && axes != p->axes)) {
        return 0;
    }
    for (int k = 0; axes > 3 && k < axes - 3; k++) {
        if (PyArray_DIM(array, k) != PyArray_DIM(rhs, k)) {
            return 0;
        }
    }
    to->stride = (ps_stride){.row = entries,
                             .inner = axes > 3 && !is_single(b) ? found * entries : 0};
    if (lacks && is_lower) {
        to->data = (void *)((uintptr_t)to->data -
                            (uintptr_t)(least * entries * ps_dtype_size(b->dtype)));
    }
    return 1;
}

/* An off-diagonal that is None, of symmetric matrices: the transposes of the other one, of
 * the next row if `by` is 1, of the row before if -1. */
static ps_block_diagonal
transposed_block(const ps_blocks *b, const ps_block_diagonal *other, int by)
{
    const intptr_t shift = by * other->stride.row * (intptr_t)ps_dtype_size(b->dtype);
    ps_block_diagonal found = *other;

    found.data = (void *)((uintptr_t)other->data + (uintptr_t)shift);
    found.down = other->across;
    found.across = other->down;
    return found;
}

static int
read_blocks(ps_blocks *b, plain *p, PyObject *const *args)
{
    const PyArrayObject *const rhs = read_columns(b, p, args[SIDES], args[LINE]);
    ps_block_diagonal *const to[] = {&b->lower, &b->diag, &b->upper};

    if (rhs == NULL || (args[LOWER] == Py_None && args[UPPER] == Py_None) ||
        (b->pivot != PS_PIVOT_AUTO && PyArray_DIM(rhs, p->axes - 1) > 1 &&
         PyArray_SIZE(rhs) > SMALL_SIDES)) {
        return 0;
    }
    for (int k = LOWER; k <= UPPER; k++) {
        if (args[k] == Py_None
                ? k == DIAG || !b->definite
                : !read_plain_block(b, p, args[k], rhs, k != DIAG, k == LOWER, to[k])) {
            return 0;
        }
    }
    if (args[LOWER] == Py_None) {
        b->lower = transposed_block(b, &b->upper, -1);
    }
    if (args[UPPER] == Py_None) {
        b->upper = transposed_block(b, &b->lower, 1);
    }
    return 1;
}

/* Solve for the arguments of blocks_direct(). */
static PyObject *
solve_blocks(PyObject *const *args, const place *where)
{
    ps_blocks b = {.task = PS_BLOCKS_SOLVE};
    plain p = {0};
    int threads;

    b.pivot = (ps_pivot)PyLong_AsLong(args[EXCHANGES]);
    b.definite = args[SYMMETRIC] == Py_True;
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (!plain_threads(args[TEAM], &threads) || !read_blocks(&b, &p, args)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    p.on_device = ps_backend_get()->memory == PS_DEVICE;
    PyArrayObject *const x = plain_result(&p, args[TO], args, OPERANDS);

    if (x != NULL && (!PyArray_IS_C_CONTIGUOUS(x) ||
                      (where->is_reported && PyArray_DATA(x) == b.rhs.data))) {
        Py_DECREF(x);
        Py_RETURN_NOTIMPLEMENTED;
    }
    return x == NULL ? no_answer() : answer_of(&b, x, threads, where);
}

static PyObject *
blocks_direct(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (require_arguments("blocks_direct", count, BLOCK_ARGUMENTS) < 0) {
        return NULL;
    }
    if (ps_backend_get()->memory != PS_HOST) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return solve_blocks(args, &on_host);
}

static PyObject *
blocks_borrowed(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    return require_arguments("blocks_borrowed", count, BLOCK_ARGUMENTS + 3) < 0
               ? NULL
               : solve_borrowed(args, OPERANDS, BLOCK_ARGUMENTS, solve_blocks);
}

/* Describe the systems of a factor of `matrices` matrices, and right-hand sides that all
 * have one matrix or have one each; 0 if they are not plain. */
static const PyArrayObject *
read_factored(ps_blocks *b, PyObject *object, PyObject *axis, int64_t matrices)
{
    const int32_t side = b->side;
    const int64_t rows = b->rows;
    const ps_dtype dtype = b->dtype;
    const PyArrayObject *rhs;
    plain p = {0};

    if (side == 0) {
        rhs = plain_sides(&p, object, axis);
        if (rhs == NULL || !operand_dtype(p.type, &b->dtype) ||
            !plain_stride(&p, rhs, &b->rhs.stride)) {
            return NULL;
        }
        b->rhs.data = PyArray_DATA(rhs);
        b->rows = p.rows;
        b->outer = p.outer;
        b->inner = p.inner;
    }
    else {
        rhs = read_columns(b, &p, object, axis);
    }
    if (rhs == NULL || b->dtype != dtype || b->rows != rows || b->side != side) {
        return NULL;
    }
    b->factor_outer = 1;
    b->factor_inner = matrices;
    b->inner_step = matrices > 1;
    return matrices == 1 ||
                   (!is_single(b) && b->inner == matrices && (side != 0 || b->outer == 1))
               ? rhs
               : NULL;
}

static PyObject *
blocks_factored(PyObject *Py_UNUSED(module), PyObject *args)
{
    int dtype, pivot, trans, side;
    long long rows, matrices;
    PyObject *store, *sides, *axis, *team;
    ps_blocks b = {.task = PS_BLOCKS_APPLY};
    int threads;

    if (!PyArg_ParseTuple(args, "OiiiiLLOOO:blocks_factored", &store, &dtype, &pivot,
                          &trans, &side, &rows, &matrices, &sides, &axis, &team)) {
        return NULL;
    }
    PyArrayObject *const bytes = operand_block(store, "store", NPY_UINT8, 0);

    if (bytes == NULL) {
        return NULL;
    }
    b.dtype = (ps_dtype)dtype;
    b.pivot = (ps_pivot)pivot;
    b.trans = (ps_trans)trans;
    b.side = side;
    b.rows = rows;
    b.store = PyArray_DATA(bytes);
    b.store_bytes = (size_t)PyArray_SIZE(bytes);
    const PyArrayObject *const rhs = read_factored(&b, sides, axis, matrices);

    if (ps_backend_get()->memory != PS_HOST || rhs == NULL ||
        !plain_threads(team, &threads)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    PyArrayObject *const x =
        (PyArrayObject *)PyArray_NewLikeArray((PyArrayObject *)rhs, NPY_CORDER, NULL, 0);

    if (x == NULL) {
        return NULL;
    }
    if (side == 0) {
        plain p = {0};

        plain_sides(&p, sides, axis);
        plain_stride(&p, x, &b.x.stride);
    }
    return answer_of(&b, x, threads, &on_host);
}

PyDoc_STRVAR(bands_direct_doc,
             "bands_direct($module, lower2, lower, diag, upper, upper2, rhs, axis, out, "
             "pivot, definite, threads, /)\n--\n\n"
             "Return the solutions, or NotImplemented if the call needs planning or a "
             "system is singular.");

PyDoc_STRVAR(
    blocks_direct_doc,
    "blocks_direct($module, lower, diag, upper, rhs, axis, out, pivot, definite, "
    "threads, /)\n--\n\n"
    "Return the solutions, or NotImplemented if the call needs planning or a "
    "system is singular.");
PyDoc_STRVAR(bands_borrowed_doc,
             "bands_borrowed($module, lower2, lower, diag, upper, upper2, rhs, axis, "
             "out, pivot, definite, threads, device, reports, library, /)\n--\n\n"
             "bands_direct() for arrays of a library; without `reports`, singular "
             "systems are not looked for.");
PyDoc_STRVAR(blocks_borrowed_doc,
             "blocks_borrowed($module, lower, diag, upper, rhs, axis, out, pivot, "
             "definite, threads, device, reports, library, /)\n--\n\n"
             "blocks_direct() for arrays of a library; without `reports`, singular "
             "systems are not looked for.");
PyDoc_STRVAR(blocks_factored_doc,
             "blocks_factored($module, store, dtype, pivot, trans, side, rows, matrices, "
             "rhs, axis, threads, /)\n--\n\n"
             "Return the solutions with factors, or NotImplemented if the call needs "
             "planning.");
PyDoc_STRVAR(blocks_store_doc,
             "blocks_store($module, dtype, pivot, side, rows, matrices, /)\n--\n\n"
             "Return the bytes of the factors of blocks, or of five diagonals (side 0).");
PyDoc_STRVAR(
    blocks_run_doc,
    "blocks_run($module, task, dtype, pivot, trans, side, definite, shape, matrix, rhs, "
    "x, info, store, factor, inverse, logdet, threads, device=0, stream=0, "
    "weight=None, scale=None, /)\n--\n\n"
    "Solve or factor blocks, or five diagonals (side 0); return status and "
    "report.");

static PyMethodDef methods[] = {
    {"blocks_store", blocks_store, METH_VARARGS, blocks_store_doc},
    {"bands_direct", (PyCFunction)(void (*)(void))bands_direct, METH_FASTCALL,
     bands_direct_doc},
    {"blocks_direct", (PyCFunction)(void (*)(void))blocks_direct, METH_FASTCALL,
     blocks_direct_doc},
    {"bands_borrowed", (PyCFunction)(void (*)(void))bands_borrowed, METH_FASTCALL,
     bands_borrowed_doc},
    {"blocks_borrowed", (PyCFunction)(void (*)(void))blocks_borrowed, METH_FASTCALL,
     blocks_borrowed_doc},
    {"blocks_factored", blocks_factored, METH_VARARGS, blocks_factored_doc},
    {"blocks_run", blocks_run, METH_VARARGS, blocks_run_doc},
    {NULL, NULL, 0, NULL},
};

int
blocks_add(PyObject *module)
{
    if (add_codes(module, "BLOCK_TASKS", tasks, PS_BLOCKS_TASKS) < 0 ||
        PyModule_AddIntConstant(module, "MOST_SIDE", PS_MOST_SIDE) < 0 ||
        PyModule_AddIntConstant(module, "FAST_SIDE", PS_FAST_SIDE) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}
