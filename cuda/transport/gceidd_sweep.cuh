/* gceidd_sweep.cuh - the parameters of a sweep along lines for the kernels.
 *
 * Node p of line l lies at p*along + l*across of the fields; the coefficients have
 * their own strides.
 */
#ifndef PS_CUDA_TRANSPORT_GCEIDD_SWEEP_CUH
#define PS_CUDA_TRANSPORT_GCEIDD_SWEEP_CUH

#include "transport/gceidd.h"

namespace pysolvers::transport {

/* Strides have 32 bits, so that an address is one or two multiply-adds. */
__device__ __forceinline__ int64_t
place_of(int32_t p, int32_t along, int32_t l, int32_t across)
{
    return static_cast<int64_t>(p) * along + static_cast<int64_t>(l) * across;
}

template <typename Real> struct Table {
    const Real *data;
    int32_t along, across;

    __device__ __forceinline__ Real at(int32_t p, int32_t l) const
    {
        return data[place_of(p, along, l, across)];
    }
};

/* Values or outward derivatives on a side. */
template <typename Real> struct Side {
    const Real *data;
    int32_t stride;
    bool neumann;

    __device__ __forceinline__ Real at(int32_t k) const
    {
        return data[static_cast<int64_t>(k) * stride];
    }
};

template <typename Real> struct Sweep {
    int32_t cells, strips;
    int32_t length, rest; /* cells / strips and the remainder */
    uint64_t per_strip;   /* 2^64 / strips, rounded up */
    /* lines first to last of lines 0 .. lines - 1 are swept */
    int32_t lines, first, last;
    int32_t table_pitch; /* lines of the table of common numbers */
    int32_t along, across;
    const Real *u, *s1, *s2; /* s1 and s2 are read by MU */
    Real *v;
    Table<Real> velocity, diffusion, source[PS_GCEIDD_TERMS];
    Real factor[PS_GCEIDD_TERMS]; /* with dt/2 */
    int32_t terms;
    Side<Real> low, high;             /* at the ends of the lines */
    Side<Real> low_flank, high_flank; /* for lines that are not swept; if data is null,
                                         they keep their values */
    Real h, dt_h, dt_hh;              /* dt_h = dt/h, dt_hh = dt/h^2 */
    ps_gceidd_scheme scheme;
    ps_gceidd_predictor predictor;
    bool modified, extrapolate;
    bool checked; /* whether v is compared with the range */
    Real lowest, highest;
    int32_t step, *grown; /* the first step that has grown, or INT32_MAX */

    /* Whether a value is in the range; false for NaN. */
    __device__ __forceinline__ bool has(Real value) const
    {
        return value >= lowest && value <= highest;
    }

    /* Node of interface k, the integer part of k cells / strips; interfaces 0 and
     * strips are the ends. */
    __device__ __forceinline__ int32_t interface(int32_t k) const
    {
        const uint64_t over = static_cast<uint64_t>(k) * static_cast<uint64_t>(rest);
        const int32_t whole = k * length;

        return rest == 0 ? whole
                         : whole + static_cast<int32_t>(__umul64hi(over, per_strip));
    }
    __device__ __forceinline__ int64_t node(int32_t p, int32_t l) const
    {
        return place_of(p, along, l, across);
    }
    /* The value at node p of a line that is not swept. */
    __device__ __forceinline__ Real unswept(int32_t p, int32_t l) const
    {
        const Side<Real> &side = l == 0 ? low_flank : high_flank;

        return side.data != nullptr ? side.at(p) : u[node(p, l)];
    }
    __device__ __forceinline__ bool is_swept(int32_t l) const
    {
        return l >= first && l <= last;
    }
};

/* 2^64 / count, rounded up; 0 for count = 1. */
inline uint64_t
per_one(int32_t count)
{
    return count > 1 ? UINT64_MAX / static_cast<uint64_t>(count) + 1 : 0;
}

template <typename Real>
inline Table<Real>
table_of(const ps_gceidd_data &data, int axis, int64_t step)
{
    const int64_t along = axis == PS_GCEIDD_X ? data.x : data.y;
    const int64_t across = axis == PS_GCEIDD_X ? data.y : data.x;

    return {static_cast<const Real *>(data.data) + step * data.step,
            static_cast<int32_t>(along), static_cast<int32_t>(across)};
}

/* A side that lies across lines along `axis`; its numbers follow the other axis. */
template <typename Real>
inline Side<Real>
side_across(const ps_gceidd_edge &edge, int axis, int64_t step)
{
    const Table<Real> t = table_of<Real>(edge.data, axis, step);

    return {t.data, t.across, edge.kind == PS_GCEIDD_NEUMANN};
}

template <typename Real>
inline void
set_grid(Sweep<Real> &s, const ps_gceidd *g, int axis)
{
    const int32_t row = static_cast<int32_t>(g->cells[PS_GCEIDD_X] + 1);

    s.cells = static_cast<int32_t>(g->cells[axis]);
    s.strips = static_cast<int32_t>(g->strips[axis]);
    s.length = s.cells / s.strips;
    s.rest = s.cells % s.strips;
    s.per_strip = per_one(s.strips);
    s.lines = static_cast<int32_t>(g->cells[1 - axis]) + 1;
    s.along = axis == PS_GCEIDD_X ? 1 : row;
    s.across = axis == PS_GCEIDD_X ? row : 1;
}

/* The sweep along x keeps the lines on Dirichlet sides, the sweep along y sets them
 * anew. */
template <typename Real>
inline void
set_sides(Sweep<Real> &s, const ps_gceidd *g, int axis, int64_t step)
{
    const int low = axis == PS_GCEIDD_X ? PS_GCEIDD_WEST : PS_GCEIDD_SOUTH;
    const int low_flank = axis == PS_GCEIDD_X ? PS_GCEIDD_SOUTH : PS_GCEIDD_WEST;

    s.low = side_across<Real>(g->edge[low], axis, step);
    s.high = side_across<Real>(g->edge[low + 1], axis, step);
    s.low_flank = side_across<Real>(g->edge[low_flank], 1 - axis, step);
    s.high_flank = side_across<Real>(g->edge[low_flank + 1], 1 - axis, step);
    s.first = s.low_flank.neumann ? 0 : 1;
    s.last = s.lines - (s.high_flank.neumann ? 1 : 2);
    if (axis == PS_GCEIDD_X) {
        s.low_flank.data = s.high_flank.data = nullptr;
    }
}

template <typename Real>
inline void
set_source(Sweep<Real> &s, const ps_gceidd *g, int axis, int64_t step)
{
    s.terms = g->terms;
    for (int k = 0; k < g->terms; k++) {
        const ps_gceidd_term &term = g->source[k];
        const double factor = term.factor != nullptr ? term.factor[step] : 1;

        s.source[k] = table_of<Real>(term.field, axis, step);
        s.factor[k] = static_cast<Real>(0.5 * g->dt * factor);
    }
}

template <typename Real>
inline Sweep<Real>
sweep_of(const ps_cuda_gceidd_sweep *sweep)
{
    const ps_gceidd *const g = sweep->g;
    const int axis = sweep->axis;
    const double h = g->spacing[axis];
    Sweep<Real> s = {};

    set_grid(s, g, axis);
    set_sides(s, g, axis, sweep->step);
    set_source(s, g, axis, sweep->step);
    s.u = static_cast<const Real *>(sweep->u);
    s.s1 = static_cast<const Real *>(sweep->s1);
    s.s2 = static_cast<const Real *>(sweep->s2);
    s.v = static_cast<Real *>(sweep->v);
    s.table_pitch = static_cast<int32_t>(sweep->table_pitch);
    s.velocity = table_of<Real>(g->velocity[axis], axis, sweep->step);
    s.diffusion = table_of<Real>(g->diffusion[axis], axis, sweep->step);
    s.h = static_cast<Real>(h);
    s.dt_h = static_cast<Real>(g->dt / h);
    s.dt_hh = static_cast<Real>(g->dt / h / h);
    s.scheme = g->scheme;
    s.predictor = g->predictor;
    s.modified = g->upwind == PS_GCEIDD_UPWIND_MODIFIED;
    s.extrapolate = g->foot == PS_GCEIDD_FOOT_EXTRAPOLATE;
    s.checked = axis == PS_GCEIDD_Y;
    s.lowest = static_cast<Real>(g->lowest);
    s.highest = static_cast<Real>(g->highest);
    s.step = static_cast<int32_t>(sweep->step);
    s.grown = sweep->grown;
    return s;
}

} // namespace pysolvers::transport

#endif
