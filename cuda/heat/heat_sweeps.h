/* heat_sweeps.h - sweeps along lines of one constant matrix: 2 words a node.
 *
 * heat_rows.cuh has lines along x, heat_columns.cuh those along y and z that heat_teams.h
 * does not take; one module a dtype, heat_f32.cu and heat_f64.cu. Real is float or
 * double.
 */
#ifndef PS_CUDA_HEAT_HEAT_SWEEPS_H
#define PS_CUDA_HEAT_HEAT_SWEEPS_H

#include "heat/heat_line.h"
#include "ps_heat.h"

namespace pysolvers::heat {

using namespace runtime;

/* Values of a table at one level: node p at data[p * step]; null are zeros. */
template <typename Real> struct HeatValues {
    const Real *data;
    int64_t step;

    __host__ __device__ __forceinline__ Real at(int64_t p) const
    {
        return data != nullptr ? data[p * step] : Real(0);
    }
};

/* What becomes of the solution. */
typedef enum {
    HEAT_EXTRAPOLATE,      /* w = 2 x - w */
    HEAT_EXTRAPOLATE_BOTH, /* and t = x */
    HEAT_PLAIN,            /* w = x */
    HEAT_ADD               /* t += x */
} ps_cuda_heat_sink;

/* Lines along x: line (j, k), 0 <= j < lines[0], 0 <= k < lines[1], has its first
 * unknown at w + j pitch[0] + k pitch[1] and node j + k side of the ends. `added` is
 * added to w before, node by node from where w begins; HEAT_EXTRAPOLATE or HEAT_PLAIN.
 * The last `kept` lines j stay in the second-level cache for the next sweep. */
template <typename Real> struct HeatRows {
    Real *w;
    int64_t kept;
    int64_t rows, lines[2], pitch[2], side;
    HeatValues<Real> end[2], added;
    ps_cuda_heat_sink sink;
};

/* Lines along y or z: in each of `planes`, `plane` apart in memory, the columns c0 <= c <
 * c1, side by side; row i of column c at w[i pitch + c], and so in t. Columns are `width`
 * to a row of nodes, of which those from inner[0] to inner[1] have an unknown. Column c
 * of plane k has node c + k side of the ends. */
template <typename Real> struct HeatColumns {
    Real *w, *t;
    int64_t rows, pitch, planes, plane, c0, c1, width, inner[2], side;
    HeatValues<Real> end[2];
    ps_cuda_heat_sink sink;
};

/* What is the same for all sweeps along an axis. */
template <typename Real> struct HeatPlan {
    HeatLine<Real> line;
    int64_t blocks, clusters; /* of the grid; that are resident together */
    int32_t chunk, threads, buffer;
    size_t shared;
};

/* Bytes that a plan needs, aligned to 256. */
template <typename Real> size_t heat_table_bytes();

/* Whether lines of `rows` rows fit. */
template <typename Real> bool heat_rows_fit(int64_t rows, const ps_cuda_device *device);
template <typename Real>
bool heat_columns_fit(int64_t rows, const ps_cuda_device *device);

/* Matrix and ends of the lines along an axis. */
struct HeatMatrix {
    double a;
    ps_cuda_heat_end end[2];
    bool is_periodic;
};

/* Plan the sweeps like `s`, whose lines have the matrix `m`; `table` is device memory
 * that lives as long as the plan. */
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
