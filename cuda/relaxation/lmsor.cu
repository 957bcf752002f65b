/* lmsor.cu - LMSOR on the GPU.
 *
 * Kernels 1, 2 and 3 relax one colour each (relax_plain.cuh): 8, 6 and 3 words of
 * memory traffic per node and iteration. PS_LMSOR_AUTO makes several iterations in one
 * pass over the field: 4 in a blocked sweep (relax_blocked_sweep.cuh), with 3 words per
 * node for all of them if the coefficients come from tables and 5 otherwise, or 8
 * iterations on a small grid (relax_tile.cuh). All kernels compute the norms in the
 * same pass.
 */
#include "relaxation/lmsor.h"

#include "device/number.cuh"
#include "runtime/backend.h"

namespace pysolvers::relaxation {

using namespace device;

namespace {

ps_cuda_field
field_of(const ps_lmsor *l)
{
    return {ps_cuda_grid_of(l->nx, l->ny, l->pitch), l->dtype, l->u, &l->stop};
}

/* use(kernels), after prepare(), for the kernels that `l` selects. */
template <typename Use>
ps_status
with_kernels(const ps_lmsor *l, Use use)
{
    const ps_status legal = ps_lmsor_check(l);
    const ps_status status = legal == PS_OK && l->periodic != 0 ? PS_UNSUPPORTED : legal;
    const auto prepared = [](Relaxation &kernels, void *self) {
        const ps_status ready = kernels.prepare();

        return ready == PS_OK ? (*static_cast<Use *>(self))(kernels) : ready;
    };

    if (status != PS_OK) {
        return status;
    }
    return with_real(l->dtype, [&](auto zero) {
        return with_lmsor_kernels<decltype(zero)>(l, prepared, &use);
    });
}

} // namespace

ps_status
ps_cuda_lmsor_work(const ps_lmsor *l, size_t *bytes)
{
    return with_kernels(l, [=](const Relaxation &kernels) {
        const ps_cuda_field field = field_of(l);

        *bytes = ps_cuda_relax_work(&field, kernels);
        return PS_OK;
    });
}

ps_status
ps_cuda_lmsor_iterate(const ps_lmsor *l, int64_t count, const ps_exec *exec,
                      ps_lmsor_report *report)
{
    return with_kernels(l, [=](const Relaxation &kernels) {
        const ps_cuda_field field = field_of(l);

        return ps_cuda_relax(&field, kernels, count, exec, &report->relax);
    });
}

} // namespace pysolvers::relaxation
