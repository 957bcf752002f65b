/* modes.h - entry of the backend for products with eigenvectors. */
#ifndef PS_CPU_MODES_H
#define PS_CPU_MODES_H

#include "ps_modes.h"

ps_status ps_cpu_modes(const ps_modes *p, const ps_exec *exec);

#endif
