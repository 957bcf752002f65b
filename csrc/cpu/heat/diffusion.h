/* diffusion.h - entries of ps_diffusion.h in the table of the backend. */
#ifndef PS_CPU_DIFFUSION_H
#define PS_CPU_DIFFUSION_H

#include "ps_diffusion.h"

ps_status ps_cpu_diffusion_apply(const ps_diffusion *d, void *out, const ps_exec *exec);
ps_status ps_cpu_diffusion_work(const ps_diffusion *d, const ps_exec *exec,
                                size_t *bytes);
ps_status ps_cpu_diffusion_solve(const ps_diffusion *d, const ps_exec *exec,
                                 ps_diffusion_report *report);

#endif
