/* row_walk.h - which thread computes which rows of a batch in one pass (row_walk.cuh).
 */
#ifndef PS_CUDA_LINES_ROW_WALK_H
#define PS_CUDA_LINES_ROW_WALK_H

#include <algorithm>
#include <cstdlib>

#include "device/operand.cuh"
#include "runtime/math.cuh"

namespace pysolvers::lines {

using namespace device;
using namespace runtime;

static constexpr int walk_threads = 256; /* of a block */

/* The largest number of numbers of a pack: 16 bytes. */
template <typename Number> static constexpr int pack_width = 16 / sizeof(Number);

/* How the numbers of a pack lie in memory: 16 bytes that begin at a multiple of 16, one
 * number for all of them, or one by one. */
enum class PackAccess { whole, same, each };

/* An array along the axes of a walk. */
template <typename T> struct Walked {
    T *data;
    int64_t along, step, other; /* strides */
    PackAccess access;

    __device__ __forceinline__ T *at(int64_t i, int64_t j, int64_t k) const
    {
        return data + i * along + j * step + k * other;
    }
};

/* The rows of a batch. `along` is the axis of neighbouring threads, rows if by_row and
 * otherwise systems; a thread walks along the axis `step`, systems or rows. */
template <typename Number> struct RowWalk {
    Walked<const Number> lower, diag, upper, u;
    Walked<const Number> added; /* null data: there is none */
    int32_t rows, width;        /* width: numbers of a pack */
    int32_t each;               /* steps of a thread */
    bool by_row, periodic, short_lower, short_upper;
    bool is_shared; /* along the rows: whether the matrix is that of all systems */
    int64_t packs, steps, walks; /* of the axis along; of the axis step; threads of it */
    int64_t threads;
};

/* Systems of which only the marked ones are computed: marks has one byte for each, in the order
 * of info, 0 for those that are skipped; null data: all are computed. */
struct MarkedSystems {
    const uint8_t *marks;
    int64_t count, inner; /* systems; those of the inner axis of the batch */
    bool swaps;           /* WalkAxes::swaps */
};

/* Steps of a thread. Along strided rows, where two rows of u are read for nothing each
 * time, and with a matrix that is loaded once, as many as leave enough threads. */
static constexpr int64_t least_steps = 4, most_steps = 16, least_threads = 1 << 17;

/* The axes of a batch in the order of a walk. */
struct WalkAxes {
    bool by_row, swaps; /* swaps: the outer axis of the batch takes the place of inner */

    /* The strides of an array of the batch: along, step, other. */
    template <typename T> Walked<T> walked(T *data, const ps_stride &s) const
    {
        const int64_t near = swaps ? s.outer : s.inner, far = swaps ? s.inner : s.outer;

        return by_row ? Walked<T>{data, s.row, near, far, PackAccess::each}
                      : Walked<T>{data, near, s.row, far, PackAccess::each};
    }
};

/* The axes by the strides of what is written. */
static inline WalkAxes
walk_axes_of(const ps_tridiag &t)
{
    const ps_stride &s = t.x.stride;
    WalkAxes axes = {};

    axes.swaps = t.outer > 1 && (t.inner == 1 || std::abs(s.outer) < std::abs(s.inner));
    const int64_t systems = axes.swaps ? t.outer : t.inner;
    const int64_t near = axes.swaps ? s.outer : s.inner;

    axes.by_row = systems == 1 || (t.rows > 1 && std::abs(s.row) <= std::abs(near));
    return axes;
}

/* The access to an array that has `count` numbers along. */
template <typename T>
static inline PackAccess
access_of(const Walked<T> &a, int64_t count, int64_t steps, int64_t others)
{
    constexpr int64_t width = 16 / sizeof(T);
    const bool whole = a.along == 1 && count % width == 0 &&
                       (steps == 1 || a.step % width == 0) &&
                       (others == 1 || a.other % width == 0) &&
                       reinterpret_cast<uintptr_t>(a.data) % 16 == 0;

    return whole ? PackAccess::whole : a.along == 0 ? PackAccess::same : PackAccess::each;
}

/* The walk over the rows of `t`, whose rhs is u and whose x is written; `added` may have
 * null data. */
template <typename Number>
static inline RowWalk<Number>
row_walk_of(const ps_tridiag &t, const ps_input &added, bool in_packs = true)
{
    const Systems<Number> s = systems_of<Number>(t);
    const WalkAxes axes = walk_axes_of(t);
    const int64_t near = axes.swaps ? t.outer : t.inner;
    const int64_t others = axes.swaps ? t.inner : t.outer;
    const int64_t count = axes.by_row ? t.rows : near;
    RowWalk<Number> w = {};

    w.lower = axes.walked(s.lower.data, t.lower.stride);
    w.diag = axes.walked(s.diag.data, t.diag.stride);
    w.upper = axes.walked(s.upper.data, t.upper.stride);
    w.u = axes.walked(s.rhs.data, t.rhs.stride);
    w.added = axes.walked(static_cast<const Number *>(added.data), added.stride);
    w.rows = s.rows;
    w.by_row = axes.by_row;
    w.periodic = s.periodic;
    w.short_lower = (t.flags & PS_SHORT_LOWER) != 0;
    w.short_upper = (t.flags & PS_SHORT_UPPER) != 0;
    w.steps = axes.by_row ? near : t.rows;
    for (Walked<const Number> *a : {&w.lower, &w.diag, &w.upper, &w.u, &w.added}) {
        a->access = access_of(*a, count, w.steps, others);
    }
    if (axes.by_row && w.short_lower) { /* the absent entry lies within a pack */
        w.lower.access = PackAccess::each;
    }
    if (axes.by_row && w.short_upper) {
        w.upper.access = PackAccess::each;
    }
    const auto x = axes.walked(s.x.data, t.x.stride);
    const bool packs = w.u.access == PackAccess::whole &&
                       access_of(x, count, w.steps, others) == PackAccess::whole;

    w.width = packs && in_packs ? pack_width<Number> : 1;
    w.packs = count / w.width;
    w.is_shared =
        axes.by_row && w.lower.step == 0 && w.diag.step == 0 && w.upper.step == 0;
    w.each = static_cast<int32_t>(
        std::min(w.steps, axes.by_row && !w.is_shared ? least_steps : most_steps));
    while (w.each > least_steps &&
           w.packs * others * divided_up(w.steps, w.each) < least_threads) {
        w.each /= 2;
    }
    w.walks = divided_up(w.steps, w.each);
    w.threads = w.packs * w.walks * others;
    return w;
}

/* The array that is written, along the axes of the walk. */
template <typename Number>
static inline Walked<Number>
written_of(const ps_tridiag &t, const RowWalk<Number> &w, const ps_output &x)
{
    const WalkAxes axes = walk_axes_of(t);
    auto to = axes.walked(static_cast<Number *>(x.data), x.stride);

    to.access = access_of(to, w.packs * w.width, w.steps, axes.swaps ? t.inner : t.outer);
    return to;
}

} // namespace pysolvers::lines

#endif
