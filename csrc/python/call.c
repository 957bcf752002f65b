/* call.c - workspace, signals and report of a call into the backend. */
#include "call.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

enum { ALIGNMENT = 64, LARGE_PAGE = 1 << 21 };

static const double seconds_between_polls = 0.1;

/* Request huge pages: for many megabytes of new memory, the page faults of small pages
 * cost more time than the solve. */
static void
request_large_pages(const block *b)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const uintptr_t begin = (uintptr_t)b->data + LARGE_PAGE - 1, mask = LARGE_PAGE - 1;
    const uintptr_t first = begin & ~mask, end = ((uintptr_t)b->data + b->bytes) & ~mask;

    if (first < end) {
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
    }
#else
    (void)b;
#endif
}

static int
allocate_on_host(block *b)
{
    if (b->bytes <= SIZE_MAX - ALIGNMENT) {
        b->raw = PyMem_RawMalloc(b->bytes + ALIGNMENT);
    }
    if (b->raw == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    b->data = (char *)b->raw + (ALIGNMENT - (uintptr_t)b->raw % ALIGNMENT);
    request_large_pages(b);
    return 0;
}

static int
allocate_on_device(const ps_exec *exec, block *b)
{
    const ps_backend *const backend = ps_backend_get();
    const ps_status status = b->life == FOR_STREAM
                                 ? backend->allocate(b->bytes, exec, &b->raw)
                                 : backend->reserve(b->bytes, exec, &b->raw);

    if (status != PS_OK) {
        PyErr_Format(status == PS_NO_MEMORY ? PyExc_MemoryError : PyExc_RuntimeError,
                     "device %d, %zu bytes: %s", (int)exec->device, b->bytes,
                     ps_status_text(status));
        b->raw = NULL;
        return -1;
    }
    b->data = b->raw;
    return 0;
}

int
block_allocate(size_t bytes, lifetime life, const ps_exec *exec, block *b)
{
    *b = (block){
        .bytes = bytes, .life = life, .device = exec->device, .stream = exec->stream};
    if (bytes == 0) {
        return 0;
    }
    return ps_backend_get()->memory == PS_HOST ? allocate_on_host(b)
                                               : allocate_on_device(exec, b);
}

void
block_free(block *b)
{
    const ps_backend *const backend = ps_backend_get();
    const ps_exec exec = {.device = b->device, .stream = b->stream};

    if (backend->memory == PS_HOST) {
        PyMem_RawFree(b->raw);
    }
    else if (b->raw != NULL && b->life == FOR_STREAM) {
        (void)backend->release(b->raw, &exec);
    }
    else if (b->raw != NULL) {
        PyThreadState *const state = PyEval_SaveThread();

        (void)backend->discard(b->raw, &exec);
        PyEval_RestoreThread(state);
    }
    *b = (block){0};
}

int
exec_begin(ps_exec *exec, int device, unsigned long long stream)
{
    const ps_backend *const backend = ps_backend_get();

    *exec = (ps_exec){.device = device, .stream = (void *)(uintptr_t)stream};
    if (backend->memory == PS_HOST) {
        return 0;
    }
    const char *const unavailable = backend->unavailable();
    if (unavailable != NULL) {
        PyErr_SetString(PyExc_RuntimeError, unavailable);
        return -1;
    }
    if (device < 0 || device >= backend->devices()) {
        PyErr_Format(PyExc_ValueError, "device: there are %d, counted from 0, got %d",
                     (int)backend->devices(), device);
        return -1;
    }
    return 0;
}

/* Whether this thread runs the signal handlers; -1 with an exception. */
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

/* Non-zero if a signal handler has raised, or the main thread cannot be determined. */
static int
run_signal_handlers(call *c)
{
    if (c->handles_signals < 0) {
        c->handles_signals = is_main_thread();
    }
    if (PyErr_Occurred()) {
        return 1;
    }
    return c->handles_signals && PyErr_CheckSignals() < 0;
}

/* Difference of two times. If the clock is set back, only one poll is delayed. */
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

    if (c->handles_signals == 0 || timespec_get(&now, TIME_UTC) != TIME_UTC ||
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
call_begin(call *c, int threads, int device, unsigned long long stream)
{
    *c = (call){.handles_signals = -1};
    if (exec_begin(&c->exec, device, stream) < 0) {
        return -1;
    }
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

int
call_start(call *c, ps_status status, size_t bytes)
{
    if (status != PS_OK) {
        return 0;
    }
    if (block_allocate(bytes, FOR_STREAM, &c->exec, &c->work) < 0) {
        return -1;
    }
    c->exec.work = c->work.data;
    c->exec.work_bytes = c->work.bytes;
    call_enter(c);
    return 1;
}

int
call_finish(call *c)
{
    const int raised = call_leave(c);

    block_free(&c->work);
    return raised;
}

/* If *count is not known yet, replace it by the number of marks that are at least
 * `least`. */
static ps_status
count_marks(const call *c, int64_t systems, const uint8_t *marks, uint8_t least,
            int64_t *count)
{
    const size_t bytes = (size_t)systems;
    int64_t marked = 0;

    if (*count >= 0 || marks == NULL) {
        return PS_OK;
    }
    uint8_t *const copy = PyMem_RawMalloc(bytes);
    if (copy == NULL) {
        return PS_NO_MEMORY;
    }
    const ps_status status = ps_backend_get()->download(copy, marks, bytes, &c->exec);
    for (size_t s = 0; status == PS_OK && s < bytes; s++) {
        marked += copy[s] >= least;
    }
    *count = status == PS_OK ? marked : -1;
    PyMem_RawFree(copy);
    return status;
}

ps_status
call_count_pivoted(const call *c, int64_t systems, ps_report *report)
{
    const ps_status status = count_marks(c, systems, report->marks, 1, &report->pivoted);

    return status != PS_OK ? status
                           : count_marks(c, systems, report->again, PS_SOLVED_AGAIN,
                                         &report->repeated);
}

ps_status
call_download_info(const call *c, int32_t *info, const int32_t *there, int64_t count,
                   float *flag, int *is_clear)
{
    const ps_backend *const backend = ps_backend_get();
    const size_t bytes = (size_t)count * sizeof *info;
    /* every system that has a number sets the flag to NaN */
    const ps_blank b = {.dtype = PS_F32,
                        .rows = 1,
                        .outer = 1,
                        .inner = count,
                        .x = {.data = flag},
                        .info = there,
                        .info_inner = 1};
    float found = 0;

    *is_clear = 0;
    if (bytes <= PS_ANSWER_BYTES) {
        return backend->download(info, there, bytes, &c->exec);
    }
    ps_status status = backend->upload(flag, &found, sizeof found, &c->exec);

    if (status == PS_OK) {
        status = backend->blank(&b, &c->exec);
    }
    if (status == PS_OK) {
        status = backend->download(&found, flag, sizeof found, &c->exec);
    }
    *is_clear = status == PS_OK && found == 0;
    return status == PS_OK && !*is_clear ? backend->download(info, there, bytes, &c->exec)
                                         : status;
}

PyObject *
call_seconds(const char *const *names, const double *seconds, int count)
{
    PyObject *const found = PyDict_New();
    int failed = found == NULL;

    for (int k = 0; k < count && !failed; k++) {
        PyObject *const value = PyFloat_FromDouble(seconds[k]);

        failed = value == NULL || PyDict_SetItemString(found, names[k], value) < 0;
        Py_XDECREF(value);
    }
    if (failed) {
        Py_XDECREF(found);
        return NULL;
    }
    return found;
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
    return Py_BuildValue(
        "{s:s,s:i,s:L,s:L,s:s}", "method", methods[report->method], "threads",
        (int)report->threads, "pivoted", (long long)report->pivoted, "repeated",
        (long long)report->repeated, "kernel", report->kernel ? report->kernel : "");
}
