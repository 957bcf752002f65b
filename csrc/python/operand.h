/* operand.h - NumPy arrays as operands of the contract. The binding protects the
 * memory: an array that these functions accept can be read, or written, as its struct
 * describes.
 */
#ifndef PS_PYTHON_OPERAND_H
#define PS_PYTHON_OPERAND_H

#include "numpy_api.h"
#include "pysolvers.h"

/* Shape (outer, inner, rows) of an operand, its dtype, data and strides. */
typedef struct {
    const char *name;
    ps_dtype dtype;
    int64_t rows, outer, inner;
    void *data;
    ps_stride stride; /* in elements; 0 along an axis of length 1 */
} operand;

/* Set *dtype to that of a type number of NumPy; 0 if the contract has no such dtype. */
int operand_dtype(int type, ps_dtype *dtype);

/* Set *stride to the stride of an axis in elements, 0 along an axis of length 1; 0 if it
 * is not a whole number of elements. */
int operand_stride(const PyArrayObject *array, int axis, int64_t *stride);

/* Each returns 0, or -1 with an exception that names the operand. The arrays are
 * borrowed: the caller keeps a reference for as long as it uses the operand. */
int operand_read(PyObject *array, const char *name, operand *op);
int operand_write(PyObject *array, const char *name, operand *op);

/* Require the batch and dtype of `like`, and `rows` rows. */
int operand_match(const operand *op, const operand *like, int64_t rows);

/* Read an operand that matches, or none for None. */
int operand_optional(PyObject *array, const char *name, const operand *like, int64_t rows,
                     ps_input *in);

/* Fill the matrix of *t, its dtype, flags and sizes. */
int operand_matrix(uint32_t flags, PyObject *lower, PyObject *diag, PyObject *upper,
                   ps_tridiag *t);

/* The array, contiguous, of a NumPy type, in C order, aligned and in native byte order,
 * and writeable if `writes` is set; null with an exception. Borrowed. */
PyArrayObject *operand_block(PyObject *object, const char *name, int type, int writes);

/* Set *info to a writeable array of `systems` int32, or to null for None. */
int operand_info(PyObject *array, int64_t systems, int32_t **info);

/* Set *made to the only element of a writeable int64 array of the host; it receives the
 * number of iterations or steps completed, also if the call is interrupted. */
int operand_made(PyObject *array, int64_t **made);

static inline ps_input
operand_input(const operand *op)
{
    return (ps_input){op->data, op->stride};
}

static inline ps_output
operand_output(const operand *op)
{
    return (ps_output){op->data, op->stride};
}

#endif
