/* modes.c - products with eigenvectors: panels of vectors, divided among the threads.
 *
 * A BLAS needs the sums and differences of mirror images in memory, and copies matrices and
 * values before each product: those of 31 fields of 63 x 63 take 1.5 to 2 times as long by
 * it, and those of 128^3 values 1.4 times, with one thread of an AMD EPYC. There are no
 * kernels for AVX-512, with which solves on stretched grids took 1.0 to 1.15 of the time.
 */
#include "modes.h"

#include "lines/modes.h"
#include "runtime/isa.h"
#include "runtime/threads.h"

typedef struct {
    const ps_modes *p;
    const ps_modes_kernels *kernels;
} modes_loop;

static void
run_panels(void *self, int64_t begin, int64_t end, int thread)
{
    const modes_loop *const l = self;

    (void)thread;
    l->kernels->run(l->p, begin, end);
}

ps_status
ps_cpu_modes(const ps_modes *p, const ps_exec *exec)
{
    if (ps_modes_check(p) != PS_OK) {
        return PS_BAD_ARGUMENT;
    }
    const int64_t panels =
        p->size[PS_MODES_OUTER] * p->size[PS_MODES_MIDDLE] * ps_modes_panels(p);
    const int64_t rows = p->size[PS_MODES_ROW], cost = rows * ps_modes_width(p);
    modes_loop l = {p, p->dtype == PS_F32 ? PS_ISA_NARROW(ps_modes_f32)
                                          : PS_ISA_NARROW(ps_modes_f64)};

    return panels == 0 ? PS_OK
                       : ps_run(exec, ps_thread_count_for(exec, panels * cost), panels,
                                cost, run_panels, &l);
}
