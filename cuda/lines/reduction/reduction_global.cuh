/* reduction_global.cuh - reduction of systems that are too long for shared memory.
 *
 * Steps of pcr or levels of cr through the workspace, with many blocks per system,
 * until the remaining systems fit; and the last row of periodic systems.
 */
#ifndef PS_CUDA_LINES_REDUCTION_REDUCTION_GLOBAL_CUH
#define PS_CUDA_LINES_REDUCTION_REDUCTION_GLOBAL_CUH

#include "lines/reduction/reduction.cuh"

namespace pysolvers::reduction {

/* Item number t, if each system has `count` items. */
struct Place {
    int64_t system, i;

    __device__ __forceinline__ Place(int64_t t, int64_t count)
    {
        system = quotient(t, count);
        i = t - system * count;
    }
};

/* Offset of array `word` of a system of `rows` rows in the workspace. */
template <int sides>
__host__ __device__ __forceinline__ int64_t
kept_at(int64_t system, int word, int64_t rows)
{
    return (system * (3 + sides) + word) * rows;
}

/* Row (at + 1) step - 1 of a system eliminates its neighbours at distance `reach` and is
 * written to row `at` of `to`, which has `to_rows` rows of each system. */
template <typename Batch>
__device__ __forceinline__ void
reduce_row(const Part<Batch> &part, int64_t at, int32_t step, int32_t reach,
           typename Batch::Number *to, int32_t to_rows)
{
    constexpr int sides = Batch::sides;
    const int64_t i = (at + 1) * step - 1;
    auto row = part.load(i);

    if (i >= reach) {
        const auto above = part.load(i - reach);

        eliminate_above(row, above, part.invert(above.diag, i - reach));
    }
    if (i + reach < part.e.rows) {
        const auto below = part.load(i + reach);

        eliminate_below(row, below, part.invert(below.diag, i + reach));
    }
    to[kept_at<sides>(part.system, 0, to_rows) + at] = row.lower;
    to[kept_at<sides>(part.system, 1, to_rows) + at] = row.diag;
    to[kept_at<sides>(part.system, 2, to_rows) + at] = row.upper;
#pragma unroll
    for (int s = 0; s < sides; s++) {
        to[kept_at<sides>(part.system, 3 + s, to_rows) + at] = row.rhs[s];
    }
}

/* Rows step-1, 2 step-1, ... eliminate their neighbours and are written to rows 0, 1,
 * ... of `to`: step 1 for pcr, step 2 and reach 1 for cr. For e.systems * to_rows
 * elements. */
template <typename Batch> struct Reduce {
    Batch e;
    typename Batch::Number *to;
    int32_t to_rows, step, reach;

    __device__ __forceinline__ void operator()(int64_t t) const
    {
        const Place place(t, to_rows);

        reduce_row(Part<Batch>(e, place.system), place.i, step, reach, to, to_rows);
    }
};

/* Back substitution of one level of cr: rows 1, 3, ... are solved in the rhs of
 * `coarse`. An element has rows 2t and 2t+1, so that x may be rhs. For e.systems *
 * ceil(rows/2) elements. */
template <typename Batch> struct Expand {
    Batch e;
    const typename Batch::Number *coarse;

    __device__ __forceinline__ void operator()(int64_t t) const
    {
        using Number = typename Batch::Number;
        constexpr int sides = Batch::sides;
        const Place place(t, (e.rows + 1) / 2);
        const int64_t i = 2 * place.i;
        const bool has_below = i + 1 < e.rows;
        const Part<Batch> part(e, place.system);
        const Equation<Number, sides> row = part.load(i);
        const Number inverse = part.invert(row.diag, i);

#pragma unroll
        for (int s = 0; s < sides; s++) {
            const Number *const solved =
                coarse + kept_at<sides>(place.system, 3 + s, e.rows / 2) + place.i;
            Number r = row.rhs[s];

            if (i > 0) {
                r = r - row.lower * solved[-1];
            }
            if (has_below) {
                r = r - row.upper * solved[0];
                part.store(i + 1, s, solved[0]);
            }
            part.store(i, s, r * inverse);
        }
    }
};

/* The last unknown of each periodic system. The other unknowns are y - z x_last with y
 * in x and z in far[system][row]. For all systems. */
template <typename Number> struct SolveLastRow {
    Systems<Number> s;
    const Number *far;

    __device__ __forceinline__ void operator()(int64_t system) const
    {
        const int64_t j = quotient(system, s.inner), k = system - j * s.inner;
        const int64_t rows = s.rows - 1;
        const Number lower = s.lower.system(j, k)[rows * s.lower.row];
        const Number upper = s.upper.system(j, k)[rows * s.upper.row];
        Number diag = s.diag.system(j, k)[rows * s.diag.row];
        Number rhs = s.rhs.system(j, k)[rows * s.rhs.row];
        Number *const x = s.x.system(j, k);

        if (rows == 0) {
            diag = diag + (lower + upper);
        }
        else {
            const Number *const z = far + system * rows;

            diag = diag - upper * z[0] - lower * z[rows - 1];
            rhs = rhs - upper * x[0] - lower * x[(rows - 1) * s.x.row];
        }
        if (is_bad_pivot(diag)) {
            record_bad_row(s.info, system, rows);
        }
        x[rows * s.x.row] = rhs * reciprocal(diag);
    }
};

/* The other unknowns. For all rows but the last of all systems. */
template <typename Number> struct AddLastUnknown {
    Systems<Number> s;
    const Number *far;

    __device__ __forceinline__ void operator()(int64_t t) const
    {
        const int64_t rows = s.rows - 1;
        const Place place(t, rows);
        const int64_t j = quotient(place.system, s.inner), k = place.system - j * s.inner;
        Number *const x = s.x.system(j, k);
        Number *const mine = x + place.i * s.x.row;

        *mine = *mine - far[place.system * rows + place.i] * x[rows * s.x.row];
    }
};

} // namespace pysolvers::reduction

#endif
