/* borrowed.h - the operands of a call from a library of arrays, and its result.
 *
 * The library is described by a tuple of four functions, of which each can be None:
 *
 *   is_plain(array) -> bool: whether the values are what lies in the memory
 *   describe(array) -> (address, device, shape, strides in bytes, dtype), for libraries
 *                      that have no functions in C for it
 *   current(device) -> address of the current stream, likewise
 *   empty(array, device) -> a new array of the shape and the dtype of an array
 *
 * A library without `describe` offers DLPack: the functions in C of
 * __dlpack_c_exchange_api__, or __dlpack__. The call runs on its current stream.
 */
#ifndef PS_PYTHON_BORROWED_H
#define PS_PYTHON_BORROWED_H

#include "numpy_api.h"

enum { BORROWED_MOST = 16 };

typedef struct {
    PyObject
        *arrays[BORROWED_MOST]; /* ndarrays over the operands, numbers and None, then the
                                   result */
    PyObject *result;           /* the result, an array of the library */
    int device, count;
    unsigned long long stream;
} borrowed;

/* Take `count` operands, of which the last one is an array and determines the device, and
 * `out`, or a new array if it is None. `wanted`: the device, or -1 for any. Returns 1; 0
 * if the operands are not None, numbers and arrays of one type in the memory of the
 * backend; -1 with an exception if there is no memory for the result. borrowed_end() must
 * follow. */
int borrowed_begin(borrowed *l, PyObject *const *operands, int count, PyObject *out,
                   int wanted, PyObject *library);
void borrowed_end(borrowed *l);

/* The answer of a call to its caller: the result of the library in place of its ndarray,
 * any other answer as it is. Replaces the reference. */
PyObject *borrowed_answer(const borrowed *l, PyObject *answer);

#endif
