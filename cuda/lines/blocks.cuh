/* blocks.cuh - block tridiagonal systems with blocks of 2, 3 or 4 rows, and systems of five
 * diagonals as blocks of 2: the Thomas algorithm (thomas.cuh) with blocks as numbers, one
 * thread per system.
 *
 * With the scalar rows i = 2 j and i + 1 of five diagonals,
 *
 *   lower = [l2_i l1_i; 0 l2_{i+1}]   diag = [d_i u1_i; l1_{i+1} d_{i+1}]
 *   upper = [u2_i 0; u1_{i+1} u2_{i+1}]
 *
 * after a row of the identity if their number is odd. 14/3 k^3 operations per block row of
 * side k. 5 k^2 + 4 k words, of which 2 k^2 + 2 k are those of the eliminated rows, which
 * are stored and read; 13 words per scalar row of five diagonals. Fast for many systems:
 * about 300 for each multiprocessor, because the rows of a system are eliminated one after
 * the other.
 *
 * Row exchanges inside blocks only: stable if the matrix is block diagonally dominant
 * (Higham 2002, section 13.2) or symmetric positive definite (section 13.3). x is written
 * after all of rhs is read, so that it may be rhs. csrc/cpu/lines/blocks.inc has the same
 * formulas.
 */
#ifndef PS_CUDA_LINES_BLOCKS_CUH
#define PS_CUDA_LINES_BLOCKS_CUH

#include "lines/blocks.h"
#include "lines/thomas.cuh"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::lines {

/* The largest rows that are loaded while the row before is eliminated, in bytes. */
static constexpr size_t most_ahead = 256;

/* Load what lies without gaps, aligned to 16 bytes. */
template <typename Real, typename Words>
__device__ __forceinline__ void
load_vectors(const Real *from, Words &to)
{
    constexpr int count = 16 / sizeof(Real), vectors = sizeof(Words) / 16;
    Real *const words = reinterpret_cast<Real *>(&to);

#pragma unroll
    for (int v = 0; v < vectors; v++) {
        const int4 vector = reinterpret_cast<const int4 *>(from)[v];
        Real of[count];

        memcpy(of, &vector, 16);
#pragma unroll
        for (int w = 0; w < count; w++) {
            words[v * count + w] = of[w];
        }
    }
}

/* Store what lies without gaps, aligned to 16 bytes. */
template <typename Real, typename Words>
__device__ __forceinline__ void
store_vectors(Real *to, const Words &from)
{
    constexpr int count = 16 / sizeof(Real), vectors = sizeof(Words) / 16;
    const Real *const words = reinterpret_cast<const Real *>(&from);

#pragma unroll
    for (int v = 0; v < vectors; v++) {
        Real of[count];
        int4 vector;

#pragma unroll
        for (int w = 0; w < count; w++) {
            of[w] = words[v * count + w];
        }
        memcpy(&vector, of, 16);
        reinterpret_cast<int4 *>(to)[v] = vector;
    }
}

/* A block row of two rows of five diagonals; entry(d, p) is that of diagonal `d` in row p. */
template <typename Row, typename Entry>
__device__ __forceinline__ void
pair_rows(Row &to, const Entry &entry)
{
    to.lower = {{{entry(0, 0), entry(1, 0)}, {0, entry(0, 1)}}};
    to.diag = {{{entry(2, 0), entry(3, 0)}, {entry(1, 1), entry(2, 1)}}};
    to.upper = {{{entry(4, 0), 0}, {entry(3, 1), entry(4, 1)}}};
}

/* A block row of a tile; entry(d, e) is its entry `e` in operand `d`: a diagonal, or the
 * right-hand sides after them. `is_first`: whether a row of the identity precedes row 0. */
template <typename Row, int SIDE, bool IS_BANDS, typename Entry>
__device__ __forceinline__ Row
row_of_entries(bool is_first, const Entry &entry)
{
    Row row;

    if constexpr (IS_BANDS) {
        pair_rows(row, entry);
        if (is_first) {
            row.diag.at[0][0] = 1;
        }
    }
    else {
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                row.lower.at[p][q] = entry(0, p * SIDE + q);
                row.diag.at[p][q] = entry(1, p * SIDE + q);
                row.upper.at[p][q] = entry(2, p * SIDE + q);
            }
        }
    }
#pragma unroll
    for (int p = 0; p < SIDE; p++) {
        row.rhs.at[p] = entry(IS_BANDS ? 5 : 3, p);
    }
    return row;
}

/* The operands of one system. */
template <typename Real, int SIDE, bool IS_BANDS> struct BlockSource {
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    const BlocksJob<Real> &job;
    int64_t j, k;
    int32_t rows, lead; /* block rows; scalar rows of the identity before row 0 */

    __device__ __forceinline__ BlockSource(const BlocksJob<Real> &all, int64_t index)
        : job(all), j(all.outer > 1 ? quotient(index, all.inner) : 0),
          k(index - j * all.inner), rows(IS_BANDS ? (all.rows + 1) / 2 : all.rows),
          lead(IS_BANDS ? all.rows % 2 : 0)
    {
    }

    __device__ __forceinline__ Real *at(const BlockOperand<Real> &d, int64_t i) const
    {
        return d.data + i * d.row + j * d.outer + k * d.inner;
    }

    __device__ __forceinline__ Number block(const BlockOperand<Real> &d, int64_t i) const
    {
        const Real *const from = at(d, i);
        Number a;

        if (SIDE * SIDE * sizeof(Real) % 16 == 0 && d.is_dense) {
            load_vectors(from, a);
            return a;
        }
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                a.at[p][q] = from[p * d.down + q * d.across];
            }
        }
        return a;
    }

    /* Entry `row`, one of the matrix, of diagonal `d`; those beyond the matrix are 0. */
    __device__ __forceinline__ Real band(int d, int32_t row) const
    {
        const int32_t column = row + d - 2;
        const Input<Real> &in = job.bands[d];

        return in.data != nullptr && row >= 0 && column >= 0 && column < job.rows
                   ? in.system(j, k)[row * in.row]
                   : Real(d == 2 && row < 0 ? 1 : 0);
    }

    /* Entry `p` of a column. */
    __device__ __forceinline__ Real entry(const BlockOperand<Real> &d, int64_t i,
                                          int p) const
    {
        if constexpr (IS_BANDS) {
            const int64_t row = 2 * i + p - lead;

            return row >= 0 ? *at(d, row) : Real(0);
        }
        else {
            return at(d, i)[p * d.down];
        }
    }

    __device__ __forceinline__ Value column(const BlockOperand<Real> &d, int64_t i) const
    {
        Value v;

        if (!IS_BANDS && SIDE * sizeof(Real) % 16 == 0 && d.is_dense) {
            load_vectors(at(d, i), v);
            return v;
        }
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
            v.at[p] = entry(d, i, p);
        }
        return v;
    }

    /* The block before the diagonal in row i. */
    __device__ __forceinline__ Number lower(int32_t i) const
    {
        if constexpr (IS_BANDS) {
            return matrix(i).lower;
        }
        else {
            return i > 0 ? block(job.lower, i) : Number::zero();
        }
    }

    /* Column `q` of block `d` of row i: before, on or after the diagonal. */
    __device__ __forceinline__ Value column_of(int d, int32_t i, int q) const
    {
        Value v(Real(0));

        if constexpr (IS_BANDS) {
            const ThomasRow<Number, Value> row = matrix(i);
            const Number &a = d == 0 ? row.lower : d == 1 ? row.diag : row.upper;

#pragma unroll
            for (int p = 0; p < SIDE; p++) {
                v.at[p] = q == 0 ? a.at[p][0] : a.at[p][1];
            }
        }
        else if ((d > 0 || i > 0) && (d < 2 || i < rows - 1)) {
            const BlockOperand<Real> &in = d == 0   ? job.lower
                                           : d == 1 ? job.diag
                                                    : job.upper;
            const Real *const from = at(in, i) + q * in.across;

#pragma unroll
            for (int p = 0; p < SIDE; p++) {
                v.at[p] = from[p * in.down];
            }
        }
        return v;
    }

    /* Row i of the matrix, without its right-hand side. */
    __device__ __forceinline__ ThomasRow<Number, Value> matrix(int32_t i) const
    {
        ThomasRow<Number, Value> row;

        if constexpr (IS_BANDS) {
            const int32_t r = 2 * i - lead;

            pair_rows(row, [&](int d, int p) { return band(d, r + p); });
        }
        else {
            row.lower = i > 0 ? block(job.lower, i) : Number::zero();
            row.diag = block(job.diag, i);
            row.upper = i < rows - 1 ? block(job.upper, i) : Number::zero();
        }
        return row;
    }

    __device__ __forceinline__ ThomasRow<Number, Value> load(int32_t i) const
    {
        ThomasRow<Number, Value> row = matrix(i);

        row.rhs = column(job.rhs, i);
        return row;
    }

    /* Store entry `p` of block row i of x. */
    __device__ __forceinline__ void put(int32_t i, int p, Real x) const
    {
        if constexpr (IS_BANDS) {
            const int64_t row = 2 * i + p - lead;

            if (row >= 0) {
                *at(job.x, row) = x;
            }
        }
        else {
            at(job.x, i)[p * job.x.down] = x;
        }
    }

    __device__ __forceinline__ void store(int32_t i, const Value &x) const
    {
        if (!IS_BANDS && SIDE * sizeof(Real) % 16 == 0 && job.x.is_dense) {
            store_vectors(at(job.x, i), x);
            return;
        }
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
            put(i, p, x.at[p]);
        }
    }

    /* What the call reports of the system, whose index is that of the constructor. */
    __device__ __forceinline__ int32_t &info_at(int64_t index) const
    {
        return job.info[job.is_swapped ? k * job.outer + j : index];
    }

    /* The number of a bad pivot for info, from 1 + its block row. */
    __device__ __forceinline__ int32_t info_of(int32_t bad) const
    {
        return IS_BANDS && bad > 0 ? max(2 * (bad - 1) - lead, 0) + 1 : bad;
    }
};

/* Systems whose eliminated rows alternate in memory: [32 systems][row][word][system]. */
static constexpr int kept_step = 32;

/* The eliminated rows of a system, which have `words` numbers together. */
template <typename Real>
__device__ __forceinline__ Real *
kept_of(const BlocksJob<Real> &job, int64_t index, int64_t words)
{
    return job.kept + index / kept_step * kept_step * words + index % kept_step;
}

/* Solve a system by blocks; word w of eliminated row i is kept[(i * words + w) * STEP]. */
template <int STEP = kept_step, typename Real, int SIDE, bool IS_BANDS>
__device__ __forceinline__ void
solve_by_blocks(const BlocksJob<Real> &job,
                const BlockSource<Real, SIDE, IS_BANDS> &source, int64_t index,
                Real *kept)
{
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    constexpr int words = SIDE * SIDE + SIDE, ahead = SIDE == 2 ? 4 : 2;
    const int32_t last = source.rows - 1;
    Sweep<Number, Value> sweep = {};
    bool is_dominated = true;

    const auto eliminate = [&](const ThomasRow<Number, Value> &row, int32_t i) {
        if (job.checks) {
            is_dominated = is_dominated && is_dominant(row.lower, row.diag, row.upper);
        }
        if (job.is_definite && sweep.info == 0 &&
            !is_positive_definite(row.diag - row.lower * sweep.c)) {
            sweep.info = i + 1;
        }
        sweep.template eliminate<false>(row, Number::zero(), i);
        if (i < last) {
#pragma unroll
            for (int p = 0; p < SIDE; p++) {
#pragma unroll
                for (int q = 0; q < SIDE; q++) {
                    kept[(p * SIDE + q) * STEP] = sweep.c.at[p][q];
                }
                kept[(SIDE * SIDE + p) * STEP] = sweep.y.at[p];
            }
        }
        kept += words * STEP;
    };

    if constexpr (sizeof(ThomasRow<Number, Value>) <= most_ahead) {
        ThomasRow<Number, Value> row = source.load(0);

#pragma unroll 1
        for (int32_t i = 0; i <= last; i++) {
            const ThomasRow<Number, Value> next = source.load(min(i + 1, last));

            eliminate(row, i);
            row = next;
        }
    }
    else {
#pragma unroll 1
        for (int32_t i = 0; i <= last; i++) {
            eliminate(source.load(i), i);
        }
    }
    const bool is_left = job.checks && (!is_dominated || sweep.info != 0);

    if (job.info != nullptr) {
        job.info[job.is_swapped ? source.k * job.outer + source.j : index] =
            is_left ? -1 : source.info_of(sweep.info);
    }
    if (is_left) {
        return;
    }
    Value x = sweep.y;

    source.store(last, x);
    kept -= (1 + ahead) * words * STEP; /* row i + 1 - ahead */
#pragma unroll 1
    for (int32_t i = last - 1; i >= 0; i -= ahead, kept -= ahead * words * STEP) {
        Number c[ahead];
        Value y[ahead];

#pragma unroll
        for (int r = ahead - 1; r >= 0; r--) {
            if (i + 1 - ahead + r < 0) {
                continue;
            }
            const Real *const from = kept + r * words * STEP;

#pragma unroll
            for (int p = 0; p < SIDE; p++) {
#pragma unroll
                for (int q = 0; q < SIDE; q++) {
                    c[r].at[p][q] = from[(p * SIDE + q) * STEP];
                }
                y[r].at[p] = from[(SIDE * SIDE + p) * STEP];
            }
        }
#pragma unroll
        for (int r = ahead - 1; r >= 0; r--) {
            if (i + 1 - ahead + r >= 0) {
                x = y[r] - c[r] * x;
                source.store(i + 1 - ahead + r, x);
            }
        }
    }
}

/* The operation of an element (runtime/elements.cuh) that is a system: solve it from row 0 on; if IS_BAD,
 * only systems that are known to have a bad pivot, whose first bad pivot is reported. */
template <typename Real, int SIDE, bool IS_BANDS, bool IS_BAD> struct BlocksInSequence {
    BlocksJob<Real> job;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        const BlockSource<Real, SIDE, IS_BANDS> source(job, index);

        if (!IS_BAD || source.info_at(index) > 0) {
            solve_by_blocks(job, source, index,
                            kept_of(job, index, source.rows * (SIDE * SIDE + SIDE)));
        }
    }
};

} // namespace pysolvers::lines

#endif
