/* spikes.h - direct solves of a batch with the outermost columns of the inverses. */
#ifndef PS_CPU_SPIKES_H
#define PS_CPU_SPIKES_H

#include "pysolvers.h"

/* Entries of the backend table. */
ps_status ps_cpu_spikes_work(const ps_spikes *s, const ps_options *options,
                             const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_spikes_solve(const ps_spikes *s, const ps_options *options,
                              const ps_exec *exec, ps_report *report);

#endif
