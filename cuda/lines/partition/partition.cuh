/* partition.cuh - the kernels of the partition method, instantiated per dtype.
 *
 * A block processes one tile after the other: it waits for the copies of the tile,
 * eliminates the rows into registers, starts the copies of the next tile into the same
 * memory, joins the chunks (levels.cuh), substitutes and stores. Five words of memory
 * traffic, 17 operations and one reciprocal per row. A tile is read before any of its x
 * is written, so that x may be rhs. No pivoting: stable for diagonally dominant
 * systems. Wang 1981; Laszlo, Giles and Appleyard 2016.
 *
 * Blocks draw their tiles (work_queue.cuh), each one tile earlier than it is loaded, so that
 * the atomic operation costs no time. With TOP_DEVICES block b of `step` has the tiles b, b +
 * step, b + 2 step, ..., and only the last ones are drawn, while the tile before is
 * eliminated: a block waits for the block of another device that has the same tile, and in
 * this order two blocks wait for each other in all their tiles. If the devices draw
 * all tiles, a block waits for another one in every tile, which may still wait for a third:
 * on two H200 with 512 rows in float64 the times at which they start a tile then differ by
 * 5060 ns (standard deviation) in place of 1010, with 2048 rows by 1700 in place of 700 ns.
 * Blocks whose tiles all follow in turn end at different times: with the last 6 % drawn,
 * 2048 rows reach 86 in place of 85 % of the speed of a copy (82 % if all are drawn). Tickets
 * that one device draws for all others took as long as those of each device.
 *
 * Clusters that are alone on their multiprocessors have the memory of two tiles, if it
 * suffices, and load the next tile while they eliminate this one: 34000 to 48000 rows in
 * float64 take 0.92 to 0.93 of the time, 72000 to 96000 in float32 0.91 to 0.99 (H200). Two
 * blocks of a multiprocessor are better: with the memory of two tiles, but one block instead
 * of two, 16384 rows in float64 took 1.6 times as long. Steps from a level have two operands,
 * and the memory of the other two for those of the next tile.
 */
#ifndef PS_CUDA_LINES_PARTITION_PARTITION_CUH
#define PS_CUDA_LINES_PARTITION_PARTITION_CUH

#include <algorithm>
#include <type_traits>

#include "device/work_queue.cuh"
#include "lines/partition/partition_worker.cuh"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::partition {

extern __shared__ int4 partition_memory[];

/* Of the tiles of systems that devices share; 90 and 97 are slower by 1 %. */
static constexpr int64_t percent_in_turn = 94;

/* Grid: any number of clusters of shape.blocks blocks. Shared memory: the arrays of the
 * tile, then the messages of the cluster. */
template <typename Number, Top TOP, bool BY_ROW, typename AnyJob = Job<Number>,
          typename Tuned = Tuning<Number, BY_ROW>>
__global__ void
__launch_bounds__(Tuned::threads) partition_kernel(const __grid_constant__ AnyJob job)
{
    __shared__ TileStateOf<TOP == TOP_DEVICES, sides_of_number<Number>> state;
    __shared__ WarpExchange<Number> exchange;
    __shared__ uint8_t skip[Tuned::threads];
    __shared__ uint32_t shared_ticket;
    constexpr int ROWS = Tuned::rows;
    using Work = Worker<Number, ROWS, TOP, BY_ROW, AnyJob>;
    constexpr bool is_cluster = TOP == TOP_CLUSTER;
    constexpr bool may_be_ahead =
        is_cluster && BY_ROW && !AnyJob::is_step && sides_of_number<Number> == 1;
    const bool is_ahead = may_be_ahead && job.tiling.stage != 0;
    const int32_t blocks = is_cluster ? job.shape.blocks : 1;
    const int32_t rank = is_cluster ? static_cast<int32_t>(blockIdx.x % blocks) : 0;
    const int64_t step = gridDim.x / blocks;
    const bool work_queue = !is_cluster && job.work_queue != nullptr;
    Work worker(job, partition_memory, state, exchange, skip);
    const ThreadPlace<ROWS> own(job.shape, rank);
    const int32_t groups = sides_of_number<Number> > 1 ? job.tiling.sharing : 1;
    int32_t group = 0;   /* of the next tile */
    uint32_t ticket = 0; /* of thread 0, for the next tile or the one after it */
    TileRange range = {};

    if (TOP == TOP_DEVICES && blockIdx.x == 0) {
        job.devices.announce();
    }
    worker.tiles.init();
    if constexpr (AnyJob::is_flux) {
        worker.step.start(worker.tiles, worker.range_of(0, rank));
    }
    __syncthreads();
    if (is_cluster) {
        cluster_sync(); /* every block has started, so that its memory may be written */
    }
    for (int64_t tile = blockIdx.x / blocks;;
         tile += groups > 1 ? 0 : step, worker.round++) {
        /* in the first iteration there is only a next tile */
        const bool is_there = worker.round >= 0;
        ThreadPlace<ROWS> self = own;

        if (is_there) {
            if (Work::in_parts) {
                self.move(job.shape, range.block);
            }
            if (self.slot >= range.systems) {
                self.clear();
            }
            if (TOP == TOP_DEVICES && work_queue && tile >= job.in_turn &&
                threadIdx.x == 0) {
                ticket = atomicAdd(job.work_queue, 1u);
            }
            worker.tiles.wait(worker.turn());
            __syncthreads();
            if constexpr (may_be_ahead) {
                if (is_ahead && tile < job.tiling.tiles) {
                    worker.tiles.load_contiguous(worker.range_of(tile, rank),
                                                 worker.turn() ^ 1);
                }
            }
            uint32_t given_up = 0;
            if (AnyJob::has_halos && threadIdx.x == 0 && worker.round > 0) {
                given_up = worker.given_up(2 * step + ticket);
            }
            worker.eliminate(self, range);
            if (threadIdx.x == 0) {
                if (given_up != 0) {
                    ticket = worker.next_ticket(2 * step);
                }
                shared_ticket = ticket;
            }
            __syncthreads(); /* the tile is in registers */
            if (groups > 1) {
                group = group + 1 < groups ? group + 1 : 0;
                if (group == 0) {
                    tile = step + (work_queue ? shared_ticket : tile);
                }
            }
            else if (work_queue && TOP == TOP_DEVICES) {
                tile = tile < job.in_turn ? tile : job.in_turn + shared_ticket;
            }
            else if (work_queue && worker.round > 0) {
                tile = 2 * step + shared_ticket;
            }
        }
        const bool has_next = tile < worker.tiles_count();
        const TileRange next = worker.range_of(tile, rank, group);

        if (has_next && !(is_ahead && is_there)) {
            worker.tiles.load(next, worker.turn() ^ 1);
        }
        if constexpr (AnyJob::is_step) {
            if (has_next) {
                worker.step.fetch(own, next);
            }
        }
        if (work_queue && TOP != TOP_DEVICES && is_there && threadIdx.x == 0 &&
            (groups == 1 || group == 1)) {
            if (worker.round == 0) {
                wait_for_last_kernel();
            }
            ticket = atomicAdd(job.work_queue, 1u);
        }
        if (is_there) {
            worker.finish(self, range);
        }
        if (!has_next) {
            break;
        }
        range = next;
    }
    stores_read();
    if (TOP == TOP_DEVICES) {
        __syncthreads();
        if (threadIdx.x == 0) {
            job.devices.complete(worker.device_round);
        }
    }
}

template <typename Number> using PartitionKernel = void (*)(const Job<Number>);

template <typename Number, bool BY_ROW>
inline PartitionKernel<Number>
partition_kernel_of(Top top)
{
    switch (top) {
    case TOP_CLUSTER:
        return partition_kernel<Number, TOP_CLUSTER, BY_ROW>;
    case TOP_SEGMENT:
        return partition_kernel<Number, TOP_SEGMENT, BY_ROW>;
    case TOP_KNOWN:
        return partition_kernel<Number, TOP_KNOWN, BY_ROW>;
    case TOP_DEVICES:
        return partition_kernel<Number, TOP_DEVICES, BY_ROW>;
    default:
        return partition_kernel<Number, TOP_BLOCK, BY_ROW>;
    }
}

/* Launch as many blocks as can be resident, each with equally many tiles unless there
 * is a work queue. */
template <typename AnyJob>
inline ps_status
launch_tiles(void (*kernel)(const AnyJob), AnyJob job, Top top, const Plan &plan,
             cudaStream_t stream)
{
    const int blocks = top == TOP_CLUSTER ? job.shape.blocks : 1;
    int fit = 0;
    ps_status status = resident(kernel, plan.threads, plan.shared_bytes, blocks, &fit);

    if (status != PS_OK) {
        return status;
    }
    if (plan.most_blocks > 0) {
        fit = std::min(fit, plan.most_blocks);
    }
    const int64_t rounds = divided_up(job.tiling.tiles, fit);
    const int64_t units = divided_up(job.tiling.tiles, rounds);
    Launch launch(units * blocks, plan.threads, plan.shared_bytes, stream);

    if (top == TOP_DEVICES) {
        job.in_turn = std::max<int64_t>(1, rounds * percent_in_turn / 100) * units;
    }

    if (blocks > 1) {
        launch.in_clusters(blocks);
    }
    /* those of devices are cleared by their blocks, those of halos before */
    if (job.work_queue != nullptr && top != TOP_DEVICES && job.parts.left == nullptr) {
        status = clear_work_queue(job.work_queue, 1, stream);
        if (status != PS_OK) {
            return status;
        }
        launch.closely();
    }
    return launch.run(kernel, job);
}

template <typename Number>
ps_status
launch_partition(const Job<Number> &job, Top top, const Plan &plan, cudaStream_t stream)
{
    PartitionKernel<Number> kernel = job.tiling.row_pitch == 1
                                         ? partition_kernel_of<Number, true>(top)
                                         : partition_kernel_of<Number, false>(top);

    if constexpr (has_long_chunks<Number>) {
        if (plan.long_chunks) {
            kernel = partition_kernel<Number, TOP_DEVICES, true, Job<Number>, LongTuning>;
        }
    }
    return launch_tiles(kernel, job, top, plan, stream);
}

template <typename Number>
ps_status
launch_halos(const HaloJob<Number> &job, const Plan &plan, cudaStream_t stream)
{
    if constexpr (may_have_halos<Number>) {
        return launch_tiles(partition_kernel<Number, TOP_BLOCK, true, HaloJob<Number>>,
                            job, TOP_BLOCK, plan, stream);
    }
    return PS_UNSUPPORTED;
}

template <typename Number, typename AnyJob>
inline ps_status
launch_step(const AnyJob &job, const Plan &plan, cudaStream_t stream)
{
    return plan.shape.blocks > 1
               ? launch_tiles(partition_kernel<Number, TOP_CLUSTER, true, AnyJob>, job,
                              TOP_CLUSTER, plan, stream)
               : launch_tiles(partition_kernel<Number, TOP_BLOCK, true, AnyJob>, job,
                              TOP_BLOCK, plan, stream);
}

template <typename Number>
ps_status
launch_side_partition(const SideJob<Number> &job, const Plan &plan, cudaStream_t stream)
{
    return launch_tiles(partition_kernel<Number, TOP_BLOCK, true, SideJob<Number>>, job,
                        TOP_BLOCK, plan, stream);
}

template <typename Number, bool IS_MASKED>
ps_status
launch_step_partition(const StepJob<Number, IS_MASKED> &job, const Plan &plan,
                      cudaStream_t stream)
{
    if constexpr (has_long_chunks<Number>) {
        if (plan.long_chunks) {
            return launch_tiles(partition_kernel<Number, TOP_BLOCK, true,
                                                 StepJob<Number, IS_MASKED>, LongTuning>,
                                job, TOP_BLOCK, plan, stream);
        }
    }
    return launch_step<Number>(job, plan, stream);
}

template <typename Real, FluxKind KIND>
ps_status
launch_flux_partition(const FluxJob<Real, KIND> &job, const Plan &plan,
                      cudaStream_t stream)
{
    return launch_step<BySums<Real>>(job, plan, stream);
}

} // namespace pysolvers::partition

#endif
