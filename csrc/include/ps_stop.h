/* ps_stop.h - when a relaxation ends: what ps_lmsor.h and ps_laplace.h share. */
#ifndef PS_STOP_H
#define PS_STOP_H

#include "pysolvers.h"

/* The number x of a node that is measured in an iteration: the residual that the node
 * meets just before it is relaxed, its new value less its old one, or its new value. */
#define PS_CRITERION_LIST(X)             \
    X(PS_CRITERION_RESIDUAL, "residual") \
    X(PS_CRITERION_CHANGE, "change")     \
    X(PS_CRITERION_SOLUTION, "solution")

/* max |x|, or the root mean square of x, over all interior nodes. */
#define PS_NORM_LIST(X)   \
    X(PS_NORM_MAX, "max") \
    X(PS_NORM_L2, "l2")

/* Why a call ended: all iterations made, the measure at most the tolerance, or a measure
 * that is not finite. */
#define PS_END_LIST(X)               \
    X(PS_END_COUNT, "count")         \
    X(PS_END_TOLERANCE, "tolerance") \
    X(PS_END_NOT_FINITE, "not finite")

#define PS_NAME_(name, text) name,
typedef enum { PS_CRITERION_LIST(PS_NAME_) PS_CRITERION_COUNT } ps_criterion;
typedef enum { PS_NORM_LIST(PS_NAME_) PS_NORM_COUNT } ps_norm;
typedef enum { PS_END_LIST(PS_NAME_) PS_END_REASONS } ps_end;
#undef PS_NAME_

/* Iterations `every`, 2 `every`, ... of a call, and its last one, are measured; the call
 * ends with the first of them whose measure is at most the tolerance, or is not finite.
 * The maximum is exact; the mean square is summed in an order that depends on the grid
 * alone. */
typedef struct {
    ps_criterion criterion;
    ps_norm norm;
    int64_t every;    /* 0: nothing is measured, and all iterations are made */
    double tolerance; /* negative: never */
    double *history;  /* null, or room for ceil(count / every) measures, where u lies */
} ps_stop;

/* What was done. A device backend waits for its end. */
typedef struct {
    int64_t iterations; /* whole ones; fewer than asked for when ended or interrupted */
    int64_t measures;   /* entries of the history */
    double measure;     /* the last; NaN if there is none */
    ps_end end;
    int32_t threads;    /* host threads used; 0 on a device */
    const char *kernel; /* instruction set or kernel, a static text */
} ps_relax_report;

#ifdef __cplusplus
extern "C" {
#endif

/* Everything that can be told from the struct alone. */
ps_status ps_stop_check(const ps_stop *stop);

#ifdef __cplusplus
}
#endif

#endif
