/* plain.h - arrays that a call can use as they are, without planning in Python.
 *
 * These are exact ndarrays of the dtype of the call, aligned and in native byte order,
 * with at most two axes of any strides, or with more axes in C order.
 */
#ifndef PS_PYTHON_PLAIN_H
#define PS_PYTHON_PLAIN_H

#include "numpy_api.h"
#include "ps_step.h"

/* The right-hand sides of a call: outer * inner systems of `rows` rows along `axis`. */
typedef struct {
    int type, axis, axes; /* type number of NumPy, axis of the systems, number of axes */
    int on_device;        /* the elements of arrays cannot be read here */
    npy_intp rows, outer, inner;
} plain;

/* The array if it is a plain one of this type number; null if it is not. Borrowed. */
PyArrayObject *plain_array(PyObject *object, int type);

/* Fill *p from right-hand sides and the axis, a Python int; the array, borrowed, or null
 * if they are not plain. */
PyArrayObject *plain_sides(plain *p, PyObject *object, PyObject *axis);

/* Whether an operand is a number, and its only element in the dtype of the call, in
 * `number`; 0 if the dtype cannot represent it, or if the number, a float64 of NumPy, has
 * a say in the dtype. */
int plain_is_number(PyObject *object);
int plain_number(const plain *p, PyObject *object, double number[2], ps_input *in);

/* Read an operand with an entry for each row of each system, with one line for all
 * systems, or a number, which is kept in `number`. It can lack `least` entries along the
 * systems, which *lacks is set to. 0 if it is not plain. */
int plain_input(const plain *p, PyObject *object, const PyArrayObject *rhs, int least,
                double number[2], ps_input *in, int *lacks);

/* Read an operand with one entry for each system, or a number; null data for None. 0 if it
 * is not plain. */
int plain_column(const plain *p, PyObject *object, const PyArrayObject *rhs,
                 double number[2], ps_input *in);

/* Read a mask of booleans, or one line of it for all systems; null data for None. 0 if it
 * is not plain. */
int plain_mask(const plain *p, PyObject *object, const PyArrayObject *rhs, ps_mask *mask);

/* Read a number of threads, 0 for None; 0 if Python has to check it. */
int plain_threads(PyObject *threads, int *count);

/* Set *stride to the strides of an array with all axes; 0 if they are not plain. */
int plain_stride(const plain *p, const PyArrayObject *array, ps_stride *stride);

/* Whether the array has the shape of the last p->axes axes of the right-hand sides, but for
 * `rows` along the axis of the systems. */
int plain_shape(const plain *p, const PyArrayObject *array, const PyArrayObject *rhs,
                npy_intp rows);

/* Describe by *matrices diagonals of `axes` axes, the last ones of the right-hand sides:
 * all systems along the other axes have the same matrix. 0 if they are not plain. */
int plain_matrices(const plain *p, const PyArrayObject *rhs, int axes, plain *matrices);

/* The array for the result, a new reference: `out`, or a new array for None; null,
 * perhaps with an exception, if `out` is not plain or shares memory with one of the
 * inputs other than the last one, the right-hand sides, which it can be. */
PyArrayObject *plain_result(const plain *p, PyObject *out, PyObject *const *inputs,
                            int count);

/* The type number of the real and imaginary parts of a dtype. */
int plain_real(int type);

/* Describe right-hand sides or solutions, complex, of stride *s as real ones: real and
 * imaginary part are the two indices of the fastest batch axis. For one batch axis, they
 * form the inner axis; for two, they are merged with the inner axis. */
void plain_divide(const plain *p, ps_stride *s);

/* Describe complex right-hand sides or solutions as their real parts; the imaginary parts
 * are one real number further. For systems that plain_divide() cannot describe: two batch
 * axes along both of which the matrices vary. Worth it if `sides` is small, so that the
 * second pass finds it in the cache. */
void plain_split(ps_stride *s);
int plain_is_small(const PyArrayObject *sides);

#endif
