/* heat_stencils.h - the parts of the heat solver that compute one node per thread.
 *
 * Everything enqueues on a stream; Real is float or double.
 */
#ifndef PS_CUDA_HEAT_HEAT_STENCILS_H
#define PS_CUDA_HEAT_HEAT_STENCILS_H

#include "heat/heat_sweeps.h"

namespace pysolvers::heat {

/* The unknowns of an axis: nodes begin <= i < end. */
struct HeatRange {
    int64_t begin, end;

    int64_t count() const
    {
        return end - begin;
    }
};

/* All nodes except those of sides with values; node 0 of an axis that does not exist. */
HeatRange heat_unknowns(const ps_heat *h, int axis);

/* Elements between neighbours. */
int64_t heat_pitch(const ps_heat *h, int axis);

inline int64_t
heat_nodes(const ps_heat *h)
{
    return h->nodes[0] * h->nodes[1] * h->nodes[2];
}

/* Bytes of a field in a workspace. */
inline size_t
heat_field_bytes(const ps_heat *h)
{
    return ps_cuda_padded(static_cast<size_t>(heat_nodes(h) * ps_dtype_size(h->dtype)));
}

/* The values of a table at `level`, from node p on. */
template <typename Real>
inline HeatValues<Real>
heat_values(const ps_heat_table &table, int64_t level, int64_t p)
{
    const Real *const data = static_cast<const Real *>(table.data);

    if (data == nullptr) {
        return {nullptr, 0};
    }
    return {data + level * table.level_step + p * table.node_step, table.node_step};
}

/* For the unknowns: w = t + (level - K t) / 2 along `axis`, at level 0. */
template <typename Real>
ps_status heat_make_half(const ps_heat *h, int axis, const Real *t, Real *w,
                         cudaStream_t stream);

/* w = q + the sum over the axes of (level - K t), of step s. */
template <typename Real>
ps_status heat_make_change(const ps_heat *h, int64_t s, cudaStream_t stream);

/* The same for variable k. */
template <typename Real>
ps_status heat_make_change_varied(const ps_heat *h, int64_t s, cudaStream_t stream);

/* w = (t + r (t_before + t_after)) / (1 + 2 r) along `axis`. */
template <typename Real>
ps_status heat_make_neighbours(const ps_heat *h, int axis, const Real *t, Real *w,
                               cudaStream_t stream);

/* Set t on the sides with values after `steps` steps; `changing`: only where the value
 * changes. */
template <typename Real>
ps_status heat_set_sides(const ps_heat *h, int64_t steps, bool changing,
                         cudaStream_t stream);

/* Compute *h->largest if it is requested. */
template <typename Real>
ps_status heat_find_largest(const ps_heat *h, cudaStream_t stream);

} // namespace pysolvers::heat

#endif
