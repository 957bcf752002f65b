/* pysolvers.h - the contract between the Python layer and every backend.
 *
 * Plain C11: no Python or CUDA types. A backend is one ps_backend table. csrc/python is
 * compiled once per backend and calls the backend only through the table that
 * ps_backend_get() returns.
 */
#ifndef PYSOLVERS_H
#define PYSOLVERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increase ABI_VERSION in pysolvers/_runtime/backends.py with every change of this file:
 * the package refuses an extension that was built against another contract. */

/* The list defines the enum ps_status, ps_status_text() and the dict STATUS of the
 * extension. Append new statuses at the end; never renumber. */
#define PS_STATUS_LIST(X)                                                    \
    X(PS_OK, "success")                                                      \
    X(PS_BAD_ARGUMENT, "an argument is null or out of its range")            \
    X(PS_BAD_LAYOUT, "operands overlap, or an output repeats an element")    \
    X(PS_UNSUPPORTED, "this backend does not offer the operation")           \
    X(PS_WORK_TOO_SMALL, "the workspace is smaller than *_work() asked for") \
    X(PS_DEVICE_FAILURE, "the device runtime reported an error")             \
    X(PS_INTERRUPTED, "the call was interrupted before its end")             \
    X(PS_NO_MEMORY, "the device has less memory left than was asked for")

/* Name of the enum, name in Python. */
#define PS_METHOD_LIST(X)          \
    X(PS_AUTO, "auto")             \
    X(PS_THOMAS, "thomas")         \
    X(PS_CR, "cr")                 \
    X(PS_PCR, "pcr")               \
    X(PS_CR_PCR, "cr-pcr")         \
    X(PS_PCR_THOMAS, "pcr-thomas") \
    X(PS_PARTITION, "partition")   \
    X(PS_PIVOTED, "pivoted")

#define PS_DTYPE_LIST(X)   \
    X(PS_F32, "float32")   \
    X(PS_F64, "float64")   \
    X(PS_C64, "complex64") \
    X(PS_C128, "complex128")

/* Which system a factor solves: A x = b, A^T x = b, A^H x = b. */
#define PS_TRANS_LIST(X)       \
    X(PS_TRANS_NONE, "N")      \
    X(PS_TRANS_TRANSPOSE, "T") \
    X(PS_TRANS_ADJOINT, "H")

/* When to exchange rows. PS_PIVOT_AUTO decides for each system: no row exchange if
 * |diag| >= |lower| + |upper| in every row and no pivot is bad, otherwise partial
 * pivoting. */
#define PS_PIVOT_LIST(X)       \
    X(PS_PIVOT_AUTO, "auto")   \
    X(PS_PIVOT_NEVER, "never") \
    X(PS_PIVOT_ALWAYS, "always")

#define PS_NAME_(name, text) name,
typedef enum { PS_STATUS_LIST(PS_NAME_) PS_STATUS_COUNT } ps_status;
typedef enum { PS_METHOD_LIST(PS_NAME_) PS_METHOD_COUNT } ps_method;
typedef enum { PS_DTYPE_LIST(PS_NAME_) PS_DTYPE_COUNT } ps_dtype;
typedef enum { PS_TRANS_LIST(PS_NAME_) PS_TRANS_COUNT } ps_trans;
typedef enum { PS_PIVOT_LIST(PS_NAME_) PS_PIVOT_COUNT } ps_pivot;
#undef PS_NAME_
typedef enum { PS_HOST, PS_DEVICE } ps_memory;

/* Element i of system (j, k) is data[i*row + j*outer + k*inner]. Strides count elements
 * and may be negative. For inputs only: a zero outer or inner stride shares one system
 * along that axis, and a zero row stride shares one value over all rows. */
typedef struct {
    int64_t row, outer, inner;
} ps_stride;

typedef struct {
    const void *data;
    ps_stride stride;
} ps_input;

typedef struct {
    void *data;
    ps_stride stride;
} ps_output;

/* Flags of a ps_tridiag. A short off-diagonal has rows - 1 entries and `data` points to
 * the first of them: to row 1 of lower, so that row i of lower is
 * data[(i-1)*row + j*outer + k*inner], or to row 0 of upper.
 *
 * PS_ROW_SUMS, for tridiag_solve() of real numbers with PS_AUTO and for factor_make() (on
 * a device of real numbers), both with PS_PIVOT_NEVER only: diag holds the row sums
 * s[i] = lower[i] + diag[i] + upper[i] instead of the diagonal, where an entry that is
 * ignored counts as 0. If the off-diagonals of a matrix are all >= 0 and its s all <= 0,
 * or all <= 0 and all >= 0, the factors have relative errors of O(rows) eps for any
 * condition number, and so has the solution for a right-hand side of one sign; a pivot is
 * then bad only if the matrix is singular or a product of its entries underflows. */
enum { PS_PERIODIC = 1u, PS_SHORT_LOWER = 2u, PS_SHORT_UPPER = 4u, PS_ROW_SUMS = 8u };

/* A flag of factor_make(): along the inner axis, neighbouring systems of the right-hand
 * sides lie closer together in memory than neighbouring rows. A device then stores the
 * matrices in the same order; the solution is the same. */
enum { PS_COLUMNS = 16u };

/* outer * inner independent systems, each of `rows` unknowns:
 *
 *   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],  0 <= i < rows
 *
 * lower[0] and upper[rows-1] are ignored, unless PS_PERIODIC is set: lower[0] then
 * multiplies x[rows-1] and upper[rows-1] multiplies x[0]. A periodic system has no short
 * off-diagonal. x may be rhs (same data, same strides); any other overlap is
 * PS_BAD_LAYOUT. info is null or has outer * inner entries: 0, or 1 + the row of the
 * first bad pivot. A pivot is bad if it is zero, infinite or NaN or, without row
 * exchanges, if its reciprocal overflows. A matrix with an entry that is infinite or NaN
 * has a bad pivot, of which the row need not be that of the entry. The x of a system with
 * a bad pivot is unspecified; the x of every other system is unaffected. A right-hand
 * side that is not finite gives x that is not finite and does not set info. All pointers
 * refer to the memory space of the backend. 1 <= rows <= INT32_MAX - 1. */
typedef struct {
    ps_dtype dtype;
    uint32_t flags;
    int64_t rows, outer, inner;
    ps_input lower, diag, upper, rhs;
    ps_output x;
    int32_t *info;
} ps_tridiag;

/* How to solve. */
typedef struct {
    ps_method method;
    ps_pivot pivot;  /* read for PS_AUTO only; every other method fixes the pivoting */
    int32_t variant; /* 0: default of the method; other values depend on the backend */
} ps_options;

/* What was done. */
enum { PS_SOLVED_AGAIN = 2 };
typedef struct {
    ps_method method;     /* never PS_AUTO */
    int32_t threads;      /* host threads used; 0 on a device */
    int64_t pivoted;      /* systems solved with row exchanges; -1: not known yet */
    const uint8_t *marks; /* if pivoted is -1: one byte per system in exec->work, non-zero
                             where rows were exchanged, valid after the stream has
                             completed the call; or null */
    int64_t repeated; /* systems solved a second time, row by row, because entries grew
                         in the first elimination; -1: not known yet */
    const uint8_t *again; /* if repeated is -1: one byte per system as in marks (may be
                             the same array), PS_SOLVED_AGAIN where a system was solved a
                             second time; or null */
    const char *kernel;   /* instruction set or kernel, a static text */
} ps_report;

/* Where and when to run. The caller owns `work` (aligned to 64 bytes). The caller keeps
 * `work` and every operand alive until `stream` has completed the call. */
typedef struct {
    int32_t device;  /* device ordinal; host backends ignore it */
    int32_t threads; /* 0: the default; device backends ignore it */
    void *stream;    /* a cudaStream_t; host backends ignore it */
    void *work;
    size_t work_bytes;
    int (*poll)(void *poll_self); /* null, or called repeatedly by the calling thread: */
    void *poll_self;              /* a non-zero result ends the call early */
    uint8_t *marks; /* null, or for the tridiag entries of a device one byte per system:
                       with PS_PIVOT_AUTO the systems that need row exchanges are marked
                       and not solved, with PS_PIVOT_ALWAYS only marked ones are solved */
} ps_exec;

/* Systems whose unknowns are the inner ones of longer systems: with the matrices T of
 * `t`,
 *
 *   T x = rhs,   T left = lower[0] e_0,   T right = upper[rows-1] e_{rows-1}
 *
 * where e_i is column i of the identity. `left` or `right` can have null data; it is then
 * not computed, and lower[0] or upper[rows-1] is ignored. Otherwise the off-diagonal is
 * not short, and left and right overlap neither each other nor another operand. The
 * systems are not periodic. No row is exchanged: with PS_PIVOT_AUTO, ps_report.pivoted
 * is the number of systems that have a row that is not dominant, lower[0] and
 * upper[rows-1] included, or a bad pivot; if it is not 0, x, left and right are
 * unspecified. */
typedef struct {
    ps_tridiag t;
    ps_output left, right;
} ps_spikes;

/* Factors of outer * inner matrices, in memory that the caller provides, for solves with
 * many right-hand sides. The format of `store` is private to the backend that wrote it.
 */
typedef struct {
    ps_dtype dtype;
    uint32_t flags;
    int64_t rows, outer, inner;
    ps_pivot pivot;
    void *store; /* aligned to 64 bytes */
    size_t store_bytes;
} ps_factor;

/* Right-hand sides and solutions for a ps_factor: system (j, k) has the matrix
 * (j * outer_step, k * inner_step). A step is 0, or 1 if the axis has the same length in
 * the factor and in the batch. x may be rhs. */
typedef struct {
    ps_trans trans;
    int64_t outer, inner;
    int32_t outer_step, inner_step;
    ps_input rhs;
    ps_output x;
} ps_factor_rhs;

/* Bytes of the name of shared memory. */
enum { PS_SHARED_NAME_BYTES = 64 };

/* Number of bytes that upload() passes as a kernel argument, and of memory from answer().
 */
enum { PS_SMALL_BYTES = 64, PS_ANSWER_BYTES = 16384 };

/* An element-wise copy between two arrays of one shape. Strides count elements and may
 * be negative; those of `from` may be 0. The arrays do not overlap, and elements of
 * `to` do not repeat. */
enum { PS_MAX_AXES = 8 };
typedef struct {
    int32_t element; /* bytes: 1, 4, 8 or 16, to which both addresses are aligned */
    int32_t axes;    /* 0 to PS_MAX_AXES */
    int64_t shape[PS_MAX_AXES];
    void *to;
    int64_t to_stride[PS_MAX_AXES];
    const void *from;
    int64_t from_stride[PS_MAX_AXES];
    const void *factor; /* of accumulate(): null, or an array as `from` */
    int64_t factor_stride[PS_MAX_AXES];
} ps_relayout;

/* Set x, and arrays with its strides, to NaN in every system whose info is not 0. */
typedef struct {
    ps_dtype dtype;
    int64_t rows, outer, inner;
    ps_output x;
    void *more[3];       /* null: none */
    const int32_t *info; /* system (j, k): info[j*info_outer + k*info_inner] */
    int64_t info_outer, info_inner;
} ps_blank;

/* The derivatives of solves with respect to their matrices, in contiguous arrays of
 * outer * rows * inner elements that do not overlap, except that g may be x:
 * lower[i] = -g[i] x[i-1], diag[i] = -g[i] x[i], upper[i] = -g[i] x[i+1], where x[-1] and
 * x[rows] are x[rows-1] and x[0] if PS_PERIODIC is set; otherwise lower[0] and
 * upper[rows-1] are 0.
 *
 * u: null, or, for real numbers, the derivatives of a step with another vector and another
 * factor: scale (u[i] + theta (x[i] - u[i])) for x[i], and g[i] + share of[i] for g[i]. */
typedef struct {
    ps_dtype dtype;
    uint32_t flags;
    int64_t rows, outer, inner;
    const void *g, *x;
    void *lower, *diag, *upper;
    const void *of, *u;
    double share, theta, scale;
} ps_products;

/* The solvers. A separate header defines each of them and includes this header. */
typedef struct ps_cavity ps_cavity;
typedef struct ps_cavity_report ps_cavity_report;
typedef struct ps_staggered ps_staggered;
typedef struct ps_staggered_report ps_staggered_report;
typedef struct ps_lmsor ps_lmsor;
typedef struct ps_lmsor_report ps_lmsor_report;
typedef struct ps_laplace ps_laplace;
typedef struct ps_laplace_report ps_laplace_report;
typedef struct ps_heat ps_heat;
typedef struct ps_heat_report ps_heat_report;
typedef struct ps_heat_cut ps_heat_cut;
typedef struct ps_diffusion ps_diffusion;
typedef struct ps_diffusion_report ps_diffusion_report;
typedef struct ps_gceidd ps_gceidd;
typedef struct ps_gceidd_report ps_gceidd_report;
typedef struct ps_spline_rows ps_spline_rows;
typedef struct ps_spline_points ps_spline_points;
typedef struct ps_spline_pieces ps_spline_pieces;
typedef struct ps_transform ps_transform;
typedef struct ps_centre ps_centre;
typedef struct ps_waves ps_waves;
typedef struct ps_wave_lines ps_wave_lines;
typedef struct ps_cylinder ps_cylinder;
typedef struct ps_cylinder_report ps_cylinder_report;
typedef struct ps_part ps_part;
typedef struct ps_product ps_product;
typedef struct ps_step ps_step;
typedef struct ps_factor_step ps_factor_step;

/* Rules for every entry:
 *   - no static state other than what is remembered of devices and plans; no printing, no
 *     exit; no allocation except in the memory entries (allocate, release, reserve,
 *     discard, trim, answer);
 *   - device entries enqueue on exec->stream and return without waiting, and may be
 *     called while that stream is captured, unless the entry states otherwise: PS_OK
 *     means "accepted"; numerical failure is reported in info;
 *   - device entries restore the current device of the thread;
 *   - host entries compute with rounding to nearest and gradual underflow, whatever the
 *     floating-point mode of the calling thread is, and restore this mode;
 *   - a NULL entry is an operation that this backend does not offer;
 *   - the solution of a system depends on the system and the method only, not on the
 *     other systems of the batch or the number of threads. On a device it also depends on
 *     whether the solved axis is contiguous or strided, and on how many systems share the
 *     matrix, because different kernels serve these cases. */
typedef struct {
    const char *name;
    ps_memory memory;

    ps_status (*tridiag_work)(const ps_tridiag *t, const ps_options *options,
                              const ps_exec *exec, size_t *bytes);
    ps_status (*tridiag_solve)(const ps_tridiag *t, const ps_options *options,
                               const ps_exec *exec, ps_report *report);

    /* Methods PS_AUTO and PS_THOMAS. PS_UNSUPPORTED if systems are so long that
     * tridiag_solve() for each right-hand side is faster. Null in a device backend. */
    ps_status (*spikes_work)(const ps_spikes *s, const ps_options *options,
                             const ps_exec *exec, size_t *bytes);
    ps_status (*spikes_solve)(const ps_spikes *s, const ps_options *options,
                              const ps_exec *exec, ps_report *report);

    /* Reads dtype, flags, rows, outer, inner and pivot of `f`. */
    ps_status (*factor_store)(const ps_factor *f, const ps_exec *exec, size_t *bytes);
    ps_status (*factor_make_work)(const ps_factor *f, const ps_exec *exec, size_t *bytes);
    /* Factor the matrices of `t` (rhs and x are not read) into f->store. */
    ps_status (*factor_make)(const ps_factor *f, const ps_tridiag *t, const ps_exec *exec,
                             ps_report *report);
    ps_status (*factor_work)(const ps_factor *f, const ps_factor_rhs *b,
                             const ps_exec *exec, size_t *bytes);
    ps_status (*factor_solve)(const ps_factor *f, const ps_factor_rhs *b,
                              const ps_exec *exec);

    /* Products with matrices and implicit steps: ps_step.h. step_work() and step_solve()
     * solve as PS_AUTO does, with this pivoting; factor_step() needs the workspace of
     * factor_step_work(). */
    ps_status (*product)(const ps_product *p, const ps_exec *exec);
    ps_status (*step_work)(const ps_step *s, ps_pivot pivot, const ps_exec *exec,
                           size_t *bytes);
    ps_status (*step_solve)(const ps_step *s, ps_pivot pivot, const ps_exec *exec,
                            ps_report *report);
    ps_status (*factor_step_work)(const ps_factor *f, const ps_factor_step *s,
                                  const ps_exec *exec, size_t *bytes);
    ps_status (*factor_step)(const ps_factor *f, const ps_factor_step *s,
                             const ps_exec *exec);
    /* Write the matrices of the steps PS_STEP_MATRIX, as they count with s->where, to the
     * arrays lower, diag and upper, all of s->t.rows rows; diag is `outside` in the rows
     * outside. s->t.rhs and x are not used. Null on the CPU. */
    ps_status (*masked_rows)(const ps_step *s, double outside, const ps_output to[3],
                             const ps_exec *exec);

    /* The parts of systems on several devices: ps_part.h. Bytes of a mailbox for
     * p->step; whether the device can solve the part, without reading any memory:
     * PS_UNSUPPORTED if a block cannot hold its rows; the solve. Null in a host backend.
     */
    ps_status (*part_mailbox)(const ps_part *p, size_t *bytes);
    ps_status (*part_check)(const ps_part *p, const ps_exec *exec);
    ps_status (*part_solve)(const ps_part *p, const ps_exec *exec);

    ps_status (*cavity_work)(const ps_cavity *c, const ps_options *options,
                             const ps_exec *exec, size_t *bytes);
    /* Run `count` iterations and compute the residuals after the last one. */
    ps_status (*cavity_iterate)(const ps_cavity *c, int64_t count,
                                const ps_options *options, const ps_exec *exec,
                                ps_cavity_report *report);

    /* Make at most `count` time steps: ps_staggered.h. */
    ps_status (*staggered_work)(const ps_staggered *s, const ps_exec *exec,
                                size_t *bytes);
    ps_status (*staggered_step)(const ps_staggered *s, int64_t count, const ps_exec *exec,
                                ps_staggered_report *report);

    /* Run at most `count` red-black iterations or time steps: ps_lmsor.h, ps_laplace.h,
     * ps_heat.h, ps_gceidd.h. */
    ps_status (*lmsor_work)(const ps_lmsor *l, const ps_exec *exec, size_t *bytes);
    ps_status (*lmsor_iterate)(const ps_lmsor *l, int64_t count, const ps_exec *exec,
                               ps_lmsor_report *report);
    ps_status (*laplace_work)(const ps_laplace *l, const ps_exec *exec, size_t *bytes);
    ps_status (*laplace_iterate)(const ps_laplace *l, int64_t count, const ps_exec *exec,
                                 ps_laplace_report *report);
    ps_status (*heat_work)(const ps_heat *h, const ps_exec *exec, size_t *bytes);
    ps_status (*heat_step)(const ps_heat *h, int64_t count, const ps_exec *exec,
                           ps_heat_report *report);
    /* Bytes of h->kept, where the calls of a solver keep factors that later calls use; 0:
     * there are none. *h->kept_as is 0 while h->kept has nothing, and a call that writes h->kept
     * sets *h->kept_as to another number. The caller sets *h->kept_as to 0 before a call with another
     * axis, ratio, kind or exchange of a side, another k or other values of k; calls with the same
     * h->kept follow each other on a stream. Null for a host. */
    ps_status (*heat_kept)(const ps_heat *h, const ps_exec *exec, size_t *bytes);
    /* Null for a host. */
    ps_status (*heat_cut)(const ps_heat_cut *c, int32_t applies, const ps_exec *exec);
    /* out = A x and the solution of A x = rhs: ps_diffusion.h. diffusion_solve() of a
     * device waits for the stream and must not be called while it is captured. */
    ps_status (*diffusion_apply)(const ps_diffusion *d, void *out, const ps_exec *exec);
    ps_status (*diffusion_work)(const ps_diffusion *d, const ps_exec *exec,
                                size_t *bytes);
    ps_status (*diffusion_solve)(const ps_diffusion *d, const ps_exec *exec,
                                 ps_diffusion_report *report);
    /* Add a constant to x, such that its mean with volumes over the unknown nodes is
     * `mean`; as diffusion_apply(), it reads the system only. Null in a host backend. */
    ps_status (*diffusion_centre_work)(const ps_diffusion *d, const ps_exec *exec,
                                       size_t *bytes);
    ps_status (*diffusion_centre)(const ps_diffusion *d, double mean,
                                  const ps_exec *exec);
    ps_status (*gceidd_work)(const ps_gceidd *g, const ps_exec *exec, size_t *bytes);
    ps_status (*gceidd_step)(const ps_gceidd *g, int64_t count, const ps_exec *exec,
                             ps_gceidd_report *report);

    /* Make `count` steps of the flow around a cylinder: ps_cylinder.h. A device waits for
     * their end; its entry must not be called while exec->stream is captured. */
    ps_status (*cylinder_work)(const ps_cylinder *c, const ps_exec *exec, size_t *bytes);
    ps_status (*cylinder_step)(const ps_cylinder *c, int64_t count, const ps_exec *exec,
                               ps_cylinder_report *report);

    /* Rows of the systems for slopes, coefficients, and values at points of splines:
     * ps_spline.h. They need no workspace but for spline_slopes(). */
    ps_status (*spline_rows)(const ps_spline_rows *r, const ps_exec *exec);
    /* spline_rows() without a matrix and the solve, with slopes in place of the right-hand
     * sides, at once: PS_UNSUPPORTED if that is no faster. Null in a host backend. */
    ps_status (*spline_slopes_work)(const ps_spline_rows *r, const ps_exec *exec,
                                    size_t *bytes);
    ps_status (*spline_slopes)(const ps_spline_rows *r, const ps_exec *exec);
    ps_status (*spline_pieces)(const ps_spline_pieces *p, const ps_exec *exec);
    ps_status (*spline_points)(const ps_spline_points *p, const ps_exec *exec);

    /* Copy `bytes` bytes at the full memory bandwidth: reference for benchmarks. */
    ps_status (*copy)(void *to, const void *from, size_t bytes, const ps_exec *exec);

    /* The entries from here to devices() are null in a host backend.
     *
     * Stream-ordered memory: release() frees memory of allocate() on the same stream.
     * PS_NO_MEMORY if the device has too little memory; 0 bytes give a null pointer. */
    ps_status (*allocate)(size_t bytes, const ps_exec *exec, void **data);
    ps_status (*release)(void *data, const ps_exec *exec);
    /* Memory that any stream may use: discard() waits until the device is idle. reserve()
     * must not be called while exec->stream is captured. */
    ps_status (*reserve)(size_t bytes, const ps_exec *exec, void **data);
    ps_status (*discard)(void *data, const ps_exec *exec);
    /* Wait for the device, and return to it what release() has kept for later calls of
     * allocate(). Must not be called while a stream of the device is captured. */
    ps_status (*trim)(const ps_exec *exec);

    /* Let exec->device use the memory of another device: PS_UNSUPPORTED if it cannot. */
    ps_status (*reach)(int32_t other, const ps_exec *exec);
    /* A name of memory of reserve(), PS_SHARED_NAME_BYTES, by which other processes of
     * the host open it; its address there. It must be closed before it is discarded. */
    ps_status (*share)(void *data, void *name, const ps_exec *exec);
    ps_status (*open_shared)(const void *name, void **data, const ps_exec *exec);
    ps_status (*close_shared)(void *data, const ps_exec *exec);

    /* Copy from the host: `from` may change after upload() has returned. While
     * exec->stream is captured, at most PS_SMALL_BYTES bytes. */
    ps_status (*upload)(void *to, const void *from, size_t bytes, const ps_exec *exec);
    /* Copy to the host and wait: `to` holds the data when download() returns. Must not be
     * called while exec->stream is captured. */
    ps_status (*download)(void *to, const void *from, size_t bytes, const ps_exec *exec);
    /* Memory of the host of PS_ANSWER_BYTES bytes that work on a stream can write: read
     * it after wait(). PS_NO_MEMORY if none is free. answer_end() with is_complete = 0
     * states that the stream may still write it. */
    ps_status (*answer)(const ps_exec *exec, void **data);
    void (*answer_end)(void *data, int32_t is_complete);
    ps_status (*relayout)(const ps_relayout *r, const ps_exec *exec);
    ps_status (*blank)(const ps_blank *b, const ps_exec *exec);
    /* to += from, or to += factor * from, element by element, as relayout() copies;
     * elements of 4 or 8 bytes are float or double. */
    ps_status (*accumulate)(const ps_relayout *r, const ps_exec *exec);
    ps_status (*products)(const ps_products *p, const ps_exec *exec);

    /* The steps of a transform before and after the one of a library, and the mean of a
     * line: ps_transform.h. */
    ps_status (*transform_load)(const ps_transform *t, const ps_exec *exec);
    ps_status (*transform_store)(const ps_transform *t, const ps_exec *exec);
    ps_status (*centre)(const ps_centre *c, const ps_exec *exec);

    /* The steps of a solver whose waves stay as the library packs them: ps_transform.h.
     * waves_fit: whether wave_lines() can solve systems of `planes` rows. */
    ps_status (*waves_fit)(ps_dtype dtype, int64_t planes, const ps_exec *exec,
                           int32_t *fit);
    ps_status (*waves_load)(const ps_waves *w, const ps_exec *exec);
    ps_status (*waves_store)(const ps_waves *w, const ps_exec *exec);
    ps_status (*wave_lines)(const ps_wave_lines *l, const ps_exec *exec);

    /* Wait for exec->stream; PS_INTERRUPTED if exec->poll returns non-zero. */
    ps_status (*wait)(const ps_exec *exec);
    /* Make exec->stream wait for the work that is enqueued on the stream `first` now. */
    ps_status (*order)(void *first, const ps_exec *exec);
    /* Record a mark on exec->stream; query whether the stream has passed it (also true if
     * the query fails); destroy the mark. */
    ps_status (*mark)(const ps_exec *exec, void **mark);
    ps_status (*mark_passed)(void *mark, const ps_exec *exec, int32_t *passed);
    ps_status (*mark_end)(void *mark, const ps_exec *exec);
    /* Capture the work of exec->stream, which is not the legacy default stream, instead
     * of doing it; end the capture and make a graph of it (*graph is null if that fails);
     * enqueue a graph on exec->stream; destroy the graph. What its work uses must exist
     * as long as the graph. */
    ps_status (*capture)(const ps_exec *exec);
    ps_status (*capture_end)(const ps_exec *exec, void **graph);
    ps_status (*graph_launch)(void *graph, const ps_exec *exec);
    ps_status (*graph_end)(void *graph, const ps_exec *exec);

    /* The reason why no device can be used, a static text; null if a device can be used.
     */
    const char *(*unavailable)(void);
    int32_t (*devices)(void); /* how many there are */

    /* Text about the machine: the instruction set or the device; never null. */
    const char *(*describe)(void);
    int32_t (*default_threads)(void); /* 0 on a device */

    /* Call body(self) with rounding to nearest and gradual underflow in the calling
     * thread, as every other entry of a host backend computes, and restore the mode of
     * the thread. Null in a device backend. */
    void (*in_default_fp_mode)(void (*body)(void *self), void *self);
} ps_backend;

const ps_backend *ps_backend_get(void);

const char *ps_status_text(ps_status status);

/* Bytes of an element; `dtype` is legal. */
int64_t ps_dtype_size(ps_dtype dtype);

/* Whether `dtype` is float32 or float64. */
int ps_is_real(ps_dtype dtype);

/* The pivoting of a solve: options->pivot for PS_AUTO, otherwise fixed by the method. */
ps_pivot ps_options_pivot(const ps_options *options);

/* Check all that the structs alone determine, for all backends. If b is null,
 * ps_factor_check() checks the factor without its store. */
ps_status ps_tridiag_check(const ps_tridiag *t, const ps_options *options);
ps_status ps_spikes_check(const ps_spikes *s, const ps_options *options);
ps_status ps_factor_check(const ps_factor *f, const ps_factor_rhs *b);

#ifdef __cplusplus
}
#endif
#endif
