/* call.h - common parts of every call into the backend: workspace, signals, report. */
#ifndef PS_PYTHON_CALL_H
#define PS_PYTHON_CALL_H

#include "numpy_api.h"

#include <time.h>

#include "pysolvers.h"

/* How long a block is needed: by what its stream holds when it is freed, or by
 * anybody, also after that stream has ended. The same on the host. */
typedef enum { FOR_STREAM, FOR_LONG } lifetime;

/* Memory of the backend, aligned to 64 bytes. `raw` is what the allocator gave, null
 * if nothing. */
typedef struct {
    void *raw, *data;
    size_t bytes;
    lifetime life;
    int32_t device;
    void *stream;
} block;

/* 0, or -1 with MemoryError or, if a device fails, RuntimeError. With the GIL held. */
int block_allocate(size_t bytes, lifetime life, const ps_exec *exec, block *b);
/* Free what there is. Without an exception; may wait, with the GIL released. */
void block_free(block *b);

/* Set the device and the stream of *exec: 0, or -1 with an exception that states why they
 * cannot be used. */
int exec_begin(ps_exec *exec, int device, unsigned long long stream);

/* A call in progress. Between call_enter() and call_leave() the GIL is free and
 * exec.poll checks for signals periodically. Must not be moved or copied. */
typedef struct {
    ps_exec exec;
    block work;
    PyThreadState *thread_state; /* null while the GIL is held */
    struct timespec polled;
    int signals_are_ours; /* unknown (-1) until the first poll */
} call;

/* Prepare a call with this many threads (0: the default), on this device and stream,
 * which the host ignores, and, from call_work(), with this much workspace; 0, or -1 with
 * an exception. Ends with call_end(). */
int call_begin(call *c, int threads, int device, unsigned long long stream);
int call_work(call *c, size_t bytes);
void call_end(call *c);

void call_enter(call *c);
/* -1 if a signal handler raised, else 0. */
int call_leave(call *c);

/* Count the systems that were solved with row exchanges, and those solved a second time,
 * of `systems`, where only the device knows them: waits for the stream. Between
 * call_enter() and call_leave(). */
ps_status call_count_pivoted(const call *c, int64_t systems, ps_report *report);

/* {name: seconds}, a new reference, or null with an exception. */
PyObject *call_seconds(const char *const *names, const double *seconds, int count);

/* {"method": str, "threads": int, "pivoted": int, "kernel": str}; None unless the
 * status is PS_OK. */
PyObject *call_report(ps_status status, const ps_report *report);

#endif
