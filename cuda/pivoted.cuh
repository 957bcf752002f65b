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
 * are to hold, chunks of a tile of short systems, and, a power of two, of a tile that is
 * a part of a system. */
template <typename Number> struct PivotShape;
template <> struct PivotShape<float> {
    static constexpr int length = 19, threads = 256, blocks = 2, usual = 256, part = 256;
};
template <> struct PivotShape<double> {
    static constexpr int length = 11, threads = 384, blocks = 1, usual = 384, part = 128;
};
template <> struct PivotShape<Complex<float>> {
    static constexpr int length = 11, threads = 384, blocks = 1, usual = 128, part = 128;
};
template <> struct PivotShape<Complex<double>> {
    static constexpr int length = 5, threads = 384, blocks = 1, usual = 128, part = 128;
};

/* Groups of one tile in the passes over groups; a power of two. */
enum { PIVOT_GROUPS = 128 };

/* The first tile from `tile` on, in steps of the grid, with a system to solve; all of
 * the block take part. */
template <bool whole, typename Number>
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
            const PivotSpan span = pivot_span<whole>(a, mine);
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

/* Tell what became of the systems of a tile, and forget it; by one warp. */
template <typename Number>
__device__ __forceinline__ void
pivot_report(const PivotPlan<Number> &a, PivotPass pass, const PivotSpan &span,
             int *states)
{
    for (int i = threadIdx.x % 32; i < span.systems; i += 32) {
        const int64_t system = span.system + i;
        const int found = states[i];

        states[i] = PIVOT_FINE;
        if (pass == PIVOT_REDUCE) {
            if (found != PIVOT_FINE) {
                atomicMax(&a.state[system], found);
            }
        }
        else if (a.s.info != nullptr && span.segment == 0 && pivot_marked(a, system)) {
            const PivotIndex at = pivot_index(a, system);
            const int state = pass == PIVOT_SOLVE ? found : a.state[system];
            a.s.info[pivot_number(a, system)] =
                state == PIVOT_FINE
                    ? 0
                    : first_bad_pivot(a.s, at.j, at.k, state == PIVOT_BAD ? a.s.rows : 0);
        }
    }
}

/* The chunk of a thread: its number of rows, where the first lies in the plane of x, and
 * whether a pivot was lost. */
struct PivotPart {
    int count, place;
    bool lost;
};

/* Eliminate a chunk of a tile and make it a leaf. */
template <bool even, typename Number, int length>
__device__ __forceinline__ PivotPart
pivot_leaf(const PivotPlan<Number> &a, const PivotSpan &span,
           const PivotShared<Number> &m, const PivotTree<Number> &t, int system,
           int chunk, PivotKept<Number, length> &kept)
{
    const int begin = pivot_begin(a, span.chunk + chunk);
    const int count = a.base + (span.chunk + chunk < a.longer ? a.step : 0);
    const int row = begin - span.begin;
    const PivotShift shift = a.bulk ? m.shift[a.flat ? 0 : system] : PivotShift{};
    const int place = system * a.pitch + row;
    const auto rows_of = [&](int w) {
        return m.rows + w * a.plane + place + shift.of[w];
    };
    const PivotChunk<Number> c = {rows_of(PIVOT_LOWER), rows_of(PIVOT_DIAG),
                                  rows_of(PIVOT_UPPER), rows_of(PIVOT_RHS)};
    const bool open = !a.s.periodic || a.s.rows <= 2, first = open && begin == 0;
    PivotGroup<Number> group;

    if (open && begin + count == a.rows) {
        pivot_close_rows(a, c, count - 1);
    }
    const auto rows = [&](int k) -> PivotRow<Number> {
        return balanced<Number>(
            {k == 0 && first ? Number(0) : c.lower[k], c.diag[k], c.upper[k], c.rhs[k]});
    };
    const bool lost = eliminate_chunk<length, even>(rows, count, kept, group);
    t.template at<PivotGroup<Number>>(system * t.stride + chunk) = group;
    return {count, place + shift.of[PIVOT_X], lost};
}

/* From the joints of the tree to x of the tile. */
template <bool even, typename Number, int length>
__device__ __forceinline__ void
pivot_substitute(const PivotTree<Number> &t, Number *plane, int system, int chunk,
                 const PivotPart &part, const PivotKept<Number, length> &kept)
{
    substitute_chunk<length, even>(kept, pivot_path(t, system, chunk), part.count,
                                   [&](int k, Number v) { plane[part.place + k] = v; });
}

/* Grid: any number of blocks. Block: a thread a chunk of a tile, in warps. A turn of the
 * loop ends in the middle of a tile: the rows of the next one are on their way while the
 * groups of this one are joined. */
template <typename Number, bool even, bool whole>
__global__ void
__launch_bounds__(PivotShape<Number>::threads, PivotShape<Number>::blocks)
    pivoted_rows_kernel(const __grid_constant__ PivotPlan<Number> a)
{
    constexpr int length = PivotShape<Number>::length;
    extern __shared__ __align__(16) unsigned char memory[];
    const PivotShared<Number> m(a, memory);
    const PivotPass pass = whole ? PIVOT_SOLVE : a.pass;
    const int system = threadIdx.x / a.tile_chunks;
    const int chunk = threadIdx.x - system * a.tile_chunks;
    PivotTree<Number> t = {m.tree, a.tile_chunks, 0, 0, m.state};
    PivotKept<Number, length> kept;
    PivotPart part = {};
    PivotSpan span = {};
    bool active = false;

    if (threadIdx.x == 0) {
        m.arrivals->init(64); /* a warp's bulk copies, and its others */
    }
    if (threadIdx.x < 4) {
        m.in[threadIdx.x] = a.in[threadIdx.x];
    }
    for (int i = threadIdx.x; i < a.tile_systems; i += blockDim.x) {
        m.state[i] = PIVOT_FINE;
    }
    __syncthreads(); /* the barrier is there */
    int64_t tile = pivot_next_tile<whole>(a, blockIdx.x);
    for (int turn = 0;; turn ^= 1) {
        const bool more = tile < a.tiles;
        if (more) {
            pivot_fetch<whole>(a, tile, m);
        }
        if (span.systems > 0) {
            t.leaves = span.chunks;
            t.systems = span.systems;
            const int64_t base = span.system * a.segments;
            if (active && part.lost) {
                t.tell(system, PIVOT_BAD);
            }
            pivot_tree<Number>(t,
                               {pass, span.segment, a.segments,
                                a.groups + base * PIVOT_GROUP_WORDS, a.ends + 2 * base});
            if (pass != PIVOT_REDUCE) {
                if (active) {
                    pivot_substitute<even>(t, m.rows + PIVOT_X * a.plane, system, chunk,
                                           part, kept);
                }
                bulk_fence();
                __syncthreads(); /* x is written */
                pivot_store(a, span, m);
            }
            if (threadIdx.x >= blockDim.x - 32) {
                pivot_report(a, pass, span, m.state);
            }
        }
        if (!more) {
            break;
        }
        span = pivot_span<whole>(a, tile); /* once more: registers are dearer */
        tile = pivot_next_tile<whole>(a, tile + gridDim.x);
        if (a.bulk) {
            m.arrivals->wait(turn);
        }
        else {
            copies_done();
            __syncthreads(); /* rows have come */
        }
        active = system < span.systems && chunk < span.chunks;
        if (active) {
            part = pivot_leaf<even>(a, span, m, t, system, chunk, kept);
        }
        stores_read();
        __syncthreads(); /* rows are read and leaves written, the place of x is free */
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
    constexpr int words = pivot_leaf_place<Number>(PIVOT_GROUPS);
    __shared__ __align__(16) unsigned char memory[words * sizeof(Number)];
    __shared__ int state;
    const int64_t system = blockIdx.x / a.tiles;
    const int tile = static_cast<int>(blockIdx.x - system * a.tiles);
    const int first = tile * PIVOT_GROUPS, leaf = threadIdx.x;
    const PivotTree<Number> t = {reinterpret_cast<Number *>(memory), PIVOT_GROUPS,
                                 min(static_cast<int>(PIVOT_GROUPS), a.count - first), 1,
                                 &state};
    const int64_t at = system * a.count + first + leaf;

    if (a.marks != nullptr && a.marks[system] == 0) {
        return;
    }
    if (leaf == 0) {
        state = PIVOT_FINE;
    }
    if (leaf < t.leaves) {
        t.template at<PivotGroup<Number>>(leaf) =
            *reinterpret_cast<const PivotGroup<Number> *>(a.groups +
                                                          at * PIVOT_GROUP_WORDS);
    }
    __syncthreads(); /* leaves are written */
    const int64_t above = system * a.tiles;
    pivot_tree<Number>(t,
                       {a.pass, tile, a.tiles, a.upper_groups + above * PIVOT_GROUP_WORDS,
                        a.upper_ends + 2 * above});
    if (a.pass != PIVOT_REDUCE && leaf < t.leaves) {
        const PivotAround<Number> x = pivot_path(t, 0, leaf);
        a.ends[2 * at] = x.first;
        a.ends[2 * at + 1] = x.last;
    }
    if (leaf == 0 && state != PIVOT_FINE) {
        atomicMax(&a.state[system], state);
    }
}

#endif
