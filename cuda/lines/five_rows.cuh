/* five_rows.cuh - systems of five diagonals by scalar rows: one thread per system.
 *
 *   a_i = l1_i - l2_i s_{i-2},   p_i = d_i - l2_i t_{i-2} - a_i s_{i-1}
 *   s_i = (u1_i - a_i t_{i-1}) / p_i,   t_i = u2_i / p_i
 *   y_i = (rhs_i - l2_i y_{i-2} - a_i y_{i-1}) / p_i,   x_i = y_i - s_i x_{i+1} - t_i x_{i+2}
 *
 * A row takes a third of the instructions of that of blocks of 2 (blocks.cuh), which bound that
 * kernel: 12000 systems of 4000 rows took 0.78 of its time in float64 and 0.73 in float32. Rows of
 * neighbouring systems are loaded by groups of four, one group ahead, two in float64 if the
 * eliminated rows fit into shared memory (0.93 of the time of one; in float32 1.03). Contiguous
 * rows are copied in tiles of 64 bytes of each operand and system: 0.67 of the time of vectors of
 * the threads in float64, 0.61 in float32 (200000 systems of 64 rows, H200). 7 words for a row if
 * the eliminated ones are in shared memory, otherwise 13.
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

template <typename Real> struct FiveRows {
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

#pragma unroll
                for (int r = 0; r < group; r++) {
                    own.at[r] = at[r * step];
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

    /* Clear what the matrix does not have of rows i .. i + group - 1, at its begin and its end. */
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
template <typename Real, bool IS_NEAR>
__global__ void
__launch_bounds__(IS_NEAR ? 32 : blocks_threads)
    five_rows_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Rows = FiveRows<Real>;
    using Group = typename Rows::Group;
    using Eliminated = typename Rows::Eliminated;
    constexpr int group = Rows::group, words = Rows::words;
    /* groups of which one is eliminated while the others are loaded */
    constexpr int slots = IS_NEAR && sizeof(Real) == 8 ? 3 : 2;
    extern __shared__ int4 shared[];
    const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t systems = job.outer * job.inner;

    if (index >= systems) {
        return;
    }
    const BlockSource<Real, 2, true> source(job, index);
    const Rows rows(job, source);
    Real *const kept = IS_NEAR ? reinterpret_cast<Real *>(shared) + threadIdx.x
                               : kept_of(job, index, source.rows * 2 * words);
    Eliminated last = {0, 0, 0, 1}, before = {0, 0, 0, 1};
    bool is_unsafe = false;
    Group groups[slots];

#pragma unroll
    for (int g = 0; g < slots; g++) {
        if (g * group < job.rows) {
            rows.load(g * group, groups[g]);
        }
    }
#pragma unroll 1
    for (int32_t first = 0; first < job.rows; first += slots * group) {
#pragma unroll
        for (int g = 0; g < slots; g++) {
            const int32_t i = first + g * group;

            if (i >= job.rows) {
                break;
            }
            Real *const to = kept + i * words * kept_step;

#pragma unroll
            for (int r = 0; r < group; r++) {
                const Eliminated row =
                    rows.eliminate(groups[g], r, last, before, is_unsafe);

                if (i + r < job.rows) {
                    to[(r * words) * kept_step] = row.s;
                    to[(r * words + 1) * kept_step] = row.t;
                    to[(r * words + 2) * kept_step] = row.y;
                }
                before = last;
                last = row;
            }
            if (i + slots * group < job.rows) {
                rows.load(i + slots * group, groups[g]);
            }
        }
    }
    if (is_unsafe) {
        solve_by_blocks(job, source, index, kept);
        return;
    }
    if (job.info != nullptr) {
        job.info[job.is_swapped ? source.k * job.outer + source.j : index] = 0;
    }
    Real x1 = 0, x2 = 0; /* of the next rows */

#pragma unroll 1
    for (int32_t i = (job.rows - 1) / group * group; i >= 0; i -= group) {
        const Real *const at = kept + i * words * kept_step;
        typename Rows::Numbers found;
        Real of[group][words];

#pragma unroll
        for (int r = 0; r < group; r++) {
#pragma unroll
            for (int w = 0; w < words; w++) {
                of[r][w] = i + r < job.rows ? at[(r * words + w) * kept_step] : Real(0);
            }
        }
#pragma unroll
        for (int r = group - 1; r >= 0; r--) {
            const Real x = (of[r][2] - of[r][1] * x2) - of[r][0] * x1;

            found.at[r] = x;
            x2 = x1;
            x1 = x;
        }
        rows.store(i, found);
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
            const int4 vector =
                *reinterpret_cast<const int4 *>(place(parity, d, lane, g * of_group + v));

            memcpy(rows_of.at + v * count, &vector, 16);
        }
    }

    /* Put rows 4 g .. 4 g + 3 of x of this lane into a tile. */
    __device__ __forceinline__ void put(int g, const Numbers &x) const
    {
        constexpr int of_group = 4 / count;

#pragma unroll
        for (int v = 0; v < of_group; v++) {
            int4 vector;

            memcpy(&vector, x.at + v * count, 16);
            *reinterpret_cast<int4 *>(place(0, 0, lane, g * of_group + v)) = vector;
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

/* Grid: a warp for 32 of outer * inner systems, whose eliminated rows are in shared memory. */
template <typename Real>
__global__ void __launch_bounds__(32)
    five_tiles_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Rows = FiveRows<Real>;
    using Tiles = FiveTiles<Real>;
    using Eliminated = typename Rows::Eliminated;
    constexpr int group = Rows::group, words = Rows::words, groups = Tiles::rows / group;
    extern __shared__ int4 shared[];
    Real *const memory = reinterpret_cast<Real *>(shared);
    Real *const kept = memory + 2 * Tiles::stage + threadIdx.x;
    const int64_t systems = job.outer * job.inner;
    const int64_t first_system = static_cast<int64_t>(blockIdx.x) * 32;
    const int64_t own = first_system + threadIdx.x, index = min(own, systems - 1);
    const BlockSource<Real, 2, true> source(job, index);
    const Rows rows(job, source);
    const Tiles tiles(job, first_system, memory);
    Eliminated last = {0, 0, 0, 1}, before = {0, 0, 0, 1};
    bool is_unsafe = false;

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
            Real *const to = kept + i * words * kept_step;

#pragma unroll
            for (int d = 0; d < 5; d++) {
                tiles.read(parity, d, g, of.band[d]);
            }
            tiles.read(parity, 5, g, of.rhs);
            if (i == 0 || i + group == job.rows) {
                rows.clear_ends(i, of);
            }
#pragma unroll
            for (int r = 0; r < group; r++) {
                const Eliminated row = rows.eliminate(of, r, last, before, is_unsafe);

                to[(r * words) * kept_step] = row.s;
                to[(r * words + 1) * kept_step] = row.t;
                to[(r * words + 2) * kept_step] = row.y;
                before = last;
                last = row;
            }
        }
        __syncwarp(); /* the tile has been read */
    }
    const unsigned stored = __ballot_sync(all_lanes, own < systems && !is_unsafe);

    if (is_unsafe && own < systems) {
        solve_by_blocks(job, source, index, kept);
    }
    else if (job.info != nullptr && own < systems) {
        job.info[job.is_swapped ? source.k * job.outer + source.j : index] = 0;
    }
    __syncwarp();

    Real x1 = 0, x2 = 0; /* of the next rows */

#pragma unroll 1
    for (int32_t first = (job.rows - 1) / Tiles::rows * Tiles::rows; first >= 0;
         first -= Tiles::rows) {
#pragma unroll 1
        for (int g = groups - 1; g >= 0; g--) {
            const int32_t i = first + g * group;

            if (i >= job.rows) {
                continue;
            }
            const Real *const at = kept + i * words * kept_step;
            typename Rows::Numbers found;
            Real of[group][words];

#pragma unroll
            for (int r = 0; r < group; r++) {
#pragma unroll
                for (int w = 0; w < words; w++) {
                    of[r][w] = at[(r * words + w) * kept_step];
                }
            }
#pragma unroll
            for (int r = group - 1; r >= 0; r--) {
                const Real x = (of[r][2] - of[r][1] * x2) - of[r][0] * x1;

                found.at[r] = x;
                x2 = x1;
                x1 = x;
            }
            tiles.put(g, found);
        }
        __syncwarp(); /* the tile of x is complete */
        tiles.store(first, stored);
        __syncwarp(); /* the tile of x has been read */
    }
}

} // namespace pysolvers::lines

#endif
