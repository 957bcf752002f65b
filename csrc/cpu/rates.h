/* rates.h - entry of the backend for rates of equations on boxes. */
#ifndef PS_CPU_RATES_H
#define PS_CPU_RATES_H

#include "ps_rates.h"

ps_status ps_cpu_rates(const ps_rates *r, const ps_exec *exec);

#endif
