/* pivoted_tile.cuh - tiles of rows on their way between memory and the chip.
 *
 * A tile is some chunks of some neighbouring systems. Where the rows of a system lie side
 * by side, bulk copies bring them, one an operand if the systems do so too; otherwise
 * copies of one element each, by threads that run along whichever of rows and systems
 * lies closer in memory. In shared memory rows lie side by side as well, displaced so
 * that 16-byte units stay units. Chunks have an odd length: threads that walk their
 * chunks in step do not meet in a bank.
 */
#ifndef PS_CUDA_PIVOTED_TILE_CUH
#define PS_CUDA_PIVOTED_TILE_CUH

#include <climits>

#include "copy.cuh"
#include "operand.cuh"
#include "pivoted_tree.cuh"

/* Elements of a 16-byte unit of bulk copies. */
template <typename Number> constexpr int bulk_unit = 16 / sizeof(Number);

enum PivotOperand { PIVOT_LOWER, PIVOT_DIAG, PIVOT_UPPER, PIVOT_RHS, PIVOT_X };

/* A launch over tiles of rows. A system of n rows (2 if n is 1: a row of the identity is
 * added) has `chunks` chunks of `base` rows, the first `longer` of them of `step` more.
 */
template <typename Number> struct PivotPlan {
    Systems<Number> s; /* batch axes exchanged so that inner is the closer one */
    const uint8_t *marks;
    PivotPass pass;
    int32_t rows, chunks, base, longer, step; /* of a system */
    int32_t segments;                         /* tiles along a system */
    int32_t tile_chunks, tile_systems;
    bool along_rows, exchanged;
    bool bulk, bulk_x;   /* bulk copies of what is read, of x */
    Input<Number> in[4]; /* as in s */
    /* Elements in shared memory: from one system to the next, of an operand, of the tree.
     * Flat: the systems of a tile lie side by side in memory too. */
    int32_t pitch, plane, tree_words;
    bool flat;
    /* Elements of a tile along memory, and a thread's step from one to the next: so many
     * along memory, so many across. */
    int32_t walk_size, walk_fast, walk_slow;
    int64_t systems, tiles;
    int32_t *state; /* if segments > 1: PivotState of each system */
    Number *groups; /* if segments > 1: one a tile, of PIVOT_GROUP_WORDS words */
    Number *ends;   /* and x of its first and its last row */
};

/* Where a tile lies. */
struct PivotSpan {
    int64_t system; /* the first of `systems` */
    int32_t systems, segment, chunk, chunks;
    int32_t begin, rows; /* first row, number of rows */
};

/* First row of a chunk. */
template <typename Number>
__device__ __forceinline__ int
pivot_begin(const PivotPlan<Number> &a, int chunk)
{
    return chunk * a.base + min(chunk, a.longer) * a.step;
}

/* Whole: a tile holds whole systems. */
template <bool whole, typename Number>
__device__ __forceinline__ PivotSpan
pivot_span(const PivotPlan<Number> &a, int64_t tile)
{
    PivotSpan span = {tile, 0, 0, 0, a.chunks, 0, a.rows};

    if (!whole) {
        span.system = tile / a.segments;
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

/* A thread's first element of a tile; `fast` runs along memory. */
struct PivotWalk {
    int fast, slow;
};

template <typename Number>
__device__ __forceinline__ PivotWalk
pivot_walk(const PivotPlan<Number> &a)
{
    const int thread = threadIdx.x, slow = thread / a.walk_size;

    return {thread - slow * a.walk_size, slow};
}

/* Call body(system, row) for the elements of a tile that are this thread's. */
template <typename Number, typename Body>
__device__ __forceinline__ void
pivot_for_each(const PivotPlan<Number> &a, const PivotSpan &span, const Body &body)
{
    const int end = a.along_rows ? span.systems : span.rows;
    PivotWalk walk = pivot_walk(a);

    while (walk.slow < end) {
        const int system = a.along_rows ? walk.slow : walk.fast;
        const int row = a.along_rows ? walk.fast : walk.slow;

        if (row < span.rows && system < span.systems) {
            body(system, row);
        }
        walk.fast += a.walk_fast;
        walk.slow += a.walk_slow;
        if (walk.fast >= a.walk_size) {
            walk.fast -= a.walk_size;
            walk.slow++;
        }
    }
}

/* How far the first row of a system of a tile lies behind a 16-byte unit, in memory and
 * so in its plane. */
struct alignas(16) PivotShift {
    int32_t of[8]; /* five in use */
};

template <typename Number>
__device__ __forceinline__ int
pivot_shift(const Number *row)
{
    return static_cast<int>(reinterpret_cast<uintptr_t>(row) / sizeof(Number) %
                            bulk_unit<Number>);
}

/* The shared memory of a block. */
template <typename Number> struct PivotShared {
    Number *rows; /* lower, diag, upper, rhs, x: 5 planes */
    Number *tree;
    PivotShift *shift; /* of each system, or of the first if they are flat */
    Input<Number> *in; /* those of the plan */
    Arrivals *arrivals;
    int *state; /* PivotState of each system */

    /* Of a system, beside those of the plan. */
    static constexpr size_t system_bytes = sizeof(PivotShift) + sizeof(int);
    static constexpr size_t block_bytes = 4 * sizeof(Input<Number>) + sizeof(Arrivals);

    __device__ __forceinline__ PivotShared(const PivotPlan<Number> &a,
                                           unsigned char *memory)
        : rows(reinterpret_cast<Number *>(memory)), tree(rows + 5 * a.plane),
          shift(reinterpret_cast<PivotShift *>(tree + a.tree_words)),
          in(reinterpret_cast<Input<Number> *>(shift + a.tile_systems)),
          arrivals(reinterpret_cast<Arrivals *>(in + 4)),
          state(reinterpret_cast<int *>(arrivals + 1))
    {
    }
};

/* The part of a system's rows, or of those of all systems of a flat operand, that is
 * whole 16-byte units: `head` elements before it, `body` in it. */
struct PivotCut {
    int head, body;
};

template <typename Number>
__device__ __forceinline__ PivotCut
pivot_cut(int place, int count)
{
    constexpr int unit = bulk_unit<Number>;
    PivotCut cut;

    cut.head = min((unit - place % unit) % unit, count);
    cut.body = (count - cut.head) / unit * unit;
    return cut;
}

/* Begin the bulk copies of a tile, by one warp: four lanes the rows of a system, or of
 * all systems that lie side by side. */
template <typename Number>
__device__ __forceinline__ void
pivot_fetch_bulk(const PivotPlan<Number> &a, const PivotSpan &span,
                 const PivotShared<Number> &m)
{
    const int lane = threadIdx.x % 32, which = lane % 4;
    const int copies = a.flat ? 1 : span.systems;
    const bool open = !a.flat && !a.s.periodic;
    const int before = open && which == PIVOT_LOWER && span.begin == 0;
    const int behind = open && which == PIVOT_UPPER && span.begin + span.rows == a.s.rows;
    const int count = (a.flat ? span.systems : 1) * span.rows - before - behind;
    const Input<Number> in = m.in[which];
    unsigned bytes = 0;

    for (int i = lane / 4; i < copies; i += 8) {
        const PivotIndex at = pivot_index(a, span.system + i);
        const Number *const from = in.system(at.j, at.k) + span.begin;
        const int shift = pivot_shift(from), place = i * a.pitch + shift + before;
        const PivotCut cut = pivot_cut<Number>(place, count);
        const auto size = static_cast<unsigned>(cut.body * sizeof(Number));
        Number *const to = m.rows + which * a.plane + place;

        m.shift[i].of[which] = shift;
        if (which == 0) {
            m.shift[i].of[PIVOT_X] =
                a.bulk_x ? pivot_shift(a.s.x.system(at.j, at.k) + span.begin) : 0;
        }
        if (size > 0) {
            copy_bulk(to + cut.head, from + before + cut.head, size, *m.arrivals);
            bytes += size;
        }
#pragma unroll 1
        for (int e = cut.head > 0 ? 0 : cut.body; e < count;
             e += e + 1 == cut.head ? cut.body + 1 : 1) {
            copy_async<sizeof(Number)>(to + e, from + before + e);
        }
    }
    m.arrivals->expect(bytes);
    m.arrivals->expect_copies();
}

/* Begin to copy the rows of a tile; all of the block take part. Entries without meaning
 * are not read, unless they lie among others. */
template <bool whole, typename Number>
__device__ __forceinline__ void
pivot_fetch(const PivotPlan<Number> &a, int64_t tile, const PivotShared<Number> &m)
{
    if (a.bulk) {
        if (threadIdx.x >= blockDim.x - 32) {
            pivot_fetch_bulk(a, pivot_span<whole>(a, tile), m);
        }
        return;
    }
    const PivotSpan span = pivot_span<whole>(a, tile);
    pivot_for_each(a, span, [&](int system, int row) {
        const int64_t i = span.begin + row;
        const PivotIndex at = pivot_index(a, span.system + system);
        const int place = system * a.pitch + row;
        const bool inner[4] = {i > 0 || a.s.periodic, true,
                               i < a.s.rows - 1 || a.s.periodic, true};

#pragma unroll
        for (int w = 0; w < 4; w++) {
            if (i < a.s.rows && inner[w]) {
                copy_async<sizeof(Number)>(m.rows + w * a.plane + place,
                                           a.in[w].system(at.j, at.k) + i * a.in[w].row);
            }
        }
    });
}

/* Rows of a chunk in shared memory. */
template <typename Number> struct PivotChunk {
    Number *lower, *diag, *upper, *rhs;
};

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
    bulk_fence();
}

/* Store x of the systems that are to be solved; all of the block take part, in bulk its
 * last warp. */
template <typename Number>
__device__ __forceinline__ void
pivot_store(const PivotPlan<Number> &a, const PivotSpan &span,
            const PivotShared<Number> &m)
{
    const Output<Number> &x = a.s.x;
    const Number *const plane = m.rows + PIVOT_X * a.plane;

    if (!a.bulk_x) {
        pivot_for_each(a, span, [&](int system, int row) {
            const int64_t i = span.begin + row;

            if (i < a.s.rows && pivot_marked(a, span.system + system)) {
                const PivotIndex at = pivot_index(a, span.system + system);
                x.system(at.j, at.k)[i * x.row] = plane[system * a.pitch + row];
            }
        });
        return;
    }
    if (threadIdx.x < blockDim.x - 32) {
        return;
    }
    const int count = (a.flat ? span.systems : 1) * span.rows;
    for (int i = threadIdx.x % 32; i < (a.flat ? 1 : span.systems); i += 32) {
        const PivotIndex at = pivot_index(a, span.system + i);
        Number *const to = x.system(at.j, at.k) + span.begin;
        const int place = i * a.pitch + pivot_shift(to);
        const PivotCut cut = pivot_cut<Number>(place, count);
        const auto size = static_cast<unsigned>(cut.body * sizeof(Number));
        const Number *const from = plane + place;

        if (size > 0) {
            store_bulk(to + cut.head, from + cut.head, size);
        }
#pragma unroll 1
        for (int e = cut.head > 0 ? 0 : cut.body; e < count;
             e += e + 1 == cut.head ? cut.body + 1 : 1) {
            to[e] = from[e];
        }
    }
    commit_stores();
}

#endif
