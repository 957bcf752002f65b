/* blocks_factor.cu - the entries of factors of block tridiagonal matrices and of five
 * diagonals: levels, store, workspace.
 */
#include "lines/blocks_factor.h"

#include <algorithm>

#include "runtime/math.cuh"

namespace pysolvers::lines {

/* Matrices are divided if they are fewer, with so many rows at least. */
static constexpr int64_t most_divided = 8192, least_rows = 64;

/* Rows of a level that is not divided. */
static constexpr int64_t most_whole = 8;

static FactorShape
shape_of(int32_t side, int64_t rows, int64_t matrices)
{
    FactorShape shape = {};
    int64_t left = side == 0 ? (rows + 1) / 2 : rows;
    const bool is_divided = matrices < most_divided && left >= least_rows;

    shape.side = side == 0 ? 2 : side;
    shape.scalars = side == 0 ? static_cast<int32_t>(rows) : 0;
    shape.matrices = matrices;
    for (bool is_last = false; !is_last; shape.levels++) {
        is_last = !is_divided || left <= most_whole;

        const int32_t chunk = shape.levels == 0 ? factor_chunk : factor_chunk_below;
        const int64_t chunks = is_last ? 1 : divided_up(left, int64_t(chunk));
        const int64_t words =
            (is_last ? 3 * left : int64_t(5) * chunk) * shape.side * shape.side;

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

ps_status
ps_cuda_blocks_factor_run(const ps_blocks *b, void *work, cudaStream_t stream)
{
    return with_real(b->dtype,
                     [&](auto zero) { return run<decltype(zero)>(*b, work, stream); });
}

} // namespace pysolvers::lines
