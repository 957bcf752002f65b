/* memory.h - functions of the extension of a backend with device memory. */
#ifndef PS_PYTHON_MEMORY_H
#define PS_PYTHON_MEMORY_H

#include "numpy_api.h"

/* Add the types and functions below; 0, or -1 with an exception. All functions except
 * the last two have the additional arguments device=0, stream=0 after those shown, and
 * return a status.
 *
 *   Buffer(nbytes, device=0, stream=0, lasting=False)   .address .nbytes .device
 *   Mark(device=0, stream=0)                            .passed
 *   Graph(device=0, stream=0)                           .launch()
 *   upload(address, host)        download(host, address)      relayout(to, source)
 *   accumulate(to, source)       capture()
 *   fill_nan(x, info)            order(first, second, device=0)             wait()
 *   device_count() -> int        unavailable() -> str or None */
int memory_add(PyObject *module);

/* Add what is in buffer.c and in graph.c. */
int buffer_add(PyObject *module);
int graph_add(PyObject *module);

#endif
