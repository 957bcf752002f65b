/* heat_table.cuh - the constants of a line as parameters of the kernels of the sweeps.
 */
#ifndef PS_CUDA_HEAT_HEAT_TABLE_CUH
#define PS_CUDA_HEAT_HEAT_TABLE_CUH

#include "heat/heat_line.h"
#include "runtime/elements.cuh"

namespace pysolvers::heat {

using namespace runtime;

/* x of row J due to U at the begin of m rows: (q^J - q^(2m - J)) q / (1 + q). */
__device__ __forceinline__ double
heat_response(double q, double row, double rows)
{
    return row < 0 ? 0 : (pow(q, row) - pow(q, 2 * rows - row)) * q / (1 + q);
}

/* By HEAT_CHUNKS threads. */
template <typename Real> struct MakeHeatTable {
    ps_cuda_heat_line l;
    HeatTable<Real> *table;

    __device__ __forceinline__ void operator()() const
    {
        const int i = static_cast<int>(threadIdx.x);
        const double q = l.q, group = static_cast<double>(HEAT_CHUNKS) * l.chunk;
        const double all = group * l.groups - l.pads;

        wait_for_last_kernel();
        for (int which = 0; which < 2; which++) {
            const double pads = which == 0 ? l.pads : 0;
            const double start = static_cast<double>(i) * l.chunk - pads;

            table->u[which][i] = static_cast<Real>(start < 0 ? 0 : pow(q, start));
            table->both[which][i] =
                static_cast<Real>(heat_response(q, start + l.chunk, group - pads));
        }
        table->x[i] = static_cast<Real>(pow(q, static_cast<double>(31 - i) * l.chunk));
        if (i < l.groups) {
            const double start = i * group - l.pads;

            table->group_u[i] = static_cast<Real>(i == 0 ? 1 : pow(q, start));
            table->group_x[i] = static_cast<Real>(pow(q, (l.groups - 1 - i) * group));
            table->group_both[i] =
                static_cast<Real>(heat_response(q, start + group, all));
        }
    }
};

template <typename Real>
static HeatLine<Real>
heat_line_for(const ps_cuda_heat_line &l, const void *table)
{
    HeatLine<Real> line = {};

    line.q = static_cast<Real>(l.q);
    line.p = static_cast<Real>(l.p);
    for (int i = 0; i < l.chunk && i < HEAT_MOST_ROWS; i++) {
        line.powers[i] = static_cast<Real>(pow(l.q, i + 1));
    }
    for (int k = 0; k < 5; k++) {
        line.reach[k] = static_cast<Real>(pow(l.power, 1 << k));
    }
    line.spread = static_cast<Real>(l.spread);
    line.group_power = static_cast<Real>(l.group_power);
    line.group_spread = static_cast<Real>(l.group_spread);
    line.first_power = static_cast<Real>(l.first_power);
    line.first_reach = static_cast<Real>(l.first_reach);
    for (int k = 0; k < 4; k++) {
        line.u[k] = static_cast<Real>(l.u[k]);
        line.y[k] = static_cast<Real>(l.y[k]);
    }
    for (int k = 0; k < 2; k++) {
        line.weight[k] = static_cast<Real>(l.end[k].weight);
        line.add[k] = static_cast<Real>(l.end[k].add);
    }
    line.pads = l.pads;
    line.first_chunk = l.first_chunk;
    line.groups = l.groups;
    line.table = static_cast<const HeatTable<Real> *>(table);
    return line;
}

/* The line in the precision of the fields; `table` is device memory that exists as long
 * as the result. */
template <typename Real>
static ps_status
heat_make_line(const ps_cuda_heat_line &l, void *table, cudaStream_t stream,
               HeatLine<Real> *line)
{
    *line = heat_line_for<Real>(l, table);
    return for_threads<HEAT_CHUNKS>(
        1, stream, MakeHeatTable<Real>{l, static_cast<HeatTable<Real> *>(table)});
}

} // namespace pysolvers::heat

#endif
