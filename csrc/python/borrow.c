/* borrow.c - borrow(): the array of another library as an ndarray, without a copy.
 *
 * The ndarray has the address, shape, strides and dtype of the array. Its elements are
 * in the memory of the backend; on a device they must not be touched here. Other arrays
 * give None: the caller then uses the general path, which has the messages.
 */
#include "binding.h"
#include "dlpack.h"
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
    if (array == NULL) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    return array;
}
