/* pivoted_tile.cuh - tiles of rows, and where they lie in shared memory.
 *
 * A tile is some chunks of some neighbouring systems. In shared memory, as in memory,
 * rows lie side by side, displaced so that 16-byte units stay units. Chunks have an odd
 * length, and systems begin where the last one's chunks end, counted in banks: threads
 * that walk their chunks in step do not meet in a bank.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_TILE_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_TILE_CUH

#include "device/operand.cuh"
#include "lines/pivoted/pivoted_tree.cuh"

namespace pysolvers::pivoted {

using device::quotient;

/* Elements of a 16-byte unit. */
template <typename Number> constexpr int pivot_unit = 16 / sizeof(Number);

/* The planes of shared memory; x takes the place of the right side. */
enum PivotOperand { PIVOT_LOWER, PIVOT_DIAG, PIVOT_UPPER, PIVOT_RHS };

/* How tiles travel: element by element, by threads that run along whichever of rows and
 * systems lies closer in memory; in units by all threads, where short systems follow each
 * other; in bulk; in bulk and in nothing but units. */
enum PivotCopies { PIVOT_ELEMENTS, PIVOT_UNITS, PIVOT_BULK, PIVOT_PLAIN };

/* A launch over tiles of rows. A system of n rows (2 if n is 1: a row of the identity is
 * added) has `chunks` chunks of `length` rows, the last of at least 2 and at most one
 * more. */
template <typename Number> struct PivotPlan {
    Systems<Number> s;    /* batch axes exchanged so that inner is the closer one */
    const uint8_t *marks; /* null, or those of the systems to solve */
    uint8_t *again; /* PS_SOLVED_AGAIN for each system solved a second time; `marks`, or
                       1 for the others */
    PivotPass pass;
    int32_t rows, chunks, length;
    int32_t segments; /* tiles along a system */
    int32_t tile_chunks, tile_systems;
    int32_t warp_systems; /* of a warp; 0 if a system needs several */
    bool along_rows, exchanged;
    PivotCopies copies;
    bool bulk_x;         /* x in bulk too */
    Input<Number> in[4]; /* as in s */
    /* Elements in shared memory: from one system to the next, of an operand, of the tree.
     * Flat: the systems of a tile lie side by side in memory too. */
    int32_t pitch, plane, tree_words;
    bool flat;
    /* Elements of a tile along memory, and a thread's step from one to the next: so many
     * along memory, so many across. */
    int32_t walk_size, walk_fast, walk_slow;
    int64_t systems, tiles;
    int32_t *state; /* of PIVOT_REDUCE and PIVOT_FINISH: PivotState of each system */
    Number *groups; /* one a tile, of PIVOT_GROUP_WORDS words */
    Number *ends;   /* and x of its first and its last row */
    /* Of a solve in order: warps of a block that take part, systems of a warp at a time,
     * rows of a segment, words that are kept of all segments of a system, and where these
     * lie, one system behind the other; null: in shared memory, behind the rows. */
    int32_t ordered_warps, ordered_systems, ordered_length, ordered_kept;
    Number *kept;
    /* Workspace of the refinement, REFINED_VECTORS vectors for each of so many blocks;
     * null: systems are not refined. */
    Number *spare;
    int64_t spare_blocks;

    __device__ __forceinline__ bool in_bulk() const
    {
        return copies >= PIVOT_BULK;
    }
};

/* Where a tile lies. */
struct PivotSpan {
    int64_t system; /* the first of `systems` */
    int32_t systems, segment, chunk, chunks;
    int32_t begin, rows; /* first row, number of rows */
};

/* First row of a chunk, and the end of the last. */
template <typename Number>
__device__ __forceinline__ int
pivot_begin(const PivotPlan<Number> &a, int chunk)
{
    return chunk < a.chunks ? chunk * a.length : a.rows;
}

/* Whole: a tile holds whole systems. */
template <bool whole, typename Number>
__device__ __forceinline__ PivotSpan
pivot_span(const PivotPlan<Number> &a, int64_t tile)
{
    PivotSpan span = {tile, 0, 0, 0, a.chunks, 0, a.rows};

    if (!whole) {
        span.system = quotient(tile, a.segments);
        span.segment = static_cast<int>(tile - span.system * a.segments);
        span.chunk = span.segment * a.tile_chunks;
        span.chunks = min(a.tile_chunks, a.chunks - span.chunk);
        span.begin = pivot_begin(a, span.chunk);
        span.rows = pivot_begin(a, span.chunk + span.chunks) - span.begin;
    }
    span.system *= a.tile_systems;
    span.systems = static_cast<int>(
        min(a.systems - span.system, static_cast<int64_t>(a.tile_systems)));
    return span;
}

/* The batch axes of the contract. */
struct PivotIndex {
    int64_t j, k;
};

template <typename Number>
__device__ __forceinline__ PivotIndex
pivot_index(const PivotPlan<Number> &a, int64_t system)
{
    int64_t j = 0;

    if (a.s.outer > 1) {
        j = a.systems <= UINT32_MAX
                ? static_cast<uint32_t>(system) / static_cast<uint32_t>(a.s.inner)
                : system / a.s.inner;
    }
    return {j, system - j * a.s.inner};
}

/* Entry of info and of marks. */
template <typename Number>
__device__ __forceinline__ int64_t
pivot_number(const PivotPlan<Number> &a, int64_t system)
{
    if (!a.exchanged) {
        return system;
    }
    const PivotIndex at = pivot_index(a, system);
    return at.k * a.s.outer + at.j;
}

template <typename Number>
__device__ __forceinline__ bool
pivot_marked(const PivotPlan<Number> &a, int64_t system)
{
    return a.marks == nullptr || a.marks[pivot_number(a, system)] != 0;
}

/* Row i of a system as it is in memory; a system that is not periodic has no entries
 * beyond its ends. */
template <typename Number>
__device__ __forceinline__ PivotRow<Number>
pivot_row_in_memory(const PivotPlan<Number> &a, const PivotIndex &at, int64_t i)
{
    Number entry[4];

#pragma unroll
    for (int w = 0; w < 4; w++) {
        const bool inner = a.s.periodic || (w == PIVOT_LOWER   ? i > 0
                                            : w == PIVOT_UPPER ? i < a.s.rows - 1
                                                               : true);
        entry[w] = inner ? a.in[w].system(at.j, at.k)[i * a.in[w].row] : Number(0);
    }
    return {entry[0], entry[1], entry[2], entry[3]};
}

/* How far the first row of a system of a tile lies behind a 16-byte unit, in memory and
 * so in its plane. */
struct alignas(16) PivotShift {
    int32_t of[4];
};

template <typename Number>
__device__ __forceinline__ int
pivot_shift(const Number *row)
{
    return static_cast<int>(reinterpret_cast<uintptr_t>(row) / sizeof(Number) %
                            pivot_unit<Number>);
}

/* The shared memory of a block. */
template <typename Number> struct PivotShared {
    Number *rows; /* lower, diag, upper, rhs or x: 4 planes */
    Number *tree;
    PivotShift *shift; /* of each system, or of the first if they are flat */
    Input<Number> *in; /* those of the plan */
    Arrivals *arrivals;
    Arrivals *others; /* what the blocks of a cluster tell, in two tiles in turn */
    int *state;       /* PivotState of each system */

    /* Of a system, beside those of the plan. */
    static constexpr size_t system_bytes = sizeof(PivotShift) + sizeof(int);
    static constexpr size_t block_bytes =
        4 * sizeof(Input<Number>) + 4 * sizeof(Arrivals);

    __device__ __forceinline__ PivotShared(const PivotPlan<Number> &a,
                                           unsigned char *memory)
        : rows(reinterpret_cast<Number *>(memory)), tree(rows + 4 * a.plane),
          shift(reinterpret_cast<PivotShift *>(tree + a.tree_words)),
          in(reinterpret_cast<Input<Number> *>(shift + a.tile_systems)),
          arrivals(reinterpret_cast<Arrivals *>(in + 4)), others(arrivals + 1),
          state(reinterpret_cast<int *>(arrivals + 4))
    {
    }
};

} // namespace pysolvers::pivoted

#endif
