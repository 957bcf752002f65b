/* recurrence.h - entries of the backend for linear recurrences. */
#ifndef PS_CPU_RECURRENCE_H
#define PS_CPU_RECURRENCE_H

#include "ps_recurrence.h"

ps_status ps_cpu_recurrence_work(const ps_recurrence *r, const ps_exec *exec,
                                 size_t *bytes);
ps_status ps_cpu_recurrence(const ps_recurrence *r, const ps_exec *exec);

#endif
