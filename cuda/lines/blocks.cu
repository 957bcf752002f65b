/* blocks.cu - the entries of block tridiagonal systems and of five diagonals.
 *
 * Not offered: factors, and blocks of more than 4 rows.
 */
#include "lines/blocks.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/math.cuh"

namespace pysolvers::lines {

static bool
is_offered(const ps_blocks &b)
{
    return b.task == PS_BLOCKS_SOLVE && b.side <= PS_FAST_SIDE &&
           (b.pivot != PS_PIVOT_AUTO || b.info != nullptr);
}

/* Systems for each multiprocessor whose pivot rows are kept at the same time. */
static constexpr int64_t pivoted_systems = 256;

/* The systems whose pivot rows are kept, a multiple of blocks_threads; 0 without pivoting. */
static int64_t
slots_of(const ps_blocks &b, int processors)
{
    return b.pivot == PS_PIVOT_NEVER
               ? 0
               : std::min(rounded_up(b.outer * b.inner, int64_t(blocks_threads)),
                          pivoted_systems * processors);
}

namespace {

/* Where the eliminated rows are. */
struct BlocksRoom {
    int64_t row, pitch;
    int32_t far;
    uint32_t shared_bytes;
};

} // namespace

/* Warps of a multiprocessor: with all eliminated rows in shared memory at least the first
 * number, otherwise the second one. */
static constexpr int least_warps = 3, many_warps = 8;

/* Shared memory of a block that is not that of its kernel. */
static constexpr int64_t reserved_bytes = 1024;

static BlocksRoom
room_of(const ps_blocks &b, const ps_cuda_device &device)
{
    const int64_t size = ps_dtype_size(b.dtype);
    const BlocksTile tile = blocks_tile(b.side);
    const int64_t kept = (b.side == 0 ? (b.rows + 1) / 2 : b.rows) - 1;
    const int64_t tiles = 2 * tile.words * 32 * size, row = tile.row * 32 * size;
    /* eliminated rows in shared memory, if a multiprocessor has so many warps */
    const auto near_of = [&](int64_t warps) {
        const int64_t bytes = std::min<int64_t>(
            device.shared_bytes_processor / warps - reserved_bytes, device.shared_bytes);

        return std::clamp<int64_t>((bytes - tiles) / row, 0, kept);
    };
    int64_t near = near_of(least_warps);

    if (near < kept) {
        near = near_of(many_warps);
    }
    if (const char *const warps = std::getenv("PS_BLOCKS_WARPS")) { /* TRIAL */
        near = near_of(std::atoi(warps));
    }
    return {tile.row, rounded_up(b.outer * b.inner, int64_t(32)),
            static_cast<int32_t>(kept - near), static_cast<uint32_t>(tiles + near * row)};
}

ps_status
ps_cuda_blocks_work(const ps_blocks *b, size_t *bytes)
{
    const ps_status status = ps_blocks_check(b);

    *bytes = 0;
    if (status != PS_OK || b->outer == 0 || b->inner == 0) {
        return status;
    }
    if (!is_offered(*b)) {
        return PS_UNSUPPORTED;
    }
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const BlocksRoom room = room_of(*b, *device);
    const int64_t kept =
        b->pivot == PS_PIVOT_ALWAYS ? 0 : room.far * room.row * room.pitch;
    /* words of the pivot rows: 2 * (2 * 2) for five diagonals, else 2 * (2 k - 1), and 2 */
    const int64_t words = b->side == 0 ? 6 : 4 * b->side,
                  scalars = b->rows * (b->side + !b->side);
    const int64_t pivot_rows = slots_of(*b, device->processors) * scalars * words;

    *bytes = static_cast<size_t>(std::max(kept, pivot_rows) * ps_dtype_size(b->dtype));
    return PS_OK;
}

template <typename Real>
static BlockOperand<Real>
operand_of(const ps_block_diagonal &d)
{
    return {static_cast<Real *>(d.data),
            d.stride.row,
            d.stride.outer,
            d.stride.inner,
            d.down,
            d.across};
}

template <typename Real>
static BlocksJob<Real>
job_of(const ps_blocks &b, void *work)
{
    const ps_cuda_device &device = *ps_cuda_device_get();
    const BlocksRoom room = room_of(b, device);
    BlocksJob<Real> job = {operand_of<Real>(b.lower),
                           operand_of<Real>(b.diag),
                           operand_of<Real>(b.upper),
                           operand_of<Real>(b.rhs),
                           operand_of<Real>(b.x),
                           {},
                           b.outer,
                           b.inner,
                           static_cast<int32_t>(b.rows),
                           b.side,
                           false,
                           b.definite != 0,
                           b.pivot == PS_PIVOT_AUTO,
                           b.pivot == PS_PIVOT_ALWAYS,
                           false,
                           b.info,
                           static_cast<Real *>(work),
                           room.pitch,
                           slots_of(b, device.processors),
                           room.far,
                           room.shared_bytes};

    for (int d = 0; d < 5; d++) {
        job.bands[d] = input_of<Real>(b.bands[d]);
    }
    if (b.outer > 1 && (b.inner == 1 || std::abs(job.x.outer) < std::abs(job.x.inner))) {
        job.is_swapped = true;
        std::swap(job.outer, job.inner);
        for (BlockOperand<Real> *d :
             {&job.lower, &job.diag, &job.upper, &job.rhs, &job.x}) {
            std::swap(d->outer, d->inner);
        }
        for (Input<Real> &in : job.bands) {
            std::swap(in.outer, in.inner);
        }
    }
    job.by_row =
        b.side > 0 || job.inner == 1 || std::abs(job.x.row) < std::abs(job.x.inner);
    return job;
}

ps_status
ps_cuda_blocks_run(const ps_blocks *b, const ps_exec *exec, ps_report *report)
{
    size_t bytes = 0;
    const ps_status status = ps_cuda_blocks_work(b, &bytes);

    *report = ps_report{};
    report->method = PS_THOMAS;
    report->kernel = "thomas blocks";
    report->pivoted = -1;
    if (status != PS_OK || b->outer == 0 || b->inner == 0) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    return with_real(b->dtype, [&](auto zero) {
        return launch_blocks(job_of<decltype(zero)>(*b, exec->work),
                             ps_cuda_stream(exec));
    });
}

} // namespace pysolvers::lines
