/* column_halves.cu - systems of few rows along a strided axis, by halves.
 *
 * Gaussian elimination without row exchanges from both ends of a system to its middle, a
 * thread for each half (join/halves.cuh). 5 words, 8 operations and one reciprocal per unknown. For
 * diagonally dominant systems. In the ring of column_stage.cuh, whose rows pass through shared
 * memory, single numbers are copied if rows do not begin at 16 bytes; column.cu has what these
 * kernels gain. Pivots of any exponent are inverted, so that no elimination is repeated.
 */
#include "lines/columns/column_kernel.cuh"
#include "lines/join/halves.cuh"

namespace pysolvers::columns {

using namespace join;

/* Words of a kept row: u and g of x_i = g - u x_{i+1}. */
enum { COLUMN_HALF_WORDS = 2 };

/* A half that is eliminated: the spike of the row before the current one, which has no
 * unknown on its left, and the current row. */
template <typename Number> struct ColumnHalf {
    Spike<Number> above = {Number(0), Number(0), Number(0)};
    Row<Number> row;
    int32_t index, step; /* of the current row in the system; to the next one */
    BadPivot bad_pivot = {};
    bool not_dominant = false;

    __device__ __forceinline__ void take(const Row<Number> &next)
    {
        row = next;
        not_dominant = not_dominant | !is_dominant(row.lower, row.diag, row.upper);
    }
    __device__ __forceinline__ Number inverse_of(Number pivot)
    {
        return SafeReciprocal<Number>{bad_pivot}.invert(pivot, index);
    }
    /* Eliminate the unknown of the current row. */
    __device__ __forceinline__ void eliminate()
    {
        above = above.below(row, inverse_of(above.pivot_of(row)));
        above.l = Number(0);
        index += step;
    }
};

/* Both halves are joined by the threads of the lower one. Returns the middle unknown of the
 * thread's half, and sets its note to that of the system. All threads of the block call this
 * function. */
template <int SYSTEMS, typename Number>
__device__ __forceinline__ Number
join_halves(Number *shared, int32_t *notes, bool from_last, ColumnHalf<Number> &half)
{
    const Row<Number> &row = half.row;

    if (!from_last) {
        half.eliminate();
        shared[0] = half.above.g;
        shared[SYSTEMS] = half.above.u;
        notes[0] = half.bad_pivot.row;
        notes[SYSTEMS] = half.not_dominant;
    }
    __syncthreads(); /* the upper half is written */
    if (from_last) {
        const Number g = shared[0], u = shared[SYSTEMS];
        const Number inverse = half.inverse_of(half.above.pivot_of(row) - row.upper * u);
        const Number x = inverse * (row.rhs - row.lower * half.above.g - row.upper * g);

        half.bad_pivot.row = min(half.bad_pivot.row, notes[0]);
        half.not_dominant = half.not_dominant || notes[SYSTEMS] != 0;
        shared[0] = g - u * x;
        notes[SYSTEMS] = half.not_dominant;
        __syncthreads(); /* the middle unknown is written */
        return x;
    }
    __syncthreads(); /* the middle unknown is written */
    half.not_dominant = notes[SYSTEMS] != 0;
    return shared[0];
}

/* Grid: one block for each SYSTEMS systems. Block: a thread for each half. The halves have
 * `kept_rows` pivot rows in shared memory, or one fewer. COUNT: rows that are loaded in
 * advance; BLOCKS: of a multiprocessor, at least. */
template <typename Number, int SYSTEMS, int COUNT, int BLOCKS>
__global__ void __launch_bounds__(2 * SYSTEMS, BLOCKS)
    column_halves_kernel(const __grid_constant__ ColumnJob<Number> job, int kept_rows)
{
    constexpr int words = COLUMN_HALF_WORDS, size = words * SYSTEMS;
    __shared__ int32_t notes[2 * SYSTEMS];
    Number *const memory = reinterpret_cast<Number *>(column_memory);
    const int lane = threadIdx.x % SYSTEMS;
    const bool from_last = threadIdx.x >= SYSTEMS;
    const int64_t systems = job.t.outer * job.t.inner;
    const int64_t system = int64_t(blockIdx.x) * SYSTEMS + lane;
    const bool active = system < systems;
    const ColumnPlace at(job.t, active ? system : systems - 1);
    const HalfSystem<Number> s(job.t, at.outer, at.inner, from_last);
    Number *const kept = memory + lane + size * (from_last ? 1 + kept_rows : 1);
    const int columns = s.rows - 1;
    ColumnHalf<Number> half;
    HalfRows<Number, COUNT> rows;

    half.index = from_last ? job.t.rows - 1 : 0;
    half.step = from_last ? -1 : 1;
    half.take({Number(0), *s.diag, *s.upper, *s.rhs});
    rows.begin(s, 1, columns);
    const auto eliminate = [&](const auto &next, Number *to) {
        half.eliminate();
        half.take({next.lower, next.diag, next.upper, next.rhs});
        to[0] = half.above.u;
        to[SYSTEMS] = half.above.g;
    };
    eliminate_half<words, SYSTEMS>(rows, columns, kept, eliminate, [] {});
    Number near = join_halves<SYSTEMS>(memory + lane, notes + lane, from_last, half);
    Number far = Number(0);
    const bool stores = active && !(job.leaves_systems() && half.not_dominant);

    if (active && from_last) {
        report(job, system, Note{half.bad_pivot.row, half.not_dominant});
    }
    if (stores) {
        s.x[columns * s.x_row] = near;
    }
    substitute_half<words, SYSTEMS>(kept, columns, near, far, s.x, s.x_row, stores);
    if (stores) {
        *s.x = near;
    }
}

/* `percent` of the L1 cache for shared memory, or what the driver chooses. */
template <int SYSTEMS, int COUNT, int BLOCKS, typename Number>
static ps_status
launch_halves(const ColumnJob<Number> &job, cudaStream_t stream,
              int percent = cudaSharedmemCarveoutDefault)
{
    const auto kernel = column_halves_kernel<Number, SYSTEMS, COUNT, BLOCKS>;
    const int kept_rows = job.t.rows - job.t.rows / 2 - 1;
    const size_t bytes = static_cast<size_t>(1 + 2 * kept_rows) *
                         (COLUMN_HALF_WORDS * SYSTEMS * sizeof(Number));

    if (allow_shared(kernel) != cudaSuccess ||
        cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             percent) != cudaSuccess) {
        return PS_DEVICE_FAILURE;
    }
    return Launch(divided_up(job.t.outer * job.t.inner, int64_t(SYSTEMS)), 2 * SYSTEMS,
                  bytes, stream)
        .run(kernel, job, kept_rows);
}

/* Half of the rows in advance, for which 128 registers are enough, and two tiles of neighbours in
 * a block, which store at the same time. More warps then wait for memory: float32, 60 rows that
 * begin anywhere, 0.87 of the floor in place of 0.70, float64, 16 and 37 rows 0.99 and 0.95 in
 * place of 0.83 and 0.87; from 48 rows of float64 on, whose pivot rows take the memory of the
 * cache, 0.87 to 0.93 in place of 0.92 to 0.93. From 81 rows of float32 on the shared memory of at
 * most three blocks leaves 60 KiB to the cache (100 rows 0.79, with four blocks 0.63), from 129 rows
 * on, of which two blocks fit, each thread has twice as many rows in advance (140 rows 0.755 in
 * place of 0.68) (H200). */
template <typename Number>
ps_status
launch_column_halves(const ColumnJob<Number> &job, cudaStream_t stream)
{
    [[maybe_unused]] constexpr int rows_of_many = 48, rows_of_three = 81,
                                   rows_of_two = 129, percent_of_three = 80;
    constexpr int ahead = half_ahead<Number>;

    if constexpr (sizeof(Number) == 8) {
        if (job.t.rows >= rows_of_many) {
            return launch_halves<HALF_SYSTEMS, ahead, 1>(job, stream);
        }
    }
    else {
        if (job.t.rows >= rows_of_two) {
            return launch_halves<2 * HALF_SYSTEMS, ahead, 1>(job, stream);
        }
        if (job.t.rows >= rows_of_three) {
            return launch_halves<2 * HALF_SYSTEMS, ahead / 2, 4>(job, stream,
                                                                 percent_of_three);
        }
    }
    return launch_halves<2 * HALF_SYSTEMS, ahead / 2, 4>(job, stream);
}

template ps_status launch_column_halves(const ColumnJob<float> &, cudaStream_t);
template ps_status launch_column_halves(const ColumnJob<double> &, cudaStream_t);

} // namespace pysolvers::columns
