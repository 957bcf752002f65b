/* five_lines.cuh - systems of five diagonals divided into chunks of scalar rows, contiguous in
 * memory: the partition method (join/segment.cuh), whose units are those of blocks of 2 x 2.
 *
 * A thread eliminates the scalar rows of a chunk (five_rows.cuh) in terms of the last two unknowns
 * before it, l,
 *
 *   x_i = y_i - s_i x_{i+1} - t_i x_{i+2} - p_i l_0 - q_i l_1
 *
 * and carries the first two unknowns along. The last two rows close the unit. The chunks of a
 * system are joined by parallel cyclic reduction and sweeps (join/decay.cuh). 7 words and about
 * 45 operations for a row: a block has its systems in shared memory, and the eliminated rows take
 * the places of those of the matrix, so that a multiprocessor has about 4000 rows in float64.
 *
 * A warp copies the systems that it solves, and waits for no other one if they are whole: with 44
 * instructions for a vector of each operand in place of 197, and 249 for four rows in place of 380,
 * rows of 128, 256, 512 and 4096 scalars take 0.79, 0.76, 0.75 and 0.88 of the time in float64 (H200).
 * Loads of the next systems to the L2 cache meanwhile took 1.0 to 1.1. Neighbouring systems, four of
 * them side by side, took 1.1 to 1.5 of the time of five_rows.cuh.
 *
 * Rows of 128, 256, 512, 1000, 2048 and 4096 scalars have 0.85, 0.87, 0.87, 0.75, 0.87 and 0.67 of the speed of a
 * copy in float64 if they are dominant, 0.78, 0.77, 0.75, 0.58, 0.59 and 0.48 if chunks depend on each other over
 * the whole system; in float32 256, 1000 and 4096 rows 0.75, 0.64, 0.80 and 0.70, 0.55, 0.67. Systems of 4096 rows of
 * float64 in clusters of two blocks have 0.64 and 0.27, of 8192 rows 0.57 and 0.24. Eliminated rows in registers,
 * as five_columns.cuh has them, with the next systems copied meanwhile: 0.73 to 1.04 of this speed.
 *
 * A chunk has 16 bytes more than its rows, so that vectors of neighbouring threads lie in different
 * banks.
 */
#ifndef PS_CUDA_LINES_FIVE_LINES_CUH
#define PS_CUDA_LINES_FIVE_LINES_CUH

#include "lines/five_rows.cuh"
#include "lines/join/decay.cuh"
#include "lines/system_tiles.cuh"

namespace pysolvers::lines {

using namespace join;

/* The tile of a block in shared memory: operands, which are five diagonals and rhs, of whole
 * systems. Operands with the same pitches, which MAY_BE_ALIKE allows, have copies of their own. */
template <typename Real, int ROWS, bool MAY_BE_ALIKE> struct FiveLines {
    static constexpr int count = 16 / sizeof(Real);
    static constexpr int pitch = ROWS + count, operands = 6;
    const BlocksJob<Real> &job;
    Real *const memory;

    __device__ __forceinline__ int chunks() const
    {
        return job.lines.shape.chunks();
    }

    /* A chunk of operand 0. */
    __device__ __forceinline__ Real *chunk_at(int slot, int chunk) const
    {
        return memory + (slot * chunks() + chunk) * pitch;
    }

    /* Start the copies of the systems of this warp; vectors without an
     * entry of the matrix are cleared. */
    __device__ __forceinline__ void load(const SystemRange &range) const
    {
        if (MAY_BE_ALIKE && job.is_alike) {
            load_alike(range);
            return;
        }
        walk(range, [&](const auto &source, int slot, int32_t start, int32_t step) {
            const Real *from[operands];
            Real *to = at_row(slot, start);

#pragma unroll
            for (int d = 0; d < operands; d++) {
                from[d] = (d < 5 ? job.bands[d % 5].system(source.j, source.k)
                                 : source.at(job.rhs, 0)) +
                          start;
            }
#pragma unroll 2
            for (int32_t row = start; row < job.rows; row += step) {
#pragma unroll
                for (int d = 0; d < operands; d++) {
                    const int32_t least = d < 5 ? max(2 - d, 0) : 0,
                                  beyond = d < 5 ? max(d - 2, 0) : 0;

                    copy_async_of_line_or_clear<16>(to + d * array(), from[d],
                                                    row + count > least &&
                                                        row < job.rows - beyond);
                    from[d] += step;
                }
                to += step / ROWS * pitch;
            }
        });
        copies_committed();
    }

    /* Store x, in the place of rhs, of the systems of this warp that are not in `left`. */
    __device__ __forceinline__ void store(const SystemRange &range,
                                          const unsigned *left) const
    {
        walk(range, [&](const auto &source, int slot, int32_t start, int32_t step) {
            const Real *from = at_row(slot, start) + 5 * array();
            Real *to = source.at(job.x, 0) + start;

            if (left[slot] != 0) {
                return;
            }
#pragma unroll 2
            for (int32_t row = start; row < job.rows; row += step) {
                *reinterpret_cast<int4 *>(to) = *reinterpret_cast<const int4 *>(from);
                from += step / ROWS * pitch;
                to += step;
            }
        });
    }

    /* The numbers of an operand. */
    __device__ __forceinline__ int array() const
    {
        return job.lines.systems * chunks() * pitch;
    }

  private:
    /* load() of operands with the same pitches, in 38 instructions for a vector of each operand in place of
     * 47: rows of 96 to 512 scalars take 0.9 to 0.97 of the time. */
    __device__ __forceinline__ void load_alike(const SystemRange &range) const
    {
        walk(range, [&](const auto &source, int slot, int32_t start, int32_t step) {
            int64_t offset = source.at(job.rhs, start) - job.rhs.data;
            Real *to = at_row(slot, start);

#pragma unroll 2
            for (int32_t row = start; row < job.rows; row += step) {
#pragma unroll
                for (int d = 0; d < operands; d++) {
                    const Real *const from =
                        (d < 5 ? job.bands[d % 5].data : job.rhs.data) + offset;
                    Real *const at = to + d * array();

                    /* the first two entries of the first diagonal, and the last two of the
                     * last one, are not those of the matrix */
                    if (d % 4 == 0 && d < 5 && count == 2) {
                        copy_async_of_line_or_clear<16>(
                            at, from, d == 0 ? row > 0 : row + count < job.rows);
                    }
                    else {
                        copy_async_of_line<16>(at, from);
                    }
                }
                offset += step;
                to += step / ROWS * pitch;
            }
        });
        copies_committed();
    }

    __device__ __forceinline__ Real *at_row(int slot, int32_t row) const
    {
        const int place = row + chunks() * ROWS - job.rows;

        return chunk_at(slot, 0) + place / ROWS * pitch + place % ROWS;
    }

    /* visit(source, slot, row, step) for the systems of this warp, of which the thread copies the
     * vectors at rows row, row + step, ...: neighbouring threads have neighbours in memory. */
    template <typename Visit>
    __device__ __forceinline__ void walk(const SystemRange &range,
                                         const Visit &visit) const
    {
        const Shape &shape = job.lines.shape;
        const int warp = threadIdx.x / 32, own = warp / shape.warps * shape.groups;
        const int lane = warp % shape.warps * 32 + threadIdx.x % 32;

#pragma unroll 1
        for (int slot = own; slot < min(own + shape.groups, range.count); slot++) {
            visit(BlockSource<Real, 2, true>(job, range.first + slot), slot, lane * count,
                  shape.warps * 32 * count);
        }
    }
};

/* The chunk of a thread. */
template <typename Real, int ROWS> struct FiveChunk {
    using Number = Block<Real, 2>;
    using Numbers = typename FiveRows<Real>::Numbers;
    static constexpr int group = 4, bands = 5;
    /* where the eliminated rows are; those of rhs have y and then x */
    enum { of_s, of_t, of_p, of_q, of_y = 5 };
    struct Group {
        Numbers of[6];
    };
    struct Row {
        Real s, t, y, p, q;
    };
    /* x_f = g - p l_0 - q l_1 - u_0 x_i - u_1 x_{i+1} */
    struct First {
        Real g, p, q, u0, u1;

        __device__ __forceinline__ void pass(const Row &row)
        {
            g -= u0 * row.y;
            p -= u0 * row.p;
            q -= u0 * row.q;

            const Real next = u1 - u0 * row.s;

            u1 = -(u0 * row.t);
            u0 = next;
        }
    };
    const BlocksJob<Real> &job;
    Real *const at;  /* row 0 of operand 0 */
    const int array; /* from an operand to the next one */
    const int start; /* row of the system */
    FiveGuard<Real> guard;

    /* Rows before row 0 of the system become those of the identity, and entries that the matrix does
     * not have become 0. */
    __device__ __forceinline__ void complete() const
    {
        const auto clear = [&](int r) {
#pragma unroll
            for (int d = 0; d < 6; d++) {
                const int32_t row = start + r, column = row + (d < bands ? d - 2 : 0);

                if (row < 0 || column < 0 || column >= job.rows) {
                    at[d * array + r] = d == 2 ? 1 : 0;
                }
            }
        };

#pragma unroll 1
        for (int r = 0; r < min(2 - start, ROWS); r++) {
            clear(r);
        }
        if (start + ROWS == job.rows) {
            clear(ROWS - 2);
            clear(ROWS - 1);
        }
    }

    __device__ __forceinline__ Group load(int g) const
    {
        Group all;

#pragma unroll
        for (int d = 0; d < 6; d++) {
            load_vectors(at + d * array + g * group, all.of[d]);
        }
        return all;
    }

    __device__ __forceinline__ Segment<Number> eliminate()
    {
        constexpr int groups = ROWS / group;
        Row before = {0, 0, 0, -1, 0}, last = {0, 0, 0, 0, -1};
        First first[2] = {{0, 0, 0, -1, 0}, {0, 0, 0, 0, -1}};

#pragma unroll 1
        for (int g = 0; g < groups - 1; g++) {
            const Group rows = load(g);
            Group kept;

#pragma unroll
            for (int r = 0; r < group; r++) {
                step(rows, r, before, last, first);
                keep(kept, r, last);
            }
            put(kept, g, group);
        }
        const Group rows = load(groups - 1);
        Group kept;

#pragma unroll
        for (int r = 0; r < group - 2; r++) {
            step(rows, r, before, last, first);
            keep(kept, r, last);
        }
#pragma unroll
        for (int r = group - 2; r < group; r++) {
            keep(kept, r, last);
        }
        put(kept, groups - 1, group);

        return closed(rows, before, last, first);
    }

    __device__ __forceinline__ void substitute(const Ends<Number> &ends) const
    {
        constexpr int groups = ROWS / group;
        const Real l0 = ends.y_left.at[0], l1 = ends.y_left.at[1];
        Real x1 = ends.y.at[1], x2 = 0;

#pragma unroll 1
        for (int g = groups - 1; g >= 0; g--) {
            Real *const rows = at + g * group;
            Numbers s, t, p, q, y, x;

            load_vectors(rows + of_s * array, s);
            load_vectors(rows + of_t * array, t);
            load_vectors(rows + of_p * array, p);
            load_vectors(rows + of_q * array, q);
            load_vectors(rows + of_y * array, y);

#pragma unroll
            for (int r = group - 1; r >= 0; r--) {
                const Real own = y.at[r] - p.at[r] * l0 - q.at[r] * l1;
                Real value = (own - t.at[r] * x2) - s.at[r] * x1;

                if (r >= group - 2 && g == groups - 1) {
                    value = ends.y.at[r - (group - 2)];
                }
                x.at[r] = value;
                x2 = x1;
                x1 = value;
            }
            store_vectors(rows + of_y * array, x);
        }
    }

    /* Eliminate row `r` of a group after the rows `last` and `before`. */
    __device__ __forceinline__ void step(const Group &rows, int r, Row &before, Row &last,
                                         First (&first)[2])
    {
        const auto of = [&](int d) { return rows.of[d].at[r]; };
        const Real l2 = of(0), a = of(1) - l2 * before.s;
        Row row;

        const Real pivot = of(2) - l2 * before.t - a * last.s;
        const Real inverse = fast_reciprocal(pivot);

        guard.pass(a, l2, pivot, job.is_definite);
        check_dominance(rows, r);
        row.s = (of(3) - a * last.t) * inverse;
        row.t = of(4) * inverse;
        row.y = (of(5) - l2 * before.y - a * last.y) * inverse;
        row.p = -((l2 * before.p + a * last.p) * inverse);
        row.q = -((l2 * before.q + a * last.q) * inverse);
        first[0].pass(row);
        first[1].pass(row);
        before = last;
        last = row;
    }

    /* The unit, whose last two rows are those of a group. */
    __device__ __forceinline__ Segment<Number>
    closed(const Group &rows, const Row &before, const Row &last, const First (&first)[2])
    {
        const auto of = [&](int d, int r) { return rows.of[d].at[group - 2 + r]; };
        const Real a = of(1, 0) - of(0, 0) * before.s, l = of(0, 1);
        Segment<Number> unit;

        guard.check(a, of(0, 0));
        guard.check(l, Real(0));
        check_dominance(rows, group - 2);
        check_dominance(rows, group - 1);
        unit.b = {{{of(2, 0) - of(0, 0) * before.t - a * last.s, of(3, 0) - a * last.t},
                   {of(1, 1) - l * last.s, of(2, 1) - l * last.t}}};
        unit.a = {
            {{-(of(0, 0) * before.p + a * last.p), -(of(0, 0) * before.q + a * last.q)},
             {-(l * last.p), -(l * last.q)}}};
        unit.c = {{{of(4, 0), 0}, {of(3, 1), of(4, 1)}}};
        unit.d.at[0] = of(5, 0) - of(0, 0) * before.y - a * last.y;
        unit.d.at[1] = of(5, 1) - l * last.y;
#pragma unroll
        for (int f = 0; f < 2; f++) {
            unit.first.g.at[f] = first[f].g;
            unit.first.l.at[f][0] = first[f].p;
            unit.first.l.at[f][1] = first[f].q;
            unit.first.u.at[f][0] = first[f].u0;
            unit.first.u.at[f][1] = first[f].u1;
        }
        return unit;
    }

  private:
    static __device__ __forceinline__ void keep(Group &kept, int r, const Row &row)
    {
        kept.of[of_s].at[r] = row.s;
        kept.of[of_t].at[r] = row.t;
        kept.of[of_p].at[r] = row.p;
        kept.of[of_q].at[r] = row.q;
        kept.of[of_y].at[r] = row.y;
    }

    __device__ __forceinline__ void put(const Group &kept, int g, int) const
    {
#pragma unroll
        for (int d = 0; d < 6; d++) {
            if (d != 4) {
                store_vectors(at + d * array + g * group, kept.of[d]);
            }
        }
    }

    __device__ __forceinline__ void check_dominance(const Group &rows, int r)
    {
        if (job.checks) {
            guard.check_dominance(rows.of[0].at[r], rows.of[1].at[r], rows.of[2].at[r],
                                  rows.of[3].at[r], rows.of[4].at[r]);
        }
    }
};

/* Grid: any number of blocks, each with one tile after the other. A warp with whole systems does
 * not wait for the others. */
template <typename Real, int ROWS, bool MAY_BE_ALIKE>
__global__ void
__launch_bounds__(five_lines_threads)
    five_lines_kernel(const __grid_constant__ BlocksJob<Real> job)
{
    using Number = Block<Real, 2>;
    using Chunk = FiveChunk<Real, ROWS>;
    extern __shared__ int4 shared[];
    __shared__ unsigned left[five_lines_systems]; /* systems that blocks solve */
    const FiveLines<Real, ROWS, MAY_BE_ALIKE> lines = {job,
                                                       reinterpret_cast<Real *>(shared)};

    for_system_tiles<ROWS>(job, [&](const SystemTile<ROWS> &tile) {
        const SystemRange range = {tile.first, tile.count};
        const bool is_idle = !tile.is_used;
        const int slot = is_idle ? 0 : tile.self.slot;
        /* the threads that report the systems of their warp */
        const bool reports = !is_idle && tile.chunk() == 0;
        Chunk chunk = {job, lines.chunk_at(slot, tile.chunk()), lines.array(),
                       tile.self.start};
        Segment<Number> unit;

        lines.load(range);
        copies_done();
        tile.wait(); /* the systems are complete */
        if (!is_idle) {
            chunk.complete();
            unit = chunk.eliminate();
        }
        else {
            unit = Segment<Number>::closed(own_spike<Number>(), left_spike<Number>(),
                                           copy_row<Number>());
        }
        /* the places of operand 4 have no eliminated rows */
        const JoinedEnds<Number> found = joined<Number, ROWS, true>(
            tile.shape, tile.self, is_idle, job.is_definite, chunk.guard.is_unsafe != 0,
            unit,
            UnitSlots<Number>{
                reinterpret_cast<char *>(lines.chunk_at(0, 0) + 4 * lines.array()),
                lines.pitch * static_cast<int>(sizeof(Real))});

        if (!is_idle) {
            if (reports) {
                left[slot] = found.is_bad;
            }
            chunk.substitute(found.ends);
        }
        tile.wait(); /* x is complete */
        lines.store(range, left);
        if (reports) {
            const BlockSource<Real, 2, true> source(job, tile.first + slot);

            if (left[slot] != 0) {
                solve_by_blocks(job, source, tile.first + slot,
                                kept_of(job, tile.first + slot, source.rows * 6));
            }
            else if (job.info != nullptr) {
                job.info[job.is_swapped ? source.k * job.outer + source.j
                                        : tile.first + slot] = 0;
            }
        }
        tile.wait(); /* x has been read */
    });
}

} // namespace pysolvers::lines

#endif
