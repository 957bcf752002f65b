/* relax_plain.cuh - one colour relaxed per kernel, as in Cotronis et al.
 *
 * A thread relaxes a pack of neighbours in some rows: the rows of the other colour are
 * read once, the one node next to the pack comes from the cache. The black kernel
 * processes the rows in reverse order, so that the rows that the red kernel has
 * processed last are still in the cache.
 */
#ifndef PS_CUDA_RELAXATION_RELAX_PLAIN_CUH
#define PS_CUDA_RELAXATION_RELAX_PLAIN_CUH

#include "relaxation/relax.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::relaxation {

using namespace runtime;

template <typename Rule> struct Plain {
    Rule rule;
    ps_cuda_grid grid;
    typename Rule::value *u;
    unsigned chunks; /* blocks along x */
    ps_cuda_norms norms;
};

/* The nodes of a thread of one colour, in ROWS rows from row j0 on, j0 + colour even:
 * in row j0 + k the nodes i = 2 p + k % 2. */
template <typename Rule, int ROWS, int WIDE> struct PlainTile {
    using T = typename Rule::value;
    using Nodes = Pack<T, WIDE>;
    using Column = typename Rule::Column;
    using Line = typename Rule::Line;
    const Plain<Rule> &s;
    const int p, seen, j0, colour; /* seen: p, restricted to existing nodes */
    Nodes other[ROWS + 2], own[ROWS], field[ROWS][Rule::fields > 0 ? Rule::fields : 1];
    T side[ROWS];

    __device__ __forceinline__ int row_at(int k) const
    {
        return max(0, min(j0 + k, s.grid.ny + 1));
    }

    __device__ __forceinline__ const Nodes &nodes_at(const T *place) const
    {
        return *reinterpret_cast<const Nodes *>(place);
    }

    __device__ __forceinline__ void read()
    {
        const ps_cuda_grid &g = s.grid;
        const int before = seen > 0 ? -1 : 0, behind = seen + WIDE < g.pitch ? WIDE : 0;

#pragma unroll
        for (int k = -1; k <= ROWS; k++) {
            const int64_t at = row_at(k) * g.pitch + seen;
            const int64_t here = at + (colour ? g.half : 0);
            const T *const adjacent = s.u + at + (colour ? 0 : g.half);

            other[k + 1] = nodes_at(adjacent);
            if (k < 0 || k == ROWS) {
                continue;
            }
            side[k] = adjacent[k % 2 ? behind : before];
            own[k] = nodes_at(s.u + here);
#pragma unroll
            for (int f = Rule::computes_weight; f < Rule::fields; f++) {
                field[k][f] = nodes_at(s.rule.field[f] + here);
            }
        }
    }

    /* The weights of a rule that computes them. */
    __device__ __forceinline__ void weigh(const Column (&column)[2][WIDE],
                                          const Line *lines)
    {
        bool usual = s.rule.is_usual();

#pragma unroll
        for (int n = 0; n < ROWS * WIDE; n++) {
            const int k = n / WIDE, a = n % WIDE;

            field[k][0].v[a] =
                s.rule.fast_weight(column[k % 2][a], lines[k], colour, usual);
        }
        if (usual) {
            return;
        }
#pragma unroll
        for (int n = 0; n < ROWS * WIDE; n++) {
            const int k = n / WIDE, a = n % WIDE;

            field[k][0].v[a] = s.rule.weight(column[k % 2][a], lines[k], colour);
        }
    }

    __device__ __forceinline__ Around<T> around(int k, int a) const
    {
        const Nodes &c = other[k + 1];
        const T west = k % 2 ? c.v[a] : a > 0 ? c.v[a > 0 ? a - 1 : 0] : side[k];
        const T east = k % 2 == 0     ? c.v[a]
                       : a < WIDE - 1 ? c.v[a < WIDE - 1 ? a + 1 : a]
                                      : side[k];

        return {west, east, other[k + 2].v[a], other[k].v[a]};
    }

    __device__ __forceinline__ bool is_inside(int k, int a) const
    {
        const int i = 2 * (p + a) + k % 2, j = j0 + k;

        return j >= 1 && j <= s.grid.ny && i >= 1 && i <= s.grid.nx;
    }

    /* Whether a norm includes the node. Its rows lie in the interior. */
    __device__ __forceinline__ bool counts(int k, int a) const
    {
        const int i = 2 * (p + a) + k % 2, j = j0 + k;

        return static_cast<unsigned>(j - s.norms.first_row) <
                   static_cast<unsigned>(s.norms.end_row - s.norms.first_row) &&
               i >= 1 && i <= s.grid.nx;
    }

    template <typename NormAccumulator>
    __device__ __forceinline__ void relax(const Column (&column)[2][WIDE],
                                          const Line *lines, NormAccumulator &norm)
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
#pragma unroll
            for (int a = 0; a < WIDE; a++) {
                T f[Rule::fields > 0 ? Rule::fields : 1];

#pragma unroll
                for (int n = 0; n < Rule::fields; n++) {
                    f[n] = field[k][n].v[a];
                }
                const Relaxed<T> node = s.rule.relax(column[k % 2][a], lines[k], f,
                                                     colour, around(k, a), own[k].v[a]);

                norm.add(node, s.norms.criterion, counts(k, a));
                own[k].v[a] = node.after;
            }
        }
    }

    __device__ __forceinline__ void write() const
    {
        T *to = s.u + (colour ? s.grid.half : 0) + j0 * s.grid.pitch + p;
        const bool whole = p > 0 && 2 * (p + WIDE) <= s.grid.nx;

#pragma unroll
        for (int k = 0; k < ROWS; k++, to += s.grid.pitch) {
            if (whole) {
                if (is_inside(k, 0)) {
                    *reinterpret_cast<Nodes *>(to) = own[k];
                }
                continue;
            }
#pragma unroll
            for (int a = 0; a < WIDE; a++) {
                if (is_inside(k, a)) {
                    to[a] = own[k].v[a];
                }
            }
        }
    }
};

/* The number of rows of a thread: SPAN times ROWS rows. If weights are computed, fewer
 * registers are available, and the numbers of a column are reused for more rows. */
template <typename Rule> struct PlainShape {
    static constexpr bool computes = Rule::computes_weight;
    static constexpr int rows = computes ? 2 : 4, span = computes ? 6 : 1;
    static constexpr int wide = computes ? 1 : 16 / sizeof(typename Rule::value);
    static constexpr int blocks = computes ? 4 : 1; /* least number per multiprocessor */
};

template <typename Rule, int KIND> struct PlainColour {
    Plain<Rule> s;
    int colour;

    __device__ __forceinline__ void operator()() const
    {
        constexpr int rows = PlainShape<Rule>::rows, span = PlainShape<Rule>::span;
        constexpr int wide = PlainShape<Rule>::wide, all = rows * span;
        const unsigned block = colour ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
        const int chunk = static_cast<int>(block % s.chunks);
        const int first = static_cast<int>(block / s.chunks) * all + colour;
        const int thread = static_cast<int>(threadIdx.x);
        const int p = (chunk * relax_threads + thread) * wide;
        const int seen = min(p, s.grid.nx / 2 / wide * wide);
        __shared__ typename Rule::Line lines[all];
        typename Rule::Column column[2][wide];
        NormAccumulator<typename Rule::value, KIND> norm;

        wait_for_last_kernel();
        if (has_ended(s.norms)) {
            return;
        }
        let_next_kernel_in();
        if (thread < all) {
            lines[thread] = s.rule.line(min(first + thread, s.grid.ny + 1));
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 2 * wide; k++) {
            column[k % 2][k / 2] = s.rule.column(seen + k / 2, k % 2);
        }
#pragma unroll 1
        for (int k = 0; k < all; k += rows) {
            PlainTile<Rule, rows, wide> tile = {s, p, seen, first + k, colour};

            tile.read();
            if constexpr (Rule::computes_weight) {
                tile.weigh(column, lines + k);
            }
            tile.relax(column, lines + k, norm);
            tile.write();
        }
        if (join_block(norm)) {
            norm.commit(s.norms, 0,
                        colour * static_cast<int64_t>(gridDim.x) + blockIdx.x);
        }
    }
};

template <typename Rule>
inline unsigned
plain_chunks(const ps_cuda_grid &grid)
{
    constexpr unsigned width = 2 * PlainShape<Rule>::wide * relax_threads;

    return (static_cast<unsigned>(grid.nx) + width) / width;
}

template <typename Rule>
inline int64_t
plain_blocks(const ps_cuda_grid &grid)
{
    constexpr int all = PlainShape<Rule>::rows * PlainShape<Rule>::span;

    static_assert(PlainShape<Rule>::rows % 2 == 0,
                  "the parity of a row is that of its place in the tile");
    return int64_t(plain_chunks<Rule>(grid)) * (grid.ny / all + 1);
}

/* Both colours, one after the other. */
template <int KIND, typename Rule>
inline ps_status
launch_plain(const Plain<Rule> &s, cudaStream_t stream)
{
    ps_status status = PS_OK;

    for (int colour = 0; status == PS_OK && colour < 2; colour++) {
        status = for_threads<relax_threads, PlainShape<Rule>::blocks>(
            plain_blocks<Rule>(s.grid), stream, PlainColour<Rule, KIND>{s, colour});
    }
    return status;
}

} // namespace pysolvers::relaxation

#endif
