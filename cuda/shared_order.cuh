/* shared_order.cuh - which tiles a block, or each of its teams, takes one after the
 * other.
 *
 * In equal shares, or as they are claimed (claims.cuh): the first ones of a team, up to
 * the one that is loaded while it solves the first, are shared out. A claim is made when
 * a tile is loaded and asked for when the next one is.
 */
#ifndef PS_CUDA_SHARED_ORDER_CUH
#define PS_CUDA_SHARED_ORDER_CUH

#include "claims.cuh"
#include "shared_copier.cuh"

/* What the teams of a block share about their order. */
struct TileClaims {
    uint32_t loaded[5][16]; /* [stage][warp]: the tile */
    uint32_t told[2][16];   /* [turn][team]: the claim of its first thread */
};

template <typename Number> struct TileOrder {
    const SharedJob<Number> &job;
    const SharedSeat &seat;
    TileClaims &shared;
    uint32_t takers;        /* of tiles, in a block */
    uint32_t step, claimed; /* what claims are counted from */
    uint32_t now, next;     /* the tile to solve, and the one to load */
    uint32_t claim = 0;     /* of the team's first thread */
    uint32_t turn = 0;      /* counts the tiles solved */
    bool claims;

    __device__ __forceinline__ TileOrder(const SharedJob<Number> &of,
                                         const SharedSeat &own, TileClaims &place,
                                         uint32_t ahead)
        : job(of), seat(own), shared(place), claims(of.claims != nullptr)
    {
        const bool by_team = of.shape.copies == COPY_IN_BULK;

        takers = by_team ? of.shape.teams : 1;
        step = gridDim.x * takers;
        now = blockIdx.x * takers + (by_team ? own.team : 0);
        claimed = (ahead + 1) * step + own.team;
        next = now;
    }

    /* Before memory is read: clear_claims() has waited for what was written there. */
    __device__ __forceinline__ void begin() const
    {
        if (!claims) {
            wait_for_last_kernel();
        }
        let_next_kernel_in();
    }

    __device__ __forceinline__ bool is_there(uint32_t tile) const
    {
        return tile < job.tiles * job.lines;
    }

    /* `next` is on its way. The warp meets before it is solved. */
    __device__ __forceinline__ void loaded(int stage)
    {
        if (claims && threadIdx.x % 32 == 0) {
            shared.loaded[stage][threadIdx.x / 32] = next;
        }
        next += step;
    }

    /* Before the team meets: its first thread tells what it has claimed. */
    __device__ __forceinline__ void tell()
    {
        if (claims && job.shape.warps > 1 && seat.chunk == 0) {
            shared.told[turn & 1][seat.team] = claim;
        }
    }

    /* After that: all know `next`. */
    __device__ __forceinline__ void ask()
    {
        if (claims && turn > 0) {
            next = claimed + takers * (job.shape.warps > 1
                                           ? shared.told[turn & 1][seat.team]
                                           : __shfl_sync(all_lanes, claim, 0));
        }
    }

    __device__ __forceinline__ void make_claim()
    {
        if (claims && seat.chunk == 0) {
            if (turn == 0) {
                wait_for_last_kernel();
            }
            claim = atomicAdd(job.claims + seat.team * claims_pitch, 1u);
        }
    }

    /* On to the tile of stage `stage`. */
    __device__ __forceinline__ void advance(int stage)
    {
        now = claims ? shared.loaded[stage][threadIdx.x / 32] : now + step;
        turn++;
    }
};

#endif
