/* half_ring.cuh - rows of the halves of systems (halves.cuh), in a ring in shared memory.
 *
 * The lanes of a warp copy the four operands of a row in units of 16 bytes, past the L1 cache:
 * one copy of a lane for each row in float32, two in float64, in place of four loads. Loads to
 * registers wait in the L1 cache, of which the kept rows leave little. The systems of
 * a batch lie side by side, each row of an operand begins at 16 bytes, and the number of systems
 * is a multiple of those in 16 bytes.
 *
 * Parts of the floor of 5 words in float32 and float64, H200, systems with row exchanges whose pivot
 * rows are in shared memory, in brackets with rows in registers: 64 x 524288 0.91 and 0.87 (0.84,
 * 0.93), 100 x 335544 0.83 and 0.72 (0.77, 0.73), 200 x 167772 0.62 and 0.57 (0.56, 0.48), 512 x 65536
 * 0.54 and 0.55 (0.42, 0.47), 777 x 43184 0.47 and 0.51 (0.36, 0.42), 3001 x 11184 0.47 and 0.49 (0.33,
 * 0.41). Used from 64 rows on in float32 and from 129 rows on in float64 (pivot_suits_ring in
 * lines/pivoted/pivoted_plan.cuh).
 */
#ifndef PS_CUDA_LINES_JOIN_HALF_RING_CUH
#define PS_CUDA_LINES_JOIN_HALF_RING_CUH

#include "lines/join/halves.cuh"
#include "runtime/copy.cuh"

namespace pysolvers::join {

/* The next rows of a half, in batches that are copied together. `from` is the next row of what
 * this lane copies; `left` rows from there on are to be copied. */
template <typename Number> struct HalfRing {
    static constexpr int unit = 16 / static_cast<int>(sizeof(Number));
    static constexpr int units = HALF_SYSTEMS / unit;       /* of a row of an operand */
    static constexpr int copies = 4 * units / HALF_SYSTEMS; /* of a lane, for a row */
    static constexpr int count = half_ahead<Number>, batches = 4, batch = count / batches;
    static constexpr int row_words = 4 * HALF_SYSTEMS, words = count * row_words;
    const Number *first[copies], *from[copies];
    int64_t step[copies];
    Number *ring;
    int left, lane;

    /* half_of(system, counted in the block) is the half of this warp. */
    template <typename HalfOf>
    __device__ __forceinline__ void set(const HalfOf &half_of, Number *memory)
    {
        lane = threadIdx.x % HALF_SYSTEMS;
        ring = memory;
#pragma unroll
        for (int c = 0; c < copies; c++) {
            const int place = c * HALF_SYSTEMS + lane, operand = place / units;
            const HalfSystem<Number> s = half_of(place % units * unit);

            first[c] = operand == 0   ? s.lower
                       : operand == 1 ? s.diag
                       : operand == 2 ? s.upper
                                      : s.rhs;
            step[c] = operand == 0   ? s.lower_row
                      : operand == 1 ? s.diag_row
                      : operand == 2 ? s.upper_row
                                     : s.rhs_row;
        }
    }
    /* Replace row k by the row that is `count` rows behind it. */
    __device__ __forceinline__ void load(int k)
    {
        if (k < left) {
#pragma unroll
            for (int c = 0; c < copies; c++) {
                runtime::copy_async<16>(ring + k * row_words +
                                            (c * HALF_SYSTEMS + lane) * unit,
                                        from[c] + k * step[c]);
            }
        }
    }
    /* All rows have been replaced. */
    __device__ __forceinline__ void advance()
    {
#pragma unroll
        for (int c = 0; c < copies; c++) {
            from[c] += count * step[c];
        }
        left -= count;
    }
    /* Copy the first ones of `rows` rows from row `row` on. */
    __device__ __forceinline__ void begin(const HalfSystem<Number> &, int row, int rows)
    {
        left = rows;
#pragma unroll
        for (int c = 0; c < copies; c++) {
            from[c] = first[c] + row * step[c];
        }
        __syncwarp(); /* all lanes have read the rows of an earlier segment */
#pragma unroll
        for (int k = 0; k < count; k++) {
            load(k);
            if (k % batch == batch - 1) {
                runtime::copies_committed();
            }
        }
        advance();
    }
    __device__ __forceinline__ HalfRow<Number> row(int k) const
    {
        const Number *const at = ring + k * row_words + lane;

        return {at[0], at[HALF_SYSTEMS], at[2 * HALF_SYSTEMS], at[3 * HALF_SYSTEMS]};
    }
};

/* Eliminate the next columns, at most as many as the ring has rows: step(number, the next row) for
 * each. Returns whether there are as many. */
template <typename Number, typename Step>
__device__ __forceinline__ bool
eliminate_group(HalfRing<Number> &rows, int columns, const Step &step)
{
    using Ring = HalfRing<Number>;

#pragma unroll
    for (int begin = 0; begin < Ring::count; begin += Ring::batch) {
        runtime::copies_done_but<Ring::batches - 1>();
        __syncwarp(); /* those of all lanes */
#pragma unroll
        for (int k = begin; k < begin + Ring::batch; k++) {
            if (k >= columns) {
                return false;
            }
            step(k, rows.row(k));
        }
        __syncwarp(); /* all lanes have read the batch */
#pragma unroll
        for (int k = begin; k < begin + Ring::batch; k++) {
            rows.load(k);
        }
        runtime::copies_committed();
    }
    rows.advance();
    return true;
}

/* As with HalfRows. */
template <int words, typename Number, typename Eliminate, typename Group>
__device__ __forceinline__ void
eliminate_half(HalfRing<Number> &rows, int columns, Number *kept,
               const Eliminate &eliminate, const Group &end_group)
{
    constexpr int count = HalfRing<Number>::count, size = words * HALF_SYSTEMS;

#pragma unroll 1
    for (; columns > 0; columns -= count) {
        if (!eliminate_group(rows, columns, [&](int k, const HalfRow<Number> &row) {
                eliminate(row, kept + k * size);
            })) {
            return;
        }
        end_group();
        kept += count * size;
    }
}

} // namespace pysolvers::join

#endif
