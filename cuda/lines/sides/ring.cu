/* ring.cu - the choice of shapes for several right-hand sides along a strided axis. */
#include "lines/sides/ring.h"

#include <algorithm>

#include "device/sides.cuh"
#include "device/tensor_map.h"
#include "runtime/math.cuh"

namespace pysolvers::sides {

/* As many slots as fit with as many blocks on a multiprocessor as have enough slots. */
static bool
set_slots(int32_t bytes, const ps_cuda_device *device, SideRing *s)
{
    const size_t slot = static_cast<size_t>(s->numbers) * bytes;
    const size_t others = bytes == 4 ? bytes_of_arrays<RingArrays<float>>(*s)
                                     : bytes_of_arrays<RingArrays<double>>(*s);
    const int enough = s->by_threads ? 6 : 7;

    for (int blocks = 4; blocks >= 1; blocks--) {
        s->slots = slots_that_fit(device, blocks, slot, others);
        if (s->slots >= (blocks > 1 ? enough : least_slots)) {
            return true;
        }
    }
    return false;
}

/* A shape with `blocks` blocks and rows of so many bytes, if it fits. */
static bool
shape_with(int64_t rows, int32_t bytes, bool by_threads, int32_t blocks,
           int32_t row_bytes, const ps_cuda_device *device, SideRing *s)
{
    *s = {};
    s->rows = static_cast<int32_t>(rows);
    s->width = row_bytes / bytes;
    s->blocks = blocks;
    s->by_threads = by_threads;
    s->chunk_rows = ring_rows(bytes, row_bytes);
    s->chunks = static_cast<int32_t>(divided_up(rows, s->chunk_rows * blocks));
    s->before = blocks * s->block_rows() - s->rows;
    s->numbers = s->block_rows() * s->width;

    return s->chunks <= ring_chunks(bytes, row_bytes) &&
           s->block_rows() <= ring_block_rows && blocks <= device->cluster_blocks &&
           s->threads() <= ring_threads(bytes, row_bytes) && set_slots(bytes, device, s);
}

/* The most blocks of clusters with rows of 256 bytes. */
static constexpr int32_t most_wide = 8;

/* Rows of 256 bytes for short systems, and for those that clusters hold with more slots than the
 * fewest, in float64 four and eight blocks with any number (10 sides of 200 rows of float64 take 0.88
 * of the time of one block with rows of 128 bytes, of float32 0.87; of 512 rows in four and eight
 * blocks 0.88 and 0.92 of two blocks with such rows, of 1000 in eight 0.96 of four). Otherwise of 128
 * bytes, in float32 in eight blocks at least (1000 rows take 0.93 of the time of four), but of 256 if
 * they begin anywhere. */
static bool
shape_by_column(int64_t rows, int32_t bytes, bool by_threads,
                const ps_cuda_device *device, SideRing *s)
{
    const auto with = [&](int32_t blocks, int32_t row_bytes) {
        return shape_with(rows, bytes, by_threads, blocks, row_bytes, device, s);
    };
    const bool is_short = rows <= ring_block_rows / 2;

    if ((by_threads || is_short) && with(1, 256)) {
        return true;
    }
    const bool fits_one = bytes == 4 && rows <= ring_block_rows;
    const int32_t widest = by_threads ? 0 : fits_one ? 2 : most_wide;

    for (int32_t wide = 2; wide <= widest; wide *= 2) {
        if (with(wide, 256)) {
            if ((bytes == 8 && wide > 2) || s->slots > least_slots) {
                return true;
            }
            break;
        }
    }
    const int32_t row_bytes = by_threads ? 256 : 128;
    int32_t blocks = by_threads ? 2 : bytes == 4 && !fits_one ? most_wide : 1;

    while (blocks <= ring_blocks && !with(blocks, row_bytes)) {
        blocks *= 2;
    }
    return blocks <= ring_blocks;
}

/* The tensor map of an operand: columns, rows, planes. */
static bool
map_operand(const ps_tridiag &t, const SideRing &s, const void *data,
            const ps_stride &stride, int64_t rows, int64_t planes, int32_t tile_rows,
            CUtensorMap *map)
{
    const int64_t bytes = static_cast<int64_t>(ps_dtype_size(t.dtype));
    const int64_t row = stride.row * bytes;
    const ps_cuda_tiles tiles = {data,
                                 static_cast<int32_t>(bytes),
                                 {t.inner, rows, planes},
                                 {row, planes > 1 ? stride.outer * bytes : row * rows},
                                 {s.width, tile_rows, 1},
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B};

    return stride.inner == 1 && ps_cuda_map_tiles(&tiles, map);
}

template <typename Number>
static bool
map_operands(const ps_tridiag &t, const SideRing &s, SideRingJob<Number> *job)
{
    const bool is_short[] = {(t.flags & PS_SHORT_LOWER) != 0, false,
                             (t.flags & PS_SHORT_UPPER) != 0};
    const ps_input *const matrix[] = {&t.lower, &t.diag, &t.upper};
    const int32_t block = s.block_rows(), first = block - s.before % block;
    bool all = true;

    for (int q = 0; q < 3; q++) {
        job->absent[q] = q == 0 && is_short[q] ? 1 : 0;
        all =
            all && map_operand(t, s, matrix[q]->data, matrix[q]->stride,
                               t.rows - (is_short[q] ? 1 : 0), 1, block, job->inputs + q);
    }
    job->absent[3] = 0;
    return all &&
           map_operand(t, s, t.rhs.data, t.rhs.stride, t.rows, t.outer, block,
                       job->inputs + 3) &&
           map_operand(t, s, t.x.data, t.x.stride, t.rows, t.outer, block, &job->x) &&
           map_operand(t, s, t.x.data, t.x.stride, t.rows, t.outer, first, &job->first_x);
}

/* Whether the systems of all operands are neighbours in memory. */
static bool
lie_side_by_side(const ps_tridiag &t)
{
    return t.lower.stride.inner == 1 && t.diag.stride.inner == 1 &&
           t.upper.stride.inner == 1 && t.rhs.stride.inner == 1 &&
           t.x.stride.inner == 1 && t.x.stride.row != 1;
}

/* Few sides are faster in groups, or one after the other in the kernels of one side: in clusters,
 * except of blocks of most rows in float64 (3 sides of 512 rows take 0.92 of the time, of 1000 0.96 to
 * 0.99, but of 300 and 700 more than 1.1), and of short systems of float64 that begin anywhere. */
static bool
accepts(const ps_tridiag *t, const ps_cuda_device *device, SideRing *shape)
{
    const int32_t bytes = static_cast<int32_t>(ps_dtype_size(t->dtype));
    const bool has_many_sides = t->outer > most_sides;
    SideRingJob<float> job;

    if (!has_side_groups(*t) || t->rows < 2 || device->capability < 90) {
        return false;
    }
    if (shape_by_column(t->rows, bytes, false, device, shape) &&
        map_operands(*t, *shape, &job)) {
        const bool is_cluster =
            shape->blocks > 2 || (shape->blocks > 1 && shape->width * bytes == 128);

        const bool has_most_rows =
            bytes == 8 && shape->width * bytes == 256 && shape->chunks == 8;

        return (!is_cluster || has_many_sides || has_most_rows) &&
               t->inner >= shape->width;
    }
    return lie_side_by_side(*t) && shape_by_column(t->rows, bytes, true, device, shape) &&
           t->inner >= shape->width &&
           (has_many_sides ||
            (bytes == 4 ? shape->blocks <= 2 : shape->blocks == 1 && t->rows > 64));
}

static ps_status
solve(const ps_tridiag *t, const SideRing &shape, const ps_cuda_device *device,
      uint8_t *marks, void *work, cudaStream_t stream)
{
    return with_real(t->dtype, [&](auto zero) {
        using Number = decltype(zero);
        SideRingJob<Number> job = {tiles_of<Number>(*t, shape, device, marks, work)};

        if (shape.by_threads && shape.blocks > 1) {
            job.work_queue = nullptr; /* equal shares of the tiles */
        }
        return shape.by_threads || map_operands(*t, shape, &job)
                   ? launch_side_ring(job, stream)
                   : PS_DEVICE_FAILURE;
    });
}

const ShapedKernels<SideRing> ps_cuda_side_ring = {accepts, work_of_tiles<SideRing>,
                                                   solve};

} // namespace pysolvers::sides
