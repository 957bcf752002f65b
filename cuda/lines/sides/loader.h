/* loader.h - the jobs of both kernels for several right-hand sides, and how their tiles and slots
 * are distributed. A shape has `slots` of `numbers` numbers, the threads() of a block, the `blocks`
 * of a cluster, and tiles(t) of a batch.
 */
#ifndef PS_CUDA_LINES_SIDES_LOADER_H
#define PS_CUDA_LINES_SIDES_LOADER_H

#include <algorithm>

#include "device/operand.cuh"
#include "device/work_queue.cuh"
#include "lines/columns/shaped_kernels.h"
#include "runtime/engine.h"
#include "runtime/math.cuh"

namespace pysolvers::sides {

using namespace device;
using namespace lines;
using namespace runtime;

template <typename Of, typename Shape> struct SideTiles {
    using Number = Of;
    Systems<Number> t;
    Shape shape;
    int64_t tiles;
    int32_t sides;
    uint8_t *marks;       /* null, or 1 for each system that is not dominant */
    uint32_t *work_queue; /* null, or the number of tiles that were drawn */
};

template <typename Shape>
inline bool
uses_work_queue(const ps_tridiag &t, const Shape &shape, const ps_cuda_device *device)
{
    return pays_for_work_queue(shape.tiles(t), device->processors / shape.blocks);
}

template <typename Shape>
inline size_t
work_of_tiles(const ps_tridiag *t, const Shape &shape, const ps_cuda_device *device)
{
    return uses_work_queue(*t, shape, device) ? work_queue_bytes(1) : 0;
}

template <typename Number, typename Shape>
inline SideTiles<Number, Shape>
tiles_of(const ps_tridiag &t, const Shape &shape, const ps_cuda_device *device,
         uint8_t *marks, void *work)
{
    return {systems_of<Number>(t),
            shape,
            shape.tiles(t),
            static_cast<int32_t>(t.outer),
            marks,
            uses_work_queue(t, shape, device) ? static_cast<uint32_t *>(work) : nullptr};
}

/* The slots of the ring: at least three operands, a side that is solved and one that is loaded. */
static constexpr int32_t least_slots = 5, most_slots = 12;

/* The slots of so many bytes that a block has, of so many blocks on a multiprocessor, apart from
 * `others` bytes of shared memory; of these, static ones and those of the driver. */
inline int32_t
slots_that_fit(const ps_cuda_device *device, int blocks, size_t slot, size_t others)
{
    constexpr size_t of_static = 1024, reserved = 1024;
    const size_t memory = std::min<size_t>(
        device->shared_bytes_processor / blocks - reserved, device->shared_bytes);

    return memory > of_static + others
               ? static_cast<int32_t>(
                     std::min<size_t>((memory - of_static - others) / slot, most_slots))
               : 0;
}

} // namespace pysolvers::sides

#endif
