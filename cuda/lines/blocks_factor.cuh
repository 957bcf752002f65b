/* blocks_factor.cuh - factors of block tridiagonal matrices, and of five diagonals as blocks
 * of 2, that are kept: solves, determinants, blocks of the inverse.
 *
 * Many matrices: a team of lanes (block_team.cuh) eliminates a matrix. Few long ones: a team
 * eliminates the rows of a chunk but the last one, which are coupled to the last row l of the
 * chunk before, too; the last rows of the chunks are a block tridiagonal matrix again, which
 * is the next level. With the coupling w_i of row i to row l and h_i of row l to row i,
 *
 *   p_i = diag_i - lower_i c_{i-1},  c_i = p_i^-1 upper_i,  w_i = -p_i^-1 lower_i w_{i-1},
 *   h_{i+1} = -h_i c_i
 *
 * and row l loses the sum of h_i w_i from its diagonal. A row of the store has lower_i, p_i^-1,
 * c_i and, in chunks, w_i and h_i: [32 chunks][row][entry][chunk], so that neighbouring
 * threads and teams have neighbours. Of the inverse S the blocks of row i
 * follow from those of the rows n = i + 1 and l (Takahashi, Fagan and Chen 1973), with k = n, l:
 *
 *   S_ik = -c_i S_nk - w_i S_lk,  S_ki = -(S_kn lower_n + S_kl h_i) p_i^-1
 *   S_ii = (1 - S_in lower_n - S_il h_i) p_i^-1
 *
 * A solve of few long systems has the same levels. Its first direction eliminates the right-hand
 * sides as well, y_i = p_i^-1 (rhs_i - lower_i y_{i-1}), where row l loses h_i y_i, and keeps c_i, w_i
 * and y_i alone, in the workspace: of blocks of 2 10 words in place of 20, and 36 words move for a row
 * of the first level. The second one writes x_i = y_i - c_i x_{i+1} - w_i x_l. One thread has a
 * chunk of neighbouring systems of blocks of 2, whose rows lie together. Systems with a bad pivot, which can be one of a chunk alone, and those that are not
 * dominant keep their right-hand sides and are solved after that.
 *
 * Columns of blocks in the elimination, where products with known columns are on the right, rows in
 * the inverse, where they are on the left. A solve has one thread for each chunk of a system, which
 * reads 96 words of a row with blocks of 4 and computes little: by teams its first level took 1.9 of
 * the time.
 *
 * Stable as blocks.cuh: dominant matrices and positive definite ones leave such matrices for
 * the next level.
 *
 * A matrix of 1.8e6 rows of blocks of 4 in float64 (H200): the first level takes 0.53 ms, with one
 * thread for a chunk 0.69; that of the blocks of the inverse 0.64 and 0.97; copies of their words 0.43
 * and 0.43. The two passes of a solve take 0.24 and 0.16 ms, copies 0.19 and 0.14. The levels below,
 * chunks of 4 rows, take 8 to 20 us each; a kernel of them is launched while the one before runs. With
 * chunks of 8 or 16 rows the likelihood of benchmarks/gaussian_process.py takes 1.04 and 1.13 of the
 * time. Of the time with one thread for a chunk, 2^20 rows of blocks of 2, 3 and 4 take 1.03, 0.94
 * and 0.78 in float64, 0.92, 0.79 and 1.04 in float32, the blocks of the inverse 0.9, 0.44 and 0.64,
 * and 1.06, 0.36 and 0.84.
 *
 * Why not join/segment.cuh: its chunks are in registers and keep nothing.
 */
#ifndef PS_CUDA_LINES_BLOCKS_FACTOR_CUH
#define PS_CUDA_LINES_BLOCKS_FACTOR_CUH

#include <type_traits>

#include "lines/blocks.cuh"
#include "lines/block_team.cuh"
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
        const Cofactors<Real, SIDE> all(of);
        const bool is_safe = all.is_safe();

        if (!is_safe) {
            *this = times_determinant(*this, of);
            return eliminated_reciprocal(of);
        }
        if constexpr (sizeof(Real) == 8) {
            multiply(all.determinant);
        }
        else {
            Block<double, SIDE> wide;

#pragma unroll
            for (int p = 0; p < SIDE; p++) {
#pragma unroll
                for (int q = 0; q < SIDE; q++) {
                    wide.at[p][q] = of.at[p][q];
                }
            }
            multiply(Cofactors<double, SIDE>(wide).determinant);
        }
        return all.inverse();
    }

  private:
    /* Not inlined, because it is rare and long. */
    template <typename Real, int SIDE>
    static __device__ __noinline__ PivotProduct
    times_determinant(PivotProduct product, const Block<Real, SIDE> of)
    {
        product.multiply(of);
        return product;
    }
};

/* The chunk, or the matrix, of a thread or of a team. A solve keeps c_i, w_i and y_i of a row. */
template <typename Real, int SIDE, bool IS_DIVIDED, bool SOLVES = false>
struct FactorUnit {
    using Number = Block<Real, SIDE>;
    using Value = Vector<Real, SIDE>;
    static constexpr int at_c = SOLVES ? 0 : 2, at_w = at_c + 1;
    static constexpr int at_y =
        (IS_DIVIDED ? 2 : 1) * SIDE; /* rows of blocks before y_i */
    static constexpr int words =
        SOLVES ? (at_y + 1) * SIDE : (IS_DIVIDED ? 5 : 3) * SIDE * SIDE;
    const FactorJob<Real> &job;
    const FactorLevel &level;
    int64_t system, matrix;
    int32_t chunk, first, rows; /* rows: those that are eliminated */
    Real *store;

    __device__ __forceinline__ FactorUnit(const FactorJob<Real> &all, int64_t index)
        : job(all), level(all.shape.level[all.level]),
          system(!IS_DIVIDED                      ? index
                 : SOLVES && job.are_side_by_side ? index % job.shape.matrices
                                                  : index / level.chunks),
          chunk(!IS_DIVIDED ? 0
                : SOLVES && job.are_side_by_side
                    ? static_cast<int32_t>(index / job.shape.matrices)
                    : static_cast<int32_t>(index - system * level.chunks)),
          first(chunk * level.chunk),
          rows(IS_DIVIDED ? min(level.chunk, level.rows - first) - 1 : level.rows)
    {
        const int64_t j = system / job.inner, k = system - j * job.inner;

        matrix = j * job.outer_step * job.factor_inner + k * job.inner_step;

        const int64_t unit = SOLVES ? index : matrix * level.chunks + chunk;
        const int64_t kept = (IS_DIVIDED ? level.chunk : level.rows) * int64_t(words);

        store = job.store + level.first + unit / factor_step * factor_step * kept +
                unit % factor_step;
    }

    /* The most rows that are eliminated of a chunk, or those of a matrix. */
    __device__ __forceinline__ int32_t most_rows() const
    {
        return IS_DIVIDED ? level.chunk - 1 : level.rows;
    }

    /* Word `word` of row `r` of the chunk. */
    __device__ __forceinline__ Number word(int32_t r, int word, bool trans = false) const
    {
        Number a;

#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                a.at[p][q] = __ldg(at(r, word, trans ? q : p, trans ? p : q));
            }
        }
        return a;
    }

    /* Row `p` of a word. */
    __device__ __forceinline__ Value row_of(int32_t r, int word, int p) const
    {
        Value a;

#pragma unroll
        for (int q = 0; q < SIDE; q++) {
            a.at[q] = __ldg(at(r, word, p, q));
        }
        return a;
    }

    /* Keep column `q` of a word. */
    __device__ __forceinline__ void keep(int32_t r, int word, int q, const Value &a) const
    {
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
            *at(r, word, p, q) = a.at[p];
        }
    }

    /* Keep all columns of a word. */
    __device__ __forceinline__ void keep(int32_t r, int word, int, const Number &a) const
    {
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                *at(r, word, p, q) = a.at[p][q];
            }
        }
    }

    /* Entry `entry` of the next level at the last row of a chunk, `count` for each row. */
    template <typename Entry>
    __device__ __forceinline__ Entry &next(int32_t of, int entry, int count) const
    {
        return next<Entry>(job.next, of, entry, count);
    }

    template <typename Entry>
    __device__ __forceinline__ Entry &next(Real *data, int32_t of, int entry,
                                           int count) const
    {
        const int64_t row = SOLVES && job.are_side_by_side
                                ? of * job.shape.matrices + system
                                : system * level.chunks + of;

        return *reinterpret_cast<Entry *>(
            data +
            (row * count + entry) * static_cast<int64_t>(sizeof(Entry) / sizeof(Real)));
    }

    /* Entry `p` of y_i of a solve in row `r` of the chunk. */
    __device__ __forceinline__ Real &y_at(int32_t r, int p) const
    {
        return *at(r, 0, at_y, p);
    }

  private:
    __device__ __forceinline__ Real *at(int32_t r, int word, int p, int q) const
    {
        return store + (r * words + (word * SIDE + p) * SIDE + q) * factor_step;
    }
};

/* A team, or a thread, and its chunk, or its matrix, with which a kernel of teams begins. */
template <typename Real, int SIDE, bool IS_DIVIDED, bool SOLVES = false,
          bool IS_THREAD = false>
struct FactorTeam {
    using Team =
        std::conditional_t<IS_THREAD, BlockThread<Real, SIDE>, BlockTeam<Real, SIDE>>;
    const Team team;
    const FactorUnit<Real, SIDE, IS_DIVIDED, SOLVES> unit;

    __device__ __forceinline__ explicit FactorTeam(const FactorJob<Real> &job)
        : team(units_of(job)), unit(job, team.unit)
    {
    }

  private:
    /* The chunks of all matrices, when the kernel before has ended. */
    static __device__ __forceinline__ int64_t units_of(const FactorJob<Real> &job)
    {
        wait_for_last_kernel();
        let_next_kernel_in();
        return job.shape.matrices * job.shape.level[job.level].chunks;
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

/* Entry `own` of a vector, without an index of registers. */
template <typename Real, int SIDE>
__device__ __forceinline__ Real
entry_of(const Vector<Real, SIDE> &v, int own)
{
    Real entry = v.at[0];

#pragma unroll
    for (int p = 1; p < SIDE; p++) {
        entry = p == own ? v.at[p] : entry;
    }
    return entry;
}

/* The right-hand sides of a block row of a level. */
template <typename Real, int SIDE, bool IS_BANDS>
__device__ __forceinline__ Vector<Real, SIDE>
rhs_of(const FactorJob<Real> &job, const BlockSource<Real, SIDE, IS_BANDS> &source,
       int32_t i)
{
    Vector<Real, SIDE> v = source.column(job.rows.rhs, i);

    if (job.more_rhs.data != nullptr) {
        const Vector<Real, SIDE> more = source.column(job.more_rhs, i);

#pragma unroll
        for (int p = 0; p < SIDE; p++) {
            v.at[p] += more.at[p];
        }
    }
    return v;
}

/* What a call reports of a system, whose number at all levels is that of the first one. */
template <typename Real>
__device__ __forceinline__ int32_t &
info_of_system(const FactorJob<Real> &job, int64_t system)
{
    const int64_t j = system / job.inner, k = system - j * job.inner;

    return job.rows
        .info[job.rows.is_swapped ? k * (job.shape.matrices / job.inner) + j : system];
}

/* Teams: the chunks of all matrices. A lane has a column of each block. A solve also eliminates the
 * right-hand sides, of which a lane keeps an entry, and no store for others: info marks systems with a
 * bad pivot, or that are not dominant, if this is looked at. */
template <typename Real, int SIDE, bool IS_BANDS, bool IS_DIVIDED, bool SOLVES = false,
          bool IS_THREAD = false>
struct FactorBlocks {
    FactorJob<Real> job;

    __device__ __forceinline__ void operator()() const
    {
        using Number = Block<Real, SIDE>;
        using Value = Vector<Real, SIDE>;
        using Begun = FactorTeam<Real, SIDE, IS_DIVIDED, SOLVES, IS_THREAD>;
        using Columns = typename Begun::Team::Columns; /* those of a lane, or all */
        /* Whether the rows that are eliminated say whether they are dominant. */
        constexpr bool knows_rows = SOLVES && SIDE == 2;

        const Begun begun(job);
        const auto &team = begun.team;
        const auto &unit = begun.unit;
        const BlockSource<Real, SIDE, IS_BANDS> source(job.rows, unit.system);
        const Columns zero(Real(0));
        Columns c = zero, w = zero, h = zero, lost = zero;
        Value y(Real(0)), lost_rhs(Real(0)); /* of a solve */
        PivotProduct product;
        FactorSum sum = {0, 1, 0, 0};

        const auto columns_of = [&](int d, int32_t i) {
            if constexpr (IS_THREAD) {
                const auto row = source.matrix(i);

                return d == 0 ? row.lower : d == 1 ? row.diag : row.upper;
            }
            else {
                return source.column_of(d, i, team.own);
            }
        };
        const auto diag_of = [&](int32_t i) {
            Columns diag = columns_of(1, i);

            if (job.more.data == nullptr) {
                return diag;
            }
            if constexpr (IS_THREAD) {
                diag = diag + source.block(job.more, i);
            }
            else {
                const Real *const more =
                    source.at(job.more, i) + team.own * job.more.across;

#pragma unroll
                for (int p = 0; p < SIDE; p++) {
                    diag.at[p] += more[p * job.more.down];
                }
            }
            return diag;
        };
        const auto note = [&](int32_t i) {
            if (!knows_rows && job.rows.checks && job.level == 0) {
                sum.is_left |= !is_dominant_row<SIDE, IS_BANDS>(job.rows, unit.system, i);
            }
            if (!SOLVES && job.sums_before != nullptr) {
                const FactorSum more = job.sums_before[unit.system * unit.level.rows + i];

                sum.log += more.log;
                sum.sign *= more.sign;
                sum.is_left |= more.is_left;
                sum.bad = more.bad != 0 && (sum.bad == 0 || more.bad < sum.bad) ? more.bad
                                                                                : sum.bad;
            }
        };
        /* Of a row of the first level, by all lanes. */
        const auto note_row = [&](bool is_there, const Number &lower, const Columns &diag,
                                  const Columns &upper) {
            if constexpr (knows_rows) {
                if (job.rows.checks && job.level == 0) {
                    const bool is_dominant =
                        is_dominant_row(lower, Number(team.of_columns(diag)),
                                        Number(team.of_columns(upper)));

                    sum.is_left |= is_there && !is_dominant;
                }
            }
        };
        /* put(p, entry) for the entries of a column that this lane stores */
        const auto with_entries = [&](const Value &a, const auto &put) {
            if constexpr (IS_THREAD) {
#pragma unroll
                for (int p = 0; p < SIDE; p++) {
                    put(p, a.at[p]);
                }
            }
            else {
                put(team.own, entry_of(a, team.own));
            }
        };
        const auto note_bad = [&](int32_t i) {
            const int32_t at = SOLVES ? 1 : first_row_of(job, i) + 1;

            sum.bad = sum.bad == 0 || at < sum.bad ? at : sum.bad;
        };
        const auto keep = [&](int32_t r, int word, const Columns &a) {
            if (team.stores) {
                unit.keep(r, word, team.own, a);
            }
        };

        if (IS_DIVIDED && unit.chunk > 0) {
            h = columns_of(2, unit.first - 1);
        }
#pragma unroll 1
        for (int32_t r = 0; r < unit.most_rows(); r++) {
            const bool is_there = r < unit.rows;
            const int32_t i = unit.first + min(r, unit.rows);
            const Number below = source.lower(i);
            const Number lower = IS_DIVIDED && r == 0 ? Number::zero() : below;
            const Columns upper = columns_of(2, i), diag = diag_of(i);
            const Columns own = diag - lower * c;
            const Columns right = r == 0 ? team.column_of(below) : zero - below * w;

            note_row(is_there, below, diag, upper);
            if (is_there) {
                note(i);
                if constexpr (!SOLVES) {
                    keep(r, 0, team.column_of(lower));
                }
            }
            const Number pivot =
                team.of_columns(is_there ? own : team.column_of(Number(Real(1))));

            if (!is_finite(pivot) ||
                (job.rows.is_definite && !is_positive_definite(pivot))) {
                note_bad(i);
            }
            const Number inverse = SOLVES ? reciprocal(pivot) : product.invert(pivot);

            if (!is_finite(inverse)) {
                note_bad(i);
            }
            const Number before = IS_DIVIDED ? team.of_columns(h) : Number::zero();

            if (is_there) {
                c = inverse * upper;
                keep(r, unit.at_c, c);
                if constexpr (SOLVES) {
                    y = inverse * (rhs_of(job, source, i) - lower * y);
                    if (team.stores) {
                        with_entries(y,
                                     [&](int p, Real entry) { unit.y_at(r, p) = entry; });
                    }
                }
                else {
                    keep(r, 1, team.column_of(inverse));
                }
                if constexpr (IS_DIVIDED) {
                    w = inverse * right;
                    keep(r, unit.at_w, w);
                    if constexpr (!SOLVES) {
                        keep(r, 4, h);
                    }
                    else {
                        lost_rhs = lost_rhs - before * y;
                    }
                    lost = lost - before * w;
                    h = zero - before * c;
                }
            }
        }
        if constexpr (!SOLVES) {
            sum.log +=
                log(fabs(product.mantissa)) + product.exponent * 0.69314718055994530942;
            sum.sign *= product.mantissa < 0 ? -1 : 1;
        }
        if constexpr (IS_DIVIDED) {
            const int32_t i = unit.first + unit.rows;
            const Number lower = source.lower(i);
            const Columns diag = diag_of(i);
            const bool is_alone = unit.rows == 0;
            const auto leave = [&](int32_t chunk, int entry, const Columns &a) {
                Number &to = unit.template next<Number>(chunk, entry, 4);

                if constexpr (IS_THREAD) {
                    to = a;
                }
                else {
#pragma unroll
                    for (int p = 0; p < SIDE; p++) {
                        to.at[p][team.own] = a.at[p];
                    }
                }
            };

            note(i);
            if constexpr (SOLVES) {
                note_row(true, lower, diag, columns_of(2, i));

                const Value left = rhs_of(job, source, i) - lower * y;
                const auto leave_entry = [&](int32_t chunk, int entry, const Value &a) {
                    Value &to = unit.template next<Value>(job.next_rhs, chunk, entry, 2);

                    with_entries(a, [&](int p, Real x) { to.at[p] = x; });
                };

                if (team.stores) {
                    leave_entry(unit.chunk, 0, left);
                    if (unit.chunk > 0) {
                        leave_entry(unit.chunk - 1, 1, lost_rhs);
                    }
                    if (unit.chunk == unit.level.chunks - 1) {
                        leave_entry(unit.chunk, 1, Value(Real(0)));
                    }
                }
            }
            else {
                keep(unit.rows, 0, team.column_of(lower));
            }
            if (team.stores) {
                leave(unit.chunk, 0, is_alone ? team.column_of(lower) : zero - lower * w);
                leave(unit.chunk, 1, is_alone ? diag : diag - lower * c);
                if (unit.chunk > 0) {
                    leave(unit.chunk - 1, 2, h);
                    leave(unit.chunk - 1, 3, lost);
                }
                if (unit.chunk == unit.level.chunks - 1) {
                    leave(unit.chunk, 3, zero);
                }
            }
        }
        else if (!SOLVES && job.rows.info != nullptr && team.stores && team.own == 0) {
            const int32_t scalars = job.shape.scalars;

            job.rows.info[team.unit] = job.rows.checks && (sum.is_left || sum.bad != 0)
                                           ? -1
                                       : scalars != 0 && sum.bad > 0
                                           ? max(2 * (sum.bad - 1) - scalars % 2, 0) + 1
                                           : sum.bad;
        }
        if constexpr (SOLVES) {
            if (job.rows.info != nullptr && team.stores && (sum.is_left || sum.bad)) {
                info_of_system(job, unit.system) = job.rows.checks ? -1 : 1;
            }
        }
        else if (team.stores && team.own == 0) {
            job.sums[team.unit] = sum;
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

    const auto rhs = [&](int32_t i) { return rhs_of(job, source, i); };

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
template <typename Real, int SIDE, bool IS_BANDS, bool IS_DIVIDED, bool SOLVES>
__device__ __forceinline__ void
solve_up(const FactorJob<Real> &job,
         const FactorUnit<Real, SIDE, IS_DIVIDED, SOLVES> &unit,
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
        Value y;

        if constexpr (SOLVES) {
#pragma unroll
            for (int p = 0; p < SIDE; p++) {
                y.at[p] = unit.y_at(r, p);
            }
        }
        else {
            y = source.column(job.rows.x, unit.first + r);
        }
        if (!SOLVES && trans) {
            if (IS_DIVIDED || r < unit.rows - 1) {
                y = y - unit.word(r + 1, 0, true) * x;
            }
            if (IS_DIVIDED) {
                y = y - unit.word(r, 4, true) * left;
            }
            x = unit.word(r, 1, true) * y;
        }
        else {
            x = y - unit.word(r, unit.at_c) * x;
            if (IS_DIVIDED) {
                x = x - unit.word(r, unit.at_w) * left;
            }
        }
        source.store(unit.first + r, x);
    }
}

/* Threads: the chunks of all systems. A solve leaves systems that info marks, whose x may be rhs. */
template <typename Real, int SIDE, bool IS_BANDS, bool IS_DIVIDED, bool DOWN, bool UP,
          bool SOLVES = false>
struct ApplyFactor {
    FactorJob<Real> job;

    __device__ __forceinline__ void operator()() const
    {
        const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

        wait_for_last_kernel();
        let_next_kernel_in();
        if (index >=
            job.rows.outer * job.rows.inner * job.shape.level[job.level].chunks) {
            return;
        }
        const FactorUnit<Real, SIDE, IS_DIVIDED, SOLVES> unit(job, index);
        const BlockSource<Real, SIDE, IS_BANDS> source(job.rows, unit.system);

        if (SOLVES && job.level == 0 && job.rows.info != nullptr &&
            info_of_system(job, unit.system) != 0) {
            return;
        }
        if constexpr (DOWN) {
            solve_down<Real, SIDE, IS_BANDS, IS_DIVIDED>(job, unit, source);
        }
        if constexpr (UP) {
            solve_up<Real, SIDE, IS_BANDS, IS_DIVIDED, SOLVES>(job, unit, source);
        }
    }
};

/* Teams: the chunks of all matrices. A lane has a row of each block. */
template <typename Real, int SIDE, bool IS_DIVIDED> struct InverseBlocks {
    FactorJob<Real> job;

    __device__ __forceinline__ void operator()() const
    {
        using Number = Block<Real, SIDE>;
        using Value = Vector<Real, SIDE>;

        const FactorTeam<Real, SIDE, IS_DIVIDED> begun(job);
        const auto &team = begun.team;
        const auto &unit = begun.unit;
        const bool is_last = unit.first + unit.rows + IS_DIVIDED == unit.level.rows;
        const Value zero(Real(0));
        Value nn = zero, nl = zero, ln = zero, ll = zero;

        const auto put = [&](int d, int32_t i, const Value &a) {
            const BlockOperand<Real> &to = job.inverse[d];
            Real *const at =
                to.data + i * to.row + unit.system * to.inner + team.own * to.down;

            if (to.data == nullptr || !team.stores) {
                return;
            }
            if (SIDE * sizeof(Real) % 16 == 0 && to.is_dense) {
                team.store_row(at, a);
                return;
            }
#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                at[q * to.across] = a.at[q];
            }
        };
        const auto next = [&](int32_t chunk, int entry) {
            const Number &from = unit.template next<Number>(chunk, entry, 3);
            Value row;

#pragma unroll
            for (int q = 0; q < SIDE; q++) {
                row.at[q] = from.at[team.own][q];
            }
            return row;
        };

        if constexpr (IS_DIVIDED) {
            nn = next(unit.chunk, 1);
            if (unit.chunk > 0) {
                ll = next(unit.chunk - 1, 1);
                ln = next(unit.chunk - 1, 2);
                nl = next(unit.chunk, 0);
            }
            put(1, unit.first + unit.rows, nn);
        }
        if (is_last) {
            put(2, unit.level.rows - 1, zero);
        }
#pragma unroll 1
        for (int32_t r = unit.most_rows() - 1; r >= 0; r--) {
            const Value c = unit.row_of(r, 2, team.own);
            Value in = zero - team.times(c, nn), il = zero;

            if constexpr (IS_DIVIDED) {
                const Value w = unit.row_of(r, 3, team.own);

                in = in - team.times(w, ln);
                il = zero - team.times(c, nl) - team.times(w, ll);
            }
            if (r >= unit.rows) {
                continue;
            }
            const Number inverse = unit.word(r, 1);
            Value own = unit.row_of(r, 1, team.own);

            if (IS_DIVIDED || r < unit.rows - 1) {
                const Number lower = unit.word(r + 1, 0);
                Value sum = nn * lower, here = in * lower;

                if constexpr (IS_DIVIDED) {
                    const Number h = unit.word(r, 4);

                    sum = sum + nl * h;
                    here = here + il * h;
                    ln = zero - (ln * lower + ll * h) * inverse;
                    nl = il;
                }
                own = own - here * inverse;
                put(2, unit.first + r, in);
                put(0, unit.first + r + 1, zero - sum * inverse);
            }
            nn = own;
            put(1, unit.first + r, own);
        }
        if (unit.chunk == 0) {
            put(0, 0, zero);
        }
        else {
            put(0, unit.first, nl);
            put(2, unit.first - 1, ln);
        }
    }
};

} // namespace pysolvers::lines

#endif
