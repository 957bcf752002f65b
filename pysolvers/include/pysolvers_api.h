/* pysolvers_api.h - batches of tridiagonal systems on the CPU, for C, C++ and Fortran.
 *
 * A program links with the library (`pysolvers config --cflags --libs`, pkg-config, CMake).
 * An extension module of Python defines PYSOLVERS_PYTHON before it includes this file after
 * Python.h, calls pysolvers_import() when it is initialised, and links with nothing. Each of its
 * source files that calls the functions calls pysolvers_import() first.
 *
 * A system is
 *
 *   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],   0 <= i < rows,
 *
 * where lower[0] and upper[rows-1] are ignored unless the system is periodic: lower[0] then
 * multiplies x[rows-1], and upper[rows-1] multiplies x[0].
 *
 * Every function returns a pysolvers_status: PYSOLVERS_OK (0), PYSOLVERS_SINGULAR (1) if
 * some matrices are singular, or a negative value, after which nothing was written. The x of
 * a singular system is filled with NaN; the other systems of the batch are right. All
 * functions can be called by several threads at the same time. They compute with rounding to
 * nearest and gradual underflow and restore the floating-point mode of the caller. The result
 * has the same bits for any number of threads.
 */
#ifndef PYSOLVERS_API_H
#define PYSOLVERS_API_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increased with each change after which a compiled program has to be compiled again. */
#define PYSOLVERS_API_VERSION 1

typedef enum {
    PYSOLVERS_OK = 0,
    PYSOLVERS_SINGULAR = 1,
    PYSOLVERS_BAD_ARGUMENT = -1, /* a null pointer, or a number out of its range */
    PYSOLVERS_BAD_LAYOUT = -2,   /* operands overlap, or x repeats an element */
    PYSOLVERS_NO_MEMORY = -3,    /* the system has no memory for the workspace */
    PYSOLVERS_UNSUPPORTED = -4   /* these flags and options do not go together */
} pysolvers_status;

typedef enum {
    PYSOLVERS_F32, /* float */
    PYSOLVERS_F64, /* double */
    PYSOLVERS_C64, /* pairs of float */
    PYSOLVERS_C128 /* pairs of double */
} pysolvers_dtype;

/* When rows are exchanged. AUTO decides for each system: never where |diag| >= |lower| +
 * |upper| in every row and no pivot is bad, otherwise partial pivoting. */
typedef enum {
    PYSOLVERS_PIVOT_AUTO,
    PYSOLVERS_PIVOT_NEVER,
    PYSOLVERS_PIVOT_ALWAYS
} pysolvers_pivot;

/* Flags of a batch. A short off-diagonal has rows - 1 entries: its pointer is the address of
 * the entry of row 1 (lower) or row 0 (upper). ROW_SUMS, for real numbers without row
 * exchanges: diag holds lower[i] + diag[i] + upper[i] instead of the diagonal, which keeps
 * the digits of diffusion matrices whose diagonal cancels almost. */
enum {
    PYSOLVERS_PERIODIC = 1,
    PYSOLVERS_SHORT_LOWER = 2,
    PYSOLVERS_SHORT_UPPER = 4,
    PYSOLVERS_ROW_SUMS = 8
};

/* Element i of system (j, k) is data[i*row + j*outer + k*inner]. Strides count elements of
 * the dtype and can be negative; those of an input can be 0: one matrix for all systems has
 * outer = inner = 0, one number for all rows has row = 0. */
typedef struct {
    const void *data;
    int64_t row, outer, inner;
} pysolvers_input;

typedef struct {
    void *data;
    int64_t row, outer, inner;
} pysolvers_output;

/* outer * inner systems of `rows` unknowns, rows > 0, outer and inner >= 0. x can be rhs (the same address and strides);
 * otherwise it overlaps no input. info is null or has outer * inner entries, which become 0
 * or 1 + the row of the first bad pivot. */
typedef struct {
    pysolvers_dtype dtype;
    uint32_t flags;
    int64_t rows, outer, inner;
    pysolvers_input lower, diag, upper, rhs;
    pysolvers_output x;
    int32_t *info;
} pysolvers_systems;

typedef struct {
    pysolvers_pivot pivot;
    int32_t threads; /* 0: the cores that the process may use */
} pysolvers_options;

/* Factors of the matrices of a batch, for solves with other right-hand sides. */
typedef struct pysolvers_factors pysolvers_factors;

#if defined(__GNUC__)
#define PYSOLVERS_PUBLIC __attribute__((visibility("default")))
#else
#define PYSOLVERS_PUBLIC
#endif

#ifndef PYSOLVERS_PYTHON

/* Solve a batch. `options` can be null: the default of each. */
PYSOLVERS_PUBLIC pysolvers_status pysolvers_solve(const pysolvers_systems *systems,
                                                  const pysolvers_options *options);

/* Factor the matrices of a batch; rhs and x are not read. *factors is null unless the status
 * is PYSOLVERS_OK or PYSOLVERS_SINGULAR. */
PYSOLVERS_PUBLIC pysolvers_status pysolvers_factor(const pysolvers_systems *systems,
                                                   const pysolvers_options *options,
                                                   pysolvers_factors **factors);

/* Solve A x = rhs ('N'), A^T x = rhs ('T') or A^H x = rhs ('H') with factors. Both batch
 * axes have the lengths of the factors; where such a length is 1, the axis can be longer.
 * PYSOLVERS_SINGULAR if the matrix of a system is singular. */
PYSOLVERS_PUBLIC pysolvers_status pysolvers_factor_solve(
    const pysolvers_factors *factors, char trans, int64_t outer, int64_t inner,
    const pysolvers_input *rhs, const pysolvers_output *x, int32_t threads);

/* Release factors; null is allowed. */
PYSOLVERS_PUBLIC void pysolvers_factor_free(pysolvers_factors *factors);

/* Solve systems that lie one after the other in contiguous arrays of rows * systems entries,
 * with automatic row exchanges and all threads. x can be rhs. Complex numbers are pairs of
 * a real and an imaginary part. */
PYSOLVERS_PUBLIC pysolvers_status pysolvers_ssolve(int64_t rows, int64_t systems,
                                                   const float *lower, const float *diag,
                                                   const float *upper, const float *rhs,
                                                   float *x);
PYSOLVERS_PUBLIC pysolvers_status pysolvers_dsolve(int64_t rows, int64_t systems,
                                                   const double *lower,
                                                   const double *diag,
                                                   const double *upper, const double *rhs,
                                                   double *x);
PYSOLVERS_PUBLIC pysolvers_status pysolvers_csolve(int64_t rows, int64_t systems,
                                                   const void *lower, const void *diag,
                                                   const void *upper, const void *rhs,
                                                   void *x);
PYSOLVERS_PUBLIC pysolvers_status pysolvers_zsolve(int64_t rows, int64_t systems,
                                                   const void *lower, const void *diag,
                                                   const void *upper, const void *rhs,
                                                   void *x);

/* What a status means: a static text. */
PYSOLVERS_PUBLIC const char *pysolvers_status_text(pysolvers_status status);

#endif

/* The same functions as pointers, in the capsule of the module. */
typedef struct {
    int32_t version; /* PYSOLVERS_API_VERSION of the package */
    pysolvers_status (*solve)(const pysolvers_systems *, const pysolvers_options *);
    pysolvers_status (*factor)(const pysolvers_systems *, const pysolvers_options *,
                               pysolvers_factors **);
    pysolvers_status (*factor_solve)(const pysolvers_factors *, char, int64_t, int64_t,
                                     const pysolvers_input *, const pysolvers_output *,
                                     int32_t);
    void (*factor_free)(pysolvers_factors *);
    pysolvers_status (*ssolve)(int64_t, int64_t, const float *, const float *,
                               const float *, const float *, float *);
    pysolvers_status (*dsolve)(int64_t, int64_t, const double *, const double *,
                               const double *, const double *, double *);
    pysolvers_status (*csolve)(int64_t, int64_t, const void *, const void *, const void *,
                               const void *, void *);
    pysolvers_status (*zsolve)(int64_t, int64_t, const void *, const void *, const void *,
                               const void *, void *);
    const char *(*status_text)(pysolvers_status);
} pysolvers_functions;

#ifdef PYSOLVERS_PYTHON

#define PYSOLVERS_CAPSULE "pysolvers._core.C_API"

static const pysolvers_functions *pysolvers_api;

/* Import the package. Returns 0, or -1 with an exception set. */
static inline int
pysolvers_import(void)
{
    PyObject *const module = PyImport_ImportModule("pysolvers._core");
    PyObject *const capsule =
        module == NULL ? NULL : PyObject_GetAttrString(module, "C_API");

    if (capsule != NULL) {
        pysolvers_api =
            (const pysolvers_functions *)PyCapsule_GetPointer(capsule, PYSOLVERS_CAPSULE);
    }
    Py_XDECREF(capsule);
    Py_XDECREF(module);
    if (pysolvers_api != NULL && pysolvers_api->version != PYSOLVERS_API_VERSION) {
        PyErr_Format(
            PyExc_ImportError,
            "this module was compiled against version %d of pysolvers_api.h, and "
            "the installed pysolvers has version %d: compile it again",
            PYSOLVERS_API_VERSION, (int)pysolvers_api->version);
        pysolvers_api = NULL;
    }
    return pysolvers_api == NULL ? -1 : 0;
}

#define pysolvers_solve (*pysolvers_api->solve)
#define pysolvers_factor (*pysolvers_api->factor)
#define pysolvers_factor_solve (*pysolvers_api->factor_solve)
#define pysolvers_factor_free (*pysolvers_api->factor_free)
#define pysolvers_ssolve (*pysolvers_api->ssolve)
#define pysolvers_dsolve (*pysolvers_api->dsolve)
#define pysolvers_csolve (*pysolvers_api->csolve)
#define pysolvers_zsolve (*pysolvers_api->zsolve)
#define pysolvers_status_text (*pysolvers_api->status_text)

#endif

#ifdef __cplusplus
}
#endif
#endif
