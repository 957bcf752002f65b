/* heat_columns.cuh - a sweep along y or z.
 *
 * A thread has a chunk of a column, 16 threads side by side one row of 16 columns. The
 * chunk waits in shared memory, each thread's in words of its own, and the next one is on
 * its way there, while registers hold u; what a solution is to be added to comes to the
 * same words while chunks meet. The 32 chunks of a block meet in shared memory,
 * a warp a column, and then the blocks of a cluster.
 */
#ifndef PS_CUDA_HEAT_COLUMNS_CUH
#define PS_CUDA_HEAT_COLUMNS_CUH

#include <cstring>

#include "cluster.cuh"
#include "heat_line.cuh"
#include "heat_sweeps.h"
#include "launch.cuh"

enum { HEAT_WIDTH = 16, HEAT_COLUMN_THREADS = HEAT_CHUNKS * HEAT_WIDTH };
enum { HEAT_CLUSTER = 8, HEAT_COLUMN_STAGES = 2 };

template <typename Real> struct HeatMessage {
    using word = std::conditional_t<sizeof(Real) == 4, uint32_t, uint64_t>;
    HeatPair<Real> pair;
};

/* Where the chunks of a block meet, and its cluster's blocks, by turns. */
template <typename Real> struct HeatColumnsShared {
    HeatPair<Real> chunk[HEAT_CHUNKS][HEAT_WIDTH + 1];
    HeatMessage<Real> total[2][HEAT_CLUSTER][HEAT_WIDTH];
    Real first[HEAT_WIDTH];
    Arrivals arrivals[2];
};

/* The block's part of a column, in what order it takes them. */
template <typename Real> struct HeatColumnTile {
    int64_t plane, column, node; /* node of the sides, in the plane */

    __device__ __forceinline__ HeatColumnTile(const HeatColumns<Real> &s, int64_t tile,
                                              int place)
    {
        const int64_t tiles = (s.c1 - s.c0 + HEAT_WIDTH - 1) / HEAT_WIDTH;

        plane = tile / tiles;
        column = s.c0 + (tile - plane * tiles) * HEAT_WIDTH + place;
        node = min(column, s.c1 - 1) + plane * s.side;
    }

    __device__ __forceinline__ bool is_inside(const HeatColumns<Real> &s) const
    {
        const int64_t across = column % s.width;

        return column < s.c1 && across >= s.inner[0] && across < s.inner[1];
    }
};

/* The chunks of all columns of the block meet: what comes into each takes its place.
 * Warp w has column w, end[] are the values of the sides there. */
template <typename Real>
__device__ __forceinline__ void
meet_columns(const HeatLine<Real> &line, const HeatShare<Real> &share,
             HeatColumnsShared<Real> &shared, int block, int round, const Real end[2])
{
    const int lane = threadIdx.x % 32, column = threadIdx.x / 32, turn = round & 1;
    HeatGroup<Real> rows = {line, lane, block};
    const HeatPair<Real> whole = rows.scan(shared.chunk[lane][column]);

    if (line.groups > 1) {
        if (lane < line.groups) {
            send(&shared.total[turn][block][column], HeatMessage<Real>{whole},
                 shared.arrivals[turn], static_cast<unsigned>(lane));
        }
        shared.arrivals[turn].wait(round / 2 & 1);
    }
    const HeatInflow<Real> from = heat_inflow(
        line, share, block,
        [&](int g) {
            return line.groups > 1 ? shared.total[turn][g][column].pair : whole;
        },
        end);

    shared.chunk[lane][column] = share.into_chunk(rows.in, from.group);
    if (lane == 0) {
        shared.first[column] = from.first;
    }
}

/* Bring the chunk of a tile of `field` to words of this thread's own; `start` is its
 * first place. */
template <int ROWS, typename Real>
__device__ __forceinline__ void
load_column(const HeatColumns<Real> &s, const Real *field, int64_t tile, int start,
            Real *keep)
{
    const HeatColumnTile<Real> at(s, tile, threadIdx.x % HEAT_WIDTH);
    const uint32_t pitch = static_cast<uint32_t>(s.pitch * sizeof(Real));
    const int pads = at.is_inside(s) ? max(-start, 0) : ROWS;
    const Real *const from = field + at.plane * s.plane + start * s.pitch + at.column;

    if (__all_sync(all_lanes, pads == 0)) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            copy_async<sizeof(Real)>(keep + i * HEAT_COLUMN_THREADS,
                                     row_at(from, i, pitch));
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (i >= pads) {
            copy_async<sizeof(Real)>(keep + i * HEAT_COLUMN_THREADS,
                                     row_at(from, i, pitch));
        }
    }
}

/* x to where it belongs; `keep` has w, or t if x is added to it. EDGE: not all places of
 * the chunk are nodes with an unknown, those from `pads` on are. */
template <bool EDGE, int SINK, typename Real, int ROWS>
__device__ __forceinline__ void
substitute_column(const HeatColumns<Real> &s, HeatChunk<Real, ROWS> &chunk,
                  const HeatPair<Real> &in, const Real *keep, int64_t from, int pads)
{
    Real *const w = s.w + from, *const t = s.t + from;
    const uint32_t pitch = static_cast<uint32_t>(s.pitch * sizeof(Real));

    chunk.template substitute<EDGE>(in, [&](int i, Real x) {
        const bool there = !EDGE || i >= pads;
        const Real old = SINK == HEAT_PLAIN ? Real(0) : keep[i * HEAT_COLUMN_THREADS];

        if (there && SINK == HEAT_ADD) {
            *row_at(t, i, pitch) = old + x;
        }
        if (there && SINK != HEAT_ADD) {
            *row_at(w, i, pitch) = SINK == HEAT_PLAIN ? x : fma(Real(2), x, -old);
        }
        if (there && SINK == HEAT_TWICE_BOTH) {
            *row_at(t, i, pitch) = x;
        }
    });
}

template <typename Real, int ROWS, int SINK>
__global__ void
__launch_bounds__(HEAT_COLUMN_THREADS, ROWS * sizeof(Real) > 64 ? 1 : 2)
    heat_columns_kernel(const __grid_constant__ HeatLine<Real> line,
                        const __grid_constant__ HeatColumns<Real> s)
{
    extern __shared__ __align__(16) char memory[];
    __shared__ HeatColumnsShared<Real> shared;
    const int thread = static_cast<int>(threadIdx.x);
    const int place = thread % HEAT_WIDTH, number = thread / HEAT_WIDTH;
    const int block = line.groups > 1 ? static_cast<int>(rank_in_cluster()) : 0;
    const int start = (block * HEAT_CHUNKS + number) * ROWS - line.pads;
    const int64_t last = (s.c1 - s.c0 + HEAT_WIDTH - 1) / HEAT_WIDTH * s.planes,
                  step = gridDim.x / line.groups;
    const bool is_edge = block == 0 && __any_sync(all_lanes, number <= line.first_chunk);
    HeatChunk<Real, ROWS> chunk = {line, min(max(-start, 0), static_cast<int>(ROWS)),
                                   block == 0 && number == line.first_chunk,
                                   block == line.groups - 1 && number == HEAT_CHUNKS - 1};
    Real *const keep = reinterpret_cast<Real *>(memory) + thread;
    constexpr int words = ROWS * HEAT_COLUMN_THREADS; /* of a tile */
    int64_t tile = blockIdx.x / line.groups;

    if (line.groups > 1) {
        if (thread < 2) {
            shared.arrivals[thread].init(1);
        }
        cluster_arrive();
    }
    wait_for_last_kernel();
    const HeatShare<Real> share(*line.table, thread % 32, block);
    if (tile < last) {
        load_column<ROWS>(s, s.w, tile, start, keep);
    }
    copies_committed();
    if (line.groups > 1) {
        cluster_wait();
    }
    for (int round = 0; tile < last; tile += step, round++) {
        const int stage = round % HEAT_COLUMN_STAGES;
        const HeatColumnTile<Real> mine(s, tile, place), met(s, tile, thread / 32);
        const Real end[2] = {s.end[0].at(mine.node), s.end[1].at(mine.node)};
        const Real met_end[2] = {s.end[0].at(met.node), s.end[1].at(met.node)};
        Real *const kept = keep + stage * words;

        if (thread == 0 && line.groups > 1) {
            shared.arrivals[round & 1].expect(line.groups * HEAT_WIDTH *
                                              static_cast<int>(sizeof(HeatPair<Real>)));
        }
        if (tile + step < last) {
            load_column<ROWS>(s, s.w, tile + step, start, keep + (1 - stage) * words);
        }
        else {
            let_next_kernel_in();
        }
        copies_committed();
        copies_done_but<1>();
        const auto rhs = [&](int i) { return kept[i * HEAT_COLUMN_THREADS]; };
        shared.chunk[number][place] = is_edge ? chunk.template eliminate<true>(rhs, end)
                                              : chunk.template eliminate<false>(rhs, end);
        if (SINK == HEAT_ADD) {
            load_column<ROWS>(s, s.t, tile, start, kept);
        }
        __syncthreads();
        meet_columns(line, share, shared, block, round, met_end);
        __syncthreads();
        HeatPair<Real> in = shared.chunk[number][place];

        if (chunk.has_first && chunk.pads > 0) {
            in.u = shared.first[place];
        }
        const int64_t from = mine.plane * s.plane + start * s.pitch + mine.column;
        const int pads = mine.is_inside(s) ? chunk.pads : ROWS;

        if (SINK == HEAT_ADD) {
            copies_done();
        }
        if (is_edge || __any_sync(all_lanes, pads > 0)) {
            substitute_column<true, SINK>(s, chunk, in, kept, from, pads);
        }
        else {
            substitute_column<false, SINK>(s, chunk, in, kept, from, pads);
        }
    }
}

#endif
