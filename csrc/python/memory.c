/* memory.c - copies, order and waiting on a device with separate memory. */
#include "memory.h"

#include "binding.h"
#include "call.h"
#include "operand.h"

/* Acquire the GIL again: the status, or null if a signal handler raised. */
static PyObject *
finish(call *c, ps_status status)
{
    return call_leave(c) < 0 ? NULL : PyLong_FromLong(status);
}

/* Set *data to an array that is contiguous; 0, or -1 with an exception. */
static int
borrow_host(PyObject *object, int writeable, void **data, size_t *bytes)
{
    if (!PyArray_Check(object)) {
        PyErr_Format(PyExc_TypeError, "host: need an ndarray, got %s",
                     Py_TYPE(object)->tp_name);
        return -1;
    }
    PyArrayObject *const array = (PyArrayObject *)object;
    if (!PyArray_ISONESEGMENT(array) || PyDataType_REFCHK(PyArray_DESCR(array))) {
        PyErr_SetString(PyExc_ValueError, "host: need numbers in one block of memory");
        return -1;
    }
    if (writeable && !PyArray_ISWRITEABLE(array)) {
        PyErr_SetString(PyExc_ValueError, "host: the array is read-only");
        return -1;
    }
    *data = PyArray_DATA(array);
    *bytes = (size_t)PyArray_NBYTES(array);
    return 0;
}

/* Copy an array from the host to the device, or from the device to the host. */
static PyObject *
transfer(PyObject *host, unsigned long long address, int to_device, int device,
         unsigned long long stream)
{
    void *const there = (void *)(uintptr_t)address;
    void *here;
    size_t bytes;
    call c;

    if (borrow_host(host, !to_device, &here, &bytes) < 0 ||
        call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_backend *const backend = ps_backend_get();
    return finish(&c, to_device ? backend->upload(there, here, bytes, &c.exec)
                                : backend->download(here, there, bytes, &c.exec));
}

static PyObject *
upload(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long address, stream = 0;
    int device = 0;
    PyObject *host;

    if (!PyArg_ParseTuple(args, "KO|iK:upload", &address, &host, &device, &stream)) {
        return NULL;
    }
    return transfer(host, address, 1, device, stream);
}

static PyObject *
download(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long address, stream = 0;
    int device = 0;
    PyObject *host;

    if (!PyArg_ParseTuple(args, "OK|iK:download", &host, &address, &device, &stream)) {
        return NULL;
    }
    return transfer(host, address, 0, device, stream);
}

static PyObject *
download_info(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long address, stream = 0;
    int device = 0;
    PyObject *host;
    void *here;
    size_t bytes;
    block flag;
    call c;
    int is_clear;

    if (!PyArg_ParseTuple(args, "OK|iK:download_info", &host, &address, &device,
                          &stream) ||
        borrow_host(host, 1, &here, &bytes) < 0 ||
        call_begin(&c, 0, device, stream) < 0 ||
        block_allocate(sizeof(float), FOR_STREAM, &c.exec, &flag) < 0) {
        return NULL;
    }
    call_enter(&c);
    const ps_status status =
        call_download_info(&c, here, (const int32_t *)(uintptr_t)address,
                           (int64_t)(bytes / sizeof(int32_t)), flag.data, &is_clear);

    if (is_clear) {
        memset(here, 0, bytes);
    }
    PyObject *const answer = finish(&c, status);

    block_free(&flag);
    return answer;
}

/* Read the strides of an array of element size r->element and shape r->shape; 0, or -1
 * with an exception. */
static int
read_layout(const PyArrayObject *array, const char *name, const ps_relayout *r,
            int64_t *strides)
{
    int fits = PyArray_NDIM(array) == r->axes && PyArray_ITEMSIZE(array) == r->element;

    for (int k = 0; fits && k < r->axes; k++) {
        fits = PyArray_DIM(array, k) == r->shape[k];
    }
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "%s: the shape or the item size is another", name);
        return -1;
    }
    for (int k = 0; k < r->axes; k++) {
        if (r->shape[k] > 1 && PyArray_STRIDE(array, k) % r->element != 0) {
            PyErr_Format(PyExc_ValueError, "%s: need strides of whole elements", name);
            return -1;
        }
        strides[k] = r->shape[k] > 1 ? PyArray_STRIDE(array, k) / r->element : 0;
    }
    if ((uintptr_t)PyArray_DATA(array) % (size_t)r->element != 0) {
        PyErr_Format(PyExc_ValueError, "%s: need values aligned to their size", name);
        return -1;
    }
    return 0;
}

static int
relayout_of(PyArrayObject *to, PyArrayObject *from, ps_relayout *r)
{
    const npy_intp size = PyArray_ITEMSIZE(to);

    if (PyArray_NDIM(to) > PS_MAX_AXES ||
        (size != 1 && size != 4 && size != 8 && size != 16)) {
        PyErr_Format(PyExc_ValueError,
                     "to: need at most %d axes and items of 1, 4, 8 or 16 bytes",
                     PS_MAX_AXES);
        return -1;
    }
    if (!PyArray_ISWRITEABLE(to)) {
        PyErr_SetString(PyExc_ValueError, "to: the array is read-only");
        return -1;
    }
    *r = (ps_relayout){.element = (int32_t)size,
                       .axes = PyArray_NDIM(to),
                       .to = PyArray_DATA(to),
                       .from = PyArray_DATA(from)};
    for (int k = 0; k < r->axes; k++) {
        r->shape[k] = PyArray_DIM(to, k);
    }
    return read_layout(to, "to", r, r->to_stride) < 0
               ? -1
               : read_layout(from, "source", r, r->from_stride);
}

/* Call an entry that takes two arrays of one shape. */
static PyObject *
between(PyObject *args, ps_status (*entry)(const ps_relayout *, const ps_exec *))
{
    unsigned long long stream = 0;
    int device = 0;
    PyObject *to, *from;
    ps_relayout r;
    call c;

    if (!PyArg_ParseTuple(args, "O!O!|iK", &PyArray_Type, &to, &PyArray_Type, &from,
                          &device, &stream) ||
        relayout_of((PyArrayObject *)to, (PyArrayObject *)from, &r) < 0 ||
        call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    return finish(&c, entry(&r, &c.exec));
}

static PyObject *
relayout(PyObject *Py_UNUSED(module), PyObject *args)
{
    return between(args, ps_backend_get()->relayout);
}

static PyObject *
accumulate(PyObject *Py_UNUSED(module), PyObject *args)
{
    return between(args, ps_backend_get()->accumulate);
}

static PyObject *
add_product(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long stream = 0;
    int device = 0;
    PyObject *to, *factor, *from;
    ps_relayout r;
    call c;

    if (!PyArg_ParseTuple(args, "O!O!O!|iK", &PyArray_Type, &to, &PyArray_Type, &factor,
                          &PyArray_Type, &from, &device, &stream) ||
        relayout_of((PyArrayObject *)to, (PyArrayObject *)from, &r) < 0 ||
        read_layout((PyArrayObject *)factor, "factor", &r, r.factor_stride) < 0 ||
        call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    r.factor = PyArray_DATA((PyArrayObject *)factor);
    call_enter(&c);
    return finish(&c, ps_backend_get()->accumulate(&r, &c.exec));
}

/* Fill b->info and its strides; 0, or -1 with an exception. */
static int
read_info(PyObject *object, ps_blank *b)
{
    PyArrayObject *const array = (PyArrayObject *)object;

    if (PyArray_TYPE(array) != NPY_INT32 || !PyArray_ISBEHAVED_RO(array) ||
        PyArray_NDIM(array) != 2 || PyArray_DIM(array, 0) != b->outer ||
        PyArray_DIM(array, 1) != b->inner || PyArray_STRIDE(array, 0) % 4 != 0 ||
        PyArray_STRIDE(array, 1) % 4 != 0) {
        PyErr_Format(PyExc_ValueError, "info: need int32 of shape (%lld, %lld)",
                     (long long)b->outer, (long long)b->inner);
        return -1;
    }
    b->info = PyArray_DATA(array);
    b->info_outer = PyArray_STRIDE(array, 0) / 4;
    b->info_inner = PyArray_STRIDE(array, 1) / 4;
    return 0;
}

static PyObject *
fill_nan(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long stream = 0;
    int device = 0;
    PyObject *x, *info;
    operand out;
    call c;

    if (!PyArg_ParseTuple(args, "OO!|iK:fill_nan", &x, &PyArray_Type, &info, &device,
                          &stream) ||
        operand_write(x, "x", &out) < 0) {
        return NULL;
    }
    ps_blank b = {.dtype = out.dtype,
                  .rows = out.rows,
                  .outer = out.outer,
                  .inner = out.inner,
                  .x = operand_output(&out)};
    if (read_info(info, &b) < 0 || call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    return finish(&c, ps_backend_get()->blank(&b, &c.exec));
}

static PyObject *
order(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long first, second;
    int device = 0;
    call c;

    if (!PyArg_ParseTuple(args, "KK|i:order", &first, &second, &device) ||
        call_begin(&c, 0, device, second) < 0) {
        return NULL;
    }
    call_enter(&c);
    return finish(&c, ps_backend_get()->order((void *)(uintptr_t)first, &c.exec));
}

static PyObject *
wait(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long stream = 0;
    int device = 0;
    call c;

    if (!PyArg_ParseTuple(args, "|iK:wait", &device, &stream) ||
        call_begin(&c, 0, device, stream) < 0) {
        return NULL;
    }
    call_enter(&c);
    return finish(&c, ps_backend_get()->wait(&c.exec));
}

static PyObject *
trim(PyObject *Py_UNUSED(module), PyObject *args)
{
    int device = 0;
    call c;

    if (!PyArg_ParseTuple(args, "|i:trim", &device) || call_begin(&c, 0, device, 0) < 0) {
        return NULL;
    }
    call_enter(&c);
    return finish(&c, ps_backend_get()->trim(&c.exec));
}

static PyObject *
device_count(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(ps_backend_get()->devices());
}

static PyObject *
unavailable(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return Py_BuildValue("z", ps_backend_get()->unavailable());
}

PyDoc_STRVAR(upload_doc, "upload($module, address, host, device=0, stream=0, /)\n--\n\n"
                         "Copy an array to the device; the array may change on return.");
PyDoc_STRVAR(download_doc,
             "download($module, host, address, device=0, stream=0, /)\n--\n\n"
             "Fill an array from the device; waits.");
PyDoc_STRVAR(download_info_doc,
             "download_info($module, host, address, device=0, stream=0, /)\n--\n\n"
             "Copy the numbers of systems, int32, to the host, waiting for them; return "
             "status.");
PyDoc_STRVAR(relayout_doc, "relayout($module, to, source, device=0, stream=0, /)\n--\n\n"
                           "Copy one device array into another of its shape.");
PyDoc_STRVAR(accumulate_doc,
             "accumulate($module, to, source, device=0, stream=0, /)\n--\n\n"
             "Add a device array of reals to another one of its shape.");
PyDoc_STRVAR(add_product_doc,
             "add_product($module, to, factor, source, device=0, stream=0, /)\n--\n\n"
             "Add the product of two device arrays of reals to another one of their "
             "shape.");
PyDoc_STRVAR(fill_nan_doc, "fill_nan($module, x, info, device=0, stream=0, /)\n--\n\n"
                           "Make x NaN in every system whose info is not 0.");
PyDoc_STRVAR(order_doc, "order($module, first, second, device=0, /)\n--\n\n"
                        "Let one stream wait for what another holds now.");
PyDoc_STRVAR(wait_doc, "wait($module, device=0, stream=0, /)\n--\n\n"
                       "Wait for a stream.");
PyDoc_STRVAR(trim_doc, "trim($module, device=0, /)\n--\n\n"
                       "Return the memory that the pool keeps to the device.");
PyDoc_STRVAR(device_count_doc, "device_count($module, /)\n--\n\n"
                               "Return how many devices there are.");
PyDoc_STRVAR(unavailable_doc, "unavailable($module, /)\n--\n\n"
                              "Say why no device can be used; None if one can.");

PyDoc_STRVAR(tridiag_direct_doc,
             "tridiag_direct($module, lower, diag, upper, rhs, axis, out, pivot, "
             "periodic, threads, device=0, stream=0, singular=1, sums=0, step=None, "
             "method=0, reports=False, /)\n--\n\n"
             "Solve for arrays from borrow() that need no planning; return out, "
             "(out, info), a status or NotImplemented.");

static PyMethodDef methods[] = {
    {"tridiag_direct", (PyCFunction)(void (*)(void))tridiag_direct, METH_FASTCALL,
     tridiag_direct_doc},
    {"upload", upload, METH_VARARGS, upload_doc},
    {"download", download, METH_VARARGS, download_doc},
    {"download_info", download_info, METH_VARARGS, download_info_doc},
    {"relayout", relayout, METH_VARARGS, relayout_doc},
    {"accumulate", accumulate, METH_VARARGS, accumulate_doc},
    {"add_product", add_product, METH_VARARGS, add_product_doc},
    {"fill_nan", fill_nan, METH_VARARGS, fill_nan_doc},
    {"order", order, METH_VARARGS, order_doc},
    {"wait", wait, METH_VARARGS, wait_doc},
    {"trim", trim, METH_VARARGS, trim_doc},
    {"device_count", device_count, METH_NOARGS, device_count_doc},
    {"unavailable", unavailable, METH_NOARGS, unavailable_doc},
    {NULL, NULL, 0, NULL},
};

int
memory_add(PyObject *module)
{
    return buffer_add(module) < 0 || graph_add(module) < 0
               ? -1
               : PyModule_AddFunctions(module, methods);
}
