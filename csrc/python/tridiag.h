/* tridiag.h - one solve by the backend, for both functions that solve systems. */
#ifndef PS_PYTHON_TRIDIAG_H
#define PS_PYTHON_TRIDIAG_H

#include "call.h"

/* Solve in a call that call_begin() has prepared, and end it. `count`: as that of
 * tridiag_solve(). Returns 0, or -1 with an exception. */
int tridiag_run(const ps_tridiag *t, const ps_options *options, int count, call *c,
                ps_status *status, ps_report *report);

#endif
