/* codes.h - the lists of the contract as dictionaries of the extension. */
#ifndef PS_PYTHON_CODES_H
#define PS_PYTHON_CODES_H

#include "numpy_api.h"

/* Set module.name = {text of code 0: 0, text of code 1: 1, ...}; 0, or -1 with an
 * exception. */
int add_codes(PyObject *module, const char *name, const char *const *texts, int count);

#endif
