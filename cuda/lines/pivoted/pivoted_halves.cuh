/* pivoted_halves.cuh - systems along a strided axis, solved in order by two threads each.
 *
 * The halves are eliminated and joined as in pivoted_carried.cuh, and no system is doubtful.
 *
 * The lanes of a warp have neighbouring systems, and a block has two warps, the halves of the
 * same systems. Rows are loaded to registers, or to a ring in shared memory (half_ring.cuh), some
 * rows before they are used. Pivot rows, divided by their pivots, are kept in shared memory, 3
 * words a row: 5 words per unknown if all of them fit. Otherwise the last rows of each half are
 * kept, and of those before them the carried row at the beginning of every segment; then
 * segment after segment is read and eliminated a second time, and substituted: at most 9 words.
 * With a ring and from 129 rows on, the first pivot rows of the last segment are in registers. x may be rhs: x of
 * the first row of a segment is stored when the segment before it, which ends with this row, has
 * been read.
 *
 * Parts of the time of chunks (pivoted_tile.cuh) in float32 and float64, H200: 16 to 100 rows
 * 0.55 to 0.8 and 0.62 to 0.76, 200 rows 0.55 and 0.72, 777 rows 0.68 and 0.68, 3001 rows 0.65
 * and 0.61.
 *
 * A system with a pivot that is tiny, huge or NaN is not stored, and is solved a second time, in order,
 * by pivot_solve_again(), which divides and reports zero pivots.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_HALVES_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_HALVES_CUH

#include "lines/join/half_ring.cuh"
#include "lines/pivoted/pivoted.cuh"
#include "lines/pivoted/pivoted_carried.cuh"

namespace pysolvers::pivoted {

using namespace join;

/* Eliminate `columns` columns of a half. */
template <bool keeps, typename Rows, typename Number, bool has_rests>
__device__ __forceinline__ void
pivot_half(Rows &rows, PivotCarried<Number, has_rests> &carried, OrderedPivots &pivots,
           int columns, Number *kept)
{
    const auto eliminate = [&](const HalfRow<Number> &below, Number *to) {
        Number row[PIVOT_HALF_WORDS];

        pivots.add<false>(carried.eliminate(below, row), 0);
        if (keeps) {
#pragma unroll
            for (int w = 0; w < PIVOT_HALF_WORDS; w++) {
                to[w * HALF_SYSTEMS] = row[w];
            }
        }
    };

    eliminate_half<PIVOT_HALF_WORDS>(rows, columns, kept, eliminate,
                                     [&] { carried.add_rests(); });
    carried.add_rests();
}

/* Pivot rows that a thread keeps in registers, if rows come through a ring, which leaves registers
 * free, and the systems have more than PIVOT_NO_RESTS rows. H200, parts of the floor in float32 and
 * float64, in brackets without them: 200 rows 0.79 and 0.64 (0.64, 0.58), 512 rows 0.60 and 0.58
 * (0.55, 0.56), 777 rows 0.52 and 0.53 (0.49, 0.52), 3001 x 11184 0.47 and 0.51 (0.48, 0.50). */
template <typename Number>
constexpr int pivot_held = 192 / static_cast<int>(sizeof(Number));

/* The pivot rows of COUNT columns in registers. COUNT is a multiple of the rows of the ring. */
template <typename Number, int COUNT> struct PivotHeld {
    Number row[COUNT][PIVOT_HALF_WORDS];

    /* Eliminate the next COUNT columns. */
    template <bool has_rests>
    __device__ __forceinline__ void eliminate(HalfRing<Number> &rows,
                                              PivotCarried<Number, has_rests> &carried,
                                              OrderedPivots &pivots)
    {
        constexpr int count = HalfRing<Number>::count;

#pragma unroll
        for (int begin = 0; begin < COUNT; begin += count) {
            (void)eliminate_group(rows, count, [&](int k, const HalfRow<Number> &below) {
                pivots.add<false>(carried.eliminate(below, row[begin + k]), 0);
            });
            carried.add_rests();
        }
    }
    /* As substitute_half(). */
    __device__ __forceinline__ void substitute(Number &near, Number &far, Number *to,
                                               int64_t step, bool stores) const
    {
        to += (COUNT - 1) * step;
#pragma unroll
        for (int i = COUNT - 1; i >= 0; i--) {
            const Number x = substituted<PIVOT_HALF_WORDS, 1>(row[i], near, far);

            far = near;
            near = x;
            if (stores && i > 0) {
                *to = x;
            }
            to -= step;
        }
    }
};

/* Grid: one block for each HALF_SYSTEMS systems. Block: two warps. Shared memory: the row in
 * the middle, the kept rows of both halves, and their rings. */
template <typename Number, bool has_rests, bool in_ring, int held_rows>
__global__ void
__launch_bounds__(HALF_THREADS)
    pivoted_halves_kernel(const __grid_constant__ PivotPlan<Number> a)
{
    extern __shared__ __align__(128) unsigned char memory[];
    constexpr int words = PIVOT_HALF_WORDS, size = words * HALF_SYSTEMS,
                  count = HalfRows<Number>::count;
    const int lane = threadIdx.x % HALF_SYSTEMS;
    const bool from_last = threadIdx.x >= HALF_SYSTEMS;
    const int64_t system = int64_t(blockIdx.x) * HALF_SYSTEMS + lane;
    const bool active = system < a.systems;
    const PivotIndex at = pivot_index(a, active ? system : a.systems - 1);
    const HalfSystem<Number> s(a.s, at.j, at.k, from_last);
    Number *const middle = reinterpret_cast<Number *>(memory) + lane;
    Number *const kept = middle + size * (from_last ? 1 + a.kept_rows : 1);
    /* Columns before the last segment, and the columns of a segment before it. */
    const int columns = s.rows - 1, last = a.kept_rows + held_rows;
    const int before = columns <= last ? 0 : (columns - last + count - 1) / count * count;
    const int length = a.kept_rows / count * count;
    const int segments = before == 0 ? 0 : (before + length - 1) / length;
    const auto begin_of = [&](int g) { return max(before - (segments - g) * length, 0); };
    Number *const stored = a.carried + int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t plane = a.tiles * HALF_THREADS;
    PivotCarried<Number, has_rests> carried = {*s.diag, *s.upper, *s.rhs};
    std::conditional_t<in_ring, HalfRing<Number>, HalfRows<Number>> rows;
    OrderedPivots pivots;

    if constexpr (in_ring) {
        const auto half_of = [&](int number) {
            const int64_t other = system - lane + number;
            const PivotIndex one = pivot_index(a, other < a.systems ? other : 0);

            return HalfSystem<Number>(a.s, one.j, one.k, from_last);
        };
        rows.set(half_of, middle - lane + size * (1 + 2 * a.kept_rows) +
                              (from_last ? HalfRing<Number>::words : 0));
    }
    rows.begin(s, 1, columns);
    for (int g = 0; g < segments; g++) {
        carried.store(stored + g * (words * plane), plane);
        pivot_half<false>(rows, carried, pivots, begin_of(g + 1) - begin_of(g), kept);
    }
    Number near = Number(0), far = Number(0);
    bool refused = false, stores = false;

#pragma unroll 1
    for (int g = segments;; g--) {
        const int begin = begin_of(g);
        const int end = g == segments ? columns : begin_of(g + 1);

        if (g < segments) {
            const Number *const from = stored + g * (words * plane);

            carried = {from[0], from[plane], from[2 * plane]};
        }
        PivotHeld<Number, held_rows == 0 ? 1 : held_rows> held;
        const int in_registers = g == segments ? held_rows : 0;

        if constexpr (held_rows > 0) {
            if (g == segments) {
                held.eliminate(rows, carried, pivots);
            }
        }
        pivot_half<true>(rows, carried, pivots, end - begin - in_registers, kept);
        if (g == segments) {
            refused = join_halves(middle, from_last, carried, pivots, near, far,
                                  [] { __syncthreads(); }) &&
                      active;
            stores = active && !refused;
        }
        if (stores) {
            s.x[end * s.x_row] = near;
        }
        if (g > 0) {
            rows.begin(s, begin_of(g - 1) + 1, begin - begin_of(g - 1));
        }
        substitute_half<words>(kept, end - begin - in_registers, near, far,
                               s.x + (begin + in_registers) * s.x_row, s.x_row, stores);
        if constexpr (held_rows > 0) {
            if (g == segments) {
                if (stores) {
                    s.x[(begin + held_rows) * s.x_row] = near;
                }
                held.substitute(near, far, s.x + begin * s.x_row, s.x_row, stores);
            }
        }
        if (g == 0) {
            break;
        }
    }
    if (stores) {
        *s.x = near;
    }
    if (active && from_last) {
        const int64_t number = pivot_number(a, system);

        a.again[number] = refused ? PS_SOLVED_AGAIN : 1;
        if (a.s.info != nullptr && !refused) {
            a.s.info[number] = 0;
        }
    }
    if (__syncthreads_or(refused)) {
        pivot_solve_again<true>(a);
    }
}

} // namespace pysolvers::pivoted

#endif
