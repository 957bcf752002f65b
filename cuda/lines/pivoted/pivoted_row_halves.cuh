/* pivoted_row_halves.cuh - systems whose rows are contiguous, solved in order by two lanes each.
 *
 * A tile of whole systems is copied to shared memory (pivoted_copies.cuh). One lane eliminates the
 * upper half of a system from its first row, another one of the same warp the lower half from its
 * last row, as in pivoted_halves.cuh, with the same operations. The pivot rows replace the rows, x
 * replaces the right-hand sides: 5 words per unknown. No system is doubtful, whatever its matrix is.
 *
 * In float32 the elimination of a row takes 39 instructions, 55 with rests, and its substitution 10;
 * chunks take 134. A step takes about 200 cycles, so that the number of rows limits the time: used up
 * to 150 rows of float32 and 80 of float64, or up to 201 and 129 if the number of rows is odd. Parts
 * of the time of chunks in float32 and float64, H200: 16 to 64 rows 0.63 to 0.70 and 0.74 to 0.86
 * (pivot_take_row_halves).
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_ROW_HALVES_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_ROW_HALVES_CUH

#include "lines/pivoted/pivoted_carried.cuh"
#include "lines/pivoted/pivoted_copies.cuh"

namespace pysolvers::pivoted {

/* Most systems of a tile; a block is a warp. */
enum { ROW_HALF_SYSTEMS = 16 };

/* Half of a system in shared memory, from its end to the middle. */
template <typename Number> struct RowHalf {
    Number *lower, *diag, *upper, *rhs;
    int step, columns;

    __device__ __forceinline__ HalfRow<Number> at(int k) const
    {
        const int i = k * step;

        return {lower[i], diag[i], upper[i], rhs[i]};
    }
};

/* Eliminate the columns of a half; the pivot row of a column replaces its row. */
template <typename Number, bool has_rests>
__device__ __forceinline__ void
eliminate_row_half(const RowHalf<Number> &s, PivotCarried<Number, has_rests> &carried,
                   OrderedPivots &pivots)
{
    constexpr int group = half_ahead<Number>;
    HalfRow<Number> ahead = s.at(1);

#pragma unroll 1
    for (int begin = 0; begin < s.columns; begin += group) {
#pragma unroll
        for (int k = 0; k < group; k++) {
            if (begin + k >= s.columns) {
                break;
            }
            const HalfRow<Number> below = ahead;
            const int i = (begin + k) * s.step;
            Number row[PIVOT_HALF_WORDS];

            ahead = s.at(begin + k + 2);
            pivots.add<false>(carried.eliminate(below, row), 0);
            s.lower[i] = row[0];
            s.diag[i] = row[1];
            s.rhs[i] = row[2];
        }
        carried.add_rests();
    }
}

/* Substitute: x replaces the right-hand sides. */
template <typename Number>
__device__ __forceinline__ void
substitute_row_half(const RowHalf<Number> &s, Number near, Number far)
{
    constexpr int group = 4;
    Number kept[group][PIVOT_HALF_WORDS];
    int k = s.columns - 1;
    const auto load = [&](int g) {
        const int i = (k - g) * s.step;

        kept[g][0] = s.lower[i];
        kept[g][1] = s.diag[i];
        kept[g][2] = s.rhs[i];
    };
    const auto substitute = [&](int g) {
        const Number x = substituted<PIVOT_HALF_WORDS, 1>(kept[g], near, far);

        far = near;
        near = x;
        s.rhs[(k - g) * s.step] = x;
    };

    s.rhs[s.columns * s.step] = near;
#pragma unroll 1
    for (; k >= group - 1; k -= group) {
#pragma unroll
        for (int g = 0; g < group; g++) {
            load(g);
        }
#pragma unroll
        for (int g = 0; g < group; g++) {
            substitute(g);
        }
    }
#pragma unroll 1
    for (; k >= 0; k--) {
        load(0);
        substitute(0);
    }
}

/* Solve the systems of a tile. Those with a pivot that is not moderate become PIVOT_MISSED; returns
 * whether this lane's system does. All threads of the block, a warp, call this function. */
template <bool has_rests, typename Number>
__device__ __forceinline__ bool
solve_row_halves(const PivotPlan<Number> &a, const PivotSpan &span,
                 const PivotShared<Number> &m)
{
    const int system = threadIdx.x % ROW_HALF_SYSTEMS;
    const bool from_last = threadIdx.x >= ROW_HALF_SYSTEMS;
    const bool active = system < span.systems;
    const PivotShift shift =
        a.copies == PIVOT_BULK && active ? m.shift[a.flat ? 0 : system] : PivotShift{};
    const int half = a.s.rows / 2, first = from_last ? a.s.rows - 1 : 0;
    Number *const place = m.rows + (active ? system : 0) * a.pitch + first;
    Number *const lower = place + PIVOT_LOWER * a.plane + shift.of[PIVOT_LOWER];
    Number *const upper = place + PIVOT_UPPER * a.plane + shift.of[PIVOT_UPPER];
    const RowHalf<Number> s = {
        from_last ? upper : lower, place + PIVOT_DIAG * a.plane + shift.of[PIVOT_DIAG],
        from_last ? lower : upper, place + PIVOT_RHS * a.plane + shift.of[PIVOT_RHS],
        from_last ? -1 : 1,        (from_last ? a.s.rows - half : half) - 1};
    PivotCarried<Number, has_rests> carried = {Number(1), Number(0), Number(0)};
    OrderedPivots pivots;
    Number near = Number(0), far = Number(0);

    if (active) {
        carried = {*s.diag, *s.upper, *s.rhs};
        eliminate_row_half(s, carried, pivots);
    }
    const bool refused = join_halves(m.tree + system, from_last, carried, pivots, near,
                                     far, [] { __syncwarp(); });
    if (active) {
        substitute_row_half(s, near, far);
    }
    if (active && refused && from_last) {
        m.state[system] = PIVOT_MISSED;
    }
    return active && refused;
}

} // namespace pysolvers::pivoted

#endif
