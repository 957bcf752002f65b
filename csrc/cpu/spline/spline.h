/* spline.h - rows, pieces and points of splines on the CPU. */
#ifndef PS_CPU_SPLINE_H
#define PS_CPU_SPLINE_H

#include "ps_spline.h"

ps_status ps_cpu_spline_rows(const ps_spline_rows *r, const ps_exec *exec);
ps_status ps_cpu_spline_pieces(const ps_spline_pieces *p, const ps_exec *exec);
ps_status ps_cpu_spline_points(const ps_spline_points *p, const ps_exec *exec);

#endif
