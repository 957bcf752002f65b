/* heat_columns.cuh - a sweep along y or z.
 *
 * A thread has a chunk of a column, and 16 neighbouring threads have one row of 16
 * columns. The chunk is in shared memory, in words that only its thread uses. The next
 * chunk is copied there while registers hold u. The values to which a solution is added
 * are copied to the same words while the chunks exchange their sums
 * (heat_exchange.cuh).
 */
#ifndef PS_CUDA_HEAT_HEAT_COLUMNS_CUH
#define PS_CUDA_HEAT_HEAT_COLUMNS_CUH

#include "heat/heat_exchange.cuh"
#include "heat/heat_sweeps.h"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::heat {

enum { HEAT_COLUMN_STAGES = 2 };

/* The part of a column that the block has, tile after tile. */
template <typename Real> struct HeatColumnTile {
    int64_t plane, column, node; /* `node`: index of the values on the sides */

    __device__ __forceinline__ HeatColumnTile(const HeatColumns<Real> &s, int64_t tile,
                                              int place)
    {
        const int64_t tiles = divided_up(s.c1 - s.c0, int(HEAT_WIDTH));

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

/* Load the chunk of a tile of `field` to the words of this thread; `start` is the row
 * of its first place. */
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

/* Store x; `keep` contains w, or t if x is added to it. EDGE: only the places from
 * `pads` on are nodes with an unknown. */
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
        if (there && SINK == HEAT_EXTRAPOLATE_BOTH) {
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
    __shared__ HeatExchange<Real> shared;
    const int thread = static_cast<int>(threadIdx.x);
    const int place = thread % HEAT_WIDTH, number = thread / HEAT_WIDTH;
    const int block = line.groups > 1 ? static_cast<int>(rank_in_cluster()) : 0;
    const int start = (block * HEAT_CHUNKS + number) * ROWS - line.pads;
    const int64_t last = divided_up(s.c1 - s.c0, int(HEAT_WIDTH)) * s.planes,
                  step = gridDim.x / line.groups;
    const bool is_edge = block == 0 && __any_sync(all_lanes, number <= line.first_chunk);
    HeatChunk<Real, ROWS> chunk = {line, min(max(-start, 0), static_cast<int>(ROWS)),
                                   block == 0 && number == line.first_chunk,
                                   block == line.groups - 1 && number == HEAT_CHUNKS - 1};
    Real *const keep = reinterpret_cast<Real *>(memory) + thread;
    constexpr int words = ROWS * HEAT_COLUMN_THREADS; /* of a tile */
    int64_t tile = blockIdx.x / line.groups;

    shared.begin(line.groups);
    wait_for_last_kernel();
    const HeatShare<Real> share(*line.table, thread % 32, block);
    if (tile < last) {
        load_column<ROWS>(s, s.w, tile, start, keep);
    }
    copies_committed();
    shared.begun(line.groups);
    for (int round = 0; tile < last; tile += step, round++) {
        const int stage = round % HEAT_COLUMN_STAGES;
        const HeatColumnTile<Real> own(s, tile, place), joined(s, tile, thread / 32);
        const Real end[2] = {s.end[0].at(own.node), s.end[1].at(own.node)};
        const Real joined_end[2] = {s.end[0].at(joined.node), s.end[1].at(joined.node)};
        Real *const kept = keep + stage * words;

        shared.expect(line.groups, round);
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
        shared.join_chunks(line, share, block, round, joined_end);
        __syncthreads();
        const HeatPair<Real> in = shared.from_outside(chunk, number, place);
        const int64_t from = own.plane * s.plane + start * s.pitch + own.column;
        const int pads = own.is_inside(s) ? chunk.pads : ROWS;

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

} // namespace pysolvers::heat

#endif
