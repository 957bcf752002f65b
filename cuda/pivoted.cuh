/* pivoted.cuh - the pivoted solver: one read and one write of memory a system.
 *
 * A thread eliminates a chunk of rows with row exchanges and keeps the pivot rows in
 * their place, the block joins the chunks two by two, and the threads substitute back,
 * all in shared memory (pivoted_rows.cuh, pivoted_tree.cuh). Several blocks on a
 * multiprocessor are in different phases of their tiles. Longer systems take the blocks
 * of a cluster, and still longer ones three passes: tiles to groups, groups to x at the
 * ends of tiles, tiles to x; 9 words an unknown instead of 5. Every unknown is eliminated
 * by the largest of all rows that contain it, rows scaled by powers of two: the errors
 * are those of Gaussian elimination with scaled partial pivoting.
 */
#ifndef PS_CUDA_PIVOTED_CUH
#define PS_CUDA_PIVOTED_CUH

#include <climits>

#include "launch.cuh"
#include "pivoted_copies.cuh"
#include "pivoted_search.cuh"

/* Most rows of a chunk (odd, at most 33, as a row's bit is one of 32), most threads of a
 * block, and chunks, a power of two, of a tile that is a part of a system. */
enum { PIVOT_LENGTH = 33, PIVOT_THREADS = 256, PIVOT_PART = 64 };

/* Groups of one tile in the passes over groups; a power of two. */
enum { PIVOT_GROUPS = 128 };

/* Whether a tile has a system to solve. No load waits for another. */
template <typename Number>
__device__ __forceinline__ bool
pivot_any_marked(const PivotPlan<Number> &a, const PivotSpan &span)
{
    const uint8_t *const marks = a.marks + span.system;
    const bool in_fours = (reinterpret_cast<uintptr_t>(marks) | span.systems) % 4 == 0;
    unsigned any = 0;

    if (!a.exchanged && in_fours) {
#pragma unroll 4
        for (int i = 0; i < span.systems; i += 4) {
            any |= *reinterpret_cast<const unsigned *>(marks + i);
        }
    }
    else {
#pragma unroll 4
        for (int i = 0; i < span.systems; i++) {
            any |= a.marks[pivot_number(a, span.system + i)];
        }
    }
    return any != 0;
}

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
        const bool marked =
            mine < a.tiles && pivot_any_marked(a, pivot_span<whole>(a, mine));

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
            const int state = pass == PIVOT_FINISH ? a.state[system] : found;
            a.s.info[pivot_number(a, system)] =
                state == PIVOT_FINE
                    ? 0
                    : first_bad_pivot(a.s, at.j, at.k, state == PIVOT_BAD ? a.s.rows : 0);
        }
    }
}

/* Let the last row of a system, at `last` of its last chunk, see no row behind it; make
 * two rows of one, and of a periodic system of one or two rows one that is not. */
template <typename Number>
__device__ __forceinline__ void
pivot_close_rows(const PivotPlan<Number> &a, const PivotChunk<Number> &c, int last)
{
    if (a.s.periodic && a.s.rows == 2) {
        c.upper[0] = c.upper[0] + c.lower[0];
        c.lower[1] = c.lower[1] + c.upper[1];
    }
    if (a.s.rows == 1) {
        if (a.s.periodic) {
            c.diag[0] = c.diag[0] + c.lower[0] + c.upper[0];
        }
        c.upper[0] = c.lower[1] = c.rhs[1] = Number(0);
        c.diag[1] = Number(1);
    }
    c.upper[last] = Number(0);
}

/* The chunk of a thread. */
template <typename Number> struct PivotPart {
    PivotChunk<Number> rows;
    int count;
    unsigned fresh; /* the bits of its pivot rows */
};

/* Eliminate a chunk of a tile and make it a group. */
template <typename Number>
__device__ __forceinline__ PivotPart<Number>
pivot_leaf(const PivotPlan<Number> &a, const PivotSpan &span,
           const PivotShared<Number> &m, const PivotTree<Number> &t, int system,
           int chunk, PivotGroup<Number> &group)
{
    const int begin = pivot_begin(a, span.chunk + chunk);
    const int count = pivot_begin(a, span.chunk + chunk + 1) - begin;
    const PivotShift shift =
        a.copies == PIVOT_BULK ? m.shift[a.flat ? 0 : system] : PivotShift{};
    Number *const place = m.rows + system * a.pitch + begin - span.begin;
    const PivotChunk<Number> c = {place + PIVOT_LOWER * a.plane + shift.of[PIVOT_LOWER],
                                  place + PIVOT_DIAG * a.plane + shift.of[PIVOT_DIAG],
                                  place + PIVOT_UPPER * a.plane + shift.of[PIVOT_UPPER],
                                  place + PIVOT_RHS * a.plane + shift.of[PIVOT_RHS]};
    const bool open = !a.s.periodic || a.s.rows <= 2;
    unsigned fresh;

    if (open && begin + count == a.rows) {
        pivot_close_rows(a, c, count - 1);
    }
    if (open && begin == 0) {
        c.lower[0] = Number(0);
    }
    if (eliminate_chunk(c, count, fresh, group)) {
        t.tell(system, PIVOT_BAD);
    }
    return {c, count, fresh};
}

/* Where the blocks of a cluster meet. */
template <typename Number>
__device__ __forceinline__ PivotMeeting<Number>
pivot_meeting(const PivotPlan<Number> &a, const PivotShared<Number> &m)
{
    const int ranks = a.segments;

    return {{m.tree + pivot_leaf_place<Number>(a.tile_chunks), ranks, ranks, m.state},
            m.others,
            static_cast<int>(blockIdx.x) % ranks,
            0};
}

/* Make shared memory ready; all of the block, and of its cluster, take part. */
template <typename Number>
__device__ __forceinline__ void
pivot_prepare(const PivotPlan<Number> &a, PivotPass pass, const PivotShared<Number> &m)
{
    if (threadIdx.x == 0) {
        /* Two warps' bulk copies, and their others. */
        m.arrivals->init(a.copies == PIVOT_PLAIN ? 2 : 128);
        m.others[0].init(1);
        m.others[1].init(1);
    }
    if (threadIdx.x < 4) {
        m.in[threadIdx.x] = a.in[threadIdx.x];
    }
    for (int i = threadIdx.x; i < a.tile_systems; i += blockDim.x) {
        m.state[i] = PIVOT_FINE;
    }
    __syncthreads(); /* the counters are there */
    if (pass == PIVOT_MEET) {
        cluster_sync(); /* those of the others too */
    }
}

/* Grid: any number of blocks, in clusters for PIVOT_MEET, a tile a block. Block: a thread
 * a chunk of a tile, in warps that have systems of their own or all the same. The rows of
 * a tile are fetched as soon as x of the one before is in the place of its right side:
 * blocks beside this one work meanwhile. */
template <typename Number, bool whole>
__global__ void
__launch_bounds__(PIVOT_THREADS)
    pivoted_rows_kernel(const __grid_constant__ PivotPlan<Number> a)
{
    extern __shared__ __align__(128) unsigned char memory[];
    const PivotShared<Number> m(a, memory);
    const PivotPass pass = whole ? PIVOT_SOLVE : a.pass;
    const bool alone = a.warp_systems == 0; /* one system, of all warps */
    const int slot = alone ? 0 : threadIdx.x % 32 / a.tile_chunks;
    const int system = alone ? 0 : threadIdx.x / 32 * a.warp_systems + slot;
    const int chunk = alone ? threadIdx.x : threadIdx.x % 32 - slot * a.tile_chunks;
    PivotTree<Number> t = {m.tree, a.tile_chunks, 0, m.state};
    PivotMeeting<Number> meeting = pivot_meeting(a, m);
    int64_t tile = static_cast<int64_t>(blockIdx.x) - gridDim.x;
    PivotSpan span = {};
    PivotPart<Number> part = {};
    PivotGroup<Number> group = {};

    pivot_prepare(a, pass, m);
    if (a.marks != nullptr) {
        wait_for_last_kernel();
    }
    for (int round = -1;; round++) {
        tile = pivot_next_tile<whole>(a, tile + gridDim.x);

        if (round >= 0) {
            const bool active = system < span.systems && chunk < span.chunks;
            const int64_t base = span.system * a.segments;

            if (a.in_bulk()) {
                m.arrivals->wait(round & 1);
            }
            else {
                copies_done();
                __syncthreads(); /* rows have come */
            }
            if (active) {
                part = pivot_leaf(a, span, m, t, system, chunk, group);
            }
            t.leaves = span.chunks;
            meeting.round = round;
            pivot_tree<Number>(t, system, chunk, active, group,
                               {pass, span.segment, a.segments,
                                a.groups + base * PIVOT_GROUP_WORDS, a.ends + 2 * base},
                               meeting);
            if (pass != PIVOT_REDUCE && active) {
                substitute_chunk(part.rows, pivot_path(t, system, chunk), part.count,
                                 part.fresh);
            }
            bulk_fence();
            __syncthreads(); /* x is written, the tree is free */
            if (threadIdx.x < 32) {
                pivot_report(a, pass, span, m.state);
            }
        }
        const PivotSpan next = tile < a.tiles ? pivot_span<whole>(a, tile) : PivotSpan{};
        pivot_replace<whole>(a, span, next, round >= 0 && pass != PIVOT_REDUCE, m);
        if (next.systems == 0) {
            break;
        }
        span = next;
    }
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
                                 min(static_cast<int>(PIVOT_GROUPS), a.count - first),
                                 &state};
    const int64_t at = system * a.count + first + leaf;

    if (a.marks != nullptr && a.marks[system] == 0) {
        return;
    }
    if (leaf == 0) {
        state = PIVOT_FINE;
    }
    PivotGroup<Number> group = {};
    if (leaf < t.leaves) {
        group = *reinterpret_cast<const PivotGroup<Number> *>(a.groups +
                                                              at * PIVOT_GROUP_WORDS);
    }
    __syncthreads(); /* the state is written */
    const int64_t above = system * a.tiles;
    pivot_tree<Number>(t, 0, leaf, leaf < t.leaves, group,
                       {a.pass, tile, a.tiles, a.upper_groups + above * PIVOT_GROUP_WORDS,
                        a.upper_ends + 2 * above},
                       {});
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
