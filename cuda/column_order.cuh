/* column_order.cuh - in which order blocks and clusters take tiles of columns.
 *
 * In equal shares, or as they are claimed (claims.cuh), the first two apart: then tiles
 * side by side are read at about the same time, and what lies in a line of memory with
 * the neighbours comes from the cache. A claim is made a tile ahead, and told when the
 * block, or the cluster, meets.
 */
#ifndef PS_CUDA_COLUMN_ORDER_CUH
#define PS_CUDA_COLUMN_ORDER_CUH

#include "claims.cuh"
#include "cluster.cuh"
#include "column.h"

template <bool IS_CLUSTER> struct ColumnOrder {
    uint32_t *const claims; /* null: equal shares */
    uint32_t *const told;   /* of the block, in two turns */
    const bool claimant;    /* whether this thread claims for its block or cluster */
    const int64_t step;
    int64_t tile, next;
    uint32_t claim = 0;
    int32_t turn = 0;

    __device__ __forceinline__ ColumnOrder(uint32_t *of_all, uint32_t *of_block,
                                           int32_t rank, int64_t first, int64_t takers)
        : claims(of_all), told(of_block), claimant(rank == 0 && threadIdx.x == 0),
          step(takers), tile(first), next(first + takers)
    {
    }

    /* Before memory is read: what clears the claims has waited for what was written. */
    __device__ __forceinline__ void begin() const
    {
        if (claims != nullptr) {
            wait_for_last_kernel();
        }
    }

    /* The tile that is `ahead` behind this one; where tiles are claimed, at most one. */
    __device__ __forceinline__ int64_t at(int ahead) const
    {
        return ahead == 0 ? tile : next + (ahead - 1) * step;
    }

    __device__ __forceinline__ void make_claim()
    {
        if (claims != nullptr && claimant) {
            claim = atomicAdd(claims, 1u);
        }
    }

    /* Bytes that each block of a cluster gets with the messages of a meeting. */
    __device__ __forceinline__ uint32_t bytes() const
    {
        return IS_CLUSTER && claims != nullptr ? sizeof claim : 0;
    }

    /* Before a meeting, whose messages are counted by `arrivals`. */
    __device__ __forceinline__ void tell(const Arrivals &arrivals, int32_t blocks) const
    {
        if (claims == nullptr || !claimant) {
            return;
        }
        if constexpr (IS_CLUSTER) {
            for (int to = 0; to < blocks; to++) {
                send_word(address_in_block(told + turn, to), claim,
                          address_in_block(&arrivals, to));
            }
        }
        else {
            told[turn] = claim;
        }
    }

    /* After a meeting, by all threads. */
    __device__ __forceinline__ void advance()
    {
        __syncwarp(); /* a block may be one warp, which has not met */
        tile = next;
        next = claims != nullptr ? 2 * step + told[turn] : next + step;
        turn ^= 1;
    }
};

#endif
