/* blocks_factor.cuh - factors of block tridiagonal matrices, and of five diagonals as blocks
 * of 2, that are kept: solves, determinants, blocks of the inverse.
 *
 * Many matrices: one thread eliminates a matrix, as blocks.cuh does. Few long ones: a thread
 * eliminates the rows of a chunk but the last one, which are coupled to the last row l of the
 * chunk before, too; the last rows of the chunks are a block tridiagonal matrix again, which
 * is the next level. With the coupling w_i of row i to row l and h_i of row l to row i,
 *
 *   p_i = diag_i - lower_i c_{i-1},  c_i = p_i^-1 upper_i,  w_i = -p_i^-1 lower_i w_{i-1},
 *   h_{i+1} = -h_i c_i
 *
 * and row l loses the sum of h_i w_i from its diagonal. A row of the store has lower_i, p_i^-1,
 * c_i and, in chunks, w_i and h_i: [32 chunks][row][entry][chunk], so that neighbouring threads
 * have neighbours, and a warp one piece of memory. Of the inverse S the blocks of row i follow from those of the rows n = i + 1 and
 * l (Takahashi, Fagan and Chen 1973), with k = n, l:
 *
 *   S_ik = -c_i S_nk - w_i S_lk,  S_ki = -(S_kn lower_n + S_kl h_i) p_i^-1
 *   S_ii = (1 - S_in lower_n - S_il h_i) p_i^-1
 *
 * Stable as blocks.cuh: dominant matrices and positive definite ones leave such matrices for
 * the next level. Chunks are loaded by rows: blocks of 2 x 2 numbers in float64 are a sector
 * of memory each.
 *
 * A matrix of 1.8e6 rows of blocks of 4 in float64 takes 0.93 ms, a solve 0.59 ms, the blocks of
 * the inverse 1.16 ms (H200): half of the speed of a copy in the first level. With numbers of a row
 * one matrix apart in memory, they took 1.5, 0.8 and 2.1 ms. The levels below take as long as one
 * chunk: chunks of 16 rows 0.26, 0.4 and 0.33 ms, of 4 rows 0.19, 0.19 and 0.2 ms.
 *
 * Why not join/segment.cuh: its chunks are in registers and keep nothing.
 */
#ifndef PS_CUDA_LINES_BLOCKS_FACTOR_CUH
#define PS_CUDA_LINES_BLOCKS_FACTOR_CUH

#include "lines/blocks.cuh"
#include "lines/blocks_factor.h"

namespace pysolvers::lines {

/* A product of pivots without overflow. */
struct PivotProduct {
    double mantissa = 1;
    int64_t exponent = 0;

    __device__ __forceinline__ void multiply(double pivot)
    {
        int of = 0;

        mantissa *= frexp(pivot, &of);
        exponent += of;
        if (fabs(mantissa) < 1e-100) {
            mantissa = frexp(mantissa, &of);
            exponent += of;
        }
    }

    template <typename Real, int SIDE>
    __device__ __forceinline__ void multiply(const Block<Real, SIDE> &of)
    {
        double a[SIDE][SIDE];

#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                a[p][q] = of.at[p][q];
            }
        }
#pragma unroll
        for (int k = 0; k < SIDE; k++) {
#pragma unroll
            for (int r = k + 1; r < SIDE; r++) {
                const bool swaps = fabs(a[r][k]) > fabs(a[k][k]);

#pragma unroll
                for (int q = k; q < SIDE; q++) {
                    const double own = a[k][q], other = a[r][q];

                    a[k][q] = swaps ? other : own;
                    a[r][q] = swaps ? -own : other; /* the determinant stays */
                }
            }
            const double inverse = 1 / a[k][k];

#pragma unroll
            for (int r = k + 1; r < SIDE; r++) {
                const double m = a[r][k] * inverse;

#pragma unroll
                for (int q = k + 1; q < SIDE; q++) {
                    a[r][q] -= m * a[k][q];
                }
            }
            multiply(a[k][k]);
        }
    }

    /* The inverse of a block, and its determinant: that of float32 is computed in double. */
    template <typename Real, int SIDE>
    __device__ __forceinline__ Block<Real, SIDE> invert(const Block<Real, SIDE> &of)
    {
        if constexpr (sizeof(Real) == 4) {
            multiply(of);
            return reciprocal(of);
        }
        else {
            const Cofactors<Real, SIDE> all(of);

            if (all.is_safe()) {
                multiply(all.determinant);
                return all.inverse();
            }
            return inverted(
                of,
                [&](Real pivot) {
                    multiply(pivot);
                    return reciprocal(pivot);
                },
                [&](bool swaps) { mantissa = swaps ? -mantissa : mantissa; });
        }
    }
};

/* The chunk, or the matrix, of a thread. */
template <typename Real, int SIDE, bool IS_DIVIDED> struct FactorUnit {
    using Number = Block<Real, SIDE>;
    static constexpr int words = (IS_DIVIDED ? 5 : 3) * SIDE * SIDE;
    const FactorJob<Real> &job;
    const FactorLevel &level;
    int64_t system, matrix;
    int32_t chunk, first, rows; /* rows: those that are eliminated */
    Real *store;

    __device__ __forceinline__ FactorUnit(const FactorJob<Real> &all, int64_t index)
        : job(all), level(all.shape.level[all.level]),
          system(IS_DIVIDED ? index / level.chunks : index),
          chunk(IS_DIVIDED ? static_cast<int32_t>(index - system * level.chunks) : 0),
          first(chunk * level.chunk),
          rows(IS_DIVIDED ? min(level.chunk, level.rows - first) - 1 : level.rows)
    {
        const int64_t j = system / job.inner, k = system - j * job.inner;

        matrix = j * job.outer_step * job.factor_inner + k * job.inner_step;

        const int64_t unit = matrix * level.chunks + chunk;
        const int64_t kept = (IS_DIVIDED ? level.chunk : level.rows) * int64_t(words);

        store = job.store + level.first + unit / factor_step * factor_step * kept +
                unit % factor_step;
    }

    /* Word `word` of row `r` of the chunk. */
    __device__ __forceinline__ Number word(int32_t r, int word, bool trans = false) const
    {
        const Real *const from = store + (r * words + word * SIDE * SIDE) * factor_step;
        Number a;

#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                a.at[p][q] = from[(trans ? q * SIDE + p : p * SIDE + q) * factor_step];
            }
        }
        return a;
    }

    __device__ __forceinline__ void keep(int32_t r, int word, const Number &a) const
    {
        Real *const to = store + (r * words + word * SIDE * SIDE) * factor_step;

#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                to[(p * SIDE + q) * factor_step] = a.at[p][q];
            }
        }
    }

    /* Entry `entry` of the next level at the last row of a chunk, `count` for each row. */
    template <typename Entry>
    __device__ __forceinline__ Entry &next(int32_t of, int entry, int count) const
    {
        Real *const at =
            job.next + ((system * level.chunks + of) * count + entry) *
                           static_cast<int64_t>(sizeof(Entry) / sizeof(Real));

        return *reinterpret_cast<Entry *>(at);
    }
};

/* The block row of the first level that is block row `row` of this one. */
template <typename Real>
__device__ __forceinline__ int32_t
first_row_of(const FactorJob<Real> &job, int32_t row)
{
    for (int l = job.level - 1; l >= 0; l--) {
        row = min((row + 1) * job.shape.level[l].chunk, job.shape.level[l].rows) - 1;
    }
    return row;
}

/* Elements: the chunks of all matrices. */
template <typename Real, int SIDE, bool IS_BANDS, bool IS_DIVIDED> struct FactorBlocks {
    FactorJob<Real> job;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        using Number = Block<Real, SIDE>;
        const FactorUnit<Real, SIDE, IS_DIVIDED> unit(job, index);

        const BlockSource<Real, SIDE, IS_BANDS> source(job.rows, unit.system);
        Number c = Number::zero(), w = c, h = c, lost = c;
        PivotProduct product;
        FactorSum sum = {0, 1, 0, 0};

        const auto load = [&](int32_t i) {
            auto row = source.matrix(i);

            if (job.more.data != nullptr) {
                row.diag = row.diag + source.block(job.more, i);
            }
            if (job.rows.checks && job.level == 0 &&
                !is_dominant(row.lower, row.diag, row.upper)) {
                sum.is_left = 1;
            }
            if (job.sums_before != nullptr) {
                const FactorSum more = job.sums_before[unit.system * unit.level.rows + i];

                sum.log += more.log;
                sum.sign *= more.sign;
                sum.is_left |= more.is_left;
                sum.bad = more.bad != 0 && (sum.bad == 0 || more.bad < sum.bad) ? more.bad
                                                                                : sum.bad;
            }
            return row;
        };

        if (IS_DIVIDED && unit.chunk > 0) {
            h = source.matrix(unit.first - 1).upper;
        }
#pragma unroll 1
        for (int32_t r = 0; r < unit.rows; r++) {
            const auto row = load(unit.first + r);
            const Number lower = IS_DIVIDED && r == 0 ? Number::zero() : row.lower;
            const Number pivot = row.diag - lower * c;
            const Number inverse = product.invert(pivot);
            const bool is_bad = !is_finite(inverse) || !is_finite(pivot);

            if (is_bad || (job.rows.is_definite && !is_positive_definite(pivot))) {
                const int32_t at = first_row_of(job, unit.first + r) + 1;

                sum.bad = sum.bad == 0 || at < sum.bad ? at : sum.bad;
            }
            c = inverse * row.upper;
            unit.keep(r, 0, lower);
            unit.keep(r, 1, inverse);
            unit.keep(r, 2, c);
            if constexpr (IS_DIVIDED) {
                w = inverse * (r == 0 ? row.lower : -(row.lower * w));
                unit.keep(r, 3, w);
                unit.keep(r, 4, h);
                lost = lost - h * w;
                h = -(h * c);
            }
        }
        sum.log +=
            log(fabs(product.mantissa)) + product.exponent * 0.69314718055994530942;
        sum.sign *= product.mantissa < 0 ? -1 : 1;
        if constexpr (IS_DIVIDED) {
            const auto row = load(unit.first + unit.rows);
            const bool is_alone = unit.rows == 0;

            unit.keep(unit.rows, 0, row.lower);
            unit.template next<Number>(unit.chunk, 0, 4) =
                is_alone ? row.lower : -(row.lower * w);
            unit.template next<Number>(unit.chunk, 1, 4) =
                is_alone ? row.diag : row.diag - row.lower * c;
            if (unit.chunk > 0) {
                unit.template next<Number>(unit.chunk - 1, 2, 4) = h;
                unit.template next<Number>(unit.chunk - 1, 3, 4) = lost;
            }
            if (unit.chunk == unit.level.chunks - 1) {
                unit.template next<Number>(unit.chunk, 3, 4) = Number::zero();
            }
            job.sums[index] = sum;
        }
        else {
            if (job.rows.info != nullptr) {
                const int32_t scalars = job.shape.scalars;

                job.rows.info[index] = job.rows.checks && (sum.is_left || sum.bad != 0)
                                           ? -1
                                       : scalars != 0 && sum.bad > 0
                                           ? max(2 * (sum.bad - 1) - scalars % 2, 0) + 1
                                           : sum.bad;
            }
            job.sums[index] = sum;
        }
    }
};

/* From rhs to what the rows of a chunk are without their later unknowns, in x, and rhs of the
 * next level. */
template <typename Real, int SIDE, bool IS_BANDS, bool IS_DIVIDED>
__device__ __forceinline__ void
solve_down(const FactorJob<Real> &job, const FactorUnit<Real, SIDE, IS_DIVIDED> &unit,
           const BlockSource<Real, SIDE, IS_BANDS> &source)
{
    using Value = Vector<Real, SIDE>;
    const bool trans = job.trans != 0;
    Value before(Real(0)), lost(Real(0)); /* y of the row before, or s if transposed */

    const auto rhs = [&](int32_t i) {
        Value v = source.column(job.rows.rhs, i);

        if (job.more_rhs.data != nullptr) {
            const Value more = source.column(job.more_rhs, i);

#pragma unroll
            for (int p = 0; p < SIDE; p++) {
                v.at[p] += more.at[p];
            }
        }
        return v;
    };

#pragma unroll 1
    for (int32_t r = 0; r < unit.rows; r++) {
        Value s = rhs(unit.first + r);

        if (r > 0) {
            s = s - (trans ? unit.word(r - 1, 2, true) : unit.word(r, 0)) * before;
        }
        before = trans ? s : unit.word(r, 1) * s;
        source.store(unit.first + r, before);
        if constexpr (IS_DIVIDED) {
            lost = lost - unit.word(r, trans ? 3 : 4, trans) * before;
        }
    }
    if constexpr (IS_DIVIDED) {
        Value s = rhs(unit.first + unit.rows);

        if (unit.rows > 0) {
            s = s -
                (trans ? unit.word(unit.rows - 1, 2, true) : unit.word(unit.rows, 0)) *
                    before;
        }
        unit.template next<Value>(unit.chunk, 0, 2) = s;
        if (unit.chunk > 0) {
            unit.template next<Value>(unit.chunk - 1, 1, 2) = lost;
        }
        if (unit.chunk == unit.level.chunks - 1) {
            unit.template next<Value>(unit.chunk, 1, 2) = Value(Real(0));
        }
    }
}

/* The unknowns, given those of the next level. */
template <typename Real, int SIDE, bool IS_BANDS, bool IS_DIVIDED>
__device__ __forceinline__ void
solve_up(const FactorJob<Real> &job, const FactorUnit<Real, SIDE, IS_DIVIDED> &unit,
         const BlockSource<Real, SIDE, IS_BANDS> &source)
{
    using Value = Vector<Real, SIDE>;
    const bool trans = job.trans != 0;
    Value x(Real(0)), left(Real(0)); /* of the row after, and of the chunk before */

    if constexpr (IS_DIVIDED) {
        x = unit.template next<Value>(unit.chunk, 0, 1);
        if (unit.chunk > 0) {
            left = unit.template next<Value>(unit.chunk - 1, 0, 1);
        }
        source.store(unit.first + unit.rows, x);
    }
#pragma unroll 1
    for (int32_t r = unit.rows - 1; r >= 0; r--) {
        Value y = source.column(job.rows.x, unit.first + r);

        if (trans) {
            if (IS_DIVIDED || r < unit.rows - 1) {
                y = y - unit.word(r + 1, 0, true) * x;
            }
            if (IS_DIVIDED) {
                y = y - unit.word(r, 4, true) * left;
            }
            x = unit.word(r, 1, true) * y;
        }
        else {
            x = y - unit.word(r, 2) * x;
            if (IS_DIVIDED) {
                x = x - unit.word(r, 3) * left;
            }
        }
        source.store(unit.first + r, x);
    }
}

/* Elements: the chunks of all systems. */
template <typename Real, int SIDE, bool IS_BANDS, bool IS_DIVIDED, bool DOWN, bool UP>
struct ApplyFactor {
    FactorJob<Real> job;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        const FactorUnit<Real, SIDE, IS_DIVIDED> unit(job, index);

        const BlockSource<Real, SIDE, IS_BANDS> source(job.rows, unit.system);

        if constexpr (DOWN) {
            solve_down<Real, SIDE, IS_BANDS, IS_DIVIDED>(job, unit, source);
        }
        if constexpr (UP) {
            solve_up<Real, SIDE, IS_BANDS, IS_DIVIDED>(job, unit, source);
        }
    }
};

/* Elements: the chunks of all matrices. */
template <typename Real, int SIDE, bool IS_DIVIDED> struct InverseBlocks {
    FactorJob<Real> job;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        using Number = Block<Real, SIDE>;
        const FactorUnit<Real, SIDE, IS_DIVIDED> unit(job, index);

        const bool is_last = unit.first + unit.rows + IS_DIVIDED == unit.level.rows;
        Number nn = Number::zero(), nl = nn, ln = nn, ll = nn;

        const auto put = [&](int d, int32_t i, const Number &a) {
            const BlockOperand<Real> &to = job.inverse[d];
            Real *const at = to.data + i * to.row + unit.system * to.inner;

            if (to.data == nullptr) {
                return;
            }
            if (SIDE * SIDE * sizeof(Real) % 16 == 0 && to.is_dense) {
                store_vectors(at, a);
                return;
            }
#pragma unroll
            for (int p = 0; p < SIDE; p++) {
#pragma unroll
                for (int q = 0; q < SIDE; q++) {
                    at[p * to.down + q * to.across] = a.at[p][q];
                }
            }
        };

        if constexpr (IS_DIVIDED) {
            nn = unit.template next<Number>(unit.chunk, 1, 3);
            if (unit.chunk > 0) {
                ll = unit.template next<Number>(unit.chunk - 1, 1, 3);
                ln = unit.template next<Number>(unit.chunk - 1, 2, 3);
                nl = unit.template next<Number>(unit.chunk, 0, 3);
            }
            put(1, unit.first + unit.rows, nn);
        }
        if (is_last) {
            put(2, unit.level.rows - 1, Number::zero());
        }
#pragma unroll 1
        for (int32_t r = unit.rows - 1; r >= 0; r--) {
            const Number inverse = unit.word(r, 1);
            Number in = Number::zero(), own = inverse;

            if (IS_DIVIDED || r < unit.rows - 1) {
                const Number lower = unit.word(r + 1, 0), c = unit.word(r, 2);
                Number sum = nn * lower;

                in = -(c * nn);
                if constexpr (IS_DIVIDED) {
                    const Number w = unit.word(r, 3), h = unit.word(r, 4);
                    const Number il = -(c * nl + w * ll);
                    const Number li = -((ln * lower + ll * h) * inverse);

                    in = in - w * ln;
                    sum = sum + nl * h;
                    own = inverse - (in * lower + il * h) * inverse;
                    nl = il;
                    ln = li;
                }
                else {
                    own = inverse - in * lower * inverse;
                }
                put(2, unit.first + r, in);
                put(0, unit.first + r + 1, -(sum * inverse));
            }
            nn = own;
            put(1, unit.first + r, own);
        }
        if (unit.chunk == 0) {
            put(0, 0, Number::zero());
        }
        else {
            put(0, unit.first, nl);
            put(2, unit.first - 1, ln);
        }
    }
};

} // namespace pysolvers::lines

#endif
