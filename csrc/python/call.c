/* call.c - workspace, signals and report of a call into the backend. */
#include "call.h"

enum { ALIGNMENT = 64 };

static const double seconds_between_polls = 0.1;

int
block_allocate(size_t bytes, block *b)
{
    *b = (block){.bytes = bytes};
    if (bytes == 0) {
        return 0;
    }
    if (bytes <= SIZE_MAX - ALIGNMENT) {
        b->raw = PyMem_RawMalloc(bytes + ALIGNMENT);
    }
    if (b->raw == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    b->data = (char *)b->raw + (ALIGNMENT - (uintptr_t)b->raw % ALIGNMENT);
    return 0;
}

void
block_free(block *b)
{
    PyMem_RawFree(b->raw);
    *b = (block){0};
}

/* Whether this thread is the one that runs signal handlers; -1 with an exception. */
static int
is_main_thread(void)
{
    PyObject *const threading = PyImport_ImportModule("threading");
    PyObject *const thread =
        threading ? PyObject_CallMethod(threading, "main_thread", NULL) : NULL;
    PyObject *const ident = thread ? PyObject_GetAttrString(thread, "ident") : NULL;
    int is_main = -1;

    if (ident != NULL) {
        is_main = PyLong_AsUnsignedLong(ident) == PyThread_get_thread_ident();
    }
    Py_XDECREF(ident);
    Py_XDECREF(thread);
    Py_XDECREF(threading);
    return is_main;
}

/* Non-zero once a signal handler has raised, or the main thread cannot be told. */
static int
run_signal_handlers(call *c)
{
    if (c->signals_are_ours < 0) {
        c->signals_are_ours = is_main_thread();
    }
    if (PyErr_Occurred()) {
        return 1;
    }
    return c->signals_are_ours && PyErr_CheckSignals() < 0;
}

/* Distance of two times: a clock that is set back only delays one poll. */
static int
is_due(const struct timespec *before, const struct timespec *now)
{
    const double seconds = difftime(now->tv_sec, before->tv_sec) +
                           1e-9 * (double)(now->tv_nsec - before->tv_nsec);

    return seconds >= seconds_between_polls || seconds < 0;
}

static int
poll_signals(void *self)
{
    call *const c = self;
    struct timespec now;

    if (c->signals_are_ours == 0 || timespec_get(&now, TIME_UTC) != TIME_UTC ||
        !is_due(&c->polled, &now)) {
        return 0;
    }
    c->polled = now;
    PyEval_RestoreThread(c->thread_state);
    const int stop = run_signal_handlers(c);
    c->thread_state = PyEval_SaveThread();
    return stop;
}

int
call_begin(call *c, int threads)
{
    *c = (call){.signals_are_ours = -1};
    if (threads < 0) {
        PyErr_Format(PyExc_ValueError, "threads: need at least 0, got %d", threads);
        return -1;
    }
    c->exec.threads = threads;
    c->exec.poll = poll_signals;
    c->exec.poll_self = c;
    (void)timespec_get(&c->polled, TIME_UTC);
    return 0;
}

int
call_work(call *c, size_t bytes)
{
    if (block_allocate(bytes, &c->work) < 0) {
        return -1;
    }
    c->exec.work = c->work.data;
    c->exec.work_bytes = c->work.bytes;
    return 0;
}

void
call_end(call *c)
{
    block_free(&c->work);
}

void
call_enter(call *c)
{
    c->thread_state = PyEval_SaveThread();
}

int
call_leave(call *c)
{
    PyEval_RestoreThread(c->thread_state);
    c->thread_state = NULL;
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *
call_report(ps_status status, const ps_report *report)
{
    static const char *const methods[PS_METHOD_COUNT] = {
#define PS_TEXT_(name, text) [name] = text,
        PS_METHOD_LIST(PS_TEXT_)
#undef PS_TEXT_
    };

    if (status != PS_OK) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("{s:s,s:i,s:L,s:s}", "method", methods[report->method],
                         "threads", (int)report->threads, "pivoted",
                         (long long)report->pivoted, "kernel",
                         report->kernel ? report->kernel : "");
}
