/* column_kernel.cuh - the kernel of the partition method along a strided axis,
 * instantiated per dtype.
 *
 * Blocks, or clusters, are resident and process one tile of neighbouring systems after
 * the other. A warp copies its rows to its part of shared memory and eliminates them.
 * The rows that it has read are replaced by rows of its next tile, which are copied
 * while the chunks are joined, substituted and stored. Five words of memory traffic per
 * row. A tile is read before any of its x is written, so that x may be rhs.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_KERNEL_CUH
#define PS_CUDA_LINES_COLUMNS_COLUMN_KERNEL_CUH

#include "lines/columns/column_grid.cuh"
#include "lines/columns/column_stage.cuh"
#include "lines/columns/step_column.cuh"

namespace pysolvers::columns {

/* Aligned like a line of memory: if source and target of a copy differ in their
 * alignment to 32 bytes, each sector is transferred twice. */
extern __shared__ __align__(128) int4 column_memory[];

/* The right-hand sides of a row, and where its unknowns are stored. */
template <typename Number>
__device__ __forceinline__ Number
value_in_memory(const ColumnJob<Number> &, const ColumnPlace &, const Number *rhs)
{
    return *rhs;
}

template <typename Number>
__device__ __forceinline__ ValueOf<Number>
value_in_memory(const SideColumnJob<Number> &job, const ColumnPlace &place,
                const Number *rhs)
{
    ValueOf<Number> all;

    for (int p = 0; p < job.sides; p++) {
        all.at[p] =
            p < job.groups.sides_of(place.outer) ? rhs[p * job.groups.rhs].value : 0;
    }
    return all;
}

template <typename Number>
__device__ __forceinline__ void
store_value(const ColumnJob<Number> &, int32_t, int32_t, char *x, const Number &value)
{
    *reinterpret_cast<Number *>(x) = value;
}

template <typename Number>
__device__ __forceinline__ void
store_value(const SideColumnJob<Number> &job, int32_t sides, int32_t, char *x,
            const ValueOf<Number> &value)
{
#pragma unroll
    for (int p = 0; p < job.sides; p++) {
        if (p < sides) {
            reinterpret_cast<Number *>(x)[p * job.groups.x].value = value.at[p];
        }
    }
}

/* A row as it is stored in memory. */
template <typename Job>
__device__ __forceinline__ auto
row_in_memory(const Job &job, int64_t system, int32_t row)
{
    const auto &t = job.t;
    const ColumnPlace place(t, system);
    using Number = std::remove_const_t<std::remove_pointer_t<decltype(t.rhs.data)>>;

    return Row<Number>{t.periodic || row > 0 ? *place.at(t.lower, row) : Number(0),
                       *place.at(t.diag, row),
                       t.periodic || row < t.rows - 1 ? *place.at(t.upper, row)
                                                      : Number(0),
                       value_in_memory(job, place, place.at(t.rhs, row))};
}

/* Row `row` of a system as the ring has it. */
template <typename Job, typename Row>
__device__ __forceinline__ const Row &
completed(const Job &, const Row &of_ring, int32_t)
{
    return of_ring;
}

/* What is known of a system after its elimination. */
template <typename Job>
__device__ __forceinline__ void
report(const Job &job, int64_t system, const Note &note)
{
    job.each_side(system, [&](int64_t of_batch) {
        if (job.t.info != nullptr) {
            job.t.info[of_batch] =
                note.bad_pivot == BadPivot::none ? 0 : note.bad_pivot + 1;
        }
        if (job.marks != nullptr) {
            job.marks[of_batch] = note.not_dominant != 0;
        }
    });
}

/* Grid: any number of clusters of shape.blocks blocks. Shared memory: the rings of the
 * warps, then the ColumnArrays. */
template <typename Number, int ROWS, bool IS_CLUSTER, ColumnAccess ACCESS,
          typename Job = ColumnJob<Number>>
__global__ void
__launch_bounds__(column_threads<Number, ROWS, Job>(), 1)
    column_kernel(const __grid_constant__ Job job)
{
    using Stage = ColumnStage<Number, ROWS, IS_CLUSTER, ACCESS, Job>;
    using Element = ElementOf<Number>;
    constexpr bool has_source = Job::is_step && Job::operands > 4;
    constexpr int words = /* of a warp */
        column_words<Number, ROWS, IS_CLUSTER, ACCESS, Job>;
    __shared__ Arrivals arrivals[2];
    __shared__ uint32_t tickets[2];
    const auto &t = job.t;
    const int32_t rank = IS_CLUSTER ? static_cast<int32_t>(rank_in_cluster()) : 0;
    const int64_t systems = t.outer * t.inner;
    const bool watches =
        !(number_traits<Number>::is_complex || is_block<Number>) || job.leaves_systems();
    const ColumnThreadPlace<ROWS> own(job.shape, rank);
    Element *const memory = reinterpret_cast<Element *>(column_memory);
    Element *const ring = memory + threadIdx.x / 32 * words;
    ColumnTileScheduler<IS_CLUSTER> scheduler(job.work_queue, tickets, rank,
                                              IS_CLUSTER ? cluster_of_grid() : blockIdx.x,
                                              gridDim.x / job.shape.blocks);
    Stage stage(job, own, scheduler, ring);
    Column<Number, ROWS, IS_CLUSTER, WholeSystem, Job::Tuned::span> column(
        job.shape, own, Job::may_be_periodic && t.periodic,
        memory + blockDim.x / 32 * words,
        ring + Stage::Ring::words + threadIdx.x % 32 * elements_of_value<Number>,
        arrivals);
    StepColumn<Job, ROWS> step(job, own, ring + Stage::Ring::words + threadIdx.x % 32);

    if constexpr (is_block<Number>) {
        column.is_definite = job.rows.is_definite;
    }
    column.begin();
    scheduler.begin();
    if constexpr (Job::is_step) {
        step.start();
        step.fetch(job.systems(scheduler.tile).first + own.column);
    }
    stage.begin();
    column.started();
    for (; scheduler.tile < job.tiles; scheduler.advance()) {
        const SystemRange tile = job.systems(scheduler.tile);
        const bool there = own.column < tile.count;
        const int64_t system = there ? tile.first + own.column : systems;
        Row<Number> batch[Stage::batch];
        [[maybe_unused]] Number source[Stage::batch]; /* of a step */
        const auto rows = [&](int i, [[maybe_unused]] bool follows_pads) {
            const int b = i / Stage::batch, k = i % Stage::batch;

            if constexpr (Job::is_step) {
                /* with the first rows of the next tile */
                if (k == 0 && b == Stage::batches - Stage::Ring::slots) {
                    step.fetch(job.systems(scheduler.at(1)).first + own.column);
                }
            }
            if (k == 0) {
                if constexpr (has_source) {
                    stage.read(b, batch, source);
                }
                else {
                    stage.read(b, batch);
                }
            }
            if constexpr (Job::is_step) {
                if (i == 0) {
                    step.begin(system);
                }
                Number added(0);

                if constexpr (has_source) {
                    added = source[k];
                }
                return step.row(i, follows_pads, batch[k], added, system);
            }
            else {
                return completed(job, batch[k], own.start + i);
            }
        };

        scheduler.draw_ticket();
        column.template eliminate<Job::is_step>(
            rows,
            [&](int i) {
                if constexpr (Job::is_step) {
                    return step.row_in_memory(i, system);
                }
                else {
                    return there ? row_in_memory(job, system, own.start + i)
                                 : copy_row<Number>();
                }
            },
            watches);
        scheduler.publish(column.rounds.now(), job.shape.blocks);
        column.join_chunks(scheduler.bytes(), [&](int32_t which, const Note &note) {
            if (which < tile.count) {
                report(job, tile.first + which, note);
            }
        });
        const bool is_stored =
            there && (!job.leaves_systems() || column.note.not_dominant == 0);

        if (is_stored) {
            const ColumnPlace place(t, system);
            char *x = reinterpret_cast<char *>(place.at(t.x, own.start + ROWS - 1));
            const int64_t row_bytes = t.x.row * static_cast<int64_t>(sizeof(Element));
            [[maybe_unused]] int32_t sides = 1;

            if constexpr (sides_of_number<Number> > 1) {
                sides = job.groups.sides_of(place.outer);
            }
            /* Without branches, so that the stores overlap. */
            column.substitute([&](int i, bool is_there, auto &value) {
                ValueOf<Number> stored = value;

                if constexpr (Job::is_step) {
                    stored = step.stored(i, value);
                }
                if (is_there) {
                    store_value(job, sides, own.start + i, x, stored);
                }
                x -= row_bytes;
            });
        }
    }
}

template <typename Number, int ROWS, bool IS_CLUSTER, ColumnAccess ACCESS, typename Job>
inline ps_status
launch_rings(const Job &job, cudaStream_t stream)
{
    void (*const kernel)(const Job) =
        column_kernel<Number, ROWS, IS_CLUSTER, ACCESS, Job>;
    const size_t bytes = column_bytes<Number, ROWS, IS_CLUSTER, ACCESS, Job>(job.shape);
    const auto start = [&](Launch &launch) {
        if (job.work_queue == nullptr) {
            return launch.run(kernel, job);
        }
        const ps_status status = clear_work_queue(job.work_queue, 1, stream);

        return status == PS_OK ? launch.closely().run(kernel, job) : status;
    };

    return with_column_grid<IS_CLUSTER>(kernel, job.shape, job.tiles, bytes, stream,
                                        start);
}

template <typename Number, typename Job>
inline ps_status
launch_shape(const Job &job, cudaStream_t stream)
{
    using Access = ColumnAccess;

    return with_chunks<typename Job::Tuned>(job.shape, [&](auto rows, auto cluster) {
        constexpr int ROWS = rows.value;
        constexpr bool IS_CLUSTER = cluster.value;

        if constexpr (number_traits<Number>::dtype == PS_F32) {
            if (job.access == Access::half_sectors) {
                return launch_rings<Number, ROWS, IS_CLUSTER, Access::half_sectors>(
                    job, stream);
            }
        }
        if constexpr (sides_of_number<Number> == 1) {
            if (job.access == Access::elements) {
                return launch_rings<Number, ROWS, IS_CLUSTER, Access::elements>(job,
                                                                                stream);
            }
        }
        return launch_rings<Number, ROWS, IS_CLUSTER, Access::sectors>(job, stream);
    });
}

template <typename Number>
ps_status
launch_columns(const ColumnJob<Number> &job, cudaStream_t stream)
{
    return launch_shape<Number>(job, stream);
}

template <typename Number>
ps_status
launch_side_columns(const SideColumnJob<Number> &job, cudaStream_t stream)
{
    return launch_shape<Number>(job, stream);
}

template <typename Number, StepKind KIND>
ps_status
launch_step_columns(const StepColumnJob<Number, KIND> &job, cudaStream_t stream)
{
    return launch_shape<Number>(job, stream);
}

template <typename Real, FluxKind KIND>
ps_status
launch_flux_columns(const FluxColumnJob<Real, KIND> &job, cudaStream_t stream)
{
    return launch_shape<BySums<Real>>(job, stream);
}

} // namespace pysolvers::columns

#endif
