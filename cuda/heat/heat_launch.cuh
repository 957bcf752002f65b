/* heat_launch.cuh - the launches of heat_sweeps.h for one dtype.
 */
#ifndef PS_CUDA_HEAT_HEAT_LAUNCH_CUH
#define PS_CUDA_HEAT_HEAT_LAUNCH_CUH

#include <algorithm>

#include "heat/heat_columns.cuh"
#include "heat/heat_rows.cuh"
#include "heat/heat_table.cuh"
#include "runtime/math.cuh"

namespace pysolvers::heat {

/* Elements of shared memory for a line that is being copied. */
template <typename Real>
static int
heat_buffer(const ps_cuda_heat_line &l)
{
    constexpr int per_copy = 16 / sizeof(Real);
    const int64_t count = l.pads + l.rows + per_copy - 1;

    return static_cast<int>(rounded_up(count, per_copy));
}

/* Rows of a chunk: odd along x, so that its threads use different banks. Blocks of the
 * kernel along x that fit a multiprocessor: 64 registers a thread spill in float64, and a step of
 * 3000 x 5000 nodes takes 1.14 of the time, of 777 x 12345 nodes 1.17. */
template <typename Real> struct HeatTuning {
    static constexpr int rows = sizeof(Real) == 4 ? 33 : 17;
    static constexpr int few_rows = sizeof(Real) == 4 ? 17 : 9;
    static constexpr int columns = sizeof(Real) == 4 ? 32 : 16;
    static constexpr int more_columns = 18, some_columns = 16, fewer_columns = 12,
                         few_columns = 8;
    static constexpr int threads = 256, blocks = 3, more_threads = 384,
                         many_threads = 768, most_threads = 1024;
};

template <typename Real>
static ps_status
heat_set_line(const HeatMatrix &m, int64_t rows, int chunk, void *table,
              cudaStream_t stream, HeatPlan<Real> *plan)
{
    const ps_cuda_heat_line l =
        ps_cuda_heat_line_of(m.a, m.end, m.is_periodic, rows, chunk, sizeof(Real) == 4);

    plan->chunk = chunk;
    plan->buffer = heat_buffer<Real>(l);
    return heat_make_line(l, table, stream, &plan->line);
}

/* call(kernel) with the kernel of a plan along x. */
template <typename Real, bool MOVES, typename Call>
static ps_status
with_rows_kernel(const HeatPlan<Real> &plan, const Call &call)
{
    using Tuning = HeatTuning<Real>;

    if (plan.chunk == Tuning::few_rows) {
        return call(heat_rows_kernel<Real, Tuning::few_rows, Tuning::threads,
                                     Tuning::blocks, MOVES>);
    }
    if (plan.threads <= Tuning::threads) {
        return call(
            heat_rows_kernel<Real, Tuning::rows, Tuning::threads, Tuning::blocks, MOVES>);
    }
    if constexpr (sizeof(Real) == 8) {
        if (plan.threads <= Tuning::more_threads) {
            return call(
                heat_rows_kernel<Real, Tuning::rows, Tuning::more_threads, 2, MOVES>);
        }
        if (plan.threads <= Tuning::many_threads) {
            return call(
                heat_rows_kernel<Real, Tuning::rows, Tuning::many_threads, 1, MOVES>);
        }
    }
    return plan.stages == 1 ? call(heat_rows_kernel<Real, Tuning::rows,
                                                    Tuning::most_threads, 1, MOVES, 1>)
                            : call(heat_rows_kernel<Real, Tuning::rows,
                                                    Tuning::most_threads, 1, MOVES>);
}

/* Rows of a chunk along x: the smaller number if the block is small enough with it. */
template <typename Real>
static int
heat_row_chunk(int64_t rows)
{
    using Tuning = HeatTuning<Real>;

    return rows <= Tuning::few_rows * Tuning::threads ? Tuning::few_rows : Tuning::rows;
}

/* Lines that shared memory holds, at most HEAT_STAGES; long lines are in it one at a time. */
template <typename Real>
static int
heat_row_stages(int64_t rows, int chunk, const ps_cuda_device *device)
{
    const int64_t group = static_cast<int64_t>(HEAT_CHUNKS) * chunk;
    const size_t line = sizeof(Real) * static_cast<size_t>(rounded_up(rows, group) + 4);
    const size_t bytes =
        static_cast<size_t>(device->shared_bytes) - heat_row_shared_bytes<Real>;

    return static_cast<int>(std::min(bytes / line, size_t{HEAT_STAGES}));
}

template <typename Real>
bool
heat_rows_fit(int64_t rows, const ps_cuda_device *device)
{
    const int chunk = heat_row_chunk<Real>(rows);

    return rows <= chunk * HeatTuning<Real>::most_threads &&
           heat_row_stages<Real>(rows, chunk, device) > 0;
}

template <typename Real>
ps_status
heat_plan_rows(const HeatRows<Real> &s, const HeatMatrix &m, void *table,
               cudaStream_t stream, HeatPlan<Real> *plan)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const int64_t lines = s.lines[0] * s.lines[1];
    const ps_status status =
        heat_set_line(m, s.rows, heat_row_chunk<Real>(s.rows), table, stream, plan);

    plan->threads = HEAT_CHUNKS * plan->line.groups;
    if (status != PS_OK || device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    plan->stages = heat_row_stages<Real>(s.rows, plan->chunk, device);
    plan->shared = sizeof(Real) * static_cast<size_t>(plan->stages) *
                   static_cast<size_t>(plan->buffer);
    return with_rows_kernel<Real, false>(*plan, [&](auto kernel) {
        int blocks = 0;
        cudaError_t error = allow_shared(kernel);

        if (error == cudaSuccess) {
            error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                &blocks, kernel, plan->threads, plan->shared);
        }
        const int64_t resident = static_cast<int64_t>(blocks) * device->processors;

        plan->blocks = lines < resident ? lines : resident;
        return blocks > 0 ? ps_cuda_status(error) : PS_DEVICE_FAILURE;
    });
}

template <typename Real>
ps_status
heat_sweep_rows(const HeatRows<Real> &s, const HeatPlan<Real> &plan, cudaStream_t stream)
{
    const auto launch = [&](auto kernel) {
        const cudaError_t error = allow_shared(kernel);

        return error == cudaSuccess
                   ? launch_closely(kernel, plan.blocks, plan.threads, plan.shared,
                                    stream, plan.line, s, plan.buffer)
                   : ps_cuda_status(error);
    };

    return s.from != nullptr ? with_rows_kernel<Real, true>(plan, launch)
                             : with_rows_kernel<Real, false>(plan, launch);
}

/* call(kernel) with the kernel of a plan along y or z. */
template <typename Real, int SINK, typename Call>
static ps_status
with_column_sink(const HeatPlan<Real> &plan, const Call &call)
{
    using Tuning = HeatTuning<Real>;

    switch (plan.chunk) {
    case Tuning::few_columns:
        return call(heat_columns_kernel<Real, Tuning::few_columns, SINK>);
    case Tuning::fewer_columns:
        return call(heat_columns_kernel<Real, Tuning::fewer_columns, SINK>);
    case Tuning::some_columns:
        return call(heat_columns_kernel<Real, Tuning::some_columns, SINK>);
    case Tuning::more_columns:
        return call(heat_columns_kernel<Real, Tuning::more_columns, SINK>);
    default:
        return call(heat_columns_kernel<Real, Tuning::columns, SINK>);
    }
}

/* Blocks of a line in chunks of some rows. */
static int64_t
heat_groups(int64_t rows, int chunk)
{
    const int64_t group = static_cast<int64_t>(HEAT_CHUNKS) * chunk;

    return divided_up(rows, group);
}

/* Rows of a chunk along y or z: the smallest number for lines of one small block, the
 * middle ones for lines of a small cluster, of which there are too few for the device
 * otherwise. Of these, the smallest one takes no more blocks than the usual one, and the
 * largest one takes less than three or four: on an H100, a step of 1071 x 1024 x 1024
 * nodes in float64 takes 33.0 ms with three blocks of 16 rows a chunk, and 31.8 ms with
 * three of 12. */
template <typename Real>
static int
heat_column_chunk(int64_t rows, const ps_cuda_device *device)
{
    using Tuning = HeatTuning<Real>;
    const int64_t groups = heat_groups(rows, Tuning::some_columns);

    if (rows <= HEAT_CHUNKS * Tuning::few_columns) {
        return Tuning::few_columns;
    }
    if (device->cluster_blocks < 4 || groups > 4) {
        return Tuning::columns;
    }
    if (groups > 2 && heat_groups(rows, Tuning::more_columns) < groups) {
        return Tuning::more_columns;
    }
    return heat_groups(rows, Tuning::fewer_columns) == groups ? Tuning::fewer_columns
                                                              : Tuning::some_columns;
}

template <typename Real, typename Call>
static ps_status
with_columns_kernel(const HeatPlan<Real> &plan, ps_cuda_heat_sink sink, const Call &call)
{
    switch (sink) {
    case HEAT_EXTRAPOLATE:
        return with_column_sink<Real, HEAT_EXTRAPOLATE>(plan, call);
    case HEAT_EXTRAPOLATE_BOTH:
        return with_column_sink<Real, HEAT_EXTRAPOLATE_BOTH>(plan, call);
    case HEAT_PLAIN:
        return with_column_sink<Real, HEAT_PLAIN>(plan, call);
    default:
        return with_column_sink<Real, HEAT_ADD>(plan, call);
    }
}

template <typename Real>
bool
heat_columns_fit(int64_t rows, const ps_cuda_device *device)
{
    const int64_t group = static_cast<int64_t>(HEAT_CHUNKS) * HeatTuning<Real>::columns;
    const size_t shared = sizeof(Real) * HEAT_COLUMN_STAGES * HeatTuning<Real>::columns *
                          HEAT_COLUMN_THREADS;

    return rows <= group * (device->cluster_blocks < HEAT_CLUSTER
                                ? device->cluster_blocks
                                : static_cast<int>(HEAT_CLUSTER)) &&
           shared + sizeof(HeatExchange<Real>) <=
               static_cast<size_t>(device->shared_bytes);
}

/* Launch blocks in clusters of plan.line.groups. */
template <typename Real>
static Launch
heat_clusters(const HeatPlan<Real> &plan, cudaStream_t stream)
{
    Launch launch(plan.blocks, plan.threads, plan.shared, stream);

    return launch.closely().in_clusters(plan.line.groups);
}

template <typename Real>
ps_status
heat_plan_columns(const HeatColumns<Real> &s, const HeatMatrix &m, void *table,
                  cudaStream_t stream, HeatPlan<Real> *plan)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const int64_t tiles = divided_up(s.c1 - s.c0, int(HEAT_WIDTH)) * s.planes;

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const int chunk = heat_column_chunk<Real>(s.rows, device);
    ps_status status = heat_set_line(m, s.rows, chunk, table, stream, plan);

    plan->threads = HEAT_COLUMN_THREADS;
    plan->shared = sizeof(Real) * HEAT_COLUMN_STAGES * HEAT_COLUMN_THREADS *
                   static_cast<size_t>(chunk);
    plan->blocks = plan->line.groups;
    plan->clusters = tiles;
    for (int sink = HEAT_EXTRAPOLATE; status == PS_OK && sink <= HEAT_ADD; sink++) {
        const auto set = [&](auto kernel) {
            Launch launch = heat_clusters(*plan, stream);
            const cudaLaunchConfig_t config = launch.config();
            int clusters = 0;
            cudaError_t error = allow_shared(kernel);

            if (error == cudaSuccess && device->capability >= 90) {
                error = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
            }
            else if (error == cudaSuccess) {
                clusters = device->processors;
            }
            plan->clusters = clusters < plan->clusters ? clusters : plan->clusters;
            return clusters > 0 ? ps_cuda_status(error) : PS_DEVICE_FAILURE;
        };
        status = with_columns_kernel(*plan, static_cast<ps_cuda_heat_sink>(sink), set);
    }
    plan->blocks = plan->line.groups * plan->clusters;
    return status;
}

template <typename Real>
ps_status
heat_sweep_columns(const HeatColumns<Real> &s, const HeatPlan<Real> &plan,
                   cudaStream_t stream)
{
    return with_columns_kernel(plan, s.sink, [&](auto kernel) {
        return heat_clusters(plan, stream).run(kernel, plan.line, s);
    });
}

template <typename Real>
size_t
heat_table_bytes()
{
    return ps_cuda_padded(sizeof(HeatTable<Real>));
}

} // namespace pysolvers::heat

#endif
