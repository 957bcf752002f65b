/* memory.h - functions of the extension of a backend with device memory. */
#ifndef PS_PYTHON_MEMORY_H
#define PS_PYTHON_MEMORY_H

#include "numpy_api.h"

#include "pysolvers.h"

/* Add the types and functions below; 0, or -1 with an exception. All functions except
 * the last two have the additional arguments device=0, stream=0 after those shown, and
 * return a status.
 *
 *   Buffer(nbytes, device=0, stream=0, lasting=False)   .address .nbytes .device
 *   Mark(device=0, stream=0)                            .passed
 *   Answer(device=0, stream=0)                          .address .read(nbytes) .end()
 *   Graph(device=0, stream=0)                           .launch()
 *   upload(address, host)        download(host, address)      relayout(to, source)
 *   accumulate(to, source)       add_product(to, factor, source)            capture()
 *   fill_nan(x, info)            order(first, second, device=0)             wait()
 *   device_count() -> int        unavailable() -> str or None */
int memory_add(PyObject *module);

/* What the backend made on a stream: the object of Mark, of Answer and of Graph. */
typedef struct {
    PyObject ob_base;
    ps_exec exec;
    void *made; /* null until the backend has made it */
} handle_object;

/* Make an object with the arguments device=0, stream=0; `format` is that of
 * PyArg_ParseTupleAndKeywords. Null with an exception. */
PyObject *handle_new(PyTypeObject *type, PyObject *args, PyObject *keywords,
                     const char *format,
                     ps_status (*make)(const ps_exec *exec, void **made));

/* Free an object, by `end` what the backend made. */
void handle_dealloc(PyObject *self, ps_status (*end)(void *made, const ps_exec *exec));

/* New objects of the types Buffer and Answer of the module, and the address of their memory;
 * null with an exception. */
PyObject *buffer_of(PyObject *module, size_t bytes, int device, unsigned long long stream,
                    void **data);
PyObject *answer_of(PyObject *module, int device, unsigned long long stream, void **data);

/* Add what is in buffer.c and in graph.c. */
int buffer_add(PyObject *module);
int graph_add(PyObject *module);

#endif
