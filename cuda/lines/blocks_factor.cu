/* blocks_factor.cu - the entries of factors of block tridiagonal matrices and of five
 * diagonals: levels, store, workspace; solves of few long systems by the same levels.
 */
#include "lines/blocks_factor.h"

#include "runtime/math.cuh"

namespace pysolvers::lines {

/* Matrices are divided if they are fewer, with so many rows at least. */
static constexpr int64_t most_divided = 8192, least_rows = 64;

/* Rows of a level that is not divided. */
static constexpr int64_t most_whole = 8;

/* Rows of all systems of a solve from which a level below has the chunks of the first one, 256 for each
 * multiprocessor of an H200. */
static constexpr int64_t many_rows = 1 << 19;

/* The levels of factors, or of a solve, which keeps other words of a row. */
static FactorShape
shape_of(int32_t side, int64_t rows, int64_t matrices, bool solves = false)
{
    FactorShape shape = {};
    int64_t left = side == 0 ? (rows + 1) / 2 : rows;
    const bool is_divided = solves || (matrices < most_divided && left >= least_rows);
    const int64_t square = side == 0 ? 4 : side * side, one = side == 0 ? 2 : side;
    const int64_t of_chunk = solves ? 2 * square + one : 5 * square,
                  of_matrix = solves ? square + one : 3 * square;

    shape.side = side == 0 ? 2 : side;
    shape.scalars = side == 0 ? static_cast<int32_t>(rows) : 0;
    shape.matrices = matrices;
    for (bool is_last = false; !is_last; shape.levels++) {
        is_last = !is_divided || left <= most_whole;

        const bool has_many = solves && matrices * left >= many_rows;
        const int32_t chunk =
            shape.levels == 0 || has_many ? factor_chunk : factor_chunk_below;
        const int64_t chunks = is_last ? 1 : divided_up(left, int64_t(chunk));
        const int64_t words = is_last ? of_matrix * left : of_chunk * chunk;

        shape.level[shape.levels] = {static_cast<int32_t>(left),
                                     static_cast<int32_t>(chunks), chunk, shape.numbers};
        shape.numbers += words * rounded_up(matrices * chunks, int64_t(factor_step));
        left = chunks;
    }
    return shape;
}

static FactorShape
shape_of(const ps_blocks &b)
{
    return b.task == PS_BLOCKS_APPLY
               ? shape_of(b.side, b.rows, b.factor_outer * b.factor_inner)
               : shape_of(b.side, b.rows, b.outer * b.inner);
}

/* Of a solve that is divided. */
static FactorShape
divided_shape(const ps_blocks &b)
{
    return shape_of(b.side, b.rows, b.outer * b.inner, true);
}

static size_t
sums_bytes(int64_t sums)
{
    return ps_cuda_padded(static_cast<size_t>(sums) * sizeof(FactorSum));
}

static size_t
store_bytes(const FactorShape &shape, ps_dtype dtype)
{
    return sums_bytes(shape.matrices) +
           static_cast<size_t>(shape.numbers * ps_dtype_size(dtype));
}

ps_status
ps_cuda_blocks_store(const ps_blocks *b, size_t *bytes)
{
    *bytes = 0;
    if (b->rows < 1 || b->side < 0 || b->side == 1) {
        return PS_BAD_ARGUMENT;
    }
    if (b->side > PS_FAST_SIDE || b->pivot == PS_PIVOT_ALWAYS) {
        return PS_UNSUPPORTED;
    }
    *bytes = store_bytes(shape_of(b->side, b->rows, b->outer * b->inner), b->dtype);
    return PS_OK;
}

/* Numbers of a row of the levels below in the workspace. */
static int64_t
words_of(ps_blocks_task task, int64_t side)
{
    return task == PS_BLOCKS_FACTOR    ? 4 * side * side
           : task == PS_BLOCKS_APPLY   ? 3 * side
           : task == PS_BLOCKS_INVERSE ? 3 * side * side
                                       : 0;
}

static int64_t
sums_of(const FactorShape &shape, int32_t levels)
{
    int64_t sums = 0;

    for (int32_t l = 0; l < levels; l++) {
        sums += shape.matrices * shape.level[l].chunks;
    }
    return sums;
}

ps_status
ps_cuda_blocks_factor_work(const ps_blocks *b, size_t *bytes)
{
    const FactorShape shape = shape_of(*b);

    *bytes = static_cast<size_t>(b->outer * b->inner *
                                 shape.below(words_of(b->task, shape.side)) *
                                 ps_dtype_size(b->dtype));
    if (b->task == PS_BLOCKS_FACTOR) {
        *bytes += sums_bytes(sums_of(shape, shape.levels - 1));
    }
    return store_bytes(shape, b->dtype) > b->store_bytes ? PS_WORK_TOO_SMALL : PS_OK;
}

/* Blocks, or columns, of a level in the workspace: [system][row][count]. */
template <typename Real>
static BlockOperand<Real>
part_of(Real *data, int64_t rows, int64_t entry, int64_t count, int64_t side)
{
    return {data, entry * count, 0, rows * entry * count, entry == side ? 1 : side,
            1,    true};
}

template <typename Real>
static ps_status
run(const ps_blocks &b, void *work, cudaStream_t stream)
{
    const FactorShape shape = shape_of(b);
    const int64_t side = shape.side, square = side * side, systems = b.outer * b.inner;
    const int32_t last = shape.levels - 1;
    const bool factors = b.task == PS_BLOCKS_FACTOR, applies = b.task == PS_BLOCKS_APPLY;
    FactorJob<Real> first = {};
    BlocksJob<Real> &rows = first.rows;
    FactorSum *sums = static_cast<FactorSum *>(work);
    ps_status status = PS_OK;

    rows.outer = b.outer;
    rows.inner = b.inner;
    rows.rows = static_cast<int32_t>(b.rows);
    rows.side = b.side;
    rows.is_definite = b.definite != 0;
    rows.checks = b.pivot == PS_PIVOT_AUTO;
    rows.info = b.info;
    if (factors) {
        rows.lower = block_operand<Real>(b.lower, b.side, false);
        rows.diag = block_operand<Real>(b.diag, b.side, false);
        rows.upper = block_operand<Real>(b.upper, b.side, false);
        for (int d = 0; d < 5; d++) {
            rows.bands[d] = input_of<Real>(b.bands[d]);
        }
    }
    if (applies) {
        rows.rhs = block_operand<Real>(b.rhs, b.side, true);
        rows.x = block_operand<Real>(b.x, b.side, true);
    }
    for (int d = 0; d < 3 && b.task == PS_BLOCKS_INVERSE; d++) {
        first.inverse[d] =
            block_operand<Real>(b.inverse[d], static_cast<int32_t>(side), false);
    }
    first.shape = shape;
    first.trans = b.trans != PS_TRANS_NONE;
    first.store = reinterpret_cast<Real *>(static_cast<char *>(b.store) +
                                           sums_bytes(shape.matrices));
    first.inner = b.inner;
    first.factor_inner = applies ? b.factor_inner : b.inner;
    first.outer_step = applies ? b.outer_step : 1;
    first.inner_step = applies ? b.inner_step : 1;

    FactorJob<Real> jobs[factor_levels];
    Real *part = reinterpret_cast<Real *>(
        static_cast<char *>(work) + (factors ? sums_bytes(sums_of(shape, last)) : 0));

    for (int32_t l = 0; l <= last; l++) {
        FactorJob<Real> &job = jobs[l];
        const int64_t count = shape.level[l].rows;

        if (l == 0) {
            job = first;
        }
        else {
            job = jobs[l - 1];
            job.rows.outer = 1;
            job.rows.inner = systems;
            job.rows.rows = static_cast<int32_t>(count);
            job.rows.side = shape.side;
            job.sums_before = job.sums;
            jobs[l - 1].next = part;
            if (factors) {
                BlockOperand<Real> *const to[] = {&job.rows.lower, &job.rows.diag,
                                                  &job.rows.upper, &job.more};

                for (int d = 0; d < 4; d++) {
                    *to[d] = part_of(part + d * square, count, square, 4, side);
                }
            }
            else if (applies) {
                job.rows.rhs = part_of(part, count, side, 2, side);
                job.more_rhs = part_of(part + side, count, side, 2, side);
                job.rows.x =
                    part_of(part + systems * count * 2 * side, count, side, 1, side);
            }
            else {
                for (int d = 0; d < 3; d++) {
                    job.inverse[d] = part_of(part + d * square, count, square, 3, side);
                }
            }
            part += systems * count * words_of(b.task, side);
        }
        job.level = l;
        job.sums = l == last ? static_cast<FactorSum *>(b.store) : sums;
        sums += shape.matrices * shape.level[l].chunks;
    }
    switch (b.task) {
    case PS_BLOCKS_FACTOR:
        for (int32_t l = 0; l <= last && status == PS_OK; l++) {
            status = launch_factor(jobs[l], FACTOR_MATRIX, stream);
        }
        break;
    case PS_BLOCKS_APPLY:
        for (int32_t l = 0; l <= last && status == PS_OK; l++) {
            status = launch_factor(jobs[l], FACTOR_DOWN, stream);
        }
        for (int32_t l = last - 1; l >= 0 && status == PS_OK; l--) {
            jobs[l].next = jobs[l + 1].rows.x.data;
            status = launch_factor(jobs[l], FACTOR_UP, stream);
        }
        break;
    case PS_BLOCKS_INVERSE:
        for (int32_t l = last; l >= 0 && status == PS_OK; l--) {
            status = launch_factor(jobs[l], FACTOR_INVERSE, stream);
        }
        break;
    default:
        for (int k = 0; k < 2 && status == PS_OK; k++) {
            const FactorSum *const found = static_cast<const FactorSum *>(b.store);

            status = ps_cuda_status(cudaMemcpy2DAsync(
                k == 0 ? b.logdet : b.sign, sizeof(double),
                k == 0 ? &found->log : &found->sign, sizeof(FactorSum), sizeof(double),
                static_cast<size_t>(systems), cudaMemcpyDeviceToDevice, stream));
        }
    }
    return status;
}

/* Block rows of a solve that is divided, at least: with 80, 160 and 320 rows 16 systems of blocks of 3
 * take 1.4, 0.94 and 0.53 of the time of systems in one piece, 260 and 520 pairs of neighbouring rows of
 * five diagonals 1.15 and 0.73 (float64, H200). */
static constexpr int64_t least_divided_rows = 300;

/* Numbers of a row of the levels below in the workspace of a solve: lower, diag, upper, more; the
 * columns rhs, more; x, and space, so that blocks of all levels begin at vectors. */
static constexpr int64_t
words_of_solve(int64_t side)
{
    return 4 * side * side + 4 * side;
}

size_t
divided_bytes(const ps_blocks &b, const ps_cuda_device &device)
{
    const int64_t systems = b.outer * b.inner,
                  rows = b.side == 0 ? (b.rows + 1) / 2 : b.rows;

    if (b.pivot == PS_PIVOT_ALWAYS || rows < least_divided_rows ||
        systems >= most_divided_systems * device.processors) {
        return 0;
    }
    const FactorShape shape = divided_shape(b);

    return static_cast<size_t>(
        (shape.numbers + systems * shape.below(words_of_solve(shape.side))) *
        ps_dtype_size(b.dtype));
}

template <typename Real>
ps_status
solve_divided(const ps_blocks &b, const BlocksJob<Real> &rows, void *work,
              cudaStream_t stream)
{
    const int64_t systems = b.outer * b.inner;
    const FactorShape shape = divided_shape(b);
    const int64_t side = shape.side, square = side * side;
    const int32_t last = shape.levels - 1;
    FactorJob<Real> jobs[factor_levels] = {};
    Real *part = static_cast<Real *>(work) + shape.numbers;

    jobs[0].rows = rows;
    jobs[0].shape = shape;
    jobs[0].store = static_cast<Real *>(work);
    jobs[0].inner = jobs[0].factor_inner = rows.inner;
    jobs[0].outer_step = jobs[0].inner_step = 1;
    jobs[0].are_side_by_side = !rows.is_by_row();
    for (int32_t l = 1; l <= last; l++) {
        const int64_t count = shape.level[l].rows;
        FactorJob<Real> &job = jobs[l];
        const auto operand = [&](int64_t entry, int64_t entries) {
            Real *const data = part;
            const int64_t words = entry * entries;

            return BlockOperand<Real>{data,
                                      job.are_side_by_side ? systems * words : words,
                                      0,
                                      job.are_side_by_side ? words : count * words,
                                      entry == side ? 1 : side,
                                      1,
                                      true};
        };

        job = jobs[l - 1];
        job.level = l;
        job.rows.outer = 1;
        job.rows.inner = systems;
        job.rows.rows = static_cast<int32_t>(count);
        job.rows.side = shape.side;

        const BlockOperand<Real> blocks = operand(square, 4);
        BlockOperand<Real> *const to[] = {&job.rows.lower, &job.rows.diag,
                                          &job.rows.upper, &job.more};

        jobs[l - 1].next = part;
        for (int d = 0; d < 4; d++) {
            *to[d] = blocks;
            to[d]->data += d * square;
        }
        part += systems * count * 4 * square;
        jobs[l - 1].next_rhs = part;
        job.rows.rhs = job.more_rhs = operand(side, 2);
        job.more_rhs.data += side;
        part += systems * count * 2 * side;
        job.rows.x = operand(side, 1);
        part += systems * count * 2 * side;
    }
    ps_status status = rows.info == nullptr
                           ? PS_OK
                           : ps_cuda_status(cudaMemsetAsync(
                                 rows.info, 0, systems * sizeof(int32_t), stream));

    for (int32_t l = 0; l <= last && status == PS_OK; l++) {
        status = launch_divided(jobs[l], FACTOR_DOWN, stream);
    }
    for (int32_t l = last; l >= 0 && status == PS_OK; l--) {
        jobs[l].next = l == last ? nullptr : jobs[l + 1].rows.x.data;
        status = launch_divided(jobs[l], FACTOR_UP, stream);
    }
    return status == PS_OK && rows.info != nullptr ? launch_marked(rows, stream) : status;
}

template ps_status solve_divided(const ps_blocks &, const BlocksJob<float> &, void *,
                                 cudaStream_t);
template ps_status solve_divided(const ps_blocks &, const BlocksJob<double> &, void *,
                                 cudaStream_t);

ps_status
ps_cuda_blocks_factor_run(const ps_blocks *b, void *work, cudaStream_t stream)
{
    return with_real(b->dtype,
                     [&](auto zero) { return run<decltype(zero)>(*b, work, stream); });
}

} // namespace pysolvers::lines
