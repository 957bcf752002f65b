/* call.h - what every call into the backend shares: workspace, signals, report. */
#ifndef PS_PYTHON_CALL_H
#define PS_PYTHON_CALL_H

#include "numpy_api.h"

#include <time.h>

#include "pysolvers.h"

/* Memory aligned to 64 bytes. `raw` is what the allocator gave, null if nothing. */
typedef struct {
    void *raw, *data;
    size_t bytes;
} block;

/* 0, or -1 with MemoryError. The thread holds the GIL or not, at will. */
int block_allocate(size_t bytes, block *b);
void block_free(block *b);

/* A call in progress. Between call_enter() and call_leave() the GIL is free and
 * exec.poll looks for signals from time to time. Not to be moved or copied. */
typedef struct {
    ps_exec exec;
    block work;
    PyThreadState *thread_state; /* null while the GIL is held */
    struct timespec polled;
    int signals_are_ours; /* unknown (-1) until the first poll */
} call;

/* Prepare a call with this many threads (0: the default) and, from call_work(),
 * this much workspace; 0, or -1 with an exception. Ends with call_end(). */
int call_begin(call *c, int threads);
int call_work(call *c, size_t bytes);
void call_end(call *c);

void call_enter(call *c);
/* -1 if a signal handler raised, else 0. */
int call_leave(call *c);

/* {"method": str, "threads": int, "pivoted": int, "kernel": str}; None unless the
 * status is PS_OK. */
PyObject *call_report(ps_status status, const ps_report *report);

#endif
