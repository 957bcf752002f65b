/* gceidd_strips.cu - the conditions for kernels with one strip per thread, and the
 * choice of their dtype.
 */
#include "device/number.cuh"
#include "runtime/math.cuh"
#include "transport/gceidd_strips.h"

namespace pysolvers::transport {

using namespace device;
using namespace runtime;

namespace {

bool
lies_along(const ps_gceidd_data &data, int axis)
{
    return (axis == PS_GCEIDD_X ? data.x : data.y) != 0;
}

bool
is_short(int64_t stride)
{
    return stride == static_cast<int32_t>(stride);
}

bool
is_short(const ps_gceidd_data &data)
{
    return is_short(data.x) && is_short(data.y);
}

} // namespace

bool
ps_cuda_gceidd_can_be_swept(const ps_gceidd *g)
{
    bool can = true;

    for (int axis = 0; axis < PS_GCEIDD_AXES; axis++) {
        can &= g->strips[axis] <= PS_CUDA_GCEIDD_MOST_STRIPS;
        can &= is_short(g->velocity[axis]) && is_short(g->diffusion[axis]);
    }
    for (int k = 0; k < g->terms; k++) {
        can &= is_short(g->source[k].field);
    }
    return can && is_short(g->edge[PS_GCEIDD_WEST].data.y) &&
           is_short(g->edge[PS_GCEIDD_EAST].data.y) &&
           is_short(g->edge[PS_GCEIDD_SOUTH].data.x) &&
           is_short(g->edge[PS_GCEIDD_NORTH].data.x);
}

int64_t
ps_cuda_gceidd_longest(const ps_gceidd *g, int axis)
{
    return divided_up(g->cells[axis], g->strips[axis]);
}

bool
ps_cuda_gceidd_is_steady(const ps_gceidd *g, int axis)
{
    const int low = axis == PS_GCEIDD_X ? PS_GCEIDD_WEST : PS_GCEIDD_SOUTH;

    return !lies_along(g->velocity[axis], axis) &&
           !lies_along(g->diffusion[axis], axis) &&
           g->edge[low].kind == PS_GCEIDD_DIRICHLET &&
           g->edge[low + 1].kind == PS_GCEIDD_DIRICHLET;
}

bool
ps_cuda_gceidd_strips_fit(const ps_gceidd *g, int axis)
{
    return ps_cuda_gceidd_longest(g, axis) <= PS_CUDA_GCEIDD_MOST_CELLS;
}

size_t
ps_cuda_gceidd_table_bytes(const ps_gceidd *g, int axis)
{
    const int64_t numbers = PS_CUDA_GCEIDD_TABLE_ROWS * (g->cells[1 - axis] + 1);

    return (ps_cuda_gceidd_strips_fit(g, axis) && ps_cuda_gceidd_is_steady(g, axis)) ||
                   ps_cuda_gceidd_ratio_fits(g, axis)
               ? ps_cuda_padded(static_cast<size_t>(numbers * ps_dtype_size(g->dtype)))
               : 0;
}

ps_status
ps_cuda_gceidd_prepare_strips(const ps_gceidd *g, int axis)
{
    return with_real(g->dtype, [&](auto zero) {
        return GceiddStrips<decltype(zero)>::prepare(g, axis);
    });
}

ps_status
ps_cuda_gceidd_tabulate(const ps_cuda_gceidd_sweep *sweep, void *table,
                        cudaStream_t stream)
{
    return with_real(sweep->g->dtype, [&](auto zero) {
        return GceiddStrips<decltype(zero)>::tabulate(sweep, table, stream);
    });
}

ps_status
ps_cuda_gceidd_strips(const ps_cuda_gceidd_sweep *sweep, const void *table,
                      cudaStream_t stream)
{
    return with_real(sweep->g->dtype, [&](auto zero) {
        return GceiddStrips<decltype(zero)>::launch(sweep, table, stream);
    });
}

} // namespace pysolvers::transport
