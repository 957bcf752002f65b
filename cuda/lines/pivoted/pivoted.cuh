/* pivoted.cuh - the pivoted solver: each word of memory is read or written once.
 *
 * Each thread eliminates a chunk of rows with row exchanges, and pivot rows replace the
 * rows in shared memory. The block joins the chunks by a binary tree, and the threads
 * substitute (pivoted_rows.cuh, pivoted_tree.cuh). The blocks of a multiprocessor are in
 * different phases of their tiles, so that copies and computations overlap. Longer systems
 * are distributed over the blocks of a cluster. Still longer ones are solved in three
 * passes: tiles are reduced to groups, x at the ends of tiles is computed from the groups,
 * and x of the tiles from x at their ends; 9 words per unknown instead of 5. Rows are
 * scaled by powers of two, and the pivot row of an unknown is that with the largest entry
 * of all rows that contain it: the errors are those of Gaussian elimination with scaled
 * partial pivoting.
 *
 * Stability. The rounding error of a step is at most eps times the entries of the rows of
 * this step, and the multipliers are at most 1. The backward error is therefore a small
 * multiple of eps as long as the entries are a small multiple of those of the scaled
 * matrix. The inner columns of a chunk are a band matrix, whose entries grow to at most 7
 * times the largest one (Higham 2002, Theorem 9.11). The columns `left` and `first` of the
 * carried rows can double in every step. They do so if the rows of a chunk are alike and
 * not diagonally dominant: the chunk is then nearly singular although the system is well
 * conditioned (Wright 1993, for the same growth in the multiple shooting matrix). Each
 * thread measures these entries. A chunk in which they exceed 8 times those of the matrix
 * is eliminated a second time, from the middle row outwards (pivoted_folded.cuh), where no column
 * takes part in more than four steps.
 *
 * The entries of groups can grow in every joint; they are measured as well. Two more
 * sources of error remain. (1) Rows of different sizes: an error that is small relative to
 * a scaled row can be large relative to a row of the matrix. (2) Solutions that vary over
 * many orders of magnitude: a joint contains unknowns of distant rows, and an error that
 * is small relative to the large unknowns is large relative to the rows of the small ones.
 * Elimination in order, whose steps contain neighbouring rows only, has residuals of a few
 * eps for both.
 *
 * The backward error is thus small relative to the norms of the scaled rows. Relative to
 * the rows of the matrix, one of about 40000 systems whose rows differ by 2^4 to 2^8 has
 * up to 100 eps.
 *
 * A system is doubtful if an entry of a group exceeds 8, if the sizes of its rows differ
 * by 2^8 or more, if x at the ends of chunks or tiles varies by 2^20 or more, if a pivot
 * is lost, or if a number at its ends is not finite. Its residual is computed before x is
 * stored (pivoted_residual.cuh); with three passes this is a fourth one between the last
 * two. If the residual is too large, x is not stored, and the system is solved a second time, in
 * order (pivoted_ordered.cuh) by a lane of the same kernel, after the tiles of the block.
 *
 * Real systems side by side, if there are many, are not cut into chunks (pivoted_halves.cuh), nor
 * are many short ones whose rows are contiguous (pivoted_row_halves.cuh).
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_CUH

#include <climits>

#include "lines/pivoted/pivoted_copies.cuh"
#include "lines/pivoted/pivoted_folded.cuh"
#include "lines/pivoted/pivoted_ordered.cuh"
#include "lines/pivoted/pivoted_refined.cuh"
#include "lines/pivoted/pivoted_residual.cuh"
#include "lines/pivoted/pivoted_row_halves.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::pivoted {

/* Largest number of rows of a chunk (odd, at most 33, because the bits of its rows are in
 * one word), largest number of threads of a block, and the number of chunks, a power of
 * two, of a tile that holds a part of a system. */
enum { PIVOT_LENGTH = 33, PIVOT_THREADS = 256, PIVOT_PART = 64 };

/* Number of groups of a tile in the passes over groups; a power of two. */
enum { PIVOT_GROUPS = 128 };

/* Whether a tile has a marked system that is doubtful. */
template <typename Number>
__device__ __forceinline__ bool
pivot_any_doubtful(const PivotPlan<Number> &a, const PivotSpan &span)
{
    bool any = false;

    for (int i = 0; i < span.systems; i++) {
        any = any || (a.state[span.system + i] != PIVOT_FINE &&
                      pivot_marked(a, span.system + i));
    }
    return any;
}

/* Whether a tile has a system to solve. The loads are independent of each other. */
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

/* The first tile with a system to solve among `tile` and those that follow it in steps of
 * the grid; all threads of the block call this function. */
template <bool whole, typename Number>
__device__ __forceinline__ int64_t
pivot_next_tile(const PivotPlan<Number> &a, int64_t tile)
{
    __shared__ int found;

    const bool checks = !whole && a.pass == PIVOT_CHECK;

    if (a.marks == nullptr && !checks) {
        return tile;
    }
    const int64_t grid = gridDim.x;
    for (; tile < a.tiles; tile += grid * blockDim.x) {
        const int64_t mine = tile + threadIdx.x * grid;
        bool marked = mine < a.tiles;

        if (marked) {
            const PivotSpan span = pivot_span<whole>(a, mine);
            marked = checks ? pivot_any_doubtful(a, span) : pivot_any_marked(a, span);
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

/* Store the states of the systems of a tile: in PIVOT_REDUCE in `state`, for the next
 * passes, otherwise in info and in `again`; by one warp. */
template <typename Number>
__device__ __forceinline__ void
pivot_report(const PivotPlan<Number> &a, PivotPass pass, const PivotSpan &span,
             const int *states)
{
    for (int i = threadIdx.x % 32; i < span.systems; i += 32) {
        const int64_t system = span.system + i;
        const bool doubtful = states[i] != PIVOT_FINE;

        if (pass == PIVOT_REDUCE) {
            if (doubtful) {
                a.state[system] = PIVOT_DOUBTFUL;
            }
        }
        else if (span.segment == 0 && pivot_marked(a, system)) {
            const int64_t number = pivot_number(a, system);

            if (a.s.info != nullptr && !doubtful) {
                a.s.info[number] = 0;
            }
            if (doubtful || a.marks == nullptr) {
                a.again[number] = doubtful ? PS_SOLVED_AGAIN : 1;
            }
        }
    }
}

/* The system at position `nth` of the tiles of this block, or -1 if it need not be solved
 * a second time. */
template <bool whole, typename Number>
__device__ __forceinline__ int64_t
pivot_refused(const PivotPlan<Number> &a, int64_t nth)
{
    const int64_t tile = quotient(nth, a.tile_systems);
    const int own = static_cast<int>(nth - tile * a.tile_systems);
    const PivotSpan span = pivot_span<whole>(a, blockIdx.x + tile * gridDim.x);

    if (own < span.systems && span.segment == 0 &&
        a.again[pivot_number(a, span.system + own)] == PS_SOLVED_AGAIN) {
        return span.system + own;
    }
    return -1;
}

/* Refine the systems of the tiles of this block whose residuals are too large, if they are
 * few. Those whose residuals are then small are written to `refined`, which has
 * REFINED_SYSTEMS entries; the others are -1. All threads of the block call this function. */
template <typename Number>
__device__ __noinline__ void
pivot_refine_few(const PivotPlan<Number> &a, unsigned char *memory, int64_t places,
                 int64_t *refined)
{
    __shared__ int64_t few[REFINED_SYSTEMS];
    __shared__ int found;

    if (threadIdx.x == 0) {
        found = 0;
    }
    __syncthreads(); /* `found` is written, and so is `again` */
    for (int64_t i = threadIdx.x; i < places; i += blockDim.x) {
        const int64_t system = pivot_refused<true>(a, i);
        const int place = system < 0 ? INT_MAX : atomicAdd(&found, 1);

        if (place < REFINED_SYSTEMS) {
            few[place] = system;
        }
    }
    __syncthreads(); /* the systems are found */
    for (int i = 0; found <= REFINED_SYSTEMS && i < found; i++) {
        if (refine_system(a, memory, few[i]) && threadIdx.x == 0) {
            refined[i] = few[i];
        }
    }
}

/* Solve the systems of the tiles of this block whose residuals are too large a second time:
 * by refinement, otherwise in order with one lane per system. All threads of the block call
 * this function, which uses its shared memory. */
template <bool whole, typename Number>
__device__ __noinline__ void
pivot_solve_again(const PivotPlan<Number> &a)
{
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ int64_t refined[REFINED_SYSTEMS];
    __shared__ int taken;
    const int64_t tiles = (a.tiles - blockIdx.x + gridDim.x - 1) / gridDim.x;
    const int64_t places = tiles * a.tile_systems;
    const int words = a.s.periodic ? static_cast<int>(ORDERED_FOLDED_WORDS)
                                   : static_cast<int>(ORDERED_WORDS);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int pitch = ordered_pitch(a.ordered_length, words);
    const int most = a.ordered_systems; /* of a warp */
    Number *const rows = reinterpret_cast<Number *>(memory);
    Number *const kept = rows + a.ordered_warps * most * pitch;
    unsigned found = 0; /* lanes whose system is to be solved yet */
    int64_t system = -1;
    bool more = true;

    if (threadIdx.x < REFINED_SYSTEMS) {
        refined[threadIdx.x] = -1;
    }
    if (threadIdx.x == 0) {
        taken = 0;
    }
    __syncthreads(); /* `taken` is written, and so is `again` */
    if (whole && a.spare != nullptr) {
        pivot_refine_few(a, memory, places, refined);
        __syncthreads(); /* `refined` is written */
    }
    if (warp >= a.ordered_warps) {
        return;
    }
    while (more) {
        int64_t own = -1; /* the system of this lane */
        int count = 0;

        while (more && count < most) {
            if (found == 0) {
                const int first =
                    __shfl_sync(all_lanes, lane == 0 ? atomicAdd(&taken, 32) : 0, 0);

                more = first < places;
                system =
                    first + lane < places ? pivot_refused<whole>(a, first + lane) : -1;
                for (int k = 0; k < REFINED_SYSTEMS; k++) {
                    system = system == refined[k] ? -1 : system;
                }
                found = __ballot_sync(all_lanes, system >= 0);
                continue;
            }
            const int64_t next = __shfl_sync(all_lanes, system, __ffs(found) - 1);

            own = lane == count ? next : own;
            found &= found - 1;
            count++;
        }
        if (count == 0) {
            break;
        }
        const int64_t mine = own < 0 ? 0 : own;
        const PivotIndex at = pivot_index(a, mine);
        const OrderedPlace<Number> place = {
            rows + warp * most * pitch,
            a.kept != nullptr ? a.kept + mine * a.ordered_kept
                              : kept + (warp * most + lane) * a.ordered_kept,
            pitch, a.ordered_length};
        const int info = solve_in_order<Number>({a.s, at.j, at.k, count, lane}, place);

        if (a.s.info != nullptr && own >= 0) {
            a.s.info[pivot_number(a, own)] = info;
        }
    }
}

/* Complete the last chunk of a system, whose last row is `last`: the entry after the last row
 * becomes 0, a row of the identity is added to a single row, and a periodic system of one or
 * two rows becomes one that is not periodic. */
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
        c.diag[1] = c.diag[0]; /* of the same size as the other row */
    }
    c.upper[last] = Number(0);
}

/* The chunk of a thread. */
template <typename Number> struct PivotPart {
    PivotChunk<Number> rows;
    int count;
    unsigned fresh; /* the bits of its pivot rows */
    bool folded;    /* eliminated from the middle row outwards */
};

/* The result of the second elimination of a chunk. */
template <typename Number> struct PivotFolded {
    PivotGroup<Number> group;
    unsigned fresh;
    bool lost; /* a pivot */
};

/* Eliminate a chunk of a tile a second time, from the middle row outwards, with the rows from global
 * memory; `begin` is the first one. It is rarely called and therefore not inlined; arguments
 * by reference would have to be in memory. */
template <typename Number>
__device__ __noinline__ PivotFolded<Number>
pivot_fold(const PivotPlan<Number> &a, int64_t system, PivotChunk<Number> c, int begin,
           int count)
{
    const PivotIndex at = pivot_index(a, system);
    PivotScales scales;
    PivotFolded<Number> folded;

    folded.lost = eliminate_folded(
        c, count,
        [&](int k) { return balanced(pivot_row_in_memory(a, at, begin + k), scales); },
        folded.fresh, folded.group);
    return folded;
}

/* Eliminate a chunk of a tile, and compute its group. */
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
    bool folded = false;

    if (open && begin + count == a.rows) {
        pivot_close_rows(a, c, count - 1);
    }
    if (open && begin == 0) {
        c.lower[0] = Number(0);
    }
    if (eliminate_chunk(c, count, fresh, group) && count > 2) {
        const PivotFolded<Number> other =
            pivot_fold(a, span.system + system, c, begin, count);

        folded = true;
        if (other.lost) {
            t.doubt(system);
        }
        group.upper = other.group.upper;
        group.lower = other.group.lower;
        fresh = other.fresh;
    }
    return {c, count, fresh, folded};
}

/* The exchange of the blocks of a cluster. */
template <typename Number>
__device__ __forceinline__ PivotTop<Number>
pivot_exchange(const PivotPlan<Number> &a, const PivotShared<Number> &m)
{
    const int ranks = a.segments;

    return {{m.tree + pivot_leaf_place<Number>(a.tile_systems * a.tile_chunks), ranks,
             ranks, m.state},
            {m.others, 0},
            static_cast<int>(blockIdx.x) % ranks,
            pivot_leaf_place<Number>(a.tile_systems * ranks),
            0};
}

/* Initialize shared memory; all threads of the block, or of its cluster, call this function. */
template <typename Number>
__device__ __forceinline__ void
pivot_prepare(const PivotPlan<Number> &a, PivotPass pass, const PivotShared<Number> &m)
{
    if (threadIdx.x == 0) {
        /* Two warps' bulk copies, and their others. */
        m.arrivals->init(a.copies == PIVOT_PLAIN ? 2 : 128);
        ClusterRounds{m.others, 0}.init();
    }
    if (threadIdx.x < 4) {
        m.in[threadIdx.x] = a.in[threadIdx.x];
    }
    for (int i = threadIdx.x; i < a.tile_systems; i += blockDim.x) {
        m.state[i] = PIVOT_FINE;
    }
    __syncthreads(); /* the counters are there */
    if (pass == PIVOT_EXCHANGE) {
        cluster_sync(); /* those of the others too */
    }
}

/* What the tiles of a launch hold, and how they are solved: parts of systems in chunks, whole
 * systems in chunks, whole systems in two halves, and halves whose carried rows have rests. */
enum PivotForm { PIVOT_PARTS, PIVOT_WHOLE, PIVOT_HALVES, PIVOT_HALVES_RESTS };

/* Grid: any number of blocks, in clusters for PIVOT_EXCHANGE; a block processes one tile at a
 * time. Block: one thread for each chunk of a tile; each warp has systems of its own, or all
 * warps have one system. Of halves, one warp. The copies of the next tile start when x has
 * replaced the right-hand sides of a tile; other blocks of the multiprocessor compute
 * meanwhile. */
template <typename Number, PivotForm form>
__global__ void
__launch_bounds__(PIVOT_THREADS, sizeof(Number) == 16 ? 1 : 2)
    pivoted_rows_kernel(const __grid_constant__ PivotPlan<Number> a)
{
    extern __shared__ __align__(128) unsigned char memory[];
    constexpr bool whole = form != PIVOT_PARTS;
    const PivotShared<Number> m(a, memory);
    const PivotPass pass = whole ? PIVOT_SOLVE : a.pass;
    const bool alone = a.warp_systems == 0; /* one system, of all warps */
    const int slot = alone ? 0 : threadIdx.x % 32 / a.tile_chunks;
    const int system = alone ? 0 : threadIdx.x / 32 * a.warp_systems + slot;
    const int chunk = alone ? threadIdx.x : threadIdx.x % 32 - slot * a.tile_chunks;
    PivotTree<Number> t = {m.tree, a.tile_chunks, 0, m.state};
    PivotTop<Number> exchange = pivot_exchange(a, m);
    int64_t tile = static_cast<int64_t>(blockIdx.x) - gridDim.x;
    bool again = false;    /* whether a system of this block is to be solved twice */
    bool doubtful = false; /* this tile has one */
    PivotSpan span = {};
    PivotPart<Number> part = {};
    PivotGroup<Number> group = {};

    pivot_prepare(a, pass, m);
    if (a.marks != nullptr || pass >= PIVOT_FINISH) {
        wait_for_last_kernel();
    }
    for (int round = -1;; round++) {
        tile = pivot_next_tile<whole>(a, tile + gridDim.x);

        if (round >= 0) {
            const bool active = system < span.systems && chunk < span.chunks;
            const int64_t base = span.system * a.segments;
            bool is_wide = false; /* the range of x */

            if (a.in_bulk()) {
                m.arrivals->wait(round & 1);
            }
            else {
                copies_done();
                __syncthreads(); /* rows have come */
            }
            if constexpr (form >= PIVOT_HALVES) {
                constexpr bool has_rests = form == PIVOT_HALVES_RESTS;
                const bool refused = solve_row_halves<has_rests>(a, span, m);

                bulk_fence();
                doubtful = __syncthreads_or(refused) != 0; /* x is written */
            }
            else {
                if (active) {
                    part = pivot_leaf(a, span, m, t, system, chunk, group);
                    if (pass >= PIVOT_FINISH &&
                        a.state[span.system + system] >=
                            (pass == PIVOT_FINISH ? PIVOT_MISSED : PIVOT_DOUBTFUL)) {
                        t.doubt(system);
                    }
                }
                t.leaves = span.chunks;
                exchange.rounds.round = round;
                exchange.systems = span.systems;
                pivot_tree<Number>(t, system, chunk, active, group,
                                   {pass, span.segment, a.segments,
                                    a.groups + base * PIVOT_GROUP_WORDS,
                                    a.ends + 2 * base},
                                   exchange);
                if (pass != PIVOT_REDUCE && active) {
                    const PivotAround<Number> x =
                        pivot_path(t, system, chunk, whole ? &is_wide : nullptr);

                    if (part.folded) {
                        substitute_folded(part.rows, x, part.count, part.fresh);
                    }
                    else {
                        substitute_chunk(part.rows, x, part.count, part.fresh);
                    }
                }
                bulk_fence();
                /* x is written, the tree is free */
                doubtful = __syncthreads_or(
                               active && (is_wide || m.state[system] != PIVOT_FINE)) != 0;
                if (doubtful && pass != PIVOT_REDUCE) {
                    if (is_wide) {
                        t.doubt(system);
                    }
                    __syncthreads(); /* states are written */
                    doubtful = pivot_judge<whole>(a, memory, span.system, span.segment);
                }
            }
            again = again || doubtful;
            if (threadIdx.x < 32 && pass != PIVOT_CHECK) {
                pivot_report(a, pass, span, m.state);
            }
        }
        const PivotSpan next = tile < a.tiles ? pivot_span<whole>(a, tile) : PivotSpan{};
        const bool stores = pass != PIVOT_REDUCE && pass != PIVOT_CHECK;
        pivot_replace<whole>(a, span, next, round >= 0 && stores, doubtful, m);
        if (doubtful) {
            __syncthreads(); /* states are read */
            for (int i = threadIdx.x; i < a.tile_systems; i += blockDim.x) {
                m.state[i] = PIVOT_FINE;
            }
            __syncthreads();
            doubtful = false;
        }
        if (next.systems == 0) {
            break;
        }
        span = next;
    }
    if (again && pass != PIVOT_REDUCE) {
        pivot_solve_again<whole>(a);
    }
}

/* A level of groups: `count` groups of each system are the leaves of tiles with
 * PIVOT_GROUPS leaves. */
template <typename Number> struct PivotLevel {
    Number *groups, *ends;             /* the leaves */
    Number *upper_groups, *upper_ends; /* one a tile, unless it is the whole system */
    int32_t count, tiles;              /* of a system */
    PivotPass pass;
    int32_t *state;       /* PivotState of each system */
    const uint8_t *marks; /* null, or those of the systems in this order */
};

/* Grid: systems * tiles blocks, fewer than 2^31, because each group has many rows. Block:
 * PIVOT_GROUPS threads. */
template <typename Number> struct PivotedGroups {
    PivotLevel<Number> a;

    __device__ __forceinline__ void operator()() const
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

        wait_for_last_kernel();
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
                           {a.pass, tile, a.tiles,
                            a.upper_groups + above * PIVOT_GROUP_WORDS,
                            a.upper_ends + 2 * above},
                           {});
        if (a.pass != PIVOT_REDUCE && leaf < t.leaves) {
            bool is_wide;
            const PivotAround<Number> x = pivot_path(t, 0, leaf, &is_wide);

            if (is_wide) {
                t.doubt(0);
            }
            a.ends[2 * at] = x.first;
            a.ends[2 * at + 1] = x.last;
        }
        __syncthreads(); /* the state is written */
        if (leaf == 0 && state != PIVOT_FINE) {
            a.state[system] = PIVOT_DOUBTFUL;
        }
    }
};

} // namespace pysolvers::pivoted

#endif
