/* backend.c - the table of functions of the CPU backend. */
#include "flow/cavity.h"
#include "flow/staggered.h"
#include "heat/heat.h"
#include "lines/factor/factor.h"
#include "relaxation/lmsor.h"
#include "runtime/copy.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "spline/spline.h"
#include "transport/gceidd.h"
#include "spikes.h"
#include "tridiag.h"

static const char *
describe(void)
{
    return ps_isa_get()->name;
}

static const ps_backend cpu = {
    .name = "cpu",
    .memory = PS_HOST,
    .tridiag_work = ps_cpu_tridiag_work,
    .tridiag_solve = ps_cpu_tridiag_solve,
    .spikes_work = ps_cpu_spikes_work,
    .spikes_solve = ps_cpu_spikes_solve,
    .factor_store = ps_cpu_factor_store,
    .factor_make_work = ps_cpu_factor_make_work,
    .factor_make = ps_cpu_factor_make,
    .factor_work = ps_cpu_factor_work,
    .factor_solve = ps_cpu_factor_solve,
    .cavity_work = ps_cavity_work,
    .cavity_iterate = ps_cavity_iterate,
    .staggered_work = ps_staggered_work,
    .staggered_step = ps_staggered_step,
    .lmsor_work = ps_cpu_lmsor_work,
    .lmsor_iterate = ps_cpu_lmsor_iterate,
    .laplace_work = ps_cpu_laplace_work,
    .laplace_iterate = ps_cpu_laplace_iterate,
    .gceidd_work = ps_gceidd_work,
    .gceidd_step = ps_gceidd_step,
    .heat_work = ps_heat_work,
    .heat_step = ps_heat_step,
    .spline_rows = ps_cpu_spline_rows,
    .spline_pieces = ps_cpu_spline_pieces,
    .spline_points = ps_cpu_spline_points,
    .copy = ps_cpu_copy,
    .describe = describe,
    .default_threads = ps_default_threads,
};

const ps_backend *
ps_backend_get(void)
{
    return &cpu;
}
