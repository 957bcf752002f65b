/* column_tile_scheduler.cuh - the order in which blocks and clusters process tiles of
 * columns.
 *
 * Either in equal shares, or, except for the first two tiles, from a work queue
 * (work_queue.cuh). With the queue, neighbouring tiles are read at about the same time,
 * so that sectors which they share come from the cache. A ticket is drawn one tile in
 * advance and published in the next exchange of the block or the cluster.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_TILE_SCHEDULER_CUH
#define PS_CUDA_LINES_COLUMNS_COLUMN_TILE_SCHEDULER_CUH

#include "device/cluster.cuh"
#include "device/work_queue.cuh"
#include "lines/columns/column.h"

namespace pysolvers::columns {

template <bool IS_CLUSTER> struct ColumnTileScheduler {
    uint32_t *const work_queue; /* null: equal shares */
    uint32_t *const tickets;    /* of the block, alternating */
    const bool draws_tickets;   /* whether this thread draws, for its block or cluster */
    const int64_t step;
    int64_t tile, next;
    uint32_t ticket = 0;
    int32_t turn = 0;

    __device__ __forceinline__ ColumnTileScheduler(uint32_t *of_all, uint32_t *of_block,
                                                   int32_t rank, int64_t first,
                                                   int64_t takers)
        : work_queue(of_all), tickets(of_block),
          draws_tickets(rank == 0 && threadIdx.x == 0), step(takers), tile(first),
          next(first + takers)
    {
    }

    /* Before memory is read: earlier writes are complete, because clear_work_queue()
     * has waited for them. */
    __device__ __forceinline__ void begin() const
    {
        if (work_queue != nullptr) {
            wait_for_last_kernel();
        }
    }

    /* The tile `ahead` tiles after the current one; with a work queue, ahead is at most
     * one. */
    __device__ __forceinline__ int64_t at(int ahead) const
    {
        return ahead == 0 ? tile : next + (ahead - 1) * step;
    }

    __device__ __forceinline__ void draw_ticket()
    {
        if (work_queue != nullptr && draws_tickets) {
            ticket = atomicAdd(work_queue, 1u);
        }
    }

    /* Bytes that each block of a cluster receives with the messages of an exchange. */
    __device__ __forceinline__ uint32_t bytes() const
    {
        return IS_CLUSTER && work_queue != nullptr ? sizeof ticket : 0;
    }

    /* Before an exchange, whose messages are counted by `arrivals`. */
    __device__ __forceinline__ void publish(const Arrivals &arrivals,
                                            int32_t blocks) const
    {
        if (work_queue == nullptr || !draws_tickets) {
            return;
        }
        if constexpr (IS_CLUSTER) {
            for (int to = 0; to < blocks; to++) {
                send_word(address_in_block(tickets + turn, to), ticket,
                          address_in_block(&arrivals, to));
            }
        }
        else {
            tickets[turn] = ticket;
        }
    }

    /* After an exchange, by all threads. */
    __device__ __forceinline__ void advance()
    {
        __syncwarp(); /* a block of one warp has passed no barrier */
        tile = next;
        next = work_queue != nullptr ? 2 * step + tickets[turn] : next + step;
        turn ^= 1;
    }
};

} // namespace pysolvers::columns

#endif
