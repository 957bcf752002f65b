/* heat_sweeps.h - sweeps along lines of one constant matrix: 2 words per node.
 *
 * heat_rows.cuh solves lines along x, heat_columns.cuh those along y and z that
 * heat_teams.h does not accept. heat_reals.cu compiles both once per dtype. Real is
 * float or double.
 */
#ifndef PS_CUDA_HEAT_HEAT_SWEEPS_H
#define PS_CUDA_HEAT_HEAT_SWEEPS_H

#include "heat/heat_line.h"
#include "ps_heat.h"

namespace pysolvers::heat {

using namespace runtime;

/* The values of a table at one level: node p at data[p * step]; null stands for zeros. */
template <typename Real> struct HeatValues {
    const Real *data;
    int64_t step;

    __host__ __device__ __forceinline__ Real at(int64_t p) const
    {
        return data != nullptr ? data[p * step] : Real(0);
    }
};

/* The use of the solution. */
typedef enum {
    HEAT_EXTRAPOLATE,      /* w = 2 x - w */
    HEAT_EXTRAPOLATE_BOTH, /* and t = x */
    HEAT_PLAIN,            /* w = x */
    HEAT_ADD               /* t += x */
} ps_cuda_heat_sink;

/* Lines along x: line (j, k), 0 <= j < lines[0], 0 <= k < lines[1], has its first
 * unknown at w + j pitch[0] + k pitch[1] and node j + k side of the ends. It is read there, or
 * from another field, at from + j from_pitch, in a plane without `added`. `added` is
 * added to w before the solve, node by node from the begin of w; with HEAT_EXTRAPOLATE
 * or HEAT_PLAIN. The last `kept` lines j stay in the L2 cache for the next sweep. */
template <typename Real> struct HeatRows {
    Real *w;
    const Real *from; /* or null */
    int64_t from_pitch, kept;
    int64_t rows, lines[2], pitch[2], side;
    HeatValues<Real> end[2], added;
    ps_cuda_heat_sink sink;
};

/* Lines along y or z: in each of `planes` planes, whose distance in memory is `plane`,
 * the neighbouring columns c0 <= c < c1. Row i of column c lies at w[i pitch + c], and
 * likewise in t. Teams may have another pitch of t than of w, and with HEAT_EXTRAPOLATE_BOTH store to
 * `out`, with that of t, in place of w. A row of nodes has `width` columns, of which those from inner[0] to
 * inner[1] have an unknown. Column c of plane k has node c + k side of the ends. */
template <typename Real> struct HeatColumns {
    Real *w, *t, *out; /* `out` may be null */
    int64_t rows, pitch, t_pitch, planes, plane, c0, c1, width, inner[2], side;
    HeatValues<Real> end[2];
    ps_cuda_heat_sink sink;
};

/* The constants of all sweeps along an axis. */
template <typename Real> struct HeatPlan {
    HeatLine<Real> line;
    /* blocks of the grid, and clusters that are resident together */
    int64_t blocks, clusters;
    int32_t chunk, threads, buffer;
    int32_t stages; /* along x: lines in shared memory */
    size_t shared;
};

/* Bytes of a plan, aligned to 256. */
template <typename Real> size_t heat_table_bytes();

/* Whether the kernel can solve lines of `rows` rows. */
template <typename Real> bool heat_rows_fit(int64_t rows, const ps_cuda_device *device);
template <typename Real>
bool heat_columns_fit(int64_t rows, const ps_cuda_device *device);

/* Matrix and end conditions of the lines along an axis. */
struct HeatMatrix {
    double a;
    ps_cuda_heat_end end[2];
    bool is_periodic;
};

/* Plan sweeps like `s`, whose lines have the matrix `m`; `table` is device memory that
 * exists as long as the plan. */
template <typename Real>
ps_status heat_plan_rows(const HeatRows<Real> &s, const HeatMatrix &m, void *table,
                         cudaStream_t stream, HeatPlan<Real> *plan);
template <typename Real>
ps_status heat_plan_columns(const HeatColumns<Real> &s, const HeatMatrix &m, void *table,
                            cudaStream_t stream, HeatPlan<Real> *plan);

template <typename Real>
ps_status heat_sweep_rows(const HeatRows<Real> &s, const HeatPlan<Real> &plan,
                          cudaStream_t stream);
template <typename Real>
ps_status heat_sweep_columns(const HeatColumns<Real> &s, const HeatPlan<Real> &plan,
                             cudaStream_t stream);

} // namespace pysolvers::heat

#endif
