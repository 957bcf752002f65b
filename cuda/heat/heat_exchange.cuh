/* heat_exchange.cuh - the exchange of sums between the chunks of neighbouring columns
 * in a block, and between the blocks of a cluster.
 *
 * The 32 chunks of a column are joined by one warp, which reads their sums from shared
 * memory; the blocks of a cluster send the sums of their groups to each other. Buffers
 * alternate by round, so that writers need not wait for readers: a block that is one
 * round ahead has received the sums of all other blocks, which have read the previous
 * round by then.
 */
#ifndef PS_CUDA_HEAT_HEAT_EXCHANGE_CUH
#define PS_CUDA_HEAT_HEAT_EXCHANGE_CUH

#include <cstring>

#include "heat/heat_line.cuh"
#include "lines/join/exchange.cuh"

namespace pysolvers::heat {

using namespace runtime;
using join::ClusterRounds;

/* Columns of a block; its threads, one per chunk; the largest number of blocks of a
 * cluster. */
enum {
    HEAT_WIDTH = 16,
    HEAT_COLUMN_THREADS = HEAT_CHUNKS * HEAT_WIDTH,
    HEAT_CLUSTER = 8
};

/* Of a column: the boundary values of the chunk of this lane from within the group, and the sums of
 * the group. */
template <typename Real> struct HeatSums {
    HeatPair<Real> in, whole;
};

/* In shared memory, for blocks of WIDTH columns. The order of a round: expect(), every thread
 * sets the sums of its chunk, a barrier, join_chunks(), a barrier, from_outside(). */
template <typename Real, int WIDTH = HEAT_WIDTH> struct HeatExchange {
    HeatPair<Real> chunk[HEAT_CHUNKS][WIDTH + 1];
    HeatPair<Real> total[2][HEAT_CLUSTER][WIDTH];
    Real first[WIDTH];
    Arrivals arrivals[2];

    /* Called by one thread, before a barrier of the cluster. */
    __device__ __forceinline__ void init()
    {
        rounds(0).init();
    }

    /* Called by all threads; begun() before the first round. */
    __device__ __forceinline__ void begin(int groups)
    {
        if (groups > 1) {
            if (threadIdx.x == 0) {
                init();
            }
            cluster_arrive();
        }
    }

    __device__ __forceinline__ void begun(int groups) const
    {
        if (groups > 1) {
            cluster_wait();
        }
    }

    __device__ __forceinline__ void expect(int groups, int round)
    {
        if (threadIdx.x == 0 && groups > 1) {
            rounds(round).expect(groups * WIDTH *
                                 static_cast<int>(sizeof(HeatPair<Real>)));
        }
    }

    __device__ __forceinline__ ClusterRounds rounds(int round)
    {
        return {arrivals, round};
    }

    /* Replace the sums of each chunk by its boundary values. Warp w processes column w;
     * end[] are the values of the sides there. */
    __device__ __forceinline__ void join_chunks(const HeatLine<Real> &line,
                                                const HeatShare<Real> &share, int block,
                                                int round, const Real end[2])
    {
        close_chunks(line, share, block, round, send_sums(line, block, round), end);
    }

    /* The first half of join_chunks(), up to what the other blocks send, and the second one. */
    __device__ __forceinline__ HeatSums<Real> send_sums(const HeatLine<Real> &line,
                                                        int block, int round)
    {
        const int lane = threadIdx.x % 32, column = threadIdx.x / 32;
        const ClusterRounds own = rounds(round);
        HeatGroup<Real> rows = {line, lane, block};
        const HeatPair<Real> whole = rows.scan(chunk[lane][column]);

        if (line.groups > 1 && lane < line.groups) {
            send(&total[own.turn()][block][column], whole, own.now(),
                 static_cast<unsigned>(lane));
        }
        return {rows.in, whole};
    }

    __device__ __forceinline__ void close_chunks(const HeatLine<Real> &line,
                                                 const HeatShare<Real> &share, int block,
                                                 int round, const HeatSums<Real> &sums,
                                                 const Real end[2])
    {
        const int lane = threadIdx.x % 32, column = threadIdx.x / 32;
        const ClusterRounds own = rounds(round);
        const int turn = own.turn();

        if (line.groups > 1) {
            own.wait();
        }
        const HeatInflow<Real> from = heat_inflow(
            line, share, block,
            [&](int g) { return line.groups > 1 ? total[turn][g][column] : sums.whole; },
            end);

        chunk[lane][column] = share.into_chunk(sums.in, from.group);
        if (lane == 0) {
            first[column] = from.first;
        }
    }

    /* The boundary values of chunk `number` of a column. */
    template <int ROWS>
    __device__ __forceinline__ HeatPair<Real>
    from_outside(const HeatChunk<Real, ROWS> &own, int number, int column) const
    {
        HeatPair<Real> in = chunk[number][column];

        if (own.has_first && own.pads > 0) {
            in.u = first[column];
        }
        return in;
    }
};

} // namespace pysolvers::heat

#endif
