/* call.h - common parts of every call into the backend: workspace, signals, report. */
#ifndef PS_PYTHON_CALL_H
#define PS_PYTHON_CALL_H

#include "numpy_api.h"

#include <time.h>

#include "pysolvers.h"

/* The lifetime of a block: until the work of its stream at the time of block_free() is
 * complete, or independent of streams, so that it may be used after its stream has been
 * destroyed. Host memory makes no difference. */
typedef enum { FOR_STREAM, FOR_LONG } lifetime;

/* Memory of the backend, aligned to 64 bytes. `raw` is the address that the allocator
 * returned; null if nothing is allocated. */
typedef struct {
    void *raw, *data;
    size_t bytes;
    lifetime life;
    int32_t device;
    void *stream;
} block;

/* 0, or -1 with MemoryError, or with RuntimeError if a device fails. The caller holds
 * the GIL. */
int block_allocate(size_t bytes, lifetime life, const ps_exec *exec, block *b);
/* Free the memory of a block, if there is any. Sets no exception; may wait, with the
 * GIL released. */
void block_free(block *b);

/* Set the device and the stream of *exec: 0, or -1 with an exception that states why they
 * cannot be used. */
int exec_begin(ps_exec *exec, int device, unsigned long long stream);

/* A call in progress. Between call_enter() and call_leave() the GIL is released and
 * exec.poll checks for signals periodically. Must not be moved or copied. */
typedef struct {
    ps_exec exec;
    block work;
    PyThreadState *thread_state; /* null while the GIL is held */
    struct timespec polled;
    int handles_signals; /* -1 (unknown) until the first poll */
} call;

/* Prepare a call with this number of threads (0: the default) on this device and
 * stream, which host backends ignore; 0, or -1 with an exception. */
int call_begin(call *c, int threads, int device, unsigned long long stream);

void call_enter(call *c);
/* -1 if a signal handler raised an exception, otherwise 0. */
int call_leave(call *c);

/* The same for an entry with a workspace. `status` is that of the function that returned
 * its bytes; if it is not PS_OK, there is no call. 1 if the entry can be called, and
 * call_finish() must follow; 0 if there is no call; -1 with an exception. */
int call_start(call *c, ps_status status, size_t bytes);
int call_finish(call *c);

/* Count the systems, of `systems`, that were solved with row exchanges and those that
 * were solved a second time, if the numbers are known on the device only: waits for the
 * stream. Called between call_enter() and call_leave(). */
ps_status call_count_pivoted(const call *c, int64_t systems, ps_report *report);

/* Copy the numbers of `count` systems from the memory of the backend, and wait; `flag` is
 * memory of the backend for one float. If all numbers of many systems are 0, only the flag
 * is copied, *is_clear is 1 and `info` is not written: the numbers of a million systems
 * take longer than their solve. Called between call_enter() and call_leave(). */
ps_status call_download_info(const call *c, int32_t *info, const int32_t *there,
                             int64_t count, float *flag, int *is_clear);

/* {name: seconds}, a new reference, or null with an exception. */
PyObject *call_seconds(const char *const *names, const double *seconds, int count);

/* {"method": str, "threads": int, "pivoted": int, "kernel": str}; None unless the
 * status is PS_OK. */
PyObject *call_report(ps_status status, const ps_report *report);

#endif
