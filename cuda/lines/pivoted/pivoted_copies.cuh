/* pivoted_copies.cuh - copies of tiles between global and shared memory.
 *
 * If the rows of a system are contiguous they are copied in bulk, by one copy for each
 * operand if the systems of a tile are contiguous too; otherwise element by element. Many
 * short systems that would begin in the same bank are copied in units of 16 bytes, and
 * the threads place the systems at different banks.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_COPIES_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_COPIES_CUH

#include "device/run_copy.cuh"
#include "lines/pivoted/pivoted_tile.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::pivoted {

/* The elements of a tile that a thread copies, where the rows of a system are contiguous:
 * `fast` counts along the rows. */
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

/* Call visit(system, first, step) for each system of a tile of which this thread copies
 * elements: those of the rows first, first + step, ... Neighbouring threads copy
 * neighbouring rows of a system if these are contiguous, and otherwise rows of neighbouring
 * systems, each those of one system, so that an address is computed by one addition. */
template <typename Number, typename Visit>
__device__ __forceinline__ void
pivot_for_each(const PivotPlan<Number> &a, const PivotSpan &span, const Visit &visit)
{
    PivotWalk walk = pivot_walk(a);

    if (!a.along_rows) {
        if (walk.slow < a.walk_slow && walk.fast < span.systems) {
            visit(walk.fast, walk.slow, a.walk_slow);
        }
        return;
    }
    while (walk.slow < span.systems) {
        if (walk.fast < span.rows) {
            visit(walk.slow, walk.fast, span.rows);
        }
        walk.fast += a.walk_fast;
        walk.slow += a.walk_slow;
        if (walk.fast >= a.walk_size) {
            walk.fast -= a.walk_size;
            walk.slow++;
        }
    }
}

/* Start the copies of the elements of a tile that belong to this thread. Entries that do
 * not belong to the matrix are not read, unless other entries surround them in memory. */
template <typename Number>
__device__ __forceinline__ void
pivot_fetch_elements(const PivotPlan<Number> &a, const PivotSpan &span,
                     const PivotShared<Number> &m)
{
    pivot_for_each(a, span, [&](int system, int first, int step) {
        const PivotIndex at = pivot_index(a, span.system + system);
        const int end = min(span.rows, a.s.rows - span.begin);
        const int last = a.s.periodic ? INT_MAX : a.s.rows - 1 - span.begin;
        const int top = a.s.periodic ? INT_MIN : -span.begin;
        Number *to = m.rows + system * a.pitch + first;
        const char *from[4];

#pragma unroll
        for (int w = 0; w < 4; w++) {
            from[w] = reinterpret_cast<const char *>(
                a.in[w].system(at.j, at.k) +
                (static_cast<int64_t>(span.begin) + first) * a.in[w].row);
        }
        for (int row = first; row < end; row += step) {
            const bool inner[4] = {row != top, true, row != last, true};

#pragma unroll
            for (int w = 0; w < 4; w++) {
                if (inner[w]) {
                    copy_async<sizeof(Number)>(to + w * a.plane, from[w]);
                }
                from[w] += a.walk_bytes[w];
            }
            to += step;
        }
    });
}

/* Store the elements of x that belong to this thread, of the systems that are to be solved
 * and are not doubtful. */
template <typename Number>
__device__ __forceinline__ void
pivot_store(const PivotPlan<Number> &a, const PivotSpan &span, bool doubtful,
            const PivotShared<Number> &m)
{
    const Output<Number> &x = a.s.x;

    pivot_for_each(a, span, [&](int system, int first, int step) {
        if ((doubtful && m.state[system] != PIVOT_FINE) ||
            !pivot_marked(a, span.system + system)) {
            return;
        }
        const PivotIndex at = pivot_index(a, span.system + system);
        const int end = min(span.rows, a.s.rows - span.begin);
        const int shift =
            a.copies == PIVOT_BULK ? m.shift[a.flat ? 0 : system].of[PIVOT_RHS] : 0;
        const Number *from =
            m.rows + PIVOT_RHS * a.plane + system * a.pitch + shift + first;
        char *to = reinterpret_cast<char *>(
            x.system(at.j, at.k) + (static_cast<int64_t>(span.begin) + first) * x.row);

#pragma unroll 4
        for (int row = first; row < end; row += step) {
            *reinterpret_cast<Number *>(to) = *from;
            from += step;
            to += a.walk_bytes[4];
        }
    });
}

/* Call body(element, place) for the units of 16 bytes of a tile of contiguous systems, each
 * of which has a power of two of units; `element` and `place` are the positions of a unit
 * in global memory and in a plane. */
template <typename Number, typename Body>
__device__ __forceinline__ void
pivot_for_units(const PivotPlan<Number> &a, const PivotSpan &span, const Body &body)
{
    constexpr int unit = pivot_unit<Number>;
    const int units = a.rows / unit, systems = blockDim.x / units;
    const int first = threadIdx.x / units, own = (threadIdx.x - first * units) * unit;
    int place = first * a.pitch + own;
    int64_t element = (span.system + first) * a.rows + own;

    for (int i = first; i < span.systems; i += systems) {
        body(element, place);
        place += systems * a.pitch;
        element += systems * a.rows;
    }
}

/* Start the copies of the units of a tile that belong to this thread. */
template <typename Number>
__device__ __forceinline__ void
pivot_fetch_units(const PivotPlan<Number> &a, const PivotSpan &span,
                  const PivotShared<Number> &m)
{
    pivot_for_units(a, span, [&](int64_t element, int place) {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            copy_async<16>(m.rows + w * a.plane + place, a.in[w].data + element);
        }
    });
}

/* Store the units of x that belong to this thread. */
template <typename Number>
__device__ __forceinline__ void
pivot_store_units(const PivotPlan<Number> &a, const PivotSpan &span,
                  const PivotShared<Number> &m)
{
    pivot_for_units(a, span, [&](int64_t element, int place) {
        *reinterpret_cast<float4 *>(a.s.x.data + element) =
            *reinterpret_cast<const float4 *>(m.rows + PIVOT_RHS * a.plane + place);
    });
}

/* Start the bulk copies of the operands FIRST .. FIRST + COUNT - 1 of a tile, by one warp.
 * Each lane copies the rows of one system, or of all systems if they are contiguous. */
template <int FIRST, int COUNT, typename Number>
__device__ __forceinline__ void
pivot_fetch_pieces(const PivotPlan<Number> &a, const PivotSpan &span,
                   const PivotShared<Number> &m)
{
    const int copies = a.flat ? 1 : span.systems;
    unsigned bytes = 0;

    for (int q = threadIdx.x % 32; q < copies * COUNT; q += 32) {
        const int i = q / COUNT, which = FIRST + q % COUNT;
        const bool first = span.begin == 0 && (!a.flat || span.system == 0);
        const bool last = span.begin + span.rows == a.s.rows &&
                          (!a.flat || span.system + span.systems == a.systems);
        const int before = !a.s.periodic && which == PIVOT_LOWER && first;
        const int behind = !a.s.periodic && which == PIVOT_UPPER && last;
        const int count = (a.flat ? span.systems : 1) * span.rows - before - behind;
        const PivotIndex at = pivot_index(a, span.system + i);
        const Number *const from = m.in[which].system(at.j, at.k) + span.begin;
        const int shift = pivot_shift(from), place = i * a.pitch + shift + before;
        const Run<Number> run(place, count);
        Number *const to = m.rows + which * a.plane + place;

        m.shift[i].of[which] = shift;
        run.load(to, from + before, *m.arrivals);
        bytes += run.bytes();
        run.for_rest(
            [&](int e) { copy_async<sizeof(Number)>(to + e, from + before + e); });
    }
    m.arrivals->expect(bytes);
    m.arrivals->expect_copies();
}

/* Begin to store x of a tile in bulk, by one warp. */
template <typename Number>
__device__ __forceinline__ void
pivot_store_pieces(const PivotPlan<Number> &a, const PivotSpan &span,
                   const PivotShared<Number> &m)
{
    const int count = (a.flat ? span.systems : 1) * span.rows;

    for (int i = threadIdx.x % 32; i < (a.flat ? 1 : span.systems); i += 32) {
        const PivotIndex at = pivot_index(a, span.system + i);
        Number *const to = a.s.x.system(at.j, at.k) + span.begin;
        const int place = i * a.pitch + pivot_shift(to);
        const Run<Number> run(place, count);
        const Number *const from = m.rows + PIVOT_RHS * a.plane + place;

        run.store(to, from);
        run.for_rest([&](int e) { to[e] = from[e]; });
    }
}

/* The same for plain copies. */
template <int FIRST, int COUNT, typename Number>
__device__ __forceinline__ void
pivot_fetch_plain(const PivotPlan<Number> &a, const PivotSpan &span,
                  const PivotShared<Number> &m)
{
    const int copies = a.flat ? 1 : span.systems;
    const int rows = a.flat ? span.systems * a.rows : span.rows;
    const auto size = static_cast<unsigned>(rows * sizeof(Number));

    if (threadIdx.x % 32 == 0) {
        m.arrivals->expect(copies * COUNT * size);
    }
    for (int q = threadIdx.x % 32; q < copies * COUNT; q += 32) {
        const int i = q / COUNT, which = FIRST + q % COUNT;
        copy_bulk(m.rows + which * a.plane + i * a.pitch,
                  m.in[which].data + (span.system + i) * m.in[which].inner + span.begin,
                  size, *m.arrivals);
    }
}

/* Begin to store x of a tile. */
template <typename Number>
__device__ __forceinline__ void
pivot_store_plain(const PivotPlan<Number> &a, const PivotSpan &span,
                  const PivotShared<Number> &m)
{
    const int copies = a.flat ? 1 : span.systems;
    const int rows = a.flat ? span.systems * a.rows : span.rows;
    const auto size = static_cast<unsigned>(rows * sizeof(Number));

    for (int i = threadIdx.x % 32; i < copies; i += 32) {
        store_bulk(a.s.x.data + (span.system + i) * a.s.x.inner + span.begin,
                   m.rows + PIVOT_RHS * a.plane + i * a.pitch, size);
    }
}

template <int FIRST, int COUNT, typename Number>
__device__ __forceinline__ void
pivot_fetch_bulk(const PivotPlan<Number> &a, const PivotSpan &span,
                 const PivotShared<Number> &m)
{
    if (a.copies == PIVOT_PLAIN) {
        pivot_fetch_plain<FIRST, COUNT>(a, span, m);
    }
    else {
        pivot_fetch_pieces<FIRST, COUNT>(a, span, m);
    }
}

/* Store x of a tile in bulk, by one warp, and wait until it has been read. */
template <typename Number>
__device__ __forceinline__ void
pivot_store_bulk(const PivotPlan<Number> &a, const PivotSpan &span,
                 const PivotShared<Number> &m)
{
    if (a.copies == PIVOT_PLAIN) {
        pivot_store_plain(a, span, m);
    }
    else {
        pivot_store_pieces(a, span, m);
    }
    commit_stores();
    stores_read();
    bulk_fence();
}

/* Store x of a tile, if `stores`, and start the copies of the next tile, if it has systems,
 * to the same memory. All threads of the block call this function; in bulk the first warp
 * copies all operands but the right-hand side. If the tile has `doubtful` systems the other
 * ones are stored element by element, so that the right-hand sides of the doubtful ones,
 * which x would replace, remain. */
template <bool whole, typename Number>
__device__ __forceinline__ void
pivot_replace(const PivotPlan<Number> &a, const PivotSpan &span, const PivotSpan &next,
              bool stores, bool doubtful, const PivotShared<Number> &m)
{
    const bool more = next.systems > 0, last = threadIdx.x >= blockDim.x - 32;
    const bool in_bulk = a.bulk_x && !doubtful;

    if (whole && a.copies == PIVOT_UNITS) {
        if (stores && doubtful) {
            pivot_store(a, span, doubtful, m);
            __syncthreads(); /* others fetch what this thread has stored */
        }
        else if (stores) {
            pivot_store_units(a, span, m);
        }
        if (more) {
            pivot_fetch_units(a, next, m);
        }
        return;
    }
    if (stores && !in_bulk) {
        pivot_store(a, span, doubtful, m);
        if (a.in_bulk()) {
            bulk_fence();
            __syncthreads(); /* x is read */
        }
    }
    if (more && a.copies == PIVOT_ELEMENTS) {
        pivot_fetch_elements(a, next, m);
    }
    if (more && threadIdx.x < 32 && a.in_bulk()) {
        pivot_fetch_bulk<PIVOT_LOWER, 3>(a, next, m);
    }
    if (last && a.in_bulk()) {
        if (stores && in_bulk) {
            pivot_store_bulk(a, span, m);
        }
        if (more) {
            pivot_fetch_bulk<PIVOT_RHS, 1>(a, next, m);
        }
    }
}

} // namespace pysolvers::pivoted

#endif
