/* five_rows.cuh - systems of five diagonals by scalar rows: one thread per system.
 *
 *   a_i = l1_i - l2_i s_{i-2},   p_i = d_i - l2_i t_{i-2} - a_i s_{i-1}
 *   s_i = (u1_i - a_i t_{i-1}) / p_i,   t_i = u2_i / p_i
 *   y_i = (rhs_i - l2_i y_{i-2} - a_i y_{i-1}) / p_i,   x_i = y_i - s_i x_{i+1} - t_i x_{i+2}
 *
 * A row takes a third of the instructions of that of blocks of 2 (blocks.cuh), which bound that
 * kernel: 12000 systems of 4000 rows took 0.78 of its time in float64 and 0.73 in float32, 200000
 * of 64 rows 0.7 to 0.9 (H200). Rows are loaded by groups of four, one group ahead; contiguous ones
 * as vectors. The eliminated rows are in shared memory if they fit: 7 words for a row, otherwise
 * 13.
 *
 * Blocks exchange their two rows, scalar rows have no exchanges: a system is solved again by
 * blocks if a multiplier is large, a pivot is bad, or, where it is checked, a row is not
 * dominant. So these kernels mark the same systems.
 */
#ifndef PS_CUDA_LINES_FIVE_ROWS_CUH
#define PS_CUDA_LINES_FIVE_ROWS_CUH

#include "lines/blocks.cuh"

namespace pysolvers::lines {

template <typename Real, bool IS_WHOLE> struct FiveRows {
    static constexpr int group = 4, words = 3;
    /* multipliers beyond which rows of blocks are to be exchanged */
    static constexpr Real most_multiplier = 8;
    struct alignas(16) Numbers {
        Real at[group];
    };
    struct Group {
        Numbers band[5], rhs;
    };
    struct Eliminated {
        Real s, t, y, pivot;
    };
    const BlocksJob<Real> &job;
    const Real *from[5], *rhs; /* row 0 of this system */
    Real *x;
    bool has_all; /* diagonals */

    __device__ __forceinline__ FiveRows(const BlocksJob<Real> &all,
                                        const BlockSource<Real, 2, true> &source)
        : job(all), rhs(source.at(all.rhs, 0)), x(source.at(all.x, 0)), has_all(true)
    {
#pragma unroll
        for (int d = 0; d < 5; d++) {
            from[d] = job.bands[d].system(source.j, source.k);
            has_all = has_all && job.bands[d].data != nullptr;
        }
    }

    /* Rows i .. i + group - 1; those beyond the matrix are rows of the identity. */
    __device__ __forceinline__ void load(int32_t i, Group &to) const
    {
        if (i >= 2 && i + group <= job.rows - 2 && has_all) {
#pragma unroll
            for (int d = 0; d <= 5; d++) {
                const int64_t step = d < 5 ? job.bands[d % 5].row : job.rhs.row;
                const Real *const at = (d < 5 ? from[d % 5] : rhs) + i * step;
                Numbers &own = d < 5 ? to.band[d % 5] : to.rhs;

                if constexpr (IS_WHOLE) {
                    load_vectors(at, own);
                }
                else {
#pragma unroll
                    for (int r = 0; r < group; r++) {
                        own.at[r] = at[r * step];
                    }
                }
            }
            return;
        }
#pragma unroll
        for (int r = 0; r < group; r++) {
            const int32_t row = i + r;

#pragma unroll
            for (int d = 0; d < 5; d++) {
                const int32_t column = row + d - 2;
                const bool is_there = row < job.rows && column >= 0 &&
                                      column < job.rows && job.bands[d].data != nullptr;

                to.band[d].at[r] = is_there ? from[d][row * job.bands[d].row]
                                            : Real(d == 2 && row >= job.rows ? 1 : 0);
            }
            to.rhs.at[r] = row < job.rows ? rhs[row * job.rhs.row] : Real(0);
        }
    }

    /* Row `r` of a group after the rows `last` and `before`; whether blocks are needed. */
    __device__ __forceinline__ Eliminated eliminate(const Group &of, int r,
                                                    const Eliminated &last,
                                                    const Eliminated &before,
                                                    bool &is_unsafe) const
    {
        const Real l2 = of.band[0].at[r], l1 = of.band[1].at[r], d = of.band[2].at[r],
                   u1 = of.band[3].at[r], u2 = of.band[4].at[r];
        const Real a = l1 - l2 * before.s;
        Eliminated row;

        row.pivot = d - l2 * before.t - a * last.s;
        const Real inverse = reciprocal(row.pivot);

        row.s = (u1 - a * last.t) * inverse;
        row.t = u2 * inverse;
        row.y = (of.rhs.at[r] - l2 * before.y - a * last.y) * inverse;
        /* comparisons are false for NaN */
        bool is_safe = fabs(a) <= most_multiplier * fabs(last.pivot) &&
                       fabs(l2) <= most_multiplier * fabs(before.pivot) &&
                       fabs(inverse) <= largest && fabs(row.pivot) <= largest;

        if (job.checks) {
            is_safe = is_safe && fabs(l2) + fabs(l1) + fabs(u1) + fabs(u2) <= fabs(d);
        }
        if (job.is_definite) {
            is_safe = is_safe && row.pivot > 0;
        }
        is_unsafe = is_unsafe || !is_safe;
        return row;
    }

    /* Rows i .. i + group - 1 of x, as far as they exist. */
    __device__ __forceinline__ void store(int32_t i, const Numbers &found) const
    {
        if (IS_WHOLE) { /* a multiple of `group` rows */
            constexpr int count = 16 / sizeof(Real);

#pragma unroll
            for (int v = 0; v < group / count; v++) {
                int4 vector;

                memcpy(&vector, found.at + v * count, 16);
                reinterpret_cast<int4 *>(x + i)[v] = vector;
            }
            return;
        }
#pragma unroll
        for (int r = 0; r < group; r++) {
            if (i + r < job.rows) {
                x[(i + r) * job.x.row] = found.at[r];
            }
        }
    }

  private:
    static constexpr Real largest =
        sizeof(Real) == 4 ? Real(3.40282347e+38) : Real(1.7976931348623157e+308);
};

/* Grid: threads for outer * inner systems; IS_NEAR: eliminated rows in shared memory. */
template <typename Real, bool IS_WHOLE, bool IS_NEAR>
__global__ void
__launch_bounds__(IS_NEAR ? 32 : blocks_threads)
    five_rows_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Rows = FiveRows<Real, IS_WHOLE>;
    using Group = typename Rows::Group;
    using Eliminated = typename Rows::Eliminated;
    constexpr int group = Rows::group, words = Rows::words;
    extern __shared__ int4 shared[];
    const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t systems = job.outer * job.inner;

    if (index >= systems) {
        return;
    }
    const BlockSource<Real, 2, true> source(job, index);
    const Rows rows(job, source);
    const int64_t step = IS_NEAR ? 32 : systems;
    Real *const kept =
        IS_NEAR ? reinterpret_cast<Real *>(shared) + threadIdx.x : job.kept + index;
    Eliminated last = {0, 0, 0, 1}, before = {0, 0, 0, 1};
    bool is_unsafe = false;
    Group now, next;

    rows.load(0, next);
#pragma unroll 1
    for (int32_t i = 0; i < job.rows; i += group) {
        now = next;
        if (i + group < job.rows) {
            rows.load(i + group, next);
        }
        Real *const to = kept + i * words * step;

#pragma unroll
        for (int r = 0; r < group; r++) {
            const Eliminated row = rows.eliminate(now, r, last, before, is_unsafe);

            if (i + r < job.rows) {
                to[(r * words) * step] = row.s;
                to[(r * words + 1) * step] = row.t;
                to[(r * words + 2) * step] = row.y;
            }
            before = last;
            last = row;
        }
    }
    if (is_unsafe) {
        solve_by_blocks(job, source, index, kept, step);
        return;
    }
    if (job.info != nullptr) {
        job.info[job.is_swapped ? source.k * job.outer + source.j : index] = 0;
    }
    Real x1 = 0, x2 = 0; /* of the next rows */

#pragma unroll 1
    for (int32_t i = (job.rows - 1) / group * group; i >= 0; i -= group) {
        const Real *const at = kept + i * words * step;
        typename Rows::Numbers found;
        Real of[group][words];

#pragma unroll
        for (int r = 0; r < group; r++) {
#pragma unroll
            for (int w = 0; w < words; w++) {
                of[r][w] = i + r < job.rows ? at[(r * words + w) * step] : Real(0);
            }
        }
#pragma unroll
        for (int r = group - 1; r >= 0; r--) {
            const Real x = of[r][2] - of[r][0] * x1 - of[r][1] * x2;

            found.at[r] = x;
            x2 = x1;
            x1 = x;
        }
        rows.store(i, found);
    }
}

} // namespace pysolvers::lines

#endif
