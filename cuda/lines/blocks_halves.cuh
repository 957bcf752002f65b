/* blocks_halves.cuh - the systems of blocks.cuh, with blocks of 2 rows, whose eliminated rows
 * stay in shared memory: each operand is read once, and nothing but x is written.
 *
 * Two threads have a system: one eliminates its first rows from above, the other one its last
 * rows from below, until row m is left,
 *
 *   (diag_m - lower_m c_{m-1} - upper_m c_{m+1}) x_m =
 *       rhs_m - lower_m y_{m-1} - upper_m y_{m+1},
 *
 * and both substitute away from it. So the shared memory of a multiprocessor, which bounds the
 * systems, has twice as many threads that load; rows are loaded by groups while the group
 * before is eliminated. Contiguous rows of five diagonals are loaded as vectors.
 *
 * Stable as blocks.cuh: the pivots are those of an elimination of another order, which
 * dominant and positive definite matrices allow.
 *
 * Why not blocks_tiles.cuh: its tiles take half of the shared memory.
 */
#ifndef PS_CUDA_LINES_BLOCKS_HALVES_CUH
#define PS_CUDA_LINES_BLOCKS_HALVES_CUH

#include "lines/blocks.cuh"

namespace pysolvers::lines {

/* One half of a system; rows count from its end. */
template <typename Real, int SIDE, bool IS_BANDS, bool IS_WHOLE, bool IS_LOWER>
struct HalfSystem {
    using Number = Block<Real, SIDE>;
    using Value = Column<Real, SIDE>;
    using Row = ThomasRow<Number, Value>;
    using Source = BlockSource<Real, SIDE, IS_BANDS>;
    static constexpr int group = SIDE == 2 ? 2 : 1, words = SIDE * SIDE + SIDE;
    struct Group {
        Row row[group];
    };
    const Source &source;
    int32_t count; /* rows of this half */
    Real *kept;    /* of this lane: [row][word][32] */

    __device__ __forceinline__ int32_t place(int32_t i) const
    {
        return IS_LOWER ? source.rows - 1 - i : i;
    }

    /* Rows i .. i + group - 1, as far as there are so many. */
    __device__ __forceinline__ void load(int32_t i, Group &to) const
    {
        if constexpr (IS_WHOLE) {
            const int32_t first = IS_LOWER ? place(i + group - 1) : i;

            if (first > 0 && first + group < source.rows) {
                load_whole(first, to);
                return;
            }
        }
#pragma unroll
        for (int g = 0; g < group; g++) {
            if (i + g < count) {
                to.row[g] = source.load(place(i + g));
            }
        }
    }

    __device__ __forceinline__ void keep(int32_t i, const Number &c, const Value &y) const
    {
        Real *const to = kept + i * words * 32;

#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                to[(p * SIDE + q) * 32] = c.at[p][q];
            }
            to[(SIDE * SIDE + p) * 32] = y.at[p];
        }
    }

    __device__ __forceinline__ void kept_row(int32_t i, Number &c, Value &y) const
    {
        const Real *const from = kept + i * words * 32;

#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                c.at[p][q] = from[(p * SIDE + q) * 32];
            }
            y.at[p] = from[(SIDE * SIDE + p) * 32];
        }
    }

    /* Eliminate the rows of this half; the last one of the upper half is only loaded. */
    __device__ __forceinline__ void down(Sweep<Number, Value> &sweep, Row &last,
                                         bool &is_dominated) const
    {
        const BlocksJob<Real> &job = source.job;
        Group now, next;

        load(0, next);
#pragma unroll 1
        for (int32_t i = 0; i < count; i += group) {
            now = next;
            if (i + group < count) {
                load(i + group, next);
            }
#pragma unroll
            for (int g = 0; g < group; g++) {
                if (i + g >= count) {
                    break;
                }
                Row row = now.row[g];

                if (job.checks) {
                    is_dominated =
                        is_dominated && is_dominant(row.lower, row.diag, row.upper);
                }
                if (!IS_LOWER && i + g == count - 1) {
                    last = row;
                    break;
                }
                if (IS_LOWER) {
                    const Number lower = row.lower;

                    row.lower = row.upper;
                    row.upper = lower;
                }
                if (job.is_definite && sweep.info == 0 &&
                    !is_positive_definite(row.diag - row.lower * sweep.c)) {
                    sweep.info = place(i + g) + 1;
                }
                sweep.template eliminate<false>(row, Number::zero(), place(i + g));
                keep(i + g, sweep.c, sweep.y);
            }
        }
    }

    /* Substitute, given x of the row after the kept ones. */
    __device__ __forceinline__ void up(Value x) const
    {
        int32_t i = count - 1;

        if (!IS_LOWER) {
            if constexpr (!IS_WHOLE) {
                source.store(place(i), x);
            }
            i--; /* count is a multiple of `group` if IS_WHOLE */
        }
#pragma unroll 1
        for (; i >= 0;) {
            if constexpr (IS_WHOLE) {
                /* the last group of the upper half has one row less to compute */
                const bool is_begun = !IS_LOWER && i % group != group - 1;
                Value found[group];

#pragma unroll
                for (int g = group - 1; g >= 0; g--) {
                    if (is_begun && g == group - 1) {
                        found[g] = x;
                        continue;
                    }
                    step(i--, x);
                    found[g] = x;
                }
                store_whole(i + 1, found);
            }
            else {
                step(i, x);
                source.store(place(i--), x);
            }
        }
    }

  private:
    __device__ __forceinline__ void step(int32_t i, Value &x) const
    {
        Number c;
        Value y;

        kept_row(i, c, y);
        x = y - c * x;
    }

    /* 2 * group scalar rows of five diagonals, all entries of which exist. */
    __device__ __forceinline__ void load_whole(int32_t first, Group &to) const
    {
        struct Numbers {
            Real at[2 * group];
        };
        const BlocksJob<Real> &job = source.job;
        Numbers band[5], rhs;

#pragma unroll
        for (int d = 0; d < 5; d++) {
            load_vectors(job.bands[d].system(source.j, source.k) + 2 * first, band[d]);
        }
        load_vectors(source.at(job.rhs, 2 * first), rhs);
#pragma unroll
        for (int r = 0; r < group; r++) {
            Row &row = to.row[IS_LOWER ? group - 1 - r : r];
            const int p = 2 * r, q = p + 1;

            row.lower = {{{band[0].at[p], band[1].at[p]}, {0, band[0].at[q]}}};
            row.diag = {{{band[2].at[p], band[3].at[p]}, {band[1].at[q], band[2].at[q]}}};
            row.upper = {{{band[4].at[p], 0}, {band[3].at[q], band[4].at[q]}}};
            row.rhs.at[0] = rhs.at[p];
            row.rhs.at[1] = rhs.at[q];
        }
    }

    /* Rows i .. i + group - 1 of x. */
    __device__ __forceinline__ void store_whole(int32_t i,
                                                const Value (&found)[group]) const
    {
        constexpr int count = 16 / sizeof(Real), numbers = 2 * group;
        Real all[numbers];
        Real *const to =
            source.at(source.job.x, 2 * (IS_LOWER ? place(i + group - 1) : i));

#pragma unroll
        for (int r = 0; r < group; r++) {
            const Value &x = found[IS_LOWER ? group - 1 - r : r];

            all[2 * r] = x.at[0];
            all[2 * r + 1] = x.at[1];
        }
#pragma unroll
        for (int v = 0; v < numbers / count; v++) {
            int4 vector;

            memcpy(&vector, all + v * count, 16);
            reinterpret_cast<int4 *>(to)[v] = vector;
        }
    }
};

/* Grid: blocks of two warps for 32 systems, of at least `least_halves` block rows. */
template <typename Real, int SIDE, bool IS_BANDS, bool IS_WHOLE>
__global__ void
__launch_bounds__(halves_threads, sizeof(Real) == 4 ? 8 : 4)
    blocks_halves_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Upper = HalfSystem<Real, SIDE, IS_BANDS, IS_WHOLE, false>;
    using Lower = HalfSystem<Real, SIDE, IS_BANDS, IS_WHOLE, true>;
    using Number = Block<Real, SIDE>;
    using Value = Column<Real, SIDE>;
    extern __shared__ int4 shared[];
    const bool is_lower = threadIdx.x >= 32;
    const int lane = threadIdx.x % 32;
    const int64_t systems = job.outer * job.inner;
    const int64_t own = static_cast<int64_t>(blockIdx.x) * 32 + lane;
    const int64_t index = min(own, systems - 1); /* the last system more than once */
    const BlockSource<Real, SIDE, IS_BANDS> source(job, index);
    const int32_t below = source.rows / 2 / Upper::group * Upper::group,
                  above = source.rows - below;
    Real *const kept = reinterpret_cast<Real *>(shared) + lane;
    Real *const end = kept + (source.rows - 1) * Upper::words * 32;
    int32_t *const infos =
        reinterpret_cast<int32_t *>(end - lane + SIDE * 32) + lane; /* -1: is left */
    const Upper upper = {source, above, kept};
    const Lower lower = {source, below, kept + (above - 1) * Upper::words * 32};
    Sweep<Number, Value> sweep = {};
    ThomasRow<Number, Value> last;
    bool is_dominated = true;

    if (is_lower) {
        lower.down(sweep, last, is_dominated);
        infos[0] = is_dominated ? sweep.info : -1;
    }
    else {
        upper.down(sweep, last, is_dominated);
    }
    __syncthreads(); /* the rows below are eliminated */
    if (!is_lower) {
        const int32_t row = above - 1;
        int32_t info = infos[0];
        Number c;
        Value y;

        lower.kept_row(below - 1, c, y);
        last.diag = last.diag - last.upper * c;
        last.rhs = last.rhs - last.upper * y;
        last.upper = Number::zero();
        if (job.is_definite && sweep.info == 0 &&
            !is_positive_definite(last.diag - last.lower * sweep.c)) {
            sweep.info = row + 1;
        }
        sweep.template eliminate<false>(last, Number::zero(), row);
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
            end[p * 32] = sweep.y.at[p];
        }
        info = info < 0 ? info : sweep.info != 0 ? sweep.info : info;
        info = job.checks && (!is_dominated || info != 0) ? -1 : info;
        infos[0] = info;
        if (job.info != nullptr && own < systems) {
            job.info[job.is_swapped ? source.k * job.outer + source.j : index] =
                info < 0 ? -1 : source.info_of(info);
        }
    }
    __syncthreads(); /* x of the last row of the upper half is there */
    if (own >= systems || infos[0] < 0) {
        return;
    }
    Value x;

#pragma unroll
    for (int p = 0; p < SIDE; p++) {
        x.at[p] = end[p * 32];
    }
    if (is_lower) {
        lower.up(x);
    }
    else {
        upper.up(x);
    }
}

} // namespace pysolvers::lines

#endif
