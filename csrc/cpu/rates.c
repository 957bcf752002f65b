/* rates.c - rates of equations on boxes: blocks of rows, divided among the threads.
 *
 * Words moved per node: 1 for u, d and each array of coefficients that varies along all
 * axes, 1 for a result, and 1 more if `own` is not 0. Rows of neighbours are in the caches
 * of a thread, which computes adjacent rows. Results of large fields are stored past the
 * caches, otherwise their lines would be read first. */
#include "rates.h"

#include "lines/rates.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/tuning.h"

typedef struct {
    const ps_rates *r;
    const ps_rates_kernels *kernels;
    int is_streamed;
} rates_loop;

static void
run_blocks(void *self, int64_t begin, int64_t end, int thread)
{
    const rates_loop *const l = self;

    (void)thread;
    l->kernels->run(l->r, begin, end, l->is_streamed);
}

ps_status
ps_cpu_rates(const ps_rates *r, const ps_exec *exec)
{
    if (ps_rates_check(r) != PS_OK) {
        return PS_BAD_ARGUMENT;
    }
    const int64_t lines = r->count[0] * r->count[1] * r->count[2];
    const int64_t nodes = lines * r->count[3];
    rates_loop l = {
        r, r->dtype == PS_F32 ? PS_ISA_OF(ps_rates_f32) : PS_ISA_OF(ps_rates_f64),
        nodes * ps_dtype_size(r->dtype) > PS_STREAM_BYTES};

    return nodes == 0
               ? PS_OK
               : ps_run(exec, ps_thread_count_for(exec, nodes),
                        lines * ps_rates_blocks(r), PS_RATES_BLOCK, run_blocks, &l);
}
