/* blocks.h - entries of the backend for block tridiagonal systems and five diagonals. */
#ifndef PS_CPU_BLOCKS_H
#define PS_CPU_BLOCKS_H

#include "ps_blocks.h"

ps_status ps_cpu_blocks_store(const ps_blocks *b, const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_blocks_work(const ps_blocks *b, const ps_exec *exec, size_t *bytes);
ps_status ps_cpu_blocks_run(const ps_blocks *b, const ps_exec *exec, ps_report *report);

#endif
