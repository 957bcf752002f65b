/* ps_stop.h - stopping criterion and periodic axes of relaxations, shared by ps_lmsor.h
 * and ps_laplace.h.
 */
#ifndef PS_STOP_H
#define PS_STOP_H

#include "pysolvers.h"

/* The quantity x that an iteration measures at a node: the residual of the node just
 * before it is relaxed, the change (new value minus old value), or the new value. */
#define PS_CRITERION_LIST(X)             \
    X(PS_CRITERION_RESIDUAL, "residual") \
    X(PS_CRITERION_CHANGE, "change")     \
    X(PS_CRITERION_SOLUTION, "solution")

/* max |x|, or the root mean square of x, over the interior nodes of the counted rows: the
 * sum of squares is divided by the number of these nodes. */
#define PS_NORM_LIST(X)   \
    X(PS_NORM_MAX, "max") \
    X(PS_NORM_L2, "l2")

/* Why a call ended: all iterations are done, the measure is at most the tolerance, or the
 * measure is not finite. */
#define PS_END_LIST(X)               \
    X(PS_END_COUNT, "count")         \
    X(PS_END_TOLERANCE, "tolerance") \
    X(PS_END_NOT_FINITE, "not finite")

#define PS_NAME_(name, text) name,
typedef enum { PS_CRITERION_LIST(PS_NAME_) PS_CRITERION_COUNT } ps_criterion;
typedef enum { PS_NORM_LIST(PS_NAME_) PS_NORM_COUNT } ps_norm;
typedef enum { PS_END_LIST(PS_NAME_) PS_END_REASONS } ps_end;
#undef PS_NAME_

/* Iterations `every`, 2 `every`, ... of a call and its last iteration are measured. The
 * call ends with the first of them whose measure is at most the tolerance or is not
 * finite. The maximum is exact; the order of summation of the mean square depends on the
 * grid and the counted rows only.
 *
 * The counted rows are first_row <= j < first_row + rows. A rank of a group that relaxes
 * rows of its neighbours as well counts its own: the ranks combine their maxima, or the
 * mean squares with the numbers of nodes as weights. Which rows count does not change the
 * field. */
typedef struct {
    ps_criterion criterion;
    ps_norm norm;
    int64_t every;    /* 0: measure nothing and run all iterations */
    double tolerance; /* negative: no tolerance ends the call */
    double
        *history; /* null, or ceil(count / every) measures in the memory of the field */
    int64_t first_row, rows; /* 0, 0: all interior rows, 1 <= j <= ny */
} ps_stop;

/* Periodic axes, as bits. The frame along such an axis contains copies: column 0 is column
 * nx, column nx+1 is column 1, and likewise the rows. The caller makes the frame agree
 * with the nodes at first; every half-sweep keeps it so. The number of nodes along a
 * periodic axis is even, so that neighbours have different colours. */
enum { PS_PERIODIC_X = 1, PS_PERIODIC_Y = 2 };

/* What was done. A device backend waits for the end of the call. */
typedef struct {
    int64_t iterations; /* complete ones; fewer than `count` if stopped or interrupted */
    int64_t measures;   /* entries of the history */
    double measure;     /* the last measure; NaN if there is none */
    ps_end end;
    int32_t threads;    /* host threads used; 0 on a device */
    const char *kernel; /* instruction set or kernel, a static text */
} ps_relax_report;

#ifdef __cplusplus
extern "C" {
#endif

/* Check all that the struct alone determines, for a grid of `ny` interior rows. */
ps_status ps_stop_check(const ps_stop *stop, int64_t ny);

/* Whether row j, 1 <= j <= ny, is counted; and how many rows are. */
static inline int
ps_stop_counts(const ps_stop *stop, int64_t j)
{
    return stop->rows == 0 || (j >= stop->first_row && j - stop->first_row < stop->rows);
}

static inline int64_t
ps_stop_rows(const ps_stop *stop, int64_t ny)
{
    return stop->rows == 0 ? ny : stop->rows;
}

#ifdef __cplusplus
}
#endif

#endif
