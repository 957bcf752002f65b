/* backend.c - the CPU as a backend: its table. */
#include "cavity.h"
#include "kernels.h"
#include "threads.h"

static const char *
describe(void)
{
    return ps_isa_get()->name;
}

static const ps_backend cpu = {
    .abi = PS_ABI_VERSION,
    .name = "cpu",
    .memory = PS_HOST,
    .tridiag_work = ps_cpu_tridiag_work,
    .tridiag_solve = ps_cpu_tridiag_solve,
    .factor_store = ps_cpu_factor_store,
    .factor_make_work = ps_cpu_factor_make_work,
    .factor_make = ps_cpu_factor_make,
    .factor_work = ps_cpu_factor_work,
    .factor_solve = ps_cpu_factor_solve,
    .cavity_work = ps_cavity_work,
    .cavity_iterate = ps_cavity_iterate,
    .copy = ps_cpu_copy,
    .describe = describe,
    .default_threads = ps_default_threads,
};

const ps_backend *
ps_backend_get(void)
{
    return &cpu;
}
