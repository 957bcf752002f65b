/* laplace.cu - red-black SOR for the plate on the GPU.
 *
 * PS_LAPLACE_AUTO makes 4 iterations in one pass over the field
 * (relax_blocked_sweep.cuh), with 2 words of memory traffic per cell for all 4, or 8
 * iterations on a small grid (relax_tile.cuh). The device decides when the iteration
 * ends. The variants of the survey relax one colour per kernel, and the host reads
 * their residuals.
 */
#include "relaxation/laplace.h"

#include "device/number.cuh"
#include "runtime/backend.h"

namespace pysolvers::relaxation {

using namespace device;

namespace {

ps_cuda_field
field_of(const ps_laplace *l)
{
    return {ps_cuda_grid_of(l->nx, l->ny, l->pitch), l->dtype, l->t, &l->stop};
}

/* use(kernels), after prepare(), for PS_LAPLACE_AUTO. */
template <typename Use>
ps_status
with_kernels(const ps_laplace *l, Use use)
{
    const auto prepared = [](Relaxation &kernels, void *self) {
        const ps_status ready = kernels.prepare();

        return ready == PS_OK ? (*static_cast<Use *>(self))(kernels) : ready;
    };

    return with_real(l->dtype, [&](auto zero) {
        return with_laplace_kernels<decltype(zero)>(l, prepared, &use);
    });
}

ps_status
check(const ps_laplace *l)
{
    const ps_status status = ps_laplace_check(l);

    return status == PS_OK && l->periodic != 0 ? PS_UNSUPPORTED : status;
}

} // namespace

ps_status
ps_cuda_laplace_work(const ps_laplace *l, size_t *bytes)
{
    const ps_status status = check(l);

    if (status != PS_OK) {
        return status;
    }
    if (l->variant != PS_LAPLACE_AUTO) {
        *bytes = ps_cuda_laplace_variant_work(l);
        return PS_OK;
    }
    return with_kernels(l, [=](const Relaxation &kernels) {
        const ps_cuda_field field = field_of(l);

        *bytes = ps_cuda_relax_work(&field, kernels);
        return PS_OK;
    });
}

ps_status
ps_cuda_laplace_iterate(const ps_laplace *l, int64_t count, const ps_exec *exec,
                        ps_laplace_report *report)
{
    const ps_status status = check(l);

    if (status != PS_OK) {
        return status;
    }
    if (l->variant != PS_LAPLACE_AUTO) {
        return ps_cuda_laplace_variant(l, count, exec, &report->relax);
    }
    return with_kernels(l, [=](const Relaxation &kernels) {
        const ps_cuda_field field = field_of(l);

        return ps_cuda_relax(&field, kernels, count, exec, &report->relax);
    });
}

ps_status
ps_cuda_laplace_enqueue(const ps_laplace *l, int64_t count, const ps_exec *exec,
                        const char **kernel)
{
    const ps_status status = check(l);

    if (status != PS_OK) {
        return status;
    }
    if (l->variant != PS_LAPLACE_AUTO) {
        return PS_UNSUPPORTED;
    }
    return with_kernels(l, [=](const Relaxation &kernels) {
        const ps_cuda_field field = field_of(l);

        *kernel = kernels.kernel();
        return ps_cuda_relax_enqueue(&field, kernels, count, exec);
    });
}

} // namespace pysolvers::relaxation
