/* five_rows.cuh - systems of five diagonals by scalar rows.
 *
 *   a_i = l1_i - l2_i s_{i-2},   p_i = d_i - l2_i t_{i-2} - a_i s_{i-1}
 *   s_i = (u1_i - a_i t_{i-1}) / p_i,   t_i = u2_i / p_i
 *   y_i = (rhs_i - l2_i y_{i-2} - a_i y_{i-1}) / p_i,   x_i = y_i - s_i x_{i+1} - t_i x_{i+2}
 *
 * Neighbouring systems: two threads, of different warps, eliminate a system from both ends, and a
 * system of 2 x 2 gives the unknowns where they meet (twisted factorization; van der Vorst
 * 1987). A system is on the multiprocessor for half of the time and has as many eliminated rows there
 * as with one thread: 128 rows of float64 take 0.84 of the time of chunks of columns, 64 rows 0.94
 * of that of one thread (H200). Rows are loaded by groups of four, one group ahead, two in float64
 * if the eliminated rows fit into shared memory; then the lines of two groups more are loaded to the
 * L2 cache: 64, 128 and 144 rows of float64 take 0.95, 0.93 and 0.89 of the time, with four groups
 * 0.99, 0.95 and 0.9, with eight 0.99, 1.1 and 1.1; rows whose eliminated ones are in global memory
 * would take 1.1. Operands of the same pitch have offsets of 32 bits, with a third of the instructions of
 * a row: 0.95 to 1.0 of the time, 0.91 in five_turns.cuh. Contiguous rows: one thread for a system,
 * whose rows are copied in tiles of 64 bytes of each operand. 7 words for a row if the eliminated ones
 * are in shared memory, otherwise 13. A row takes a third of the instructions of that of blocks of 2
 * (blocks.cuh).
 *
 * Blocks exchange their two rows, scalar rows have no exchanges: a system is solved again by
 * blocks if a multiplier is large, a pivot is bad, or, where it is checked, a row is not
 * dominant. So these kernels mark the same systems.
 */
#ifndef PS_CUDA_LINES_FIVE_ROWS_CUH
#define PS_CUDA_LINES_FIVE_ROWS_CUH

#include "lines/blocks.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::lines {

/* Whether the rows of a system can be eliminated without exchanges. */
template <typename Real> struct FiveGuard {
    using Key = PivotKey<Real>;
    /* multipliers of more than 2^3 are to be exchanged */
    static constexpr int most_multiplier = 3;
    static constexpr typename Key::type all = sizeof(Real) == 4
                                                  ? typename Key::type(3.40282347e+38f)
                                                  : typename Key::type(0x7fefffff);
    typename Key::type last = all, before = all; /* what the last rows may eliminate */
    unsigned is_unsafe = 0;

    /* A row with the entries a and l2 before its pivot, and the row after it. Comparisons are
     * false for NaN. */
    __device__ __forceinline__ void pass(Real a, Real l2, Real pivot, bool is_definite)
    {
        const typename Key::type key = Key::of(pivot);

        check(a, l2);
        is_unsafe |= !(key >= Key::least) | !(key <= Key::most) |
                     (is_definite & (signbit(pivot) != 0));
        before = last;
        last = Key::times_power(key, most_multiplier);
    }

    __device__ __forceinline__ void check(Real a, Real l2)
    {
        is_unsafe |= !(Key::of(a) <= last) | !(Key::of(l2) <= before);
    }

    __device__ __forceinline__ void check_dominance(Real l2, Real l1, Real d, Real u1,
                                                    Real u2)
    {
        is_unsafe |= !(fabs(l2) + fabs(l1) + fabs(u1) + fabs(u2) <= fabs(d));
    }
};

/* Half of a system: the rows from row 0 to the middle or, mirrored, from the last row. Row i of a
 * half is the i-th from its end of the system; those with i < 0 are rows of the identity. */
template <typename Real> struct FiveRows {
    static constexpr int group = 4, words = 3;
    struct alignas(16) Numbers {
        Real at[group];
    };
    struct Group {
        Numbers band[5], rhs;
    };
    struct Eliminated {
        Real s, t, y;

        /* The numbers of another lane. */
        __device__ __forceinline__ Eliminated of(int lane) const
        {
            return {__shfl_sync(all_lanes, s, lane), __shfl_sync(all_lanes, t, lane),
                    __shfl_sync(all_lanes, y, lane)};
        }
    };
    struct Kept {
        Real at[group][words];
    };
    const BlocksJob<Real> &job;
    const bool is_last;
    const Real *from[5], *rhs; /* row 0 of this half */
    Real *x;
    int64_t step[5], rhs_step, x_step;
    bool has_all; /* diagonals */
    FiveHalf half;
    Eliminated last = {}, before = {};
    FiveGuard<Real> guard; /* whether blocks are needed */

    __device__ __forceinline__ FiveRows(const BlocksJob<Real> &all,
                                        const BlockSource<Real, 2, true> &source,
                                        bool mirrored, const FiveHalf &rows)
        : job(all), is_last(mirrored), rhs(source.at(all.rhs, 0)), x(source.at(all.x, 0)),
          rhs_step(all.rhs.row), x_step(all.x.row), has_all(true), half(rows)
    {
        const int64_t end = job.rows - 1;

#pragma unroll
        for (int d = 0; d < 5; d++) {
            const Input<Real> &own = job.bands[d], &other = job.bands[4 - d];

            from[d] = mirrored ? other.system(source.j, source.k) + end * other.row
                               : own.system(source.j, source.k);
            step[d] = mirrored ? -other.row : own.row;
            has_all = has_all && own.data != nullptr;
        }
        if (mirrored) {
            rhs += end * rhs_step;
            x += end * x_step;
            rhs_step = -rhs_step;
            x_step = -x_step;
        }
    }

    /* Start loads of the lines of rows i .. i + group - 1 to the L2 cache, one lane for each line of
     * neighbouring systems. */
    __device__ __forceinline__ void prefetch(int32_t i) const
    {
        constexpr int systems = 128 / sizeof(Real);
        const int r =
            threadIdx.x % systems; /* systems of neighbouring lanes share lines */

        if (has_all && r < group && i >= 0 && i + group <= job.rows) {
#pragma unroll
            for (int d = 0; d <= 5; d++) {
                prefetch_line((d < 5 ? from[d % 5] : rhs) +
                              (i + r) * (d < 5 ? step[d % 5] : rhs_step));
            }
        }
    }

    /* Rows i .. i + group - 1. */
    __device__ __forceinline__ void load(int32_t i, Group &to) const
    {
        if (job.is_alike && i >= 2 && i + group <= job.rows - 2) {
            const int32_t pitch = static_cast<int32_t>(rhs_step), first = i * pitch;

#pragma unroll
            for (int r = 0; r < group; r++) {
                const int32_t at = first + r * pitch;

#pragma unroll
                for (int d = 0; d < 5; d++) {
                    to.band[d].at[r] = from[d][at];
                }
                to.rhs.at[r] = rhs[at];
            }
            return;
        }
        if (i >= 2 && i + group <= job.rows - 2 && has_all) {
#pragma unroll
            for (int d = 0; d <= 5; d++) {
                const int64_t pitch = d < 5 ? step[d % 5] : rhs_step;
                const Real *const at = (d < 5 ? from[d % 5] : rhs) + i * pitch;
                Numbers &own = d < 5 ? to.band[d % 5] : to.rhs;

#pragma unroll
                for (int r = 0; r < group; r++) {
                    own.at[r] = at[r * pitch];
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
                const bool is_there =
                    row >= 0 && column >= 0 && column < job.rows &&
                    (is_last ? job.bands[4 - d] : job.bands[d]).data != nullptr;

                to.band[d].at[r] =
                    is_there ? from[d][row * step[d]] : Real(d == 2 && row < 0 ? 1 : 0);
            }
            to.rhs.at[r] = row >= 0 ? rhs[row * rhs_step] : Real(0);
        }
    }

    /* Clear what the matrix does not have of rows i .. i + group - 1. */
    __device__ __forceinline__ void clear_ends(int32_t i, Group &of) const
    {
#pragma unroll
        for (int r = 0; r < group; r++) {
#pragma unroll
            for (int d = 0; d < 5; d++) {
                const int32_t column = i + r + d - 2;

                if (column < 0 || column >= job.rows) {
                    of.band[d].at[r] = 0;
                }
            }
        }
    }

    /* Eliminate a group; its rows are kept from `to`. */
    __device__ __forceinline__ void eliminate(const Group &of, Real *to)
    {
        eliminate_to(of, [&](int w, Real a) { to[w * kept_step] = a; });
    }

    /* put(word, number) for each number that is kept. */
    template <typename Put>
    __device__ __forceinline__ void eliminate_to(const Group &of, const Put &put)
    {
#pragma unroll
        for (int r = 0; r < group; r++) {
            const Eliminated row = eliminated(of, r);

            put(r * words, row.s);
            put(r * words + 1, row.t);
            put(r * words + 2, row.y);
            before = last;
            last = row;
        }
    }

    /* The kept rows of a group. */
    static __device__ __forceinline__ Kept kept_at(const Real *from)
    {
        Kept of;

#pragma unroll
        for (int r = 0; r < group; r++) {
#pragma unroll
            for (int w = 0; w < words; w++) {
                of.at[r][w] = from[(r * words + w) * kept_step];
            }
        }
        return of;
    }

    /* x1 and x2, the unknowns of the next two rows, from the last two eliminated rows of both
     * halves; whether they are exact. */
    __device__ __forceinline__ bool meet(const Eliminated &last, const Eliminated &before,
                                         const Eliminated &next, const Eliminated &after,
                                         Real &x1, Real &x2) const
    {
        const Block<Real, 2> middle = {
            {{1 - last.t * after.t, last.s - last.t * after.s},
             {next.s - next.t * before.s, 1 - next.t * before.t}}};
        const Cofactors<Real, 2> of(middle);
        const Block<Real, 2> inverse = of.inverse();
        const Real y_own = last.y - last.t * after.y,
                   y_other = next.y - next.t * before.y;
        const Real x = inverse.at[0][0] * y_own + inverse.at[0][1] * y_other;

        x1 = inverse.at[1][0] * y_own + inverse.at[1][1] * y_other;
        x2 = (after.y - after.t * x) - after.s * x1;
        return of.is_safe() &&
               (!job.is_definite ||
                (of.determinant > 0 && middle.at[0][0] > 0 && middle.at[1][1] > 0));
    }

    /* x of a group; x1 and x2, those of the next rows, become those of its first two rows. */
    static __device__ __forceinline__ Numbers substituted(const Kept &of, Real &x1,
                                                          Real &x2)
    {
        Numbers found;

#pragma unroll
        for (int r = group - 1; r >= 0; r--) {
            const Real x = (of.at[r][2] - of.at[r][1] * x2) - of.at[r][0] * x1;

            found.at[r] = x;
            x2 = x1;
            x1 = x;
        }
        return found;
    }

    /* Rows i .. i + group - 1 of x, as far as they exist. */
    __device__ __forceinline__ void store(int32_t i, const Numbers &found) const
    {
#pragma unroll
        for (int r = 0; r < group; r++) {
            if (i + r >= 0) {
                x[(i + r) * x_step] = found.at[r];
            }
        }
    }

    /* Substitute the kept rows, and put(first row of a group, x) from the middle on. */
    template <typename Put>
    __device__ __forceinline__ void substitute(const Real *kept, Real x1, Real x2,
                                               const Put &put) const
    {
        constexpr int pitch = group * words * kept_step;
        const auto from = [&](int32_t g) { return kept_at(kept + g * pitch); };
        Kept next = from(half.groups - 1);

#pragma unroll 1
        for (int32_t g = half.groups - 1; g >= 0; g--) {
            const Kept of = next;

            if (g > 0) {
                next = from(g - 1);
            }
            put(g, substituted(of, x1, x2));
        }
    }

  private:
    /* Row `r` of a group after the rows `last` and `before`. */
    __device__ __forceinline__ Eliminated eliminated(const Group &of, int r)
    {
        const Real l2 = of.band[0].at[r], l1 = of.band[1].at[r], d = of.band[2].at[r],
                   u1 = of.band[3].at[r], u2 = of.band[4].at[r];
        const Real a = l1 - l2 * before.s;
        const Real pivot = d - l2 * before.t - a * last.s;
        const Real inverse = fast_reciprocal(pivot);
        Eliminated row;

        row.s = (u1 - a * last.t) * inverse;
        row.t = u2 * inverse;
        row.y = (of.rhs.at[r] - l2 * before.y - a * last.y) * inverse;
        guard.pass(a, l2, pivot, job.is_definite);
        if (job.checks) {
            guard.check_dominance(l2, l1, d, u1, u2);
        }
        return row;
    }
};

/* The systems of a block, 32, of which a warp has one half each, and what both do where their
 * halves meet. */
template <typename Real> struct FivePair {
    const int lane = threadIdx.x % 32;
    const bool is_last = threadIdx.x >= 32;
    const int64_t systems, own,
        index; /* index: lanes beyond the systems have the last one */

    __device__ __forceinline__ FivePair(const BlocksJob<Real> &job, int64_t part)
        : systems(job.outer * job.inner), own(part * 32 + lane),
          index(min(own, systems - 1))
    {
    }

    /* Find x1 and x2; at `all` are the eliminated rows of both halves. Returns false for a system that
     * needs blocks, which is solved by them in this memory. */
    __device__ __forceinline__ bool meet(const FiveRows<Real> &rows,
                                         const BlockSource<Real, 2, true> &source,
                                         Real *all, Real &x1, Real &x2) const
    {
        __shared__ unsigned unsafe[2];
        constexpr int pitch = FiveRows<Real>::group * FiveRows<Real>::words * kept_step;
        const BlocksJob<Real> &job = rows.job;
        const int32_t first = five_half(job.rows, false).groups,
                      last = five_half(job.rows, true).groups;
        const unsigned found = __ballot_sync(all_lanes, rows.guard.is_unsafe != 0);

        if (lane == 0) {
            unsafe[is_last] = found;
        }
        __syncthreads(); /* all rows are eliminated */
        const Real *const middle = all + first * pitch, *const end =
                                                            middle + last * pitch;
        const auto row_of = [&](const Real *end, int i) {
            const Real *const at = end - i * FiveRows<Real>::words * kept_step;

            return typename FiveRows<Real>::Eliminated{at[0], at[kept_step],
                                                       at[2 * kept_step]};
        };
        const Real *const other = is_last ? middle : end;
        bool is_found =
            rows.meet(rows.last, rows.before, row_of(other, 1), row_of(other, 2), x1, x2);

        is_found = is_found && ((unsafe[0] | unsafe[1]) >> lane & 1u) == 0;
        __syncthreads(); /* the ends have been read */
        if (own < systems && !is_last) {
            if (!is_found) {
                solve_by_blocks(job, source, index, all);
            }
            else if (job.info != nullptr) {
                job.info[job.is_swapped ? source.k * job.outer + source.j : index] = 0;
            }
        }
        return is_found && own < systems;
    }
};

/* Grid: 64 threads for 32 of outer * inner systems; IS_NEAR: eliminated rows in shared memory. */
template <typename Real, bool IS_NEAR>
__global__ void
__launch_bounds__(five_threads)
    five_rows_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Rows = FiveRows<Real>;
    constexpr int group = Rows::group, words = Rows::words;
    /* groups of which one is eliminated while the others are loaded, and those after them that are
     * loaded to the L2 cache */
    constexpr int slots = IS_NEAR && sizeof(Real) == 8 ? 3 : 2, ahead = 2;
    extern __shared__ int4 shared[];
    const FivePair<Real> pair(job, blockIdx.x);
    const BlockSource<Real, 2, true> source(job, pair.index);
    Rows rows(job, source, pair.is_last, five_half(job.rows, pair.is_last));
    const int32_t count = rows.half.groups, first = rows.half.first;
    Real *const all =
        IS_NEAR ? reinterpret_cast<Real *>(shared) + pair.lane
                : kept_of(job, pair.index, int64_t(five_kept_rows(job.rows)) * words);
    Real *const kept = all + rows.half.slot * words * kept_step;
    typename Rows::Group groups[slots];

#pragma unroll
    for (int g = 0; g < slots; g++) {
        if (g < count) {
            rows.load(first + g * group, groups[g]);
        }
    }
    if (IS_NEAR) {
#pragma unroll 1
        for (int32_t g = slots; g < min(count, slots + ahead); g++) {
            rows.prefetch(first + g * group);
        }
    }
#pragma unroll 1
    for (int32_t base = 0; base < count; base += slots) {
#pragma unroll
        for (int k = 0; k < slots; k++) {
            const int32_t g = base + k;

            if (g >= count) {
                break;
            }
            if (IS_NEAR && g + slots + ahead < count) {
                rows.prefetch(first + (g + slots + ahead) * group);
            }
            rows.eliminate(groups[k], kept + g * group * words * kept_step);
            if (g + slots < count) {
                rows.load(first + (g + slots) * group, groups[k]);
            }
        }
    }
    Real x1, x2;

    if (pair.meet(rows, source, all, x1, x2)) {
        rows.substitute(kept, x1, x2, [&](int32_t g, const typename Rows::Numbers &x) {
            rows.store(first + g * group, x);
        });
    }
}

/* Tiles of the rows of 32 systems in shared memory, whose rows are vectors: 64 bytes of each
 * operand and system, in an order in which 8 neighbouring systems have their vectors in different
 * banks. */
template <typename Real> struct FiveTiles {
    static constexpr int count = 16 / sizeof(Real); /* numbers of a vector */
    static constexpr int rows = 64 / sizeof(Real);  /* of a tile */
    static constexpr int operands = 6, vectors = 4; /* of an operand and a system */
    static constexpr int array = 32 * rows, stage = operands * array;
    static constexpr int passes = vectors; /* a lane copies a vector in each */
    using Numbers = typename FiveRows<Real>::Numbers;
    const BlocksJob<Real> &job;
    Real *const memory;
    const int lane = threadIdx.x;
    const Real *from[operands][passes]; /* vector of this lane in the first tile */
    Real *to[passes];

    __device__ __forceinline__ FiveTiles(const BlocksJob<Real> &all, int64_t first,
                                         Real *shared)
        : job(all), memory(shared)
    {
        const int64_t systems = job.outer * job.inner;

#pragma unroll
        for (int p = 0; p < passes; p++) {
            const BlockSource<Real, 2, true> source(
                job, min(first + system_of(p), systems - 1));
            const int64_t row = lane % vectors * count;

#pragma unroll
            for (int d = 0; d < 5; d++) {
                from[d][p] = job.bands[d].system(source.j, source.k) + row;
            }
            from[5][p] = source.at(job.rhs, 0) + row;
            to[p] = source.at(job.x, 0) + row;
        }
    }

    /* Start the copies of the rows from `first`; vectors without an entry of the matrix are
     * cleared. */
    __device__ __forceinline__ void load(int32_t first, int parity) const
    {
        if (first < job.rows) {
#pragma unroll
            for (int d = 0; d < operands; d++) {
                const int32_t least = d < 5 ? max(2 - d, 0) : 0,
                              beyond = d < 5 ? max(d - 2, 0) : 0;

#pragma unroll
                for (int p = 0; p < passes; p++) {
                    const int32_t row = first + lane % vectors * count;

                    copy_async_of_line_or_clear<16>(
                        place(parity, d, system_of(p), lane % vectors),
                        from[d][p] + first,
                        row + count > least && row < job.rows - beyond);
                }
            }
        }
        copies_committed();
    }

    /* Rows 4 g .. 4 g + 3 of operand d of this lane. */
    __device__ __forceinline__ void read(int parity, int d, int g, Numbers &rows_of) const
    {
        constexpr int of_group = 4 / count;

#pragma unroll
        for (int v = 0; v < of_group; v++) {
            Vector<Real, count> part;

            load_vectors(place(parity, d, lane, g * of_group + v), part);
#pragma unroll
            for (int r = 0; r < count; r++) {
                rows_of.at[v * count + r] = part.at[r];
            }
        }
    }

    /* Put rows 4 g .. 4 g + 3 of x of this lane into a tile. */
    __device__ __forceinline__ void put(int g, const Numbers &x) const
    {
        constexpr int of_group = 4 / count;

#pragma unroll
        for (int v = 0; v < of_group; v++) {
            Vector<Real, count> part;

#pragma unroll
            for (int r = 0; r < count; r++) {
                part.at[r] = x.at[v * count + r];
            }
            store_vectors(place(0, 0, lane, g * of_group + v), part);
        }
    }

    /* Store the tile of x that begins at row `first`, of the systems in `stored`. */
    __device__ __forceinline__ void store(int32_t first, unsigned stored) const
    {
#pragma unroll
        for (int p = 0; p < passes; p++) {
            const int4 vector = *reinterpret_cast<const int4 *>(
                place(0, 0, system_of(p), lane % vectors));

            if (first + lane % vectors * count < job.rows &&
                (stored >> system_of(p) & 1u) != 0) {
                *reinterpret_cast<int4 *>(to[p] + first) = vector;
            }
        }
    }

  private:
    __device__ __forceinline__ int system_of(int pass) const
    {
        return pass * (32 / vectors) + lane / vectors;
    }

    __device__ __forceinline__ Real *place(int parity, int d, int system,
                                           int vector) const
    {
        return memory + parity * stage + d * array + system * rows +
               (vector ^ system / 2 % vectors) * count;
    }
};

/* Grid: a warp for 32 of outer * inner systems, whose eliminated rows are in shared memory. A lane
 * has all rows of its system: with two lanes for a system, whose tiles take twice the memory, 64 rows
 * took 1.16 of the time in float64 (H200). */
template <typename Real>
__global__ void __launch_bounds__(32)
    five_tiles_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Rows = FiveRows<Real>;
    using Tiles = FiveTiles<Real>;
    constexpr int group = Rows::group, words = Rows::words, groups = Tiles::rows / group;
    extern __shared__ int4 shared[];
    Real *const memory = reinterpret_cast<Real *>(shared);
    Real *const kept = memory + 2 * Tiles::stage + threadIdx.x;
    const int64_t systems = job.outer * job.inner;
    const int64_t first_system = static_cast<int64_t>(blockIdx.x) * 32;
    const int64_t own = first_system + threadIdx.x, index = min(own, systems - 1);
    const BlockSource<Real, 2, true> source(job, index);
    const int32_t count = job.rows / group;
    Rows rows(job, source, false, {count, 0, 0});
    const Tiles tiles(job, first_system, memory);

    tiles.load(0, 0);
#pragma unroll 1
    for (int32_t first = 0, parity = 0; first < job.rows;
         first += Tiles::rows, parity ^= 1) {
        tiles.load(first + Tiles::rows, parity ^ 1);
        copies_done_but<1>();
        __syncwarp(); /* the tile is complete */
#pragma unroll 1
        for (int g = 0; g < groups && first + g * group < job.rows; g++) {
            const int32_t i = first + g * group;
            typename Rows::Group of;

#pragma unroll
            for (int d = 0; d < 5; d++) {
                tiles.read(parity, d, g, of.band[d]);
            }
            tiles.read(parity, 5, g, of.rhs);
            if (i == 0 || i + group == job.rows) {
                rows.clear_ends(i, of);
            }
            rows.eliminate(of, kept + i * words * kept_step);
        }
        __syncwarp(); /* the tile has been read */
    }
    const unsigned stored =
        __ballot_sync(all_lanes, own < systems && rows.guard.is_unsafe == 0);

    if (rows.guard.is_unsafe != 0 && own < systems) {
        solve_by_blocks(job, source, index, kept);
    }
    else if (job.info != nullptr && own < systems) {
        job.info[job.is_swapped ? source.k * job.outer + source.j : index] = 0;
    }
    __syncwarp();
    rows.substitute(kept, Real(0), Real(0),
                    [&](int32_t g, const typename Rows::Numbers &x) {
                        tiles.put(g % groups, x);
                        if (g % groups == 0) {
                            __syncwarp(); /* the tile of x is complete */
                            tiles.store(g * group, stored);
                            __syncwarp(); /* the tile of x has been read */
                        }
                    });
}

} // namespace pysolvers::lines

#endif
