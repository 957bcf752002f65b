/* heat_backward.cuh - the second half of a step in three dimensions: 3 words per node.
 *
 * The lines along y are solved from the last row of a section to its first one
 * (heat_sections.h). Each row of nodes in a plane of x and z that this gives is the right-hand
 * side of lines along z, whose solution is added to t. A block or a cluster processes neighbouring
 * columns along z and advances along y through a section; a thread has a chunk of a column. The next rows
 * are copied to shared memory while the chunks of a column, and then the blocks, exchange
 * their sums.
 */
#ifndef PS_CUDA_HEAT_HEAT_BACKWARD_CUH
#define PS_CUDA_HEAT_HEAT_BACKWARD_CUH

#include <type_traits>

#include "heat/heat_exchange.cuh"
#include "heat/heat_sections.h"
#include "heat/heat_sweeps.h"
#include "heat/heat_teams.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::heat {

/* ROWS of a chunk and WIDTH columns of a block, which has one group of a line; a cluster has the line. */
template <int ROWS, int WIDTH> struct HeatSide {
    static constexpr int rows = ROWS, width = WIDTH, threads = HEAT_CHUNKS * WIDTH;
};

/* Node (i, j, k) of the unknowns lies at w[k plane + j pitch + i] for begin <= i < end
 * along x, and at the same index of t; i is less than `nodes`. The values at the ends
 * of z have node i + j pitch; those at the ends of y, and the sums and the values before the
 * sections, column i + k nodes. */
template <typename Real> struct HeatBackward {
    const Real *w;
    Real *t;
    int64_t plane, pitch, nodes, begin, end, tiles;
    HeatValues<Real> side[2], y_side[2]; /* of z and y */
    HeatSections<Real> y;
};

/* The place of a thread: chunk `number` of its block, whose first place is row `start`,
 * in column `place` of the block, which is `column` of the fields. `own` and `joined` are
 * the columns of the boundary values for the thread, and for its warp when it joins the
 * chunks. */
template <typename Real, typename Side> struct HeatThreadPlace {
    int place, number, block, start, pads, section;
    int64_t tile, column, own, joined;
    bool is_inside;

    __device__ __forceinline__ HeatThreadPlace(const HeatLine<Real> &line,
                                               const HeatBackward<Real> &s)
        : place(threadIdx.x % Side::width), number(threadIdx.x / Side::width),
          block(line.groups > 1 ? static_cast<int>(rank_in_cluster()) : 0),
          start((block * HEAT_CHUNKS + number) * Side::rows - line.pads)
    {
        const unsigned cluster = blockIdx.x / static_cast<unsigned>(line.groups);

        section = static_cast<int>(cluster / static_cast<unsigned>(s.tiles));
        tile = (cluster - section * s.tiles) * Side::width;
        column = tile + place;
        own = min(column, s.end - 1);
        joined = min(tile + threadIdx.x / 32 % Side::width, s.end - 1);
        is_inside = column >= s.begin && column < s.end;
        pads = min(max(-start, 0), Side::rows);
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
    HeatSectionRows section;
    Real *keep;
    int64_t from; /* index in the fields of the first row that the lane copies */
    int to, pads; /* its index in shared memory; rows of the chunk that do not exist */

    __device__ __forceinline__ HeatBatch(const HeatBackward<Real> &of,
                                         const HeatThreadPlace<Real, Side> &self,
                                         int line_pads, char *memory)
        : s(of), section(of.y.section(self.section)),
          keep(reinterpret_cast<Real *>(memory))
    {
        const int lane = threadIdx.x % 32, piece = lane % pieces, row = lane / pieces;
        const int number = threadIdx.x / 32 * chunks + row % chunks, first = row / chunks;
        const int start = (self.block * HEAT_CHUNKS + number) * ROWS - line_pads + first;
        const int64_t column = self.tile + piece * words;

        from = start * s.plane + column;
        to = first * THREADS + number * WIDTH + piece * words;
        pads = column < s.nodes ? -start : ROWS;
    }

    /* Row n from the last one. */
    __device__ __forceinline__ int row(int n) const
    {
        return section.row(section.count - 1 - n);
    }

    /* The weight of u before the section in row n. */
    __device__ __forceinline__ Real power(int n) const
    {
        return s.y.table->power[section.count - n];
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

/* The boundary values of a section, for the chunk of the thread, from the sums of all: x of the
 * row after it, and u before it, which is stored, as it counts in its first rows only. `column` is
 * that of the first place. */
template <typename Real, int ROWS>
__device__ __forceinline__ void
begin_section(const HeatBackward<Real> &s, int section, int64_t column, int pads,
              Real (&x)[ROWS])
{
    constexpr int at_once = ROWS <= 4 ? 4 : ROWS <= 8 ? 2 : 1;
    constexpr int few_sections = 4; /* all sums are read, without a branch */
    const HeatSections<Real> &y = s.y;
    HeatPair<Real> in[ROWS];

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        in[i] = {Real(0), Real(0)};
    }
    for (int end = 0; end < 2; end++) {
        const HeatWeights<Real> weight = y.table->end[section][end];

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (i >= pads) {
                in[i] = weigh(weight, {Real(0), s.y_side[end].at(column + i * s.nodes)},
                              in[i]);
            }
        }
    }
    const auto add = [&](const HeatWeights<Real> &weight, int from) {
        const HeatPair<Real> *const sums = y.sums + from * y.columns + column;

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (i >= pads) {
                in[i] = weigh(weight, sums[i * s.nodes], in[i]);
            }
        }
    };

    if (y.count <= few_sections) {
#pragma unroll at_once
        for (int from = 0; from < y.count; from++) {
            add(y.table->weight[section][from], from);
        }
    }
    else {
#pragma unroll at_once
        for (int from = 0; from < y.count; from++) {
            const HeatWeights<Real> weight = y.table->weight[section][from];

            if (weight.uu != Real(0) || weight.ux != Real(0) || weight.xu != Real(0) ||
                weight.xx != Real(0)) {
                add(weight, from);
            }
        }
    }
    Real *const before = y.before + section * y.columns + column;

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (i >= pads) {
            before[i * s.nodes] = in[i].u;
        }
        x[i] = in[i].x;
    }
}

/* Add what u before a section adds to u of COUNT rows in shared memory. */
template <int THREADS, int ROWS, typename Real, int COUNT>
__device__ __forceinline__ void
add_inflow(const HeatBackward<Real> &s, const Real *before, int pads,
           const Real (&power)[COUNT], Real *u)
{
    const uint32_t step = static_cast<uint32_t>(s.nodes * sizeof(Real));
    Real in[ROWS];

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        in[i] = i >= pads ? *row_at(before, i, step) : Real(0);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            Real &own = u[(k * ROWS + i) * THREADS];

            own = fma(power[k], in[i], own);
        }
    }
}

/* Bytes of shared memory that all devices with bulk copies have for the rows. */
constexpr size_t heat_rows_shared = 200000;

/* Pairs of rows of w in shared memory, the pair that is eliminated and, if it fits, the next one. */
template <typename Real, typename Side>
constexpr int heat_pairs_of_w =
    6 * sizeof(Real) * Side::rows * Side::threads <= heat_rows_shared ? 2 : 1;

/* Bytes of the rows of w and t. */
template <typename Real, typename Side>
constexpr size_t heat_pair_bytes = (heat_pairs_of_w<Real, Side> + 1) * 2 * sizeof(Real) *
                                   Side::rows * static_cast<size_t>(Side::threads);

/* Two rows of nodes at a time, whose chains alternate, and whose chunks, and then the blocks of a
 * cluster, exchange the sums of both at once. The next rows of w are copied to the places of those
 * that have been eliminated, those of t when the solution has been added to the former ones. One row
 * at a time, three of them in shared memory, took 1.11 of a step of 300 x 400 x 500 nodes in float32, 1.06
 * of 700^3, in float64 1.02 of 1000 x 1000 x 200 and 1.00 of 512^3 (H200). */
template <typename Real, typename Side>
__global__ void
__launch_bounds__(Side::threads, 1)
    heat_backward_kernel(const __grid_constant__ HeatLine<Real> line,
                         const __grid_constant__ HeatBackward<Real> s)
{
    extern __shared__ __align__(16) char memory[];
    constexpr int ROWS = Side::rows, THREADS = Side::threads;
    constexpr int ahead = heat_pairs_of_w<Real, Side>;
    __shared__ HeatExchange<Real, Side::width> shared[2];
    const HeatThreadPlace<Real, Side> self(line, s);
    const int blocks = line.groups;
    const bool is_first = self.block == 0, is_last = self.block == blocks - 1;
    const int lane = threadIdx.x % 32, pads = self.is_inside ? self.pads : ROWS;
    const bool is_edge =
        __any_sync(all_lanes, (is_first && self.number <= line.first_chunk) || pads > 0);
    const uint32_t plane = static_cast<uint32_t>(s.plane * sizeof(Real));
    const int64_t from = self.start * s.plane + self.column;
    const bool has_first = is_first && self.number == line.first_chunk;
    const bool has_last = is_last && self.number == HEAT_CHUNKS - 1;
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
    const HeatShare<Real> share(*line.table, lane, self.block);
    const HeatBatch<Real, Side> batch(s, self, line.pads, memory);
    const int rows = batch.section.count, pairs = (rows + 1) / 2;
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
    const int64_t column = self.start * s.nodes + self.column;
    const Real *const before = s.y.before + self.section * s.y.columns + column;

    begin_section(s, self.section, column, pads, x);
    Real power[2];
    const auto set_powers = [&](int pair) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            power[k] = batch.power(min(2 * pair + k, rows - 1));
        }
    };
    set_powers(0);
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
        Real *const w = places_of_w(p) + threadIdx.x;

        if (power[1] != Real(0)) {
            add_inflow<THREADS, ROWS>(s, before, pads, power, w);
        }
        const auto eliminate = [&](auto edge) {
            Real next[ROWS];

#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                x[i] = fma(s.y.q, x[i], s.y.p * w[i * THREADS]);
                next[i] = fma(s.y.q, x[i], s.y.p * w[batch.stage + i * THREADS]);
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
        set_powers(p + 1);
        const HeatSums<Real> sums[2] = {shared[0].send_sums(line, self.block, p),
                                        shared[1].send_sums(line, self.block, p)};

#pragma unroll
        for (int k = 0; k < 2; k++) {
            shared[k].close_chunks(line, share, self.block, p, sums[k], joined[k]);
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
            in[k] = shared[k].from_outside(chunk[k], self.number, self.place);
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
