/* blocks.cu - the entries of block tridiagonal systems and of five diagonals.
 *
 * Not offered: blocks of more than 4 rows, and factors with row exchanges across blocks.
 */
#include "lines/blocks_factor.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <type_traits>
#include <utility>

#include "lines/blocks_columns.cuh"
#include "lines/columns/column_choice.h"
#include "runtime/math.cuh"

namespace pysolvers::lines {

static bool
is_offered(const ps_blocks &b)
{
    return b.side <= PS_FAST_SIDE &&
           (b.task == PS_BLOCKS_SOLVE ? b.pivot != PS_PIVOT_AUTO || b.info != nullptr
                                      : b.pivot != PS_PIVOT_ALWAYS);
}

/* Systems for each multiprocessor whose pivot rows are kept at the same time. */
static constexpr int64_t pivoted_systems = 256;

/* The systems whose pivot rows are kept, a multiple of blocks_threads if there are as many; 0 without
 * pivoting. */
static int64_t
slots_of(const ps_blocks &b, int processors)
{
    const int64_t systems = b.outer * b.inner;

    return b.pivot == PS_PIVOT_NEVER ? 0
           : systems < blocks_threads
               ? systems
               : std::min(rounded_up(systems, int64_t(blocks_threads)),
                          pivoted_systems * processors);
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
    if (b->task != PS_BLOCKS_SOLVE) {
        return ps_cuda_blocks_factor_work(b, bytes);
    }
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const int64_t side = b->side == 0 ? 2 : b->side;
    const int64_t rows = b->side == 0 ? (b->rows + 1) / 2 : b->rows;
    /* halves of five diagonals have whole groups */
    const int64_t kept_rows =
        b->side == 0 ? 4 * five_half(static_cast<int32_t>(b->rows), false).groups : rows;
    const int64_t kept = b->pivot == PS_PIVOT_ALWAYS
                             ? 0
                             : rounded_up(b->outer * b->inner, int64_t(32)) * kept_rows *
                                   (side * side + side);
    /* words of the pivot rows: 2 * (2 * 2) for five diagonals, else 2 * (2 k - 1), and 2 */
    const int64_t words = b->side == 0 ? 6 : 4 * side,
                  scalars = b->rows * (b->side + !b->side);
    const int64_t pivot_rows = slots_of(*b, device->processors) * scalars * words;

    *bytes = std::max(
        divided_bytes(*b, *device),
        static_cast<size_t>(std::max(kept, pivot_rows) * ps_dtype_size(b->dtype)));
    return PS_OK;
}

/* Blocks of a multiprocessor whose tiles and eliminated rows fit into its shared memory. Copies of
 * single numbers need lines of the L1 cache, which has what is left: with 190 of 227 KiB, blocks of 3
 * took 0.69 of the time in float64 and 0.73 in float32 (50000 systems of 64 rows, H200). */
static constexpr int64_t tiled_blocks = 4, tiled_bytes = 195 * 1024;

/* Shared memory of a block that is not that of its kernel. */
static constexpr int64_t reserved_bytes = 1024;

/* Divide the eliminated rows between global and shared memory. */
static void
divide_rows(const ps_blocks &b, const ps_cuda_device &device, int32_t &far,
            uint32_t &shared_bytes)
{
    const int size = ps_dtype_size(b.dtype);
    const BlocksTile tile = blocks_tile(b.side, size);
    const int64_t lanes = 32 * size;
    const int64_t rows = (b.side == 0 ? (b.rows + 1) / 2 : b.rows) / 2;
    const int64_t tiles = tile.stages * tile.words * lanes, row = tile.row * lanes;
    const int64_t single = std::min<int64_t>(device.shared_bytes_processor, tiled_bytes);
    const int64_t of_block =
        tile.copied > 1 ? device.shared_bytes_processor / tiled_blocks - reserved_bytes
        : size == 4 && tiles + rows * row <= single / 3 ? single / 3
                                                        : single / 5;
    const int64_t bytes = std::min<int64_t>(of_block, device.shared_bytes);
    const int64_t near = std::clamp<int64_t>((bytes - tiles) / row, 0, rows);

    far = static_cast<int32_t>(rows - near);
    shared_bytes = static_cast<uint32_t>(tiles + near * row);
}

/* Whether two numbers of every row can be copied at once. */
template <typename Real>
static bool
are_pairs(const Real *data, int64_t row, int64_t outer, int64_t inner)
{
    return reinterpret_cast<uintptr_t>(data) % (2 * sizeof(Real)) == 0 && row % 2 == 0 &&
           outer % 2 == 0 && inner % 2 == 0;
}

template <typename Real>
static uint32_t
pairs_of(const BlocksJob<Real> &job)
{
    const BlockOperand<Real> *const blocks[] = {&job.lower, &job.diag, &job.upper};
    const BlockOperand<Real> *const columns[] = {&job.rhs, &job.x};
    const int matrices = job.side == 0 ? 5 : 3;
    uint32_t pairs = 0;

    for (int d = 0; d < matrices; d++) {
        const Input<Real> &in = job.bands[d];

        /* the first or the last pair of the diagonals 1 and 3 is not complete */
        if (job.side == 0 ? d % 2 == 0 && job.rows % 2 == 0 && in.row == 1 &&
                                are_pairs(in.data, 2 * in.row, in.outer, in.inner)
                          : blocks[d]->across == 1 && blocks[d]->down % 2 == 0 &&
                                are_pairs(blocks[d]->data, blocks[d]->row,
                                          blocks[d]->outer, blocks[d]->inner)) {
            pairs |= 1u << d;
        }
    }
    for (int k = 0; k < 2; k++) {
        const BlockOperand<Real> &c = *columns[k];

        if (job.side == 0 ? job.rows % 2 == 0 && c.row == 1 &&
                                are_pairs(c.data, 2 * c.row, c.outer, c.inner)
                          : c.down == 1 && are_pairs(c.data, c.row, c.outer, c.inner)) {
            pairs |= 1u << (matrices + k);
        }
    }
    return pairs;
}

/* Whether all operands of blocks of 2 have no gaps between the rows of a system. */
template <typename Real>
static bool
are_runs(const BlocksJob<Real> &job)
{
    constexpr int64_t count = 16 / sizeof(Real);
    const auto is_run = [](const BlockOperand<Real> &d, bool is_column) {
        return reinterpret_cast<uintptr_t>(d.data) % 16 == 0 && d.outer % count == 0 &&
               d.inner % count == 0 &&
               (is_column ? d.row == 2 && d.down == 1
                          : d.row == 4 && d.down == 2 && d.across == 1);
    };

    return job.side == 2 && job.rows * 2 % count == 0 && is_run(job.lower, false) &&
           is_run(job.diag, false) && is_run(job.upper, false) && is_run(job.rhs, true) &&
           is_run(job.x, true);
}

/* Chunks of a system that are too few for blocks_lines.cuh. */
static constexpr int64_t few_chunks = 8;

/* The tiles of systems that are divided into chunks; is_used only if they pay
 * (blocks_lines.cuh). */
template <typename Real>
static BlocksLines
lines_of(const ps_blocks &b, const BlocksJob<Real> &job, const ps_cuda_device &device)
{
    const int64_t rows = b.side == 0 ? (b.rows + 1) / 2 : b.rows;
    const int64_t chunks = divided_up(rows, int64_t(lines_rows));
    const int words = (b.side == 0 ? 5 * 2 : 3 * 4) + 2 * 2, arrays = b.side == 0 ? 7 : 5;
    const bool by_row = job.is_by_row();
    BlocksLines t = {};

    if (b.pivot == PS_PIVOT_ALWAYS || b.side > 2 || !by_row || chunks <= few_chunks ||
        chunks > lines_threads) {
        return t;
    }
    t.shape.rows = static_cast<int32_t>(rows);
    t.shape.warps = static_cast<int32_t>(divided_up(chunks, int64_t(32)));
    t.shape.lanes = static_cast<int32_t>(std::min<int64_t>(chunks, 32));
    t.shape.groups = 32 / t.shape.lanes;
    t.shape.blocks = 1;
    t.systems = lines_threads / 32 / t.shape.warps * t.shape.groups;
    t.threads = lines_threads / 32 / t.shape.warps * t.shape.warps * 32;
    t.pairs = pairs_of(job);
    t.are_runs = are_runs(job);
    t.shared_bytes = static_cast<uint32_t>(
        t.systems * t.shape.chunks() *
        (words * lines_rows * static_cast<int>(sizeof(Real)) + arrays * 16));
    t.is_used = t.shared_bytes + 4 * reserved_bytes <= device.shared_bytes;
    return t;
}

/* Whether the operands of blocks have no gaps between the rows of a system, and begin at vectors. */
template <typename Real>
static bool
are_dense_runs(const BlocksJob<Real> &job)
{
    constexpr int64_t count = 16 / sizeof(Real);
    const int64_t side = job.side;
    const auto is_run = [&](const BlockOperand<Real> &d, bool is_column) {
        return reinterpret_cast<uintptr_t>(d.data) % 16 == 0 && d.outer % count == 0 &&
               d.inner % count == 0 && d.down == (is_column ? 1 : side) &&
               d.row == (is_column ? side : side * side) && (is_column || d.across == 1);
    };

    return job.rows * side % count == 0 && is_run(job.lower, false) &&
           is_run(job.diag, false) && is_run(job.upper, false) && is_run(job.rhs, true) &&
           is_run(job.x, true);
}

/* Rows of blocks of 2, 3 and 4 that are eliminated in place, in float64 and float32, and the least lanes of a
 * warp that have a chunk of blocks of 3 in float64: 64, 128 and 256 rows gain, 34 and 400 lose
 * (blocks_in_place.cuh). */
static constexpr int64_t least_in_place[][3] = {{33, 57, INT64_MAX}, {33, 57, 128}},
                         most_in_place[][3] = {{1024, 256, 0}, {1024, 1024, 1024}};
static constexpr int32_t least_lanes_in_place = 24;

/* Systems in shared memory that are eliminated in place (blocks_in_place.cuh); is_used only if
 * the systems fit and this is faster. */
template <typename Real>
static BlocksLines
in_place_of(const ps_blocks &b, const BlocksJob<Real> &job, const ps_cuda_device &device)
{
    constexpr bool is_float = sizeof(Real) == 4;
    const int64_t chunks = divided_up(b.rows, int64_t(in_place_rows));
    const int64_t warps = divided_up(chunks, int64_t(32));
    const bool by_row = job.is_by_row();
    BlocksLines t = {};

    if (b.side < 2 || b.rows < least_in_place[is_float][b.side - 2] ||
        b.rows > most_in_place[is_float][b.side - 2] || b.pivot == PS_PIVOT_ALWAYS ||
        (b.side > 2 && b.definite != 0) || !by_row || !are_dense_runs(job)) {
        return t;
    }
    t.shape.rows = static_cast<int32_t>(b.rows);
    t.shape.blocks = 1;
    t.shape.warps = static_cast<int32_t>(warps);
    t.shape.lanes = static_cast<int32_t>(divided_up(chunks, warps));
    t.shape.groups = warps > 1 ? 1 : 32 / t.shape.lanes;
    t.systems = t.shape.groups;
    t.threads = static_cast<int32_t>(32 * warps);
    t.shared_bytes = static_cast<uint32_t>(
        t.systems * t.shape.chunks() * static_cast<int>(sizeof(Real)) *
        (3 * in_place_pitch(in_place_rows, b.side * b.side, sizeof(Real)) +
         in_place_pitch(in_place_rows, b.side, sizeof(Real))));
    t.is_in_place = t.is_used =
        t.shared_bytes + 2 * reserved_bytes <= device.shared_bytes &&
        (b.side == 2 || is_float ||
         t.shape.groups * t.shape.lanes >= least_lanes_in_place);
    return t;
}

/* Blocks of a multiprocessor whose eliminated rows of five diagonals fit into its shared
 * memory. */
static constexpr int64_t near_blocks = 2;

/* Rows of float64 of neighbouring systems that are eliminated in turns (five_turns.cuh), and the blocks of
 * a multiprocessor, for up to `few_turn_rows` and for more. */
static constexpr int64_t least_turn_rows = 149, most_turn_rows = 512, few_turn_rows = 224;
static constexpr int64_t turn_blocks[] = {4, 3};

/* Blocks of a multiprocessor whose contiguous rows, in tiles of 64 bytes of each operand, and eliminated
 * rows fit into its shared memory. */
static constexpr int64_t tiled_rows_blocks = 3;

/* Whether vectors lie at multiples of 16 bytes: of four scalar rows of five diagonals, or of
 * neighbouring systems. */
template <typename Real>
static bool
are_whole(const BlocksJob<Real> &job, bool by_row)
{
    constexpr int64_t count = 16 / sizeof(Real);
    const auto is_whole = [&](const void *data, int64_t row, int64_t outer,
                              int64_t inner) {
        return (by_row ? row : inner) == 1 &&
               reinterpret_cast<uintptr_t>(data) % 16 == 0 && outer % count == 0 &&
               (by_row ? inner : row) % count == 0;
    };
    bool is = job.side == 0 && (by_row ? job.rows % 4 == 0 : job.inner % count == 0) &&
              is_whole(job.rhs.data, job.rhs.row, job.rhs.outer, job.rhs.inner) &&
              is_whole(job.x.data, job.x.row, job.x.outer, job.x.inner);

    for (int d = 0; d < 5 && is; d++) {
        const Input<Real> &in = job.bands[d];

        is = in.data != nullptr && is_whole(in.data, in.row, in.outer, in.inner);
    }
    return is;
}

/* Neighbouring systems of five diagonals in float32 take less time by chunks of columns than by scalar
 * rows if they have at least so many rows, and each multiprocessor at most so many systems. */
static constexpr int64_t least_long_rows = 291, long_columns = 128;

/* Whether five diagonals are divided into chunks of columns: neighbouring systems whose
 * operands are copied by 16 bytes (blocks_columns.cuh). */
static void
set_columns(const ps_blocks &b, const ps_cuda_device &device, BlocksJob<float> &job)
{
    constexpr int64_t count = 16 / sizeof(float);
    const auto is_whole = [&](const void *data, int64_t row, int64_t outer,
                              int64_t inner) {
        return data == nullptr ||
               (inner == 1 && reinterpret_cast<uintptr_t>(data) % 16 == 0 &&
                row == job.rhs.row && (job.outer == 1 || outer % count == 0));
    };
    bool is = b.side == 0 && b.pivot != PS_PIVOT_ALWAYS && b.rows >= least_long_rows &&
              job.outer * job.inner <= long_columns * device.processors &&
              job.rhs.row % count == 0 && job.inner % count == 0 && job.x.inner == 1 &&
              is_whole(job.rhs.data, job.rhs.row, job.rhs.outer, job.rhs.inner);

    for (const Input<float> &in : job.bands) {
        is = is && is_whole(in.data, in.row, in.outer, in.inner);
    }
    job.by_columns = is && columns::shape_of<Block<float, 2>, BandColumnJob<float>>(
                               (b.rows + 1) / 2, 4, &device, &job.columns);
}

/* Whether five diagonals are eliminated by scalar rows: neighbouring systems, and contiguous
 * rows that are vectors and fit into shared memory. */
template <typename Real>
static void
set_five_rows(const ps_blocks &b, const ps_cuda_device &device, BlocksJob<Real> &job)
{
    const int64_t bytes =
        int64_t(32) * 3 * five_kept_rows(job.rows) * static_cast<int64_t>(sizeof(Real));
    const int64_t tiles = 2 * 6 * 32 * 64;
    const bool is_near =
        near_blocks * (bytes + reserved_bytes) <= device.shared_bytes_processor;
    const bool by_row = job.is_by_row();

    job.has_tiles = by_row && are_whole(job, true) &&
                    tiled_rows_blocks * (bytes + tiles + reserved_bytes) <=
                        device.shared_bytes_processor;
    const bool is_far = !by_row && !is_near;

    job.has_rows = b.side == 0 && b.pivot != PS_PIVOT_ALWAYS &&
                   b.rows >= least_five_rows &&
                   (is_far || (is_near && !by_row) || job.has_tiles);
    job.shared_bytes = job.has_rows && !is_far
                           ? static_cast<uint32_t>(bytes + (job.has_tiles ? tiles : 0))
                           : 0;
    job.has_turns = job.has_rows && !by_row && sizeof(Real) == 8 &&
                    b.rows >= least_turn_rows && b.rows <= most_turn_rows;
    if (job.has_turns) {
        const int64_t group = int64_t(32) * 3 * 4 * static_cast<int64_t>(sizeof(Real)),
                      groups = five_half(job.rows, false).groups;
        const int64_t of_block = std::min<int64_t>(
            device.shared_bytes,
            device.shared_bytes_processor / turn_blocks[b.rows > few_turn_rows] -
                reserved_bytes);
        const int64_t near = std::min(of_block / group, groups);

        job.far = static_cast<int32_t>(groups - near);
        job.shared_bytes = static_cast<uint32_t>(near * group);
    }
}

/* Rows of contiguous systems of five diagonals from which chunks of scalar rows take less time
 * than tiles of rows. */
static constexpr int64_t least_line_rows = 85;

/* Rows of float64 from which chunks have 32 rows in place of 16: 4096 rows take 0.91 of the time so, but 128
 * to 2048 rows 1.0 to 1.2. In float32 all have 32: 128, 256, 512 and 1000 rows take 0.95, 0.94, 0.9 and
 * 0.85 (H200). */
static constexpr int64_t long_line_rows = 2049;

/* Divide whole systems of five diagonals into chunks of scalar rows (five_lines.cuh). */
template <typename Real>
static void
set_five_lines(const ps_blocks &b, const ps_cuda_device &device, BlocksJob<Real> &job)
{
    const bool by_row = job.is_by_row();
    const int32_t chunk = sizeof(Real) == 4 || b.rows >= long_line_rows ? 32 : 16;
    const int64_t chunks = divided_up(b.rows, int64_t(chunk));
    BlocksLines t = {};

    if (b.side != 0 || b.pivot == PS_PIVOT_ALWAYS || !by_row || !are_whole(job, true) ||
        b.rows < least_line_rows || chunks > five_lines_threads) {
        return;
    }
    t.shape.rows = static_cast<int32_t>(b.rows);
    t.shape.warps = static_cast<int32_t>(divided_up(chunks, int64_t(32)));
    t.shape.lanes = static_cast<int32_t>(divided_up(chunks, int64_t(t.shape.warps)));
    t.shape.groups = t.shape.warps > 1 ? 1 : 32 / t.shape.lanes;
    t.shape.blocks = 1;

    /* systems of several warps are alone in a block, whose barriers are theirs */
    const int side = t.shape.warps > 1 ? 1 : 4;

    t.systems = side * t.shape.groups;
    t.threads = side * t.shape.warps * 32;
    t.shared_bytes = static_cast<uint32_t>(6 * t.systems * t.shape.chunks() *
                                           (chunk * static_cast<int>(sizeof(Real)) + 16));
    if (t.shared_bytes + 5 * reserved_bytes <= device.shared_bytes) {
        job.lines = t;
        job.chunk = chunk;
        /* with common offsets, systems of several warps take 1.0 to 1.1 of the time */
        job.is_alike = job.is_alike && t.shape.warps == 1;
    }
}

/* The fewest and the most rows of neighbouring systems whose chunks, by five_columns.cuh, take less time than
 * turns or scalar rows, because they fill the lanes of warps: of float64, and of float32, of which the last
 * three are those of clusters. */
static constexpr int64_t column_rows[2][5][2] = {
    {{193, 256}, {353, 512}, {}, {}, {}},
    {{225, 256}, {385, 512}, {897, 1024}, {1921, 2048}, {3841, 4096}}};

/* Systems of a multiprocessor up to which their rows from least_column_rows on take less time so, because
 * chunks have more threads: 2000 systems of 1000 rows 0.47 of the time in float64 and 0.9 in float32, 512 of
 * 4096 rows 0.55 and 0.96, 2000 of 256 rows 0.42 and 0.6. */
static constexpr int64_t few_columns = 32, least_column_rows = 193;

/* Rows of a system in one block of five_columns.cuh, and of each block of a cluster, at most. */
static constexpr int64_t alone_column_rows = 512, shared_column_rows = 256;

/* Divide neighbouring systems of five diagonals into chunks of scalar rows (five_columns.cuh). */
template <typename Real>
static void
set_five_columns(const ps_blocks &b, const ps_cuda_device &device, BlocksJob<Real> &job)
{
    constexpr int chunk = five_column_rows<Real>, width = five_column_width<Real>;
    const bool by_row = job.is_by_row();
    const auto &filled = column_rows[sizeof(Real) == 4];
    const bool is_filled =
        std::any_of(std::begin(filled), std::end(filled),
                    [&](const auto &r) { return b.rows >= r[0] && b.rows <= r[1]; });
    const bool are_few = b.rows >= least_column_rows &&
                         job.outer * job.inner <= few_columns * device.processors;
    int32_t blocks = 1;

    while (b.rows > alone_column_rows && blocks * shared_column_rows < b.rows) {
        blocks *= 2;
    }
    BlocksLines t = {};

    if (by_row || !(is_filled || are_few) || blocks > join::most_cluster_blocks ||
        (blocks > 1 && device.capability < 90) || b.pivot == PS_PIVOT_ALWAYS ||
        job.outer > INT32_MAX || !are_whole(job, false)) {
        return;
    }
    t.shape.rows = static_cast<int32_t>(b.rows);
    t.shape.lanes = static_cast<int32_t>(
        divided_up(divided_up(b.rows, int64_t(chunk)), int64_t(blocks)));
    t.shape.groups = std::min(32 / t.shape.lanes, width);
    t.shape.warps = 1;
    t.shape.blocks = blocks;
    t.shape.side_by_side = t.shape.groups > 1;
    t.systems = width;
    t.threads = static_cast<int32_t>(divided_up(width, t.shape.groups)) * 32;
    t.shared_bytes = static_cast<uint32_t>(
        6 * t.shape.lanes * (chunk * width * static_cast<int>(sizeof(Real)) + 16));
    if (t.threads <= five_lines_threads &&
        t.shared_bytes + 4 * reserved_bytes <= device.shared_bytes) {
        job.lines = t;
        job.tiles = divided_up(job.inner, int64_t(width)) * job.outer;
        job.has_columns = true;
    }
}

/* A batch whose axes of one system have no stride, which need not be aligned. */
static ps_blocks
without_strides(const ps_blocks &of)
{
    ps_blocks b = of;
    const auto clear = [&](ps_stride &s) {
        s.outer = b.outer == 1 ? 0 : s.outer;
        s.inner = b.inner == 1 ? 0 : s.inner;
    };

    for (ps_block_diagonal *d : {&b.lower, &b.diag, &b.upper, &b.rhs, &b.x}) {
        clear(d->stride);
    }
    for (ps_input &in : b.bands) {
        clear(in.stride);
    }
    return b;
}

template <typename Real>
static BlocksJob<Real>
job_of(const ps_blocks &all, void *work)
{
    const ps_blocks b = without_strides(all);
    BlocksJob<Real> job = {block_operand<Real>(b.lower, b.side, false),
                           block_operand<Real>(b.diag, b.side, false),
                           block_operand<Real>(b.upper, b.side, false),
                           block_operand<Real>(b.rhs, b.side, true),
                           block_operand<Real>(b.x, b.side, true),
                           {},
                           b.outer,
                           b.inner,
                           static_cast<int32_t>(b.rows),
                           b.side,
                           false,
                           b.definite != 0,
                           b.pivot == PS_PIVOT_AUTO,
                           b.pivot == PS_PIVOT_ALWAYS,
                           b.info,
                           static_cast<Real *>(work),
                           slots_of(b, ps_cuda_device_get()->processors),
                           false,
                           false,
                           false,
                           false,
                           false,
                           0,
                           0,
                           {},
                           0,
                           false,
                           {},
                           false,
                           0};

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
    job.is_alike = b.side == 0 && std::abs(job.rhs.row) <= INT32_MAX / b.rows;
    for (const Input<Real> &in : job.bands) {
        job.is_alike = job.is_alike && in.data != nullptr && in.row == job.rhs.row &&
                       in.outer == job.rhs.outer && in.inner == job.rhs.inner;
    }
    set_five_lines(b, *ps_cuda_device_get(), job);
    if (job.chunk > 0) {
        return job;
    }
    set_five_columns(b, *ps_cuda_device_get(), job);
    if (job.has_columns) {
        return job;
    }
    if constexpr (std::is_same_v<Real, float>) {
        set_columns(b, *ps_cuda_device_get(), job);
        if (job.by_columns) {
            return job;
        }
    }
    set_five_rows(b, *ps_cuda_device_get(), job);
    if (job.has_rows) {
        return job;
    }
    job.lines = in_place_of(b, job, *ps_cuda_device_get());
    if (job.lines.is_used) {
        return job;
    }
    job.lines = lines_of(b, job, *ps_cuda_device_get());
    if (job.lines.is_used) {
        return job;
    }
    const bool is_dense =
        job.lower.is_dense && job.diag.is_dense && job.upper.is_dense && job.rhs.is_dense;

    job.is_tiled = b.pivot != PS_PIVOT_ALWAYS && (b.side < 4 || is_dense) &&
                   (job.inner == 1 || std::abs(job.x.row) < std::abs(job.x.inner));
    if (job.is_tiled) {
        divide_rows(b, *ps_cuda_device_get(), job.far, job.shared_bytes);
    }
    return job;
}

/* Systems of a multiprocessor, fewer than which are divided into chunks of all multiprocessors. The time
 * of systems in one piece is that of one of them, 0.3 to 0.9 us for a block row, and the time in chunks
 * that of all words: about as long for so many systems (H200). */
static constexpr int64_t
divided_systems(int side, int size, bool are_side_by_side)
{
    return !are_side_by_side ? (side > 2 && size == 8 ? 10 : 16)
           : side == 2       ? most_divided_systems
                             : 26;
}

/* Whether few long systems are solved in chunks by the levels of blocks_factor.cuh. */
template <typename Real>
static bool
is_divided(const ps_blocks &b, const BlocksJob<Real> &job, const ps_cuda_device &device)
{
    return divided_bytes(b, device) > 0 &&
           job.outer * job.inner <
               divided_systems(b.side, sizeof(Real), !job.is_by_row()) *
                   device.processors;
}

/* Whether no kernel divides the systems of a solve into chunks. */
template <typename Real>
static bool
is_in_one_piece(const BlocksJob<Real> &job)
{
    return job.chunk == 0 && !job.has_columns && !job.by_columns && !job.lines.is_used;
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
    if (b->task != PS_BLOCKS_SOLVE) {
        return ps_cuda_blocks_factor_run(b, exec->work, ps_cuda_stream(exec));
    }
    return with_real(b->dtype, [&](auto zero) {
        const auto job = job_of<decltype(zero)>(*b, exec->work);

        return is_in_one_piece(job) && is_divided(*b, job, *ps_cuda_device_get())
                   ? solve_divided(*b, job, exec->work, ps_cuda_stream(exec))
                   : launch_blocks(job, ps_cuda_stream(exec));
    });
}

} // namespace pysolvers::lines
