/* heat_backward.cuh - the second half of a step in three dimensions: 3 words per node.
 *
 * The lines along y are solved from the middle row outwards (heat_two_sided.h). Each
 * row of nodes in a plane of x and z that this gives is the right-hand side of lines
 * along z, whose solution is added to t. A block or a cluster processes neighbouring
 * columns along z and advances along y; a thread has a chunk of a column. The next rows
 * are copied to shared memory while the chunks of a column, and then the groups or the
 * blocks, exchange their sums.
 */
#ifndef PS_CUDA_HEAT_HEAT_BACKWARD_CUH
#define PS_CUDA_HEAT_HEAT_BACKWARD_CUH

#include "heat/heat_exchange.cuh"
#include "heat/heat_sweeps.h"
#include "heat/heat_two_sided.h"
#include "runtime/launch.cuh"

namespace pysolvers::heat {

/* ROWS of a chunk, WIDTH columns and GROUPS groups of a block, AHEAD rows of nodes in shared
 * memory, those that are copied in advance included. With more than one group, a block has the
 * whole line; otherwise a cluster has it, one group per block. */
template <int ROWS, int WIDTH, int GROUPS, int AHEAD> struct HeatSide {
    static constexpr int rows = ROWS, width = WIDTH, groups = GROUPS, ahead = AHEAD,
                         threads = HEAT_CHUNKS * WIDTH * GROUPS;
};

/* Node (i, j, k) of the unknowns lies at w[k plane + j pitch + i] for begin <= i < end
 * along x, and at the same index of t; i is less than `nodes`. The values at the ends
 * of z have node i + j pitch. */
template <typename Real> struct HeatBackward {
    const Real *w;
    Real *t;
    int64_t plane, pitch, nodes, begin, end, tiles;
    HeatValues<Real> side[2];
    const TwoSidedFactor<Real> *two_sided;
};

/* The place of a thread: chunk `number` of its block, whose first place is row `start`,
 * in column `place` of the block, which is `column` of the fields. `own` and `joined` are
 * the columns of the boundary values for the thread, and for its warp when it joins the
 * chunks. */
template <typename Real, typename Side> struct HeatThreadPlace {
    int place, number, block, start, pads;
    unsigned half;
    int64_t tile, column, own, joined;
    bool is_inside;

    __device__ __forceinline__ HeatThreadPlace(const HeatLine<Real> &line,
                                               const HeatBackward<Real> &s)
        : place(threadIdx.x % Side::width), number(threadIdx.x / Side::width),
          block(Side::groups == 1 && line.groups > 1 ? static_cast<int>(rank_in_cluster())
                                                     : 0),
          start((block * HEAT_CHUNKS + number) * Side::rows - line.pads)
    {
        const unsigned cluster =
            blockIdx.x / static_cast<unsigned>(Side::groups == 1 ? line.groups : 1);

        half = cluster / static_cast<unsigned>(s.tiles);
        tile = (cluster - half * s.tiles) * Side::width;
        column = tile + place;
        own = min(column, s.end - 1);
        joined = min(tile + threadIdx.x / 32 % Side::width, s.end - 1);
        is_inside = column >= s.begin && column < s.end;
        pads = min(max(-start, 0), Side::rows);
    }
};

/* The boundary values of a step along y: at the ends of z, for the column of the thread
 * and that of the warp in the exchange, and at the end of y. */
template <typename Real> struct HeatNext {
    Real own[2], joined[2];
    TwoSidedRow<Real> factor_row;

    template <typename Side>
    __device__ __forceinline__ HeatNext(const HeatBackward<Real> &s,
                                        const HeatThreadPlace<Real, Side> &self, int j)
        : own{s.side[0].at(self.own + j * s.pitch), s.side[1].at(self.own + j * s.pitch)},
          joined{s.side[0].at(self.joined + j * s.pitch),
                 s.side[1].at(self.joined + j * s.pitch)},
          factor_row(s.two_sided->factor_row[j])
    {
    }
};

/* The copy of the rows of the chunks of a warp: 16 bytes per lane, `passes` times. */
template <typename Real, typename Side> struct HeatBatch {
    static constexpr int ROWS = Side::rows, WIDTH = Side::width, THREADS = Side::threads;
    static constexpr int words = 16 / sizeof(Real), pieces = WIDTH / words;
    static constexpr int chunks = 32 / WIDTH, rows = 32 / pieces / chunks;
    static constexpr int passes = ROWS / rows;
    /* elements of a field in a stage */
    static constexpr int stage = ROWS * THREADS;
    static_assert(ROWS % rows == 0);
    const HeatBackward<Real> &s;
    HalfRows half_rows;
    Real *keep;
    int64_t from; /* index in the fields of the first row that the lane copies */
    int to, pads; /* its index in shared memory; rows of the chunk that do not exist */

    __device__ __forceinline__ HeatBatch(const HeatBackward<Real> &of,
                                         const HalfRows &along,
                                         const HeatThreadPlace<Real, Side> &self,
                                         int line_pads, char *memory)
        : s(of), half_rows(along), keep(reinterpret_cast<Real *>(memory))
    {
        const int lane = threadIdx.x % 32, piece = lane % pieces, row = lane / pieces;
        const int number = threadIdx.x / 32 * chunks + row % chunks, first = row / chunks;
        const int start = (self.block * HEAT_CHUNKS + number) * ROWS - line_pads + first;
        const int64_t column = self.tile + piece * words;

        from = start * s.plane + column;
        to = first * THREADS + number * WIDTH + piece * words;
        pads = column < s.nodes ? -start : ROWS;
    }

    /* Row n from the middle. */
    __device__ __forceinline__ int row(int n) const
    {
        return half_rows.row(half_rows.count - 1 - n);
    }

    /* w of the chunk of the thread in row n; t is `stage` words behind. */
    __device__ __forceinline__ const Real *chunk(int n) const
    {
        return keep + n % Side::ahead * 2 * stage + threadIdx.x;
    }

    /* Load row n, if it exists, by all lanes. */
    __device__ __forceinline__ void load(int n) const
    {
        if (n < half_rows.count) {
            Real *const place = keep + n % Side::ahead * 2 * stage + to;
            const int64_t at = from + row(n) * s.pitch;

            load_rows(place, s.w + at);
            load_rows(place + stage, s.t + at);
        }
        copies_committed();
    }

  private:
    __device__ __forceinline__ void load_rows(Real *place, const Real *field) const
    {
        const uint32_t plane = static_cast<uint32_t>(s.plane * sizeof(Real));

#pragma unroll
        for (int e = 0; e < passes; e++) {
            if (e * rows >= pads) {
                copy_async_of_line<16>(place + e * rows * THREADS,
                                       row_at(field, e * rows, plane));
            }
        }
    }
};

/* Add the solution along z to t, from row `pads` of the chunk on; `kept` is the old t. */
template <bool EDGE, int THREADS, typename Real, int ROWS>
__device__ __forceinline__ void
add_chunk(HeatChunk<Real, ROWS> &chunk, const HeatPair<Real> &in, const Real *kept,
          Real *t, uint32_t plane, int pads)
{
    chunk.template substitute<EDGE>(in, [&](int i, Real x) {
        if (!EDGE || i >= pads) {
            *row_at(t, i, plane) = kept[i * THREADS] + x;
        }
    });
}

/* x of the middle row of the other half, for the chunk of the thread. */
template <typename Real, int ROWS>
__device__ __forceinline__ void
start_in_middle(const HeatBackward<Real> &s, unsigned half, int64_t from, int pads,
                Real (&x)[ROWS])
{
    const TwoSidedFactor<Real> &two_sided = *s.two_sided;
    const Real *const w = s.w + from + (two_sided.half - 1) * s.pitch;

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int64_t at = i * s.plane;

        x[i] = i < pads ? Real(0)
                        : two_sided.middle[half][0] * w[at] +
                              two_sided.middle[half][1] * w[at + s.pitch];
    }
}

template <typename Real, typename Side>
__global__ void
__launch_bounds__(Side::threads, 1)
    heat_backward_kernel(const __grid_constant__ HeatLine<Real> line,
                         const __grid_constant__ HeatBackward<Real> s)
{
    extern __shared__ __align__(16) char memory[];
    constexpr int ROWS = Side::rows, GROUPS = Side::groups, THREADS = Side::threads;
    __shared__ HeatExchange<Real, Side::width, GROUPS> shared;
    const HeatThreadPlace<Real, Side> self(line, s);
    const int blocks = GROUPS == 1 ? line.groups : 1;
    const bool is_first = self.block == 0, is_last = self.block == blocks - 1;
    const int lane = threadIdx.x % 32, pads = self.is_inside ? self.pads : ROWS;
    const bool is_edge =
        __any_sync(all_lanes, (is_first && self.number <= line.first_chunk) || pads > 0);
    const uint32_t plane = static_cast<uint32_t>(s.plane * sizeof(Real));
    const int64_t from = self.start * s.plane + self.column;
    HeatChunk<Real, ROWS> chunk = {line, self.pads,
                                   is_first && self.number == line.first_chunk,
                                   is_last && self.number == HEAT_CHUNKS * GROUPS - 1};
    Real x[ROWS];

    shared.begin(blocks);
    wait_for_last_kernel();
    const HeatShare<Real> share(*line.table,
                                GROUPS == 1 ? lane : self.number % HEAT_CHUNKS,
                                GROUPS == 1 ? self.block : self.number / HEAT_CHUNKS);
    const HeatBatch<Real, Side> batch(s, HalfRows(*s.two_sided, self.half), self,
                                      line.pads, memory);
    const int rows = batch.half_rows.count;

    for (int n = 0; n < Side::ahead - 1; n++) {
        batch.load(n);
    }
    start_in_middle(s, self.half, from, pads, x);
    HeatNext<Real> next(s, self, batch.row(0));
    shared.begun(blocks);
    for (int n = 0; n < rows; n++) {
        const HeatNext<Real> now = next;
        const Real *const w = batch.chunk(n), *const old = w + batch.stage;
        Real *const t = s.t + from + batch.row(n) * s.pitch;

        shared.expect(blocks, n);
        __syncwarp();
        batch.load(n + Side::ahead - 1);
        next = HeatNext<Real>(s, self, batch.row(min(n + 1, rows - 1)));
        copies_done_but<Side::ahead - 1>();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            x[i] = fma(now.factor_row.next, x[i], now.factor_row.own * w[i * THREADS]);
        }
        const auto rhs = [&](int i) { return x[i]; };
        shared.chunk[self.number][self.place] =
            is_edge ? chunk.template eliminate<true>(rhs, now.own)
                    : chunk.template eliminate<false>(rhs, now.own);
        __syncthreads();
        if constexpr (GROUPS == 1) {
            shared.join_chunks(line, share, self.block, n, now.joined);
        }
        else {
            shared.scan_groups(line);
        }
        __syncthreads();
        HeatPair<Real> in;
        if constexpr (GROUPS == 1) {
            in = shared.from_outside(chunk, self.number, self.place);
        }
        else {
            in = shared.from_groups(line, share, chunk, self.number, self.place, now.own);
        }

        if (n == rows - 1) {
            let_next_kernel_in();
        }
        if (is_edge) {
            add_chunk<true, THREADS>(chunk, in, old, t, plane, pads);
        }
        else {
            add_chunk<false, THREADS>(chunk, in, old, t, plane, pads);
        }
    }
}

} // namespace pysolvers::heat

#endif
