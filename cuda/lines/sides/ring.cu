/* ring.cu - the choice of shapes for several right-hand sides along a strided axis. */
#include "lines/sides/ring.h"

#include <algorithm>

#include "device/sides.cuh"
#include "device/tensor_map.h"
#include "runtime/math.cuh"

namespace pysolvers::sides {

/* Rows of 256 bytes for short systems, of 128 for those that need more chunks. */
static int32_t
width_of(int64_t rows, int32_t bytes)
{
    return (divided_up(rows, ring_rows) <= ring_chunks / 2 ? 256 : 128) / bytes;
}

/* As many slots as fit with as many blocks on a multiprocessor as have enough slots. */
static bool
set_slots(int32_t bytes, const ps_cuda_device *device, SideRing *s)
{
    const size_t slot = static_cast<size_t>(s->numbers) * bytes;
    const size_t others = bytes == 4 ? bytes_of_arrays<RingExchange<float>>(*s)
                                     : bytes_of_arrays<RingExchange<double>>(*s);

    for (int blocks = 4; blocks >= 1; blocks--) {
        s->slots = slots_that_fit(device, blocks, slot, others);
        if (s->slots >= (blocks > 1 ? 7 : least_slots)) {
            return true;
        }
    }
    return false;
}

static bool
shape_by_column(int64_t rows, int32_t bytes, const ps_cuda_device *device, SideRing *s)
{
    *s = {static_cast<int32_t>(rows), width_of(rows, bytes), 0, 1, 0, 0, 0};
    while (s->blocks < ring_blocks &&
           divided_up(rows, ring_rows * s->blocks) > ring_chunks) {
        s->blocks *= 2;
    }
    s->width = s->blocks > 1 ? 128 / bytes : s->width;
    s->chunks = static_cast<int32_t>(divided_up(rows, ring_rows * s->blocks));
    s->before = s->blocks * s->block_rows() - s->rows;
    s->numbers = s->block_rows() * s->width;
    return s->chunks <= ring_chunks && s->blocks <= device->cluster_blocks &&
           s->threads() <= (bytes == 4 ? 608 : 352) && set_slots(bytes, device, s);
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

static bool
accepts(const ps_tridiag *t, const ps_cuda_device *device, SideRing *shape)
{
    SideRingJob<float> job;

    if (!has_side_groups(*t) || t->rows < 2 || device->capability < 90) {
        return false;
    }
    return shape_by_column(t->rows, static_cast<int32_t>(ps_dtype_size(t->dtype)), device,
                           shape) &&
           (shape->blocks == 1 || t->outer > most_sides) && t->inner >= shape->width &&
           map_operands(*t, *shape, &job);
}

static ps_status
solve(const ps_tridiag *t, const SideRing &shape, const ps_cuda_device *device,
      uint8_t *marks, void *work, cudaStream_t stream)
{
    return with_real(t->dtype, [&](auto zero) {
        using Number = decltype(zero);
        SideRingJob<Number> job = {tiles_of<Number>(*t, shape, device, marks, work)};

        return map_operands(*t, shape, &job) ? launch_side_ring(job, stream)
                                             : PS_DEVICE_FAILURE;
    });
}

const ShapedKernels<SideRing> ps_cuda_side_ring = {accepts, work_of_tiles<SideRing>,
                                                   solve};

} // namespace pysolvers::sides
