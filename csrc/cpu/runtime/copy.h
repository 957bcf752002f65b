/* copy.h - parallel memory copy. */
#ifndef PS_CPU_COPY_H
#define PS_CPU_COPY_H

#include "pysolvers.h"

ps_status ps_cpu_copy(void *to, const void *from, size_t bytes, const ps_exec *exec);

#endif
