/* relax_tile.cuh - K iterations of a tile in registers, for small grids.
 *
 * A lane has a column of nodes of both colours, a warp tile_rows rows of them, a block
 * several warps on top of each other. Neighbours come from the next lane and, at the
 * ends of the rows of a warp, from shared memory: one barrier per half-sweep. A block
 * owns the nodes at least 2 K nodes inside its tile; the neighbouring blocks relax the
 * frame around them as well. The method is faster if all tiles run at the same time:
 * the time is then the latency of the half-sweeps, which is longer in a blocked sweep,
 * where rows follow each other.
 */
#ifndef PS_CUDA_RELAXATION_RELAX_TILE_CUH
#define PS_CUDA_RELAXATION_RELAX_TILE_CUH

#include "relaxation/relax.cuh"

namespace pysolvers::relaxation {

using namespace runtime;

static constexpr int tile_rows = 8, tile_most_warps = 10;

/* Tiles along x and y, and the warps of a tile. */
struct TileShape {
    int strips, parts, warps;
};

template <typename Rule> struct Tiles {
    using value = typename Rule::value;
    Rule rule;
    ps_cuda_grid grid;
    const value *from;
    value *to;
    TileShape shape;
    ps_cuda_norms norms;
};

template <int K>
static __host__ __device__ constexpr int
tile_own_rows(int warps)
{
    return warps * tile_rows - 4 * K;
}

/* The shared memory of a block: the first and the last row of each warp, with a place
 * before and after them; the lines of the rows; the norms of all threads. */
template <typename Rule, int K, int KIND> struct TileArrays {
    using T = typename Rule::value;
    T edge[2][tile_most_warps + 2][2][warp_lanes];
    typename Rule::Line line[tile_most_warps * tile_rows];
    NormAccumulator<T, KIND> norm[K][tile_most_warps * warp_lanes];
};

template <typename Rule, int K, int KIND> struct Tile {
    using T = typename Rule::value;
    static constexpr int fields = Rule::fields;
    const Tiles<Rule> &m;
    TileArrays<Rule, K, KIND> &exchange;
    int lane, warp, p, j0;
    T u[tile_rows][2], field[fields > 0 ? fields : 1][tile_rows][2];
    typename Rule::Column column[2];
    bool counts[2];   /* columns that this block owns, by parity */
    unsigned owned;   /* rows that this block owns, one bit each */
    unsigned counted; /* those among them whose norm it adds */

    __device__ __forceinline__ bool has_inside(int r, int parity) const
    {
        const int i = 2 * p + parity, j = j0 + r;

        return i >= 1 && i <= m.grid.nx && j >= 1 && j <= m.grid.ny;
    }

    __device__ __forceinline__ void read()
    {
        const bool there = p >= 0 && p < m.grid.pitch;

#pragma unroll
        for (int r = 0; r < tile_rows; r++) {
            const int j = j0 + r;
            const bool has = there && j >= 0 && j <= m.grid.ny + 1;

#pragma unroll
            for (int colour = 0; colour < 2; colour++) {
                const int64_t at = (colour ? m.grid.half : 0) + j * m.grid.pitch + p;

                u[r][colour] = has ? m.from[at] : T(0);
#pragma unroll
                for (int n = 0; n < fields; n++) {
                    const bool masked =
                        n == 0 && Rule::masks_field && !has_inside(r, (r + colour) % 2);

                    field[n][r][colour] = has && !masked ? m.rule.field[n][at] : T(0);
                }
            }
        }
    }

    __device__ __forceinline__ void write() const
    {
#pragma unroll
        for (int r = 0; r < tile_rows; r++) {
            T *const to = m.to + (j0 + r) * m.grid.pitch + p;

#pragma unroll
            for (int colour = 0; colour < 2; colour++) {
                if (counts[(r + colour) % 2] && (owned >> r & 1) != 0) {
                    to[colour ? m.grid.half : 0] = u[r][colour];
                }
            }
        }
    }

    /* Write the first and last rows of a colour to shared memory for the neighbours. */
    __device__ __forceinline__ void publish_edges(int colour)
    {
        exchange.edge[colour][warp + 1][0][lane] = u[0][colour];
        exchange.edge[colour][warp + 1][1][lane] = u[tile_rows - 1][colour];
        __syncthreads();
    }

    template <int COLOUR>
    __device__ __forceinline__ void relax(NormAccumulator<T, KIND> &norm)
    {
        constexpr int other = 1 - COLOUR;
        const T before = exchange.edge[other][warp][1][lane];
        const T behind = exchange.edge[other][warp + 2][0][lane];

#pragma unroll
        for (int r = 0; r < tile_rows; r++) {
            const int parity = (r + COLOUR) % 2;
            const T adjacent = u[r][other];
            const T side = parity == 0 ? __shfl_up_sync(full_warp, adjacent, 1)
                                       : __shfl_down_sync(full_warp, adjacent, 1);
            const Around<T> around = {
                parity == 0 ? side : adjacent, parity == 0 ? adjacent : side,
                r < tile_rows - 1 ? u[r < tile_rows - 1 ? r + 1 : r][other] : behind,
                r > 0 ? u[r > 0 ? r - 1 : r][other] : before};
            T f[fields > 0 ? fields : 1];

#pragma unroll
            for (int n = 0; n < fields; n++) {
                f[n] = field[n][r][COLOUR];
            }
            const Relaxed<T> node =
                m.rule.relax(column[parity], exchange.line[warp * tile_rows + r], f,
                             COLOUR, around, u[r][COLOUR]);

            norm.add(node, m.norms.criterion, counts[parity] && (counted >> r & 1) != 0);
            u[r][COLOUR] = node.after;
        }
        publish_edges(COLOUR);
    }

    __device__ __forceinline__ void iterate()
    {
        publish_edges(1);
        for (int k = 0; k < K; k++) {
            NormAccumulator<T, KIND> norm;

            relax<0>(norm);
            relax<1>(norm);
            exchange.norm[k][warp * warp_lanes + lane] = norm;
        }
    }

    /* Reduce the norms of the threads, one warp per iteration. */
    __device__ __forceinline__ void commit()
    {
        for (int k = m.norms.first + warp; k < K; k += m.shape.warps) {
            NormAccumulator<T, KIND> all = exchange.norm[k][lane];

            for (int other = 1; other < m.shape.warps; other++) {
                all.join(exchange.norm[k][other * warp_lanes + lane]);
            }
            join_lanes(all);
            if (lane == 0) {
                all.commit(m.norms, k - m.norms.first, blockIdx.x);
            }
        }
    }
};

template <typename Rule, int K, int KIND>
__global__ void
__launch_bounds__(tile_most_warps *warp_lanes)
    tile_kernel(const __grid_constant__ Tiles<Rule> m)
{
    constexpr int own_columns = warp_lanes - 2 * K;
    __shared__ TileArrays<Rule, K, KIND> exchange;
    const int lane = threadIdx.x % warp_lanes, warp = threadIdx.x / warp_lanes;
    const int strip = static_cast<int>(blockIdx.x) % m.shape.strips;
    const int part = static_cast<int>(blockIdx.x) / m.shape.strips;
    const int own_rows = tile_own_rows<K>(m.shape.warps), start = part * own_rows - 2 * K;
    const int p = strip * own_columns - K + lane, j0 = start + warp * tile_rows;
    const int seen = min(max(p, 0), static_cast<int>(m.grid.pitch) - 1);

    wait_for_last_kernel();
    if (has_ended(m.norms)) {
        return;
    }
    let_next_kernel_in();

    Tile<Rule, K, KIND> tile = {m, exchange, lane, warp, p, j0};
    tile.read();
    tile.owned = tile.counted = 0;
    for (int r = 0; r < tile_rows; r++) {
        const int place = warp * tile_rows + r;
        const bool owns = place >= 2 * K && place < 2 * K + own_rows && j0 + r >= 1 &&
                          j0 + r <= m.grid.ny;
        const bool counts =
            owns && j0 + r >= m.norms.first_row && j0 + r < m.norms.end_row;

        tile.owned |= owns ? 1u << r : 0;
        tile.counted |= counts ? 1u << r : 0;
    }
    for (int parity = 0; parity < 2; parity++) {
        const int i = 2 * p + parity;

        tile.column[parity] = m.rule.column(seen, parity);
        tile.counts[parity] =
            lane >= K && lane < warp_lanes - K && i >= 1 && i <= m.grid.nx;
    }
    for (int k = threadIdx.x; k < m.shape.warps * tile_rows; k += blockDim.x) {
        exchange.line[k] = m.rule.line(max(0, min(start + k, m.grid.ny + 1)));
    }
    for (int k = threadIdx.x; k < 4 * warp_lanes; k += blockDim.x) {
        const int last = k / warp_lanes / 2;

        exchange.edge[k / warp_lanes % 2][last ? m.shape.warps + 1 : 0][1 - last]
                     [k % warp_lanes] = 0;
    }
    tile.iterate();
    tile.write();
    __syncthreads();
    tile.commit();
}

/* The tiles with the fewest warps such that all tiles can be resident; parts is 0 if
 * there are none. */
template <int K>
inline TileShape
tile_shape(const ps_cuda_grid &grid, int most_tiles)
{
    constexpr int own_columns = warp_lanes - 2 * K;
    const int strips = grid.nx / 2 / own_columns + 1;

    for (int warps = 4 * K / tile_rows + 1; warps <= tile_most_warps; warps++) {
        const int parts = grid.ny / tile_own_rows<K>(warps) + 1;

        if (int64_t(strips) * parts <= most_tiles) {
            return {strips, parts, warps};
        }
    }
    return {strips, 0, 0};
}

template <int K, int KIND, typename Rule>
inline ps_status
launch_tiles(const Tiles<Rule> &m, cudaStream_t stream)
{
    return launch_closely(tile_kernel<Rule, K, KIND>,
                          int64_t(m.shape.strips) * m.shape.parts,
                          m.shape.warps * warp_lanes, 0, stream, m);
}

} // namespace pysolvers::relaxation

#endif
