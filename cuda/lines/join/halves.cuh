/* halves.cuh - systems along a strided axis whose halves are eliminated by two threads.
 *
 * One thread eliminates the columns of the upper half of a system from its first row to the
 * middle, another one those of the lower half from its last row; their last rows contain the
 * two middle unknowns only, from which both substitute. The lanes of a warp have neighbouring
 * systems, and a block has two warps, the halves of the same systems. Rows are loaded to
 * registers some rows before they are used, a number at a time, so that rows may begin
 * anywhere. The eliminated rows are kept in shared memory.
 */
#ifndef PS_CUDA_LINES_JOIN_HALVES_CUH
#define PS_CUDA_LINES_JOIN_HALVES_CUH

#include "device/operand.cuh"

namespace pysolvers::join {

using namespace device;

/* Systems of a block, and its threads, in most kernels. */
enum { HALF_SYSTEMS = 32, HALF_THREADS = 2 * HALF_SYSTEMS };

/* Rows that are loaded in advance. */
template <typename Number>
constexpr int half_ahead = 64 / static_cast<int>(sizeof(Number));

template <typename Number> struct HalfRow {
    Number lower, diag, upper, rhs;
};

/* Half of a system, with row 0 at its end and the last row in the middle of the system. */
template <typename Number> struct HalfSystem {
    const Number *lower, *diag, *upper, *rhs;
    Number *x;
    int64_t lower_row, diag_row, upper_row, rhs_row, x_row;
    int rows;

    __device__ __forceinline__ HalfSystem(const Systems<Number> &s, int64_t j, int64_t k,
                                          bool from_last)
        : lower(s.lower.system(j, k)), diag(s.diag.system(j, k)),
          upper(s.upper.system(j, k)), rhs(s.rhs.system(j, k)), x(s.x.system(j, k)),
          lower_row(s.lower.row), diag_row(s.diag.row), upper_row(s.upper.row),
          rhs_row(s.rhs.row), x_row(s.x.row), rows(s.rows / 2)
    {
        if (from_last) {
            const int64_t last = s.rows - 1;
            const Number *const before = lower + last * lower_row;

            lower = upper + last * upper_row;
            diag += last * diag_row;
            upper = before;
            rhs += last * rhs_row;
            x += last * x_row;
            lower_row = -s.upper.row;
            diag_row = -diag_row;
            upper_row = -s.lower.row;
            rhs_row = -rhs_row;
            x_row = -x_row;
            rows = s.rows - rows;
        }
    }
};

/* The number `steps` steps of `step` bytes behind `from`, if `yes`; otherwise `value` is
 * unchanged. Neither a branch nor a load that the compiler moves behind the elimination of
 * other rows, and no product that it keeps in registers. */
#define PS_LOAD_IF(type, suffix, letter)                                              \
    __device__ __forceinline__ void load_if(bool yes, type &value, const type *from,  \
                                            int step, int steps)                      \
    {                                                                                 \
        asm volatile("{.reg .pred p; .reg .b64 a; setp.ne.b32 p, %2, 0;"              \
                     " mad.wide.s32 a, %3, %4, %1; @p ld.global." suffix " %0, [a];}" \
                     : "+" letter(value)                                              \
                     : "l"(from), "r"(static_cast<int>(yes)), "r"(step), "r"(steps)   \
                     : "memory");                                                     \
    }
PS_LOAD_IF(float, "f32", "f")
PS_LOAD_IF(double, "f64", "d")
#undef PS_LOAD_IF

/* The next rows of a half, in registers. The pointers are those of the row after them; `left`
 * rows from there on are to be loaded. */
template <typename Number, int COUNT = half_ahead<Number>> struct HalfRows {
    static constexpr int count = COUNT;
    HalfRow<Number> row[count];
    const Number *lower, *diag, *upper, *rhs;
    int lower_row, diag_row, upper_row, rhs_row, left;

    /* Replace row k by the row that is `count` rows behind it. */
    __device__ __forceinline__ void load(int k)
    {
        constexpr int size = sizeof(Number);
        const bool yes = k < left;

        load_if(yes, row[k].lower, lower, lower_row * size, k);
        load_if(yes, row[k].diag, diag, diag_row * size, k);
        load_if(yes, row[k].upper, upper, upper_row * size, k);
        load_if(yes, row[k].rhs, rhs, rhs_row * size, k);
    }
    /* All rows have been replaced. */
    __device__ __forceinline__ void advance()
    {
        lower += int64_t(count) * lower_row;
        diag += int64_t(count) * diag_row;
        upper += int64_t(count) * upper_row;
        rhs += int64_t(count) * rhs_row;
        left -= count;
    }
    /* Load the first ones of `rows` rows from row `first` on. */
    __device__ __forceinline__ void begin(const HalfSystem<Number> &s, int first,
                                          int rows)
    {
        lower_row = static_cast<int>(s.lower_row);
        diag_row = static_cast<int>(s.diag_row);
        upper_row = static_cast<int>(s.upper_row);
        rhs_row = static_cast<int>(s.rhs_row);
        lower = s.lower + first * s.lower_row;
        diag = s.diag + first * s.diag_row;
        upper = s.upper + first * s.upper_row;
        rhs = s.rhs + first * s.rhs_row;
        left = rows;
#pragma unroll
        for (int k = 0; k < count; k++) {
            row[k] = {}; /* rows of an earlier segment need not be preserved */
            load(k);
        }
        advance();
    }
};

/* Eliminate `columns` columns: eliminate(the next row, where the pivot row is kept) for each,
 * the pivot rows being `words` words in shared memory. Columns that are followed by others
 * are a multiple of the rows that are loaded in advance; after as many of them, end_group().
 * SYSTEMS: of the block. */
template <int words, int SYSTEMS = HALF_SYSTEMS, typename Number, int COUNT,
          typename Eliminate, typename Group>
__device__ __forceinline__ void
eliminate_half(HalfRows<Number, COUNT> &rows, int columns, Number *kept,
               const Eliminate &eliminate, const Group &end_group)
{
    constexpr int count = COUNT, size = words * SYSTEMS;

#pragma unroll 1
    for (; columns > 0; columns -= count) {
#pragma unroll
        for (int k = 0; k < count; k++) {
            if (k >= columns) {
                return;
            }
            eliminate(rows.row[k], kept + k * size);
            rows.load(k);
        }
        rows.advance();
        end_group();
        kept += count * size;
    }
}

/* The entries of a pivot row, divided by the pivot, in the columns after its own, 2 or 1, and
 * its right-hand side. `far` is used if there are two. */
template <int words, int SYSTEMS = HALF_SYSTEMS, typename Number>
__device__ __forceinline__ Number
substituted(const Number *kept, Number near, Number far)
{
    Number x = kept[(words - 1) * SYSTEMS];

    if constexpr (words == 3) {
        x = fma(-kept[SYSTEMS], far, x);
    }
    return fma(-kept[0], near, x);
}

/* Substitute `columns` columns of a half and store x of all but the first one, `to` being the
 * place of x of the first. `near` and `far` are the unknowns after these columns, and become
 * those of the first two. */
template <int words, int SYSTEMS = HALF_SYSTEMS, typename Number>
__device__ __forceinline__ void
substitute_half(const Number *kept, int columns, Number &near, Number &far, Number *to,
                int64_t step, bool stores)
{
    constexpr int size = words * SYSTEMS;
    const Number *row = kept + (columns - 1) * size;

    to += (columns - 1) * step;
#pragma unroll 4
    for (int i = columns - 1; i >= 0; i--) {
        const Number x = substituted<words, SYSTEMS>(row, near, far);

        far = near;
        near = x;
        if (stores && i > 0) {
            *to = x;
        }
        to -= step;
        row -= size;
    }
}

} // namespace pysolvers::join

#endif
