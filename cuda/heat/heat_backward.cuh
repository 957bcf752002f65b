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

#include <type_traits>

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

/* Pairs of rows of w in shared memory, the pair that is eliminated and, if it fits, the next one. */
template <typename Real, typename Side>
constexpr int heat_pairs_of_w =
    6 * sizeof(Real) * Side::rows * Side::threads <= 200000 ? 2 : 1;

/* Bytes of the rows of w and t. */
template <typename Real, typename Side>
constexpr size_t heat_pair_bytes = (heat_pairs_of_w<Real, Side> + 1) * 2 * sizeof(Real) *
                                   Side::rows * static_cast<size_t>(Side::threads);

/* Two rows of nodes at a time, whose chains alternate, and whose chunks, and then the blocks of a
 * cluster, exchange the sums of both at once. The next rows of w are copied to the places of those
 * that have been eliminated, those of t when the solution has been added to the former ones. Why
 * there is a kernel for one row at a time: see by_pairs in heat_volume.cu. */
template <typename Real, typename Side>
__global__ void
__launch_bounds__(Side::threads, 1)
    heat_backward_pair_kernel(const __grid_constant__ HeatLine<Real> line,
                              const __grid_constant__ HeatBackward<Real> s)
{
    extern __shared__ __align__(16) char memory[];
    constexpr int ROWS = Side::rows, GROUPS = Side::groups, THREADS = Side::threads;
    constexpr int ahead = heat_pairs_of_w<Real, Side>;
    __shared__ HeatExchange<Real, Side::width, GROUPS> shared[2];
    const HeatThreadPlace<Real, Side> self(line, s);
    const int blocks = GROUPS == 1 ? line.groups : 1;
    const bool is_first = self.block == 0, is_last = self.block == blocks - 1;
    const int lane = threadIdx.x % 32, pads = self.is_inside ? self.pads : ROWS;
    const bool is_edge =
        __any_sync(all_lanes, (is_first && self.number <= line.first_chunk) || pads > 0);
    const uint32_t plane = static_cast<uint32_t>(s.plane * sizeof(Real));
    const int64_t from = self.start * s.plane + self.column;
    const bool has_first = is_first && self.number == line.first_chunk;
    const bool has_last = is_last && self.number == HEAT_CHUNKS * GROUPS - 1;
    HeatChunk<Real, ROWS> chunk[2] = {{line, self.pads, has_first, has_last},
                                      {line, self.pads, has_first, has_last}};
    Real x[ROWS];

    if (blocks > 1) {
        if (threadIdx.x == 0) {
            shared[0].init();
            shared[1].init();
        }
        cluster_arrive();
    }
    wait_for_last_kernel();
    const HeatShare<Real> share(*line.table,
                                GROUPS == 1 ? lane : self.number % HEAT_CHUNKS,
                                GROUPS == 1 ? self.block : self.number / HEAT_CHUNKS);
    const HeatBatch<Real, Side> batch(s, HalfRows(*s.two_sided, self.half), self,
                                      line.pads, memory);
    const int rows = batch.half_rows.count, pairs = (rows + 1) / 2;
    Real *const keep_t = batch.keep + ahead * 2 * batch.stage;
    const auto row_of = [&](int n) { return batch.row(min(n, rows - 1)); };
    const auto load = [&](const Real *field, Real *places, int pair) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (2 * pair + k < rows) {
                batch.load_rows(places + k * batch.stage + batch.to,
                                field + batch.from + batch.row(2 * pair + k) * s.pitch);
            }
        }
        copies_committed();
    };
    const auto places_of_w = [&](int pair) {
        return batch.keep + pair % ahead * 2 * batch.stage;
    };

    for (int p = 0; p < ahead; p++) {
        load(s.w, places_of_w(p), p);
    }
    load(s.t, keep_t, 0);
    start_in_middle(s, self.half, from, pads, x);
    Real factor[2][2];
    const auto set_factors = [&](int pair) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const TwoSidedRow<Real> &row = s.two_sided->factor_row[row_of(2 * pair + k)];

            factor[k][0] = row.next;
            factor[k][1] = row.own;
        }
    };
    set_factors(0);
    if (blocks > 1) {
        cluster_wait();
    }
    for (int p = 0; p < pairs; p++) {
        const bool is_whole = 2 * p + 1 < rows;
        Real own[2][2], joined[2][2];

#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int64_t row = row_of(2 * p + k) * s.pitch;

#pragma unroll
            for (int e = 0; e < 2; e++) {
                own[k][e] = s.side[e].at(self.own + row);
                joined[k][e] = s.side[e].at(self.joined + row);
            }
            shared[k].expect(blocks, p);
        }
        copies_done_but<ahead>();
        __syncwarp();
        const Real *const w = places_of_w(p) + threadIdx.x;
        const auto eliminate = [&](auto edge) {
            Real next[ROWS];

#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                x[i] = fma(factor[0][0], x[i], factor[0][1] * w[i * THREADS]);
                next[i] =
                    fma(factor[1][0], x[i], factor[1][1] * w[batch.stage + i * THREADS]);
            }
            const HeatPair<Real> sums[2] = {
                chunk[0].template eliminate<decltype(edge)::value>(
                    [&](int i) { return x[i]; }, own[0]),
                chunk[1].template eliminate<decltype(edge)::value>(
                    [&](int i) { return next[i]; }, own[1])};

            shared[0].chunk[self.number][self.place] = sums[0];
            shared[1].chunk[self.number][self.place] = sums[1];
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                x[i] = next[i];
            }
        };

        if (is_edge) {
            eliminate(std::true_type());
        }
        else {
            eliminate(std::false_type());
        }
        __syncthreads();
        load(s.w, places_of_w(p), p + ahead);
        set_factors(p + 1);
        if constexpr (GROUPS == 1) {
            const HeatSums<Real> sums[2] = {shared[0].send_sums(line, self.block, p),
                                            shared[1].send_sums(line, self.block, p)};

#pragma unroll
            for (int k = 0; k < 2; k++) {
                shared[k].close_chunks(line, share, self.block, p, sums[k], joined[k]);
            }
        }
        else {
            shared[0].scan_groups(line);
            shared[1].scan_groups(line);
        }
        __syncthreads();
        copies_done_but<1>();
        __syncwarp();
        if (p == pairs - 1) {
            let_next_kernel_in();
        }
        const Real *const old = keep_t + threadIdx.x;
        Real *const t[2] = {s.t + from + row_of(2 * p) * s.pitch,
                            s.t + from + row_of(2 * p + 1) * s.pitch};
        HeatPair<Real> in[2];

#pragma unroll
        for (int k = 0; k < 2; k++) {
            if constexpr (GROUPS == 1) {
                in[k] = shared[k].from_outside(chunk[k], self.number, self.place);
            }
            else {
                in[k] = shared[k].from_groups(line, share, chunk[k], self.number,
                                              self.place, own[k]);
            }
        }
        const auto add = [&](auto edge) {
            constexpr bool EDGE = decltype(edge)::value;
            Real below[2] = {in[0].x, in[1].x};

            if (EDGE) {
                Real above[2] = {in[0].u, in[1].u};

#pragma unroll
                for (int i = 0; i < ROWS; i++) {
#pragma unroll
                    for (int k = 0; k < 2; k++) {
                        above[k] = i < self.pads ? above[k] : line.q * above[k];
                        chunk[k].u[i] += above[k];
                    }
                }
            }
#pragma unroll
            for (int i = ROWS - 1; i >= 0; i--) {
#pragma unroll
                for (int k = 0; k < 2; k++) {
                    const Real own_u = EDGE ? chunk[k].u[i]
                                            : fma(line.powers[i], in[k].u, chunk[k].u[i]);

                    below[k] = fma(line.q, below[k], line.p * own_u);
                    if ((k == 0 || is_whole) && (!EDGE || i >= pads)) {
                        *row_at(t[k], i, plane) =
                            old[k * batch.stage + i * THREADS] + below[k];
                    }
                }
            }
        };

        if (is_edge) {
            add(std::true_type());
        }
        else {
            add(std::false_type());
        }
        __syncwarp();
        load(s.t, keep_t, p + 1);
    }
}

} // namespace pysolvers::heat

#endif
