/* pivoted_tile.cuh - tiles of rows, and their layout in shared memory.
 *
 * A tile consists of some chunks of some neighbouring systems. The rows of a system are
 * contiguous in shared memory, with the same offset to units of 16 bytes as in global
 * memory. The length of a chunk is odd, and the first bank of a system follows the last
 * one of the system before it, so that threads at the same row of their chunks use
 * different banks.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_TILE_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_TILE_CUH

#include "device/operand.cuh"
#include "lines/pivoted/pivoted_tree.cuh"

namespace pysolvers::pivoted {

using device::quotient;

/* Elements of a 16-byte unit. */
template <typename Number> constexpr int pivot_unit = 16 / sizeof(Number);

/* The planes of shared memory; x replaces the right-hand side. */
enum PivotOperand { PIVOT_LOWER, PIVOT_DIAG, PIVOT_UPPER, PIVOT_RHS };

/* How tiles are copied: element by element, neighbouring threads along the axis with the
 * smaller stride; by all threads in units of 16 bytes, if short systems are contiguous; by
 * bulk copies with single elements at both ends; by bulk copies only. */
enum PivotCopies { PIVOT_ELEMENTS, PIVOT_UNITS, PIVOT_BULK, PIVOT_PLAIN };

/* A launch over tiles of rows. A system of n rows (2 if n is 1: a row of the identity is
 * added) has `chunks` chunks of `length` rows; the last one has at least 2 and at most
 * length + 1 rows. */
template <typename Number> struct PivotPlan {
    Systems<Number> s;    /* with the batch axis of the smaller stride as inner axis */
    const uint8_t *marks; /* null, or not 0 for the systems to solve */
    uint8_t *again; /* becomes PS_SOLVED_AGAIN for each system that is solved twice, and 1
                       for the other ones unless `again` is `marks` */
    PivotPass pass;
    int32_t rows, chunks, length;
    int32_t segments; /* tiles along a system */
    int32_t tile_chunks, tile_systems;
    int32_t warp_systems; /* of a warp; 0 if a system needs several */
    bool along_rows, exchanged;
    PivotCopies copies;
    bool bulk_x;         /* x is stored by bulk copies too */
    Input<Number> in[4]; /* those of s */
    /* Elements in shared memory: from one system to the next, of an operand, of the tree.
     * Flat: the systems of a tile are contiguous in global memory too. */
    int32_t pitch, plane, tree_words;
    bool flat;
    /* Elements of a tile along the axis of the smaller stride, and the step of a thread
     * along this axis and across it; if the latter is a step along the rows, the same in
     * bytes for the operands and x. */
    int32_t walk_size, walk_fast, walk_slow;
    int64_t walk_bytes[5];
    int64_t systems, tiles;
    int32_t *state; /* of PIVOT_REDUCE and PIVOT_FINISH: PivotState of each system */
    Number *groups; /* the group of each tile, PIVOT_GROUP_WORDS words */
    Number *ends;   /* x of the first and of the last row of each tile */
    /* Of a solve in order: warps of a block that take part, systems of a warp at a time,
     * rows of a segment, words that are kept of all segments of a system, and the memory of
     * these, system after system; null: shared memory, after the rows. */
    int32_t ordered_warps, ordered_systems, ordered_length, ordered_kept;
    Number *kept;
    /* Workspace of the refinement, REFINED_VECTORS vectors for each of so many blocks;
     * null: systems are not refined. */
    Number *spare;
    int64_t spare_blocks;
    /* If two threads solve each system in order (pivoted_halves.cuh), the pivot rows of half of a
     * system that are kept in shared memory and in registers, and `carried`, memory for the carried
     * rows of all segments; otherwise 0. in_ring: rows come through a ring in shared memory. */
    int32_t kept_rows;
    int32_t held_rows;
    bool in_ring;
    bool row_halves; /* two lanes solve each system of a tile in order */
    Number *carried;

    __device__ __forceinline__ bool in_bulk() const
    {
        return copies >= PIVOT_BULK;
    }
};

/* The systems and rows of a tile. */
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

/* The systems and rows of tile `tile`; `whole`: a tile holds whole systems. */
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

/* Indices of a system along the batch axes of `s`. */
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

/* Row i of a system from global memory; lower of the first and upper of the last row are 0
 * unless the system is periodic. */
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

/* Call visit(row, its entries) for the rows of a system among `rows` from row `begin` on that belong
 * to this thread, counted from there. Four rows are loaded at a time: a launch waits for the
 * slowest block, which is one that solves a system a second time. */
template <typename Number, typename Visit>
__device__ __forceinline__ void
pivot_for_rows(const PivotPlan<Number> &a, const PivotIndex &at, int begin, int rows,
               const Visit &visit)
{
    constexpr int group = 4;
    const int step = blockDim.x;

#pragma unroll 1
    for (int first = threadIdx.x; first < rows; first += group * step) {
        PivotRow<Number> entries[group];

#pragma unroll
        for (int k = 0; k < group; k++) {
            const int row = min(first + k * step, rows - 1);

            entries[k] = pivot_row_in_memory(a, at, int64_t(begin) + row);
        }
#pragma unroll
        for (int k = 0; k < group; k++) {
            if (first + k * step < rows) {
                visit(first + k * step, entries[k]);
            }
        }
    }
}

/* The offset of the first row of a system of a tile to a unit of 16 bytes, in elements:
 * the same in global memory and in the planes of shared memory. */
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
    PivotShift *shift; /* of each system; of the first one only if they are flat */
    Input<Number> *in; /* those of the plan */
    Arrivals *arrivals;
    Arrivals
        *others; /* of the messages of the blocks of a cluster, alternating by tile */
    int *state;  /* PivotState of each system */

    /* Of each system, and of the block, apart from the planes and the tree. */
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
