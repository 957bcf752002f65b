/* pivoted.cuh - the pivoted solver: one read and one write of memory a system.
 *
 * A thread eliminates a chunk of rows with row exchanges and keeps the pivot rows in
 * registers, the block joins the chunks two by two in shared memory, and the threads
 * substitute back (pivoted_rows.cuh, pivoted_tree.cuh). Blocks stay and copy their next
 * tile in while they work on this one. Systems longer than a block's shared memory take
 * three passes: tiles to groups, groups to x at the ends of tiles, tiles to x; 9 words
 * an unknown instead of 5. Every unknown is eliminated by the largest of all rows that
 * contain it, rows scaled by powers of two: the errors are those of Gaussian elimination
 * with scaled partial pivoting.
 */
#ifndef PS_CUDA_PIVOTED_CUH
#define PS_CUDA_PIVOTED_CUH

#include "engine.h"
#include "pivoted_search.cuh"
#include "pivoted_tile.cuh"

/* Most rows of a chunk, most threads of a block, blocks that a multiprocessor's registers
 * are to hold, and chunks of a tile of short systems. */
template <typename Number> struct PivotShape;
template <> struct PivotShape<float> {
    static constexpr int length = 17, threads = 256, blocks = 2, usual = 256;
};
template <> struct PivotShape<double> {
    static constexpr int length = 11, threads = 384, blocks = 1, usual = 128;
};
template <> struct PivotShape<Complex<float>> {
    static constexpr int length = 11, threads = 384, blocks = 1, usual = 128;
};
template <> struct PivotShape<Complex<double>> {
    static constexpr int length = 5, threads = 384, blocks = 1, usual = 128;
};

/* Groups of one tile in the passes over groups; a power of two, as are the chunks of a
 * tile that is a part of a system. */
enum { PIVOT_GROUPS = 128 };

/* The first tile from `tile` on, in steps of the grid, with a system to solve; all of
 * the block take part. */
template <typename Number>
__device__ __forceinline__ int64_t
pivot_next_tile(const PivotPlan<Number> &a, int64_t tile)
{
    __shared__ int found;

    if (a.marks == nullptr) {
        return tile;
    }
    const int64_t grid = gridDim.x;
    for (; tile < a.tiles; tile += grid * blockDim.x) {
        const int64_t mine = tile + threadIdx.x * grid;
        bool marked = false;

        if (mine < a.tiles) {
            const PivotSpan span = pivot_span(a, mine);
            for (int i = 0; i < span.systems; i++) {
                marked = marked || pivot_marked(a, span.system + i);
            }
        }
        if (threadIdx.x == 0) {
            found = INT_MAX;
        }
        __syncthreads();
        if (marked) {
            atomicMin(&found, static_cast<int>(threadIdx.x));
        }
        __syncthreads();
        const int first = found;
        __syncthreads(); /* read by all before it is reset */
        if (first != INT_MAX) {
            return tile + first * grid;
        }
    }
    return tile;
}

/* Tell what became of the systems of a tile. */
template <typename Number>
__device__ __forceinline__ void
pivot_report(const PivotPlan<Number> &a, const PivotSpan &span, const int *states)
{
    for (int i = threadIdx.x; i < span.systems; i += blockDim.x) {
        const int64_t system = span.system + i;

        if (a.pass == PIVOT_REDUCE) {
            if (states[i] != PIVOT_FINE) {
                atomicMax(&a.state[system], states[i]);
            }
        }
        else if (a.s.info != nullptr && span.segment == 0 && pivot_marked(a, system)) {
            const PivotIndex at = pivot_index(a, system);
            const int state = a.pass == PIVOT_SOLVE ? states[i] : a.state[system];
            a.s.info[pivot_number(a, system)] =
                state == PIVOT_FINE
                    ? 0
                    : first_bad_pivot(a.s, at.j, at.k, state == PIVOT_BAD ? a.s.rows : 0);
        }
    }
}

/* The chunk of a thread: its number of rows, and where the first lies in the plane of
 * x. */
struct PivotPart {
    int count, place;
};

/* Eliminate a chunk of a tile and make it a leaf. */
template <bool even, typename Number, int length>
__device__ __forceinline__ PivotPart
pivot_leaf(const PivotPlan<Number> &a, const PivotSpan &span,
           const PivotShared<Number> &m, const PivotTree<Number> &t, int system,
           int chunk, PivotKept<Number, length> &kept)
{
    const int begin = pivot_begin(a, span.chunk + chunk);
    const int count = a.base + (span.chunk + chunk < a.longer);
    const int row = begin - span.begin;
    const PivotIndex at = pivot_index(a, span.system + system);
    const auto place = [&](int w) {
        return m.rows + w * a.plane + row +
               pivot_place(a, span, a.in[w], a.layout[w], at, system);
    };
    const PivotChunk<Number> c = {place(PIVOT_LOWER), place(PIVOT_DIAG),
                                  place(PIVOT_UPPER), place(PIVOT_RHS)};
    PivotGroup<Number> group;

    if (a.s.rows <= 2) {
        pivot_fold(a, c);
        bulk_fence();
    }
    const bool first = !a.s.periodic && begin == 0;
    const int last = a.s.periodic ? -1 : a.s.rows - 1 - begin;
    const auto rows = [&](int k) -> PivotRow<Number> {
        return balanced<Number>({k == 0 && first ? Number(0) : c.lower[k], c.diag[k],
                                 k == last ? Number(0) : c.upper[k], c.rhs[k]});
    };
    if (eliminate_chunk<length, even>(rows, count, kept, group)) {
        t.state[system] = PIVOT_BAD;
    }
    put_group(t, system * t.stride + chunk, group);
    return {count, row + pivot_place(a, span, a.s.x, a.layout[PIVOT_X], at, system)};
}

/* From x at the ends of the chunks, which the tree holds, to x of the tile. */
template <bool even, typename Number, int length>
__device__ __forceinline__ void
pivot_substitute(const PivotTree<Number> &t, const PivotShared<Number> &m, bool active,
                 int system, int chunk, const PivotPart &part,
                 const PivotKept<Number, length> &kept)
{
    PivotEnds<Number> x = {};

    if (active) {
        x = surroundings(t, system, chunk, chunk + 1);
    }
    __syncthreads(); /* the tree is read */
    if (active) {
        substitute_chunk<length, even>(
            kept, x, part.count, [&](int k, Number v) { m.other[part.place + k] = v; });
    }
    bulk_fence();
    __syncthreads(); /* x is written */
}

/* Grid: any number of blocks. Block: a thread a chunk of a tile, in warps. A turn of the
 * loop ends in the middle of a tile: the rows of the next one are on their way while the
 * groups of this one are joined. */
template <typename Number, bool even>
__global__ void
__launch_bounds__(PivotShape<Number>::threads, PivotShape<Number>::blocks)
    pivoted_rows_kernel(const __grid_constant__ PivotPlan<Number> a, int other_words)
{
    constexpr int length = PivotShape<Number>::length;
    extern __shared__ __align__(16) unsigned char memory[];
    const PivotShared<Number> m = pivot_shared(a, memory, other_words);
    const int system = threadIdx.x / a.tile_chunks;
    const int chunk = threadIdx.x - system * a.tile_chunks;
    PivotTree<Number> t = {m.other,
                           a.tile_chunks,
                           0,
                           0,
                           a.tile_chunks * a.tile_systems,
                           a.pass == PIVOT_SOLVE,
                           m.state};
    PivotKept<Number, length> kept;
    PivotPart part = {};
    PivotSpan span = {};
    bool active = false;

    if (threadIdx.x == 0) {
        m.arrivals->init(blockDim.x);
    }
    __syncthreads(); /* the barrier is there */
    int64_t tile = pivot_next_tile(a, blockIdx.x);
    for (int turn = 0;; turn ^= 1) {
        const bool more = tile < a.tiles;
        if (more) {
            pivot_fetch(a, pivot_span(a, tile), m);
        }
        if (span.systems > 0) {
            t.leaves = span.chunks;
            t.systems = span.systems;
            const int64_t base = span.system * a.segments;
            pivot_tree<Number>(t,
                               {a.pass, span.segment, a.segments,
                                a.groups + base * PIVOT_GROUP_WORDS, a.ends + 2 * base});
            if (a.pass != PIVOT_REDUCE) {
                pivot_substitute<even>(t, m, active, system, chunk, part, kept);
                pivot_store(a, span, m);
            }
            pivot_report(a, span, m.state);
        }
        if (!more) {
            break;
        }
        span = pivot_span(a, tile); /* once more: registers are dearer */
        tile = pivot_next_tile(a, tile + gridDim.x);
        for (int i = threadIdx.x; i < span.systems; i += blockDim.x) {
            m.state[i] = PIVOT_FINE;
        }
        if (a.bulk) {
            m.arrivals->wait(turn);
        }
        copies_done();
        stores_read();
        __syncthreads(); /* rows have come; the place of x is free */
        active = system < span.systems && chunk < span.chunks;
        if (active) {
            part = pivot_leaf<even>(a, span, m, t, system, chunk, kept);
        }
        __syncthreads(); /* rows are read and leaves written */
    }
    stores_read();
}

/* The groups of tiles, `count` a system, as leaves of tiles of PIVOT_GROUPS. */
template <typename Number> struct PivotLevel {
    Number *groups, *ends;             /* the leaves */
    Number *upper_groups, *upper_ends; /* one a tile, unless it is the whole system */
    int32_t count, tiles;              /* of a system */
    PivotPass pass;
    int32_t *state;       /* PivotState of each system */
    const uint8_t *marks; /* null, or those of the systems in this order */
};

/* Grid: systems * tiles blocks, fewer than 2^31: a group stands for many rows in memory.
 * Block: PIVOT_GROUPS threads. */
template <typename Number>
__global__ void
__launch_bounds__(PIVOT_GROUPS)
    pivoted_groups_kernel(const __grid_constant__ PivotLevel<Number> a)
{
    constexpr int words = pivot_leaf_place<Number>(PIVOT_GROUPS + 1);
    __shared__ __align__(16) unsigned char memory[words * sizeof(Number)];
    __shared__ int state;
    const int64_t system = blockIdx.x / a.tiles;
    const int tile = static_cast<int>(blockIdx.x - system * a.tiles);
    const int first = tile * PIVOT_GROUPS, leaf = threadIdx.x;
    const PivotTree<Number> t = {reinterpret_cast<Number *>(memory),
                                 PIVOT_GROUPS,
                                 min(static_cast<int>(PIVOT_GROUPS), a.count - first),
                                 1,
                                 PIVOT_GROUPS,
                                 a.pass == PIVOT_SOLVE,
                                 &state};
    const int64_t at = system * a.count + first + leaf;

    if (a.marks != nullptr && a.marks[system] == 0) {
        return;
    }
    if (leaf == 0) {
        state = PIVOT_FINE;
    }
    if (leaf < t.leaves) {
        put_group(t, leaf,
                  *reinterpret_cast<const PivotGroup<Number> *>(a.groups +
                                                                at * PIVOT_GROUP_WORDS));
    }
    __syncthreads(); /* leaves are written */
    const int64_t above = system * a.tiles;
    pivot_tree<Number>(t,
                       {a.pass, tile, a.tiles, a.upper_groups + above * PIVOT_GROUP_WORDS,
                        a.upper_ends + 2 * above});
    if (a.pass != PIVOT_REDUCE && leaf < t.leaves) {
        a.ends[2 * at] = t.at(PIVOT_FIRST, leaf);
        a.ends[2 * at + 1] = t.at(PIVOT_LAST, leaf);
    }
    if (leaf == 0 && state != PIVOT_FINE) {
        atomicMax(&a.state[system], state);
    }
}

#endif
