/* shared_tile_scheduler.cuh - the order in which a block, or each of its teams,
 * processes tiles.
 *
 * Either in equal shares, or from a work queue (work_queue.cuh). With the queue, the
 * first tiles of a team, one for each stage, are assigned in equal shares. A ticket is
 * drawn when a tile is solved and used when the next one is.
 */
#ifndef PS_CUDA_LINES_SHARED_SHARED_TILE_SCHEDULER_CUH
#define PS_CUDA_LINES_SHARED_SHARED_TILE_SCHEDULER_CUH

#include "device/work_queue.cuh"
#include "lines/shared/shared_copier.cuh"

namespace pysolvers::shared {

/* The tickets that the teams of a block share. */
struct TileTickets {
    uint32_t loaded[5][16];  /* [stage][warp]: the tile */
    uint32_t tickets[2][16]; /* [turn][team]: drawn by its first thread */
};

template <typename Number> struct SharedTileScheduler {
    const SharedJob<Number> &job;
    const SharedThreadPlace &self;
    TileTickets &shared;
    uint32_t now, next;  /* the tile to solve, and the tile to load */
    uint32_t ticket = 0; /* of the first thread of the team */
    uint32_t turn = 0;   /* number of tiles solved */
    bool work_queue;

    __device__ __forceinline__ SharedTileScheduler(const SharedJob<Number> &of,
                                                   const SharedThreadPlace &own,
                                                   TileTickets &place)
        : job(of), self(own), shared(place), work_queue(of.work_queue != nullptr)
    {
        now = blockIdx.x * job.takers + (job.takers > 1 ? own.crew() : 0);
        next = now;
    }

    /* Tiles that the device processes at a time. */
    __device__ __forceinline__ uint32_t step() const
    {
        return gridDim.x * job.takers;
    }

    /* The tile of a ticket; those that all stages hold first are not drawn. */
    __device__ __forceinline__ uint32_t tile_of(uint32_t drawn) const
    {
        return job.shape.stages * step() + self.crew() + job.takers * drawn;
    }

    /* Before memory is read: earlier writes are complete, because clear_work_queue()
     * has waited for them. */
    __device__ __forceinline__ void begin() const
    {
        if (!work_queue) {
            wait_for_last_kernel();
        }
        let_next_kernel_in();
    }

    __device__ __forceinline__ bool is_there(uint32_t tile) const
    {
        return tile < job.tiles * job.lines;
    }

    /* The copies of `next` have been started. A barrier of the warp follows before it
     * is solved. */
    __device__ __forceinline__ void loaded(int stage)
    {
        if (work_queue && threadIdx.x % 32 == 0) {
            shared.loaded[stage][threadIdx.x / 32] = next;
        }
        next += step();
    }

    /* Before the barrier of the team: its first thread publishes its ticket. */
    __device__ __forceinline__ void publish()
    {
        if (work_queue && job.shape.warps > 1 && self.chunk == 0) {
            shared.tickets[turn & 1][self.team] = ticket;
        }
    }

    /* After the barrier: all threads compute `next`. */
    __device__ __forceinline__ void read_ticket()
    {
        if (work_queue) {
            next = tile_of(job.shape.warps > 1 ? shared.tickets[turn & 1][self.team]
                                               : __shfl_sync(all_lanes, ticket, 0));
        }
    }

    __device__ __forceinline__ void draw_ticket()
    {
        if (work_queue && self.thread() == 0) {
            if (turn == 0) {
                wait_for_last_kernel();
            }
            ticket = atomicAdd(job.work_queue + self.crew() * work_queue_pitch, 1u);
        }
    }

    /* Advance to the tile of stage `stage`. */
    __device__ __forceinline__ void advance(int stage)
    {
        now = work_queue ? shared.loaded[stage][threadIdx.x / 32] : now + step();
        turn++;
    }
};

} // namespace pysolvers::shared

#endif
