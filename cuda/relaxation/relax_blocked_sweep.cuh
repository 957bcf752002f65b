/* relax_blocked_sweep.cuh - K iterations in one pass over the field.
 *
 * A warp advances along a strip of the field, row by row, with two nodes of each colour
 * per lane and row. When row j has been loaded, half-sweep s (0 <= s < 2 K; even ones
 * relax red nodes) relaxes row j - delay(s). It reads results of half-sweep s - 1 of
 * this step and of earlier steps, all in registers, and one neighbour from the next
 * lane. A word of the field is thus read and written once in K iterations, and no warp
 * waits for another one. The cost is a frame of 2 K nodes around the nodes that a warp
 * owns; the neighbouring warps relax these nodes as well. Rows are loaded by
 * asynchronous copies several steps in advance, each lane its own words. Weights are 0
 * outside of the interior, so that boundary values do not change.
 */
#ifndef PS_CUDA_RELAXATION_RELAX_BLOCKED_SWEEP_CUH
#define PS_CUDA_RELAXATION_RELAX_BLOCKED_SWEEP_CUH

#include "relaxation/relax.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::relaxation {

using namespace runtime;

static constexpr int blocked_ahead = 4; /* rows that are being loaded */
static constexpr int blocked_chain =
    2; /* half-sweeps of a step that depend on each other */
static constexpr int blocked_phases = 4; /* rows of the results of a half-sweep */

/* The number of rows by which half-sweep s is behind half-sweep s - 1, or for s = 0
 * behind the loaded row; and by which it is behind half-sweep 0. */
static __host__ __device__ constexpr int
half_sweep_lag(int s)
{
    return s > 0 && s % blocked_chain == 0 ? 2 : 1;
}

static __host__ __device__ constexpr int
half_sweep_delay(int s)
{
    return s + s / blocked_chain;
}

/* The warps of a pass: strips of columns, and parts with an even number of rows. */
struct BlockedShape {
    int strips, parts, rows;
    int warps; /* per block */
};

template <typename Rule> struct BlockedSweep {
    using value = typename Rule::value;
    Rule rule;
    ps_cuda_grid grid;
    const value *from;
    value *to;
    BlockedShape shape;
    ps_cuda_norms norms;
};

/* The words of a strip in shared memory: rows j to j + ahead of the field, rows j -
 * delay to j + ahead of the fields of the rule, and the lines of the rule. */
template <typename Rule, int K> struct Strip {
    using T = typename Rule::value;
    using Line = typename Rule::Line;
    static constexpr int delay = half_sweep_delay(2 * K - 1), fields = Rule::fields;
    static constexpr int u_rows = blocked_ahead + 1, rows = delay + 1 + blocked_ahead;
    static constexpr int pairs = (2 * u_rows + 2 * rows * fields) * warp_lanes;

    /* Steps of a part. */
    static __host__ __device__ constexpr int steps(int part_rows)
    {
        return (part_rows + 2 * K + delay + blocked_phases - 1) / blocked_phases *
               blocked_phases;
    }
    static __host__ __device__ constexpr size_t bytes(int part_rows)
    {
        return pairs * sizeof(Pair<T>) +
               ((steps(part_rows) + delay) * sizeof(Line) + 15) / 16 * 16;
    }
};

template <typename Rule, int K, int KIND> struct BlockedSweeper {
    using T = typename Rule::value;
    using Shape = Strip<Rule, K>;
    static constexpr int fields = Rule::fields, sweeps = 2 * K;
    const BlockedSweep<Rule> &m;
    Pair<T> *u, *field; /* for this lane; the pitch is the width of a warp */
    const typename Rule::Line *lines;
    int p, first, end; /* the column of the lane; the rows that the warp owns */
    int u_slot, slot;  /* of row j */
    int64_t next;      /* offset of the next row to load */
    bool has_words, at_edge, owns;
    Pair<T> result[sweeps][blocked_phases]; /* of half-sweeps -1 to 2 K - 2, by phase */
    typename Rule::Column column[2][2];     /* by place in the pair and parity */
    int first_counted;                      /* the first row whose norm this warp adds */
    unsigned counts[2][2];                  /* number of these rows, or 0; likewise */
    NormAccumulator<T, KIND> norm[K];

    /* `slot`, between -rows and rows - 1, modulo rows. */
    static __device__ __forceinline__ int wrap(int slot, int rows)
    {
        return static_cast<int>(
            min(static_cast<unsigned>(slot), static_cast<unsigned>(slot + rows)));
    }
    __device__ __forceinline__ Pair<T> &u_at(int at, int colour) const
    {
        return u[(2 * at + colour) * warp_lanes];
    }
    __device__ __forceinline__ Pair<T> &field_at(int at, int n, int colour) const
    {
        return field[((at * fields + n) * 2 + colour) * warp_lanes];
    }

    /* Start the copies of `row` to its slots. */
    __device__ __forceinline__ void fetch(int row, int u_to, int to)
    {
        constexpr int bytes = sizeof(Pair<T>);
        const ps_cuda_grid &g = m.grid;
        const bool there = has_words && row >= 0 && row <= g.ny + 1;
        const bool inside = there && row >= 1 && row <= g.ny;
        const int64_t at = there ? next + p : 0;

#pragma unroll
        for (int colour = 0; colour < 2; colour++) {
            const int64_t here = at + (colour ? g.half : 0);

            copy_async_or_clear<bytes>(&u_at(u_to, colour), m.from + here, there);
#pragma unroll
            for (int n = 0; n < fields; n++) {
                copy_async_or_clear<bytes>(&field_at(to, n, colour),
                                           m.rule.field[n] + here,
                                           n == 0 && Rule::masks_field ? inside : there);
            }
        }
        copies_committed();
        next += g.pitch;
    }

    /* Set the weights of the nodes on and outside of the boundary to 0. */
    __device__ __forceinline__ void mask(int row, int to)
    {
#pragma unroll
        for (int place = 0; place < 4; place++) {
            const int colour = place / 2, a = place % 2;
            const int i = 2 * (p + a) + ((row + colour) & 1);

            if (i < 1 || i > m.grid.nx) {
                field_at(to, 0, colour).v[a] = 0;
            }
        }
    }

    __device__ __forceinline__ void store(int row, const Pair<T> &red,
                                          const Pair<T> &black)
    {
        if (!owns || row < first || row >= end) {
            return;
        }
        T *to = m.to + row * m.grid.pitch + p;

        if (!at_edge) {
            *reinterpret_cast<Pair<T> *>(to) = red;
            *reinterpret_cast<Pair<T> *>(to + m.grid.half) = black;
            return;
        }
        for (int place = 0; place < 4; place++) {
            const int colour = place / 2, a = place % 2;
            const int i = 2 * (p + a) + ((row + colour) & 1);

            if (i >= 1 && i <= m.grid.nx) {
                to[(colour ? m.grid.half : 0) + a] = (colour ? black : red).v[a];
            }
        }
    }

    /* The result of half-sweep s - 1 from `age` steps ago. */
    template <int PHASE>
    __device__ __forceinline__ const Pair<T> &made(int s, int age) const
    {
        return result[s][(PHASE - age) & (blocked_phases - 1)];
    }

    /* Half-sweep s of row j - delay(s), whose nodes are `own`. */
    template <int PHASE>
    __device__ __forceinline__ Pair<T> relax(int j, int s, const Pair<T> &own)
    {
        constexpr int even = 0;
        const int lag = half_sweep_lag(s), delay = half_sweep_delay(s);
        const int parity = (PHASE + s + delay) & 1;
        const Pair<T> &above = made<PHASE>(s, lag - 1), &adjacent = made<PHASE>(s, lag),
                      &below = made<PHASE>(s, lag + 1);
        const T side = parity == even ? __shfl_up_sync(full_warp, adjacent.v[1], 1)
                                      : __shfl_down_sync(full_warp, adjacent.v[0], 1);
        const typename Rule::Line line = lines[j - delay];
        const int at = wrap(slot - delay, Shape::rows);
        Pair<T> word[fields > 0 ? fields : 1], after;

#pragma unroll
        for (int n = 0; n < fields; n++) {
            word[n] = field_at(at, n, s % 2);
        }
#pragma unroll
        for (int a = 0; a < 2; a++) {
            const T west = parity != even ? adjacent.v[a] : a ? adjacent.v[0] : side;
            const T east = parity == even ? adjacent.v[a] : a ? side : adjacent.v[1];
            T f[fields > 0 ? fields : 1];

#pragma unroll
            for (int n = 0; n < fields; n++) {
                f[n] = word[n].v[a];
            }
            const Relaxed<T> node =
                m.rule.relax(column[a][parity], line, f, s % 2,
                             {west, east, above.v[a], below.v[a]}, own.v[a]);

            norm[s / 2].add(node, m.norms.criterion,
                            static_cast<unsigned>(j - delay - first_counted) <
                                counts[a][parity]);
            after.v[a] = node.after;
        }
        return after;
    }

    template <int PHASE> __device__ __forceinline__ void step(int j)
    {
        const int u_next = wrap(u_slot + 1 - Shape::u_rows, Shape::u_rows);
        const int next_slot = wrap(slot + 1 - Shape::rows, Shape::rows);
        Pair<T> black;

        fetch(j + blocked_ahead, wrap(u_slot - 1, Shape::u_rows),
              wrap(slot + blocked_ahead - Shape::rows, Shape::rows));
        copies_done_but<blocked_ahead - 1>();
        if (Rule::masks_field && at_edge) {
            mask(j + 1, next_slot);
        }
        result[0][PHASE] = u_at(u_next, 1);
#pragma unroll
        for (int s = 0; s < sweeps; s++) {
            const int age = half_sweep_lag(s) + (s > 0 ? half_sweep_lag(s - 1) : 0);
            const Pair<T> own =
                s > 0 ? made<PHASE>(s > 0 ? s - 1 : 0, age) : u_at(u_slot, 0);
            const Pair<T> after = relax<PHASE>(j, s, own);

            if (s + 1 < sweeps) {
                result[s + 1 < sweeps ? s + 1 : 0][PHASE] = after;
            }
            black = after;
        }
        store(j - half_sweep_delay(sweeps - 1),
              made<PHASE>(sweeps - 1, half_sweep_lag(sweeps - 1)), black);
        u_slot = u_next;
        slot = next_slot;
    }

    __device__ __forceinline__ void sweep(int part)
    {
        const int start = part * m.shape.rows - sweeps;
        const int stop = start + Shape::steps(m.shape.rows);

        next = start * m.grid.pitch;
        for (int k = 0; k < blocked_ahead; k++) {
            fetch(start + k, k, k);
        }
        copies_done_but<blocked_ahead - 1>();
        if (Rule::masks_field && at_edge) {
            mask(start, 0);
        }
        u_slot = 0;
        slot = 0;
        result[0][blocked_phases - 1] = u_at(0, 1);
        for (int j = start; j < stop; j += blocked_phases) {
            step<0>(j);
            step<1>(j + 1);
            step<2>(j + 2);
            step<3>(j + 3);
        }
    }
};

template <typename Rule, int K, int KIND>
__global__ void
blocked_sweep_kernel(const __grid_constant__ BlockedSweep<Rule> m)
{
    using T = typename Rule::value;
    using Line = typename Rule::Line;
    using Shape = Strip<Rule, K>;
    constexpr int halo = K, own_columns = 2 * warp_lanes - 2 * halo;
    extern __shared__ __align__(16) char shared[];
    const int lane = threadIdx.x % warp_lanes, warp = threadIdx.x / warp_lanes;
    const int number = static_cast<int>(blockIdx.x) * m.shape.warps + warp;
    const int strip = number % m.shape.strips, part = number / m.shape.strips;
    const int rows = m.shape.rows, lowest = part * rows - 2 * K - Shape::delay;
    Pair<T> *const base = reinterpret_cast<Pair<T> *>(shared + warp * Shape::bytes(rows));
    Line *const line = reinterpret_cast<Line *>(base + Shape::pairs);

    static_assert(K % 2 == 0, "a lane's words are aligned");
    wait_for_last_kernel();
    if (has_ended(m.norms) || part >= m.shape.parts) {
        return;
    }
    let_next_kernel_in();
    for (int k = lane; k < Shape::steps(rows) + Shape::delay; k += warp_lanes) {
        line[k] = m.rule.line(max(0, min(lowest + k, m.grid.ny + 1)));
    }
    __syncwarp();

    BlockedSweeper<Rule, K, KIND> w = {m};
    w.u = base + lane;
    w.field = w.u + 2 * Shape::u_rows * warp_lanes;
    w.lines = line - lowest;
    w.p = strip * own_columns - halo + 2 * lane;
    w.first = max(part * rows, 1);
    w.end = min((part + 1) * rows, m.grid.ny + 1);
    w.first_counted = max(w.first, m.norms.first_row);
    w.has_words = w.p >= 0 && w.p < m.grid.pitch;
    w.owns = lane >= halo / 2 && lane < warp_lanes - halo / 2 && 2 * w.p <= m.grid.nx;
    w.at_edge = strip == 0 || 2 * ((strip + 1) * own_columns + halo) > m.grid.nx;
    const int counted = max(min(w.end, m.norms.end_row) - w.first_counted, 0);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int a = k / 2, parity = k % 2, i = 2 * (w.p + a) + parity;
        const bool inside = w.owns && i >= 1 && i <= m.grid.nx;

        w.column[a][parity] = m.rule.column(w.has_words ? w.p + a : 0, parity);
        w.counts[a][parity] = inside ? static_cast<unsigned>(counted) : 0;
    }
    w.sweep(part);
#pragma unroll
    for (int k = 0; k < K; k++) {
        join_lanes(w.norm[k]);
        if (lane == 0 && k >= m.norms.first) {
            w.norm[k].commit(m.norms, k - m.norms.first, number);
        }
    }
}

template <int K, int KIND, typename Rule>
inline ps_status
launch_blocked_sweep(const BlockedSweep<Rule> &m, cudaStream_t stream)
{
    const int64_t all = int64_t(m.shape.strips) * m.shape.parts;

    return launch_closely(blocked_sweep_kernel<Rule, K, KIND>,
                          (all + m.shape.warps - 1) / m.shape.warps,
                          m.shape.warps * warp_lanes,
                          m.shape.warps * Strip<Rule, K>::bytes(m.shape.rows), stream, m);
}

/* Parts of `rows` rows. */
template <int K>
inline BlockedShape
blocked_parts(const ps_cuda_grid &grid, int rows, int warps)
{
    constexpr int own = 2 * warp_lanes - 2 * K;

    return {(grid.nx / 2 + own) / own, grid.ny / rows + 1, rows, warps};
}

/* As many parts as can be resident on the device; 0 warps if none can. Parts have so many
 * rows that all of them are resident at the same time, if shared memory can hold their
 * lines: with at most 512 rows, the blocks of 8192^2 nodes of LMSOR in double came in 2.2
 * rounds and those of 4096 x 8192 in 1.3, of which a part of a round costs half a round.
 */
template <typename Rule, int K, int KIND>
inline cudaError_t
shape_blocked_sweep(const ps_cuda_grid &grid, const ps_cuda_device *device,
                    BlockedShape *shape)
{
    constexpr int most_warps = 4, usual_rows = 512, longest_rows = 2048;
    const int fit =
        device->shared_bytes / static_cast<int>(Strip<Rule, K>::bytes(usual_rows));
    const int warps = fit < most_warps ? fit : most_warps;
    const size_t each = warps > 0 ? device->shared_bytes / warps : 0;
    int most_rows = longest_rows;

    while (most_rows > usual_rows && Strip<Rule, K>::bytes(most_rows) > each) {
        most_rows -= usual_rows / 4;
    }
    const int strips = blocked_parts<K>(grid, 2, warps).strips;
    cudaError_t error = cudaSuccess;
    int rows = 2;

    /* the number of resident blocks depends weakly on the number of rows */
    for (int round = 0; error == cudaSuccess && warps > 0 && round < 2; round++) {
        int blocks = 0;

        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, blocked_sweep_kernel<Rule, K, KIND>, warps * warp_lanes,
            warps * Strip<Rule, K>::bytes(rows));
        const int fitting = blocks * warps * device->processors / strips;
        const int parts = fitting > 1 ? fitting : 1;

        rows = grid.ny / parts / 2 * 2 + 2; /* parts * rows > ny */
        rows = rows < most_rows ? rows : most_rows;
    }
    *shape = blocked_parts<K>(grid, rows, warps);
    return error;
}

} // namespace pysolvers::relaxation

#endif
