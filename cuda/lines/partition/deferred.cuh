/* deferred.cuh - the kernel of parts of systems with deferred substitution, instantiated
 * per dtype.
 *
 * A block eliminates a tile and posts its segments for the other devices; then it
 * receives the segments of the tile before, closes its systems, and substitutes. The
 * messages of a tile so travel while the next tile is loaded and eliminated. Until then
 * the numbers g, l, u of the rows, x = g - l y_left - u x_next, lie in shared memory: x
 * takes the place of g.
 *
 *   tile k     load | eliminate | join, post |                      | receive, x, store
 *   tile k + 1              load ............ | eliminate | join, post |  load k + 2
 *
 * Five words of memory traffic per row as in partition.cuh, the same operations and the
 * same bits; six more words of shared memory are written or read per row. A block posts a
 * tile before it waits for the messages of the tile before, so that the first system that
 * a part has not posted belongs to a block that waits for nothing: no part waits forever
 * (device_exchange.cuh). Stability and sources: segment.cuh.
 */
#ifndef PS_CUDA_LINES_PARTITION_DEFERRED_CUH
#define PS_CUDA_LINES_PARTITION_DEFERRED_CUH

#include "lines/partition/partition.cuh"

namespace pysolvers::partition {

template <typename Number, int ROWS>
struct DeferredWorker
    : Worker<Number, ROWS, TOP_DEVICES, true, Job<Number>, WarpPlaces<Number>> {
    using Base = Worker<Number, ROWS, TOP_DEVICES, true, Job<Number>, WarpPlaces<Number>>;
    static constexpr int ahead = 2; /* rows that are read before their turn */
    using Base::device_messages, Base::device_round, Base::job, Base::levels, Base::round,
        Base::shape, Base::skip, Base::tiles, Base::turn, Base::y, Base::y_left;
    DeviceMessage<Number> *messages_of_tiles;
    Lanes<Number> lanes_before, warps_before; /* of the tile before */

    __device__ __forceinline__ DeferredWorker(const Job<Number> &j, char *memory,
                                              TileState &state,
                                              const DeferredPlaces &places)
        : Base(j, memory, state,
               {reinterpret_cast<Segment<Number> *>(memory + places.segments),
                reinterpret_cast<Note *>(memory + places.notes)},
               reinterpret_cast<uint8_t *>(memory + places.skips)),
          messages_of_tiles(
              reinterpret_cast<DeviceMessage<Number> *>(memory + places.messages))
    {
    }

    /* The place of a thread for a tile, which has systems for some of the slots. */
    static __device__ __forceinline__ ThreadPlace<ROWS>
    place_in(const TileRange &range, const ThreadPlace<ROWS> &own)
    {
        ThreadPlace<ROWS> self = own;

        if (self.slot >= range.systems) {
            self.clear();
        }
        return self;
    }

    /* Join the chunks of tile `round`, and post its segments. */
    __device__ __forceinline__ void post(const ThreadPlace<ROWS> &self,
                                         const TileRange &range)
    {
        const Segment<Number> s = levels.reduce_block(shape, self, Base::exchange);

        choose_messages(turn());
        Base::compose(self, range, s);
        job.devices.post(range, device_messages, device_round);
    }

    /* Bring the rows of a tile from registers to shared memory, where no x is being
     * stored. */
    __device__ __forceinline__ void park(const ThreadPlace<ROWS> &self,
                                         const TileRange &range)
    {
        const Rows to = rows_of(self, range);

        lanes_before = levels.lanes;
        warps_before = levels.warps;
#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            if (self.start + i >= 0) {
                const Spike<Number> &s = levels.chunk.x[i];

                to.g[i] = s.g;
                to.l[i] = s.l;
                to.u[i] = s.u;
            }
        }
    }

    /* Receive the segments of the tile before, and solve its systems. */
    __device__ __forceinline__ void finish_before(const ThreadPlace<ROWS> &self,
                                                  const TileRange &range)
    {
        choose_messages(turn() ^ 1);
        job.devices.collect(range, device_messages, device_round);
        Base::join_devices(self, range);
        Base::report(self, range);
        levels.broadcast_down(shape, self, lanes_before, warps_before, y_left, y);
        substitute(self, range);
        tiles.written();

        const bool not_dominant = Base::is_not_dominant(self, range);
        tiles.store(range, array_of_x(range),
                    __syncthreads_or(not_dominant) ? skip : nullptr);
    }

  private:
    /* The rows of a chunk in shared memory. */
    struct Rows {
        Number *g, *l, *u;

        __device__ __forceinline__ Spike<Number> at(int i) const
        {
            return {g[i], l[i], u[i]};
        }
    };

    __device__ __forceinline__ void choose_messages(int which)
    {
        device_messages =
            messages_of_tiles + which * job.tiling.systems * job.devices.count;
    }

    __device__ __forceinline__ Number *array_of_x(const TileRange &range) const
    {
        return tiles.memory + 4 * job.tiling.words + tiles.skew_of_x(range);
    }

    __device__ __forceinline__ Rows rows_of(const ThreadPlace<ROWS> &self,
                                            const TileRange &range) const
    {
        const int offset = Base::offset_of(self.slot, self.start, range);
        const int words = job.tiling.words;

        return {array_of_x(range) + offset, tiles.memory + 5 * words + offset,
                tiles.memory + 6 * words + offset};
    }

    __device__ __forceinline__ void substitute(const ThreadPlace<ROWS> &self,
                                               const TileRange &range)
    {
        const Rows rows = rows_of(self, range);
        Spike<Number> s[ahead];

#pragma unroll
        for (int i = ROWS - 2; i > ROWS - 2 - ahead; i--) {
            if (self.start + i >= 0) {
                s[i % ahead] = rows.at(i);
            }
        }
        if (self.start + ROWS - 1 >= 0) {
            rows.g[ROWS - 1] = y;
        }
#pragma unroll
        for (int i = ROWS - 2; i >= 0; i--) {
            if (self.start + i >= 0) {
                y = s[i % ahead].at(y_left, y);
            }
            if (i >= ahead && self.start + i - ahead >= 0) {
                s[i % ahead] = rows.at(i - ahead);
            }
            if (self.start + i >= 0) {
                rows.g[i] = y;
            }
        }
    }
};

/* Grid: any number of blocks that are resident, each with at least one tile. Shared
 * memory: DeferredPlaces. */
template <typename Number>
__global__ void
__launch_bounds__(deferred_threads)
    deferred_kernel(const __grid_constant__ Job<Number> job)
{
    __shared__ TileState state;
    __shared__ uint32_t shared_ticket;
    constexpr int ROWS = Tuning<Number, true>::rows;
    char *const memory = reinterpret_cast<char *>(partition_memory);
    const DeferredPlaces places(job.shape, job.tiling, sizeof(Number),
                                sizeof(DeviceMessage<Number>), job.devices.count,
                                blockDim.x / 32);
    DeferredWorker<Number, ROWS> worker(job, memory, state, places);
    const ThreadPlace<ROWS> own(job.shape, 0);
    int64_t tile = blockIdx.x;
    TileRange range = worker.range_of(tile, 0), before = {};
    uint32_t ticket = 0; /* of thread 0 */

    if (blockIdx.x == 0) {
        job.devices.announce();
    }
    worker.tiles.init();
    __syncthreads();
    worker.tiles.load(range, 0);
    for (worker.round = 0;; worker.round++) {
        /* after the last tile there is only the tile before */
        const bool is_there = range.systems > 0, has_before = before.systems > 0;
        TileRange next = {};

        if (is_there) {
            worker.tiles.wait(worker.turn());
        }
        else {
            stores_read();
        }
        __syncthreads();
        if (has_before) {
            worker.park(worker.place_in(before, own), before);
        }
        if (is_there) {
            const ThreadPlace<ROWS> self = worker.place_in(range, own);

            if (job.work_queue != nullptr && threadIdx.x == 0) {
                ticket = atomicAdd(job.work_queue, 1u);
            }
            worker.eliminate(self, range);
            if (threadIdx.x == 0) {
                shared_ticket = ticket;
            }
            __syncthreads(); /* the tile is in registers */
            tile =
                gridDim.x +
                (job.work_queue != nullptr ? static_cast<int64_t>(shared_ticket) : tile);
            if (tile < job.tiling.tiles) {
                next = worker.range_of(tile, 0);
                worker.tiles.load(next, worker.turn() ^ 1);
            }
            worker.post(self, range);
        }
        if (has_before) {
            worker.finish_before(worker.place_in(before, own), before);
        }
        if (!is_there) {
            break;
        }
        before = range;
        range = next;
    }
    stores_read();
    if (threadIdx.x == 0) {
        job.devices.complete(worker.device_round);
    }
}

template <typename Number>
ps_status
launch_deferred(const Job<Number> &job, const Plan &plan, cudaStream_t stream)
{
    return launch_tiles(deferred_kernel<Number>, job, TOP_DEVICES, plan, stream);
}

} // namespace pysolvers::partition

#endif
