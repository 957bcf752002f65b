/* borrow.c - arrays of other libraries as ndarrays, without a copy.
 *
 * The ndarray has the address, shape, strides and dtype of the array. Its elements are
 * in the memory of the backend; on a device they must not be touched here. Other arrays
 * give None: the caller then uses the general path, which has the messages.
 */
#include "binding.h"
#include "dlpack.h"
#include "borrowed.h"
#include "numpy_api.h"
#include "pysolvers.h"

static const char versioned_name[] = "dltensor_versioned", old_name[] = "dltensor";

static int
is_here(DLDevice d, int device)
{
    return ps_backend_get()->memory == PS_HOST
               ? d.type == DL_CPU
               : (d.type == DL_CUDA || d.type == DL_CUDA_MANAGED) && d.id == device;
}

/* The type number of NumPy; -1 for dtypes that the contract does not have. */
static int
type_number(DLDataType t)
{
    if (t.lanes == 1 && t.code == DL_BOOL && t.bits == 8) {
        return NPY_BOOL;
    }
    if (t.lanes != 1 || (t.code != DL_FLOAT && t.code != DL_COMPLEX)) {
        return -1;
    }
    switch (t.bits) {
    case 32:
        return t.code == DL_FLOAT ? NPY_FLOAT : -1;
    case 64:
        return t.code == DL_FLOAT ? NPY_DOUBLE : NPY_CFLOAT;
    case 128:
        return t.code == DL_COMPLEX ? NPY_CDOUBLE : -1;
    default:
        return -1;
    }
}

/* An ndarray over the memory of a tensor that `owner` keeps: a new reference; null
 * without an exception if the backend cannot use it. */
static PyObject *
array_of(const DLTensor *t, int read_only, int device, PyObject *owner)
{
    const int type = type_number(t->dtype);
    const npy_intp size = t->dtype.bits / 8;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS], step = size;
    char *const data = (char *)t->data + t->byte_offset;

    if (type < 0 || t->ndim > NPY_MAXDIMS || !is_here(t->device, device) ||
        (uintptr_t)data % (uintptr_t)size != 0) {
        return NULL;
    }
    for (int k = t->ndim - 1; k >= 0; k--) {
        if (t->shape[k] == 0) {
            return NULL;
        }
        shape[k] = t->shape[k];
        /* CuPy up to 14.2 divides negative strides by the size as unsigned numbers
         * (cupy/cupy#10172): the product modulo 2^64 is right. */
        strides[k] = t->strides == NULL
                         ? step
                         : (npy_intp)((uint64_t)t->strides[k] * (uint64_t)size);
        step *= shape[k];
    }
    PyObject *const array = PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DescrFromType(type), t->ndim, shape, strides, data,
        NPY_ARRAY_ALIGNED | (read_only ? 0 : NPY_ARRAY_WRITEABLE), NULL);

    if (array != NULL &&
        PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(owner)) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    return array;
}

/* The functions of the type of an object; null if there are none that are known. */
static const DLPackExchangeAPI *
exchange_of(PyObject *object)
{
    PyObject *const capsule =
        PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__");
    const DLPackExchangeAPI *api = NULL;

    if (capsule != NULL && PyCapsule_CheckExact(capsule)) {
        api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    }
    while (api != NULL && api->version.major != DL_MAJOR_VERSION) {
        api = api->previous;
    }
    Py_XDECREF(capsule); /* the type keeps it */
    PyErr_Clear();
    return api;
}

/* Whether the current stream of the library is the stream, so that none has to wait. */
static int
is_current(const DLPackExchangeAPI *api, int device, unsigned long long stream)
{
    void *current = NULL;

    if (ps_backend_get()->memory == PS_HOST) {
        return 1;
    }
    return api->current_stream != NULL &&
           api->current_stream(DL_CUDA, device, &current) == 0 &&
           (uintptr_t)current == stream;
}

/* The capsule that __dlpack__() returns, with the old protocol if it must be; null with
 * an exception. The library makes the stream wait for its own work. */
static PyObject *
capsule_of(PyObject *object, unsigned long long stream)
{
    PyObject *const method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *const arguments = PyTuple_New(0);
    PyObject *options = NULL, *capsule = NULL;

    if (method != NULL && arguments != NULL) {
        options = ps_backend_get()->memory == PS_HOST
                      ? Py_BuildValue("{s:O,s:(ii)}", "stream", Py_None, "max_version",
                                      DL_MAJOR_VERSION, 0)
                      : Py_BuildValue("{s:K,s:(ii)}", "stream", stream ? stream : 1,
                                      "max_version", DL_MAJOR_VERSION, 0);
    }
    if (options != NULL) {
        capsule = PyObject_Call(method, arguments, options);
        if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            if (PyDict_DelItemString(options, "max_version") == 0) {
                capsule = PyObject_Call(method, arguments, options);
            }
        }
    }
    Py_XDECREF(options);
    Py_XDECREF(arguments);
    Py_XDECREF(method);
    return capsule;
}

/* The capsule keeps the tensor: its destructor, which the library has set, calls the
 * deleter, because the name of the capsule does not change. */
static PyObject *
array_of_capsule(PyObject *capsule, int device)
{
    if (PyCapsule_IsValid(capsule, versioned_name)) {
        const DLManagedTensorVersioned *const managed =
            PyCapsule_GetPointer(capsule, versioned_name);

        return managed->version.major != DL_MAJOR_VERSION
                   ? NULL
                   : array_of(&managed->tensor, (managed->flags & DL_READ_ONLY) != 0,
                              device, capsule);
    }
    if (PyCapsule_IsValid(capsule, old_name)) {
        const DLManagedTensor *const managed = PyCapsule_GetPointer(capsule, old_name);

        return array_of(&managed->tensor, 0, device, capsule);
    }
    return NULL;
}

PyObject *
borrow(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *object, *array = NULL;
    unsigned long long stream = 0;
    int device = 0;

    if (!PyArg_ParseTuple(args, "O|iK:borrow", &object, &device, &stream)) {
        return NULL;
    }
    const DLPackExchangeAPI *const api = exchange_of(object);
    DLTensor tensor;

    if (api != NULL && api->borrow != NULL && is_current(api, device, stream) &&
        api->borrow(object, &tensor) == 0) {
        array = array_of(&tensor, 0, device, object);
    }
    else {
        PyErr_Clear();
        PyObject *const capsule = capsule_of(object, stream);

        if (capsule != NULL) {
            array = array_of_capsule(capsule, device);
            Py_DECREF(capsule);
        }
    }
    if (array == NULL || PyArray_TYPE((PyArrayObject *)array) == NPY_BOOL) {
        Py_XDECREF(array);
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    return array;
}

/* ------------------------------------------------------- operands of a call */

/* What borrowed_begin() knows of the library. */
typedef struct {
    PyObject *is_plain, *describe, *current, *empty; /* borrowed */
    const DLPackExchangeAPI *api;                    /* null if it has none */
    PyTypeObject *type;
} library;

/* Fill *t, with shape and strides in `extents`, from what describe() returns; 0 if it
 * does not describe an array. */
static int
read_description(PyObject *description, DLTensor *t, int64_t extents[2 * NPY_MAXDIMS])
{
    PyObject *shape, *strides;
    PyArray_Descr *dtype;
    unsigned long long address;
    int device;

    if (!PyArg_ParseTuple(description, "KiO!O!O!", &address, &device, &PyTuple_Type,
                          &shape, &PyTuple_Type, &strides, &PyArrayDescr_Type, &dtype)) {
        return 0;
    }
    const Py_ssize_t axes = PyTuple_GET_SIZE(shape), size = PyDataType_ELSIZE(dtype);

    if (axes > NPY_MAXDIMS || axes != PyTuple_GET_SIZE(strides) || size == 0 ||
        !PyArray_ISNBO(dtype->byteorder)) {
        return 0;
    }
    *t = (DLTensor){
        .data = (void *)(uintptr_t)address,
        .device = {ps_backend_get()->memory == PS_HOST ? DL_CPU : DL_CUDA, device},
        .ndim = (int32_t)axes,
        .dtype = {dtype->kind == 'f'   ? DL_FLOAT
                  : dtype->kind == 'c' ? DL_COMPLEX
                  : dtype->kind == 'b' ? DL_BOOL
                                       : UINT8_MAX,
                  (uint8_t)(8 * size), 1},
        .shape = extents,
        .strides = extents + NPY_MAXDIMS};
    for (Py_ssize_t k = 0; k < axes; k++) {
        const long long step = PyLong_AsLongLong(PyTuple_GET_ITEM(strides, k));

        t->shape[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, k));
        t->strides[k] = step / size;
        if (step % size != 0) {
            return 0;
        }
    }
    return !PyErr_Occurred();
}

/* Set the device of an array; 0 if it is unknown. */
static int
device_of(const library *from, PyObject *object, int *device)
{
    DLTensor t;

    if (from->api != NULL) {
        *device = from->api->borrow(object, &t) == 0 ? t.device.id : -1;
        return *device >= 0;
    }
    PyObject *const answer = from->describe != Py_None
                                 ? PyObject_CallOneArg(from->describe, object)
                                 : PyObject_CallMethod(object, "__dlpack_device__", NULL);
    PyObject *const number =
        answer != NULL && PyTuple_Check(answer) ? PySequence_GetItem(answer, 1) : NULL;

    *device = number != NULL ? (int)PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    Py_XDECREF(answer);
    return *device >= 0;
}

/* Set the stream on which the library works now; 0 if it is unknown. */
static int
current_stream(const library *from, int device, unsigned long long *stream)
{
    if (ps_backend_get()->memory == PS_HOST) {
        *stream = 0;
        return 1;
    }
    if (from->api != NULL && from->api->current_stream != NULL) {
        void *current = NULL;

        if (from->api->current_stream(DL_CUDA, device, &current) != 0) {
            return 0;
        }
        *stream = (uintptr_t)current;
        return 1;
    }
    PyObject *const number = PyObject_CallFunction(from->current, "i", device);

    *stream = number != NULL ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    return !PyErr_Occurred();
}

static int
is_plain(const library *from, PyObject *object)
{
    if (from->is_plain == Py_None) {
        return 1;
    }
    PyObject *const answer = PyObject_CallOneArg(from->is_plain, object);
    const int plain = answer == Py_True;

    Py_XDECREF(answer);
    return plain;
}

/* An ndarray over an array of the library: a new reference; null, perhaps with an
 * exception, if the backend cannot use it. */
static PyObject *
view_of(const library *from, PyObject *object, const borrowed *l)
{
    int64_t extents[2 * NPY_MAXDIMS];
    PyObject *array = NULL;
    DLTensor t;

    if (Py_TYPE(object) != from->type || !is_plain(from, object)) {
        return NULL;
    }
    if (from->api != NULL) {
        return from->api->borrow(object, &t) == 0 ? array_of(&t, 0, l->device, object)
                                                  : NULL;
    }
    PyObject *const described = from->describe != Py_None
                                    ? PyObject_CallOneArg(from->describe, object)
                                    : capsule_of(object, l->stream);

    if (described != NULL && from->describe == Py_None) {
        array = array_of_capsule(described, l->device);
    }
    else if (described != NULL && read_description(described, &t, extents)) {
        array = array_of(&t, 0, l->device, object);
    }
    Py_XDECREF(described);
    return array;
}

static int
is_python_number(PyObject *object)
{
    return PyFloat_CheckExact(object) || PyLong_CheckExact(object);
}

/* Set the functions of the library of an array; 0 if a function is missing. */
static int
library_of(PyObject *functions, PyObject *object, library *from)
{
    *from = (library){.type = Py_TYPE(object)};
    if (!PyArg_ParseTuple(functions, "OOOO", &from->is_plain, &from->describe,
                          &from->current, &from->empty)) {
        return 0;
    }
    if (from->describe == Py_None) {
        from->api = exchange_of(object);
        if (from->api != NULL && from->api->borrow == NULL) {
            from->api = NULL;
        }
    }
    return 1;
}

/* borrowed_begin() without the result; 0, perhaps with an exception, if it is not possible.
 */
static int
take_operands(borrowed *l, PyObject *const *operands, int wanted, PyObject *functions,
              library *from)
{
    const ps_backend *const backend = ps_backend_get();

    if ((backend->unavailable != NULL && backend->unavailable() != NULL) ||
        !library_of(functions, operands[l->count - 1], from) ||
        !device_of(from, operands[l->count - 1], &l->device) ||
        (wanted >= 0 && wanted != l->device) ||
        !current_stream(from, l->device, &l->stream)) {
        return 0;
    }
    for (int k = 0; k < l->count; k++) {
        l->arrays[k] = operands[k] == Py_None || is_python_number(operands[k])
                           ? Py_NewRef(operands[k])
                           : view_of(from, operands[k], l);
        if (l->arrays[k] == NULL) {
            return 0;
        }
    }
    return 1;
}

int
borrowed_begin(borrowed *l, PyObject *const *operands, int count, PyObject *out,
               int wanted, PyObject *functions)
{
    library from;

    *l = (borrowed){.count = count};
    if (!take_operands(l, operands, wanted, functions, &from)) {
        PyErr_Clear();
        return 0;
    }
    if (out == Py_None) {
        from.is_plain = Py_None; /* a new array is */
    }
    l->result = out != Py_None ? Py_NewRef(out)
                               : PyObject_CallFunction(from.empty, "Oi",
                                                       operands[count - 1], l->device);
    if (l->result == NULL) {
        return -1;
    }
    l->arrays[count] = view_of(&from, l->result, l);
    PyErr_Clear();
    return l->arrays[count] != NULL;
}

void
borrowed_end(borrowed *l)
{
    for (int k = 0; k <= l->count; k++) {
        Py_CLEAR(l->arrays[k]);
    }
    Py_CLEAR(l->result);
}

PyObject *
borrowed_answer(const borrowed *l, PyObject *answer)
{
    if (answer != l->arrays[l->count]) {
        return answer;
    }
    Py_DECREF(answer);
    return Py_NewRef(l->result);
}

PyObject *
borrow_operands(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    const int operands = (int)count - 2;
    PyObject *answer = Py_None;
    library from;
    borrowed l;

    if (operands < 1 || operands > BORROWED_MOST - 1) {
        return PyErr_Format(PyExc_TypeError,
                            "borrow_operands: need 3 to %d arguments, got %zd",
                            BORROWED_MOST + 1, count);
    }
    const int wanted = (int)PyLong_AsLong(args[count - 2]);

    if (PyErr_Occurred()) {
        return NULL;
    }
    l = (borrowed){.count = operands};
    if (take_operands(&l, args, wanted, args[count - 1], &from)) {
        answer = PyTuple_New(operands + 2);
        if (answer != NULL) {
            PyTuple_SET_ITEM(answer, 0, PyLong_FromLong(l.device));
            PyTuple_SET_ITEM(answer, 1, PyLong_FromUnsignedLongLong(l.stream));
        }
        for (int k = 0; answer != NULL && k < operands; k++) {
            PyTuple_SET_ITEM(answer, k + 2, Py_NewRef(l.arrays[k]));
        }
        if (PyErr_Occurred()) {
            Py_CLEAR(answer);
        }
    }
    else {
        PyErr_Clear();
        Py_INCREF(answer);
    }
    borrowed_end(&l);
    return answer;
}
