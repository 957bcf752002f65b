/* laplace.c - red-black SOR on finite volumes: the parameters of a row, for each
 * variant.
 *
 * Memory traffic is that of the field alone: 3 words per cell in an iteration of two
 * half-sweeps, 2 in a pass of several iterations.
 */
#include "relaxation/lmsor.h"
#include "relaxation/relax.h"
#include "relaxation/relax_serial.h"
#include "runtime/isa.h"

static void
describe(const void *self, int colour, int64_t j, size_t offset, void *scratch,
         ps_relax_row *row)
{
    const ps_laplace *const l = self;
    const int64_t place = j == 1 ? 0 : j == l->ny ? 2 : 1;
    const int64_t table = 2 * place + (l->variant == PS_LAPLACE_NAIVE ? 0 : row->parity);
    const int64_t skip = table * l->pitch * (l->dtype == PS_F32 ? 4 : 8);
    (void)colour;
    (void)scratch;

    row->cx = l->ax;
    row->cy = l->ay;
    row->omega = (const char *)l->gain + skip;
    row->coefficient[0] = (const char *)l->diag + skip;
    if (l->source != NULL) {
        row->source = (const char *)l->source + offset;
    }
}

static ps_relax
relaxation_of(const ps_laplace *l)
{
    const int naive = l->variant == PS_LAPLACE_NAIVE;

    return (ps_relax){
        .dtype = l->dtype,
        .nx = l->nx,
        .ny = l->ny,
        .pitch = l->pitch,
        .field = l->t,
        .stop = &l->stop,
        .kernel = naive ? "serial" : ps_isa_get()->name,
        .row = naive ? ps_relax_serial_volumes(l->dtype)
                     : ps_relax_kernels_get(l->dtype)->row[PS_ROW_VOLUMES],
        .describe = describe,
        .self = l,
        .interleaved = naive,
        .blocked = l->variant == PS_LAPLACE_AUTO && l->periodic == 0,
        .periodic = l->periodic,
        .row_words = 1 + (l->source != NULL),
    };
}

static ps_status
check(const ps_laplace *l)
{
    const ps_status status = ps_laplace_check(l);

    if (status != PS_OK) {
        return status;
    }
    return l->coefficients == PS_LAPLACE_TABLES &&
                   (l->variant == PS_LAPLACE_AUTO || l->variant == PS_LAPLACE_NAIVE ||
                    l->variant == PS_LAPLACE_SPLIT)
               ? PS_OK
               : PS_UNSUPPORTED;
}

ps_status
ps_cpu_laplace_work(const ps_laplace *l, const ps_exec *exec, size_t *bytes)
{
    const ps_status status = check(l);

    if (status != PS_OK) {
        return status;
    }
    const ps_relax r = relaxation_of(l);
    *bytes = ps_relax_work(&r, exec);
    return PS_OK;
}

ps_status
ps_cpu_laplace_iterate(const ps_laplace *l, int64_t count, const ps_exec *exec,
                       ps_laplace_report *report)
{
    const ps_status status = check(l);

    if (status != PS_OK) {
        return status;
    }
    const ps_relax r = relaxation_of(l);
    return ps_relax_iterate(&r, count, exec, &report->relax);
}
