/* cavity.h - the cavity entries of the CPU backend; rules in pysolvers.h. */
#ifndef PS_CPU_CAVITY_H
#define PS_CPU_CAVITY_H

#include "ps_cavity.h"

/* Workspace of ps_cavity_iterate. */
ps_status ps_cavity_work(const ps_cavity *c, const ps_options *options,
                         const ps_exec *exec, size_t *bytes);

/* Run `count` iterations. exec->poll is called between iterations: after an
 * interruption, the fields contain the state after the number of complete iterations in
 * the report. The result has the same bits for any number of threads. */
ps_status ps_cavity_iterate(const ps_cavity *c, int64_t count, const ps_options *options,
                            const ps_exec *exec, ps_cavity_report *report);

#endif
