/* heat_stencil.cuh - the explicit terms of the heat solver as its kernels see them.
 */
#ifndef PS_CUDA_HEAT_HEAT_STENCIL_CUH
#define PS_CUDA_HEAT_HEAT_STENCIL_CUH

#include "heat/heat_stencils.h"

namespace pysolvers::heat {

/* The term (level - K t) of an axis, see ps_heat.h. */
template <typename Real> struct HeatAxis {
    bool is_included;
    int64_t nodes, pitch, begin, end;
    Real ratio;
    ps_heat_side_kind kind[2];
    Real exchange[2];
    HeatValues<Real> level[2];
};

/* w = own t + added + factor times the sum of the terms with is_included. */
template <typename Real> struct HeatStencil {
    const Real *t, *k;
    Real *w;
    HeatValues<Real> added;
    Real own, factor;
    HeatAxis<Real> axis[PS_HEAT_AXES];
    int64_t tiles; /* blocks per row of nodes */
};

/* The stencil with the terms of the axes in the bit set `included`, and the levels of
 * step s. */
template <typename Real>
inline HeatStencil<Real>
heat_stencil_of(const ps_heat *h, unsigned included, int64_t s)
{
    HeatStencil<Real> stencil = {};

    stencil.t = static_cast<const Real *>(h->t);
    stencil.k = static_cast<const Real *>(h->k);
    stencil.w = static_cast<Real *>(h->w);
    for (int axis = 0; axis < PS_HEAT_AXES; axis++) {
        HeatAxis<Real> &a = stencil.axis[axis];
        const HeatRange range = heat_unknowns(h, axis);

        a.is_included = (included >> axis & 1) != 0;
        a.nodes = axis < h->axes ? h->nodes[axis] : 1;
        a.pitch = heat_pitch(h, axis);
        a.begin = range.begin;
        a.end = range.end;
        a.ratio = static_cast<Real>(h->ratio[axis]);
        for (int end = 0; end < 2; end++) {
            const ps_heat_side &side = h->side[axis][end];

            a.kind[end] = side.kind;
            a.exchange[end] = static_cast<Real>(side.exchange);
            if (side.kind == PS_HEAT_FLUX) {
                a.level[end] = heat_values<Real>(side.level, s, 0);
            }
        }
    }
    return stencil;
}

/* q + the sum over the axes of (level - K t), of step s. */
template <typename Real>
inline HeatStencil<Real>
heat_change_stencil(const ps_heat *h, int64_t s)
{
    HeatStencil<Real> stencil = heat_stencil_of<Real>(h, (1u << h->axes) - 1, s);

    stencil.factor = Real(1);
    stencil.added = heat_values<Real>(h->source, s, 0);
    return stencil;
}

} // namespace pysolvers::heat

#endif
