/* gceidd_strips_launch.cuh - the choice of a kernel of gceidd_strips_kernels.cuh for a
 * sweep.
 */
#ifndef PS_CUDA_TRANSPORT_GCEIDD_STRIPS_LAUNCH_CUH
#define PS_CUDA_TRANSPORT_GCEIDD_STRIPS_LAUNCH_CUH

#include "runtime/math.cuh"
#include "transport/gceidd_strips.h"
#include "transport/gceidd_strips_kernels.cuh"

namespace pysolvers::transport {

template <typename Real>
using StripKernel = void (*)(const Sweep<Real>, const StripTiles, const Real *);

template <typename Real, int MOST, bool STEADY>
inline StripKernel<Real>
strip_kernel_of(int axis, bool feet)
{
    if (axis == PS_GCEIDD_X) {
        return feet ? strips_along_kernel<Real, MOST, STEADY, true>
                    : strips_along_kernel<Real, MOST, STEADY, false>;
    }
    return feet ? strips_across_kernel<Real, MOST, STEADY, true>
                : strips_across_kernel<Real, MOST, STEADY, false>;
}

template <typename Real, int MOST>
inline StripKernel<Real>
strip_kernel_of(const ps_gceidd *g, int axis)
{
    const bool feet = g->scheme == PS_GCEIDD_CFD;

    return ps_cuda_gceidd_is_steady(g, axis)
               ? strip_kernel_of<Real, MOST, true>(axis, feet)
               : strip_kernel_of<Real, MOST, false>(axis, feet);
}

/* Rows of the longest strip that the kernel of an axis can solve. */
inline int32_t
strip_rows(const ps_gceidd *g, int axis)
{
    const int64_t longest = ps_cuda_gceidd_longest(g, axis);

    return longest <= 8 ? 7 : longest <= 16 ? 15 : 31;
}

template <typename Real>
inline StripKernel<Real>
strip_kernel(const ps_gceidd *g, int axis)
{
    switch (strip_rows(g, axis)) {
    case 7:
        return strip_kernel_of<Real, 7>(g, axis);
    case 15:
        return strip_kernel_of<Real, 15>(g, axis);
    default:
        return strip_kernel_of<Real, 31>(g, axis);
    }
}

/* The division into tiles. A block with all strips of its lines owns all of them. */
inline StripTiles
strip_tiles(const ps_gceidd *g, int axis, int32_t warps)
{
    const int32_t strips = static_cast<int32_t>(g->strips[axis]);
    const int32_t longest = static_cast<int32_t>(ps_cuda_gceidd_longest(g, axis));
    StripTiles t = {};

    t.groups = static_cast<int32_t>(g->cells[1 - axis] / warp_lanes) + 1;
    t.own = strips == warps ? warps : warps - 1;
    t.parts = divided_up(strips, t.own);
    t.per_row = per_one(axis == PS_GCEIDD_X ? t.parts : t.groups);
    t.pitch = (warps * longest + 1) | 1;
    return t;
}

/* Shared memory of a block: the common part and its buffers, which are two tiles along
 * x. */
template <typename Real>
inline int
strip_shared_bytes(const ps_gceidd *g, int axis, int32_t warps)
{
    const int32_t table =
        ps_cuda_gceidd_is_steady(g, axis) ? LINE_INVERSE + strip_rows(g, axis) : 0;
    const int32_t buffers =
        axis == PS_GCEIDD_X ? 2 * (table + strip_tiles(g, axis, warps).pitch) : table;
    const int32_t rows = StripArrays<Real>::rows(warps) + buffers;

    return rows * warp_lanes * static_cast<int>(sizeof(Real));
}

/* Warps of a block: at most the number of strips, and fewer if shared memory is small. */
template <typename Real>
inline int32_t
strip_block_warps(const ps_gceidd *g, int axis, const ps_cuda_device *device)
{
    int32_t warps = g->strips[axis] < strip_warps ? static_cast<int32_t>(g->strips[axis])
                                                  : strip_warps;

    while (warps > 2 && strip_shared_bytes<Real>(g, axis, warps) > device->shared_bytes) {
        warps--;
    }
    return warps;
}

/* Blocks: along y one per tile; along x as many as the multiprocessors hold, which
 * process the tiles one after the other. */
inline int64_t
strip_grid(const ps_gceidd *g, int axis, const StripTiles &t, int shared,
           const ps_cuda_device *device)
{
    constexpr int system_bytes = 1024; /* of the shared memory of a block */
    const int by_registers =
        strip_blocks(strip_rows(g, axis), ps_cuda_gceidd_is_steady(g, axis));
    const int by_memory = device->shared_bytes_processor / (shared + system_bytes);
    const int64_t tiles = static_cast<int64_t>(t.groups) * t.parts;
    const int64_t places =
        static_cast<int64_t>(by_memory < by_registers ? by_memory : by_registers) *
        device->processors;

    return axis == PS_GCEIDD_Y || tiles < places ? tiles : places;
}

template <typename Real>
ps_status
GceiddStrips<Real>::prepare(const ps_gceidd *g, int axis)
{
    return ps_cuda_status(allow_shared(strip_kernel<Real>(g, axis)));
}

template <typename Real>
ps_status
GceiddStrips<Real>::tabulate(const ps_cuda_gceidd_sweep *sweep, void *table,
                             cudaStream_t stream)
{
    const Sweep<Real> s = sweep_of<Real>(sweep);

    return for_elements<4 * warp_lanes>(
        s.lines, stream,
        StripTable<Real>{s, strip_rows(sweep->g, sweep->axis),
                         static_cast<Real *>(table)});
}

template <typename Real>
ps_status
GceiddStrips<Real>::launch(const ps_cuda_gceidd_sweep *sweep, const void *table,
                           cudaStream_t stream)
{
    const ps_gceidd *const g = sweep->g;
    const int axis = sweep->axis;
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const int32_t warps = strip_block_warps<Real>(g, axis, device);
    const int shared = strip_shared_bytes<Real>(g, axis, warps);
    const StripTiles t = strip_tiles(g, axis, warps);

    return launch_closely(strip_kernel<Real>(g, axis),
                          strip_grid(g, axis, t, shared, device), warps * warp_lanes,
                          static_cast<size_t>(shared), stream, sweep_of<Real>(sweep), t,
                          static_cast<const Real *>(table));
}

} // namespace pysolvers::transport

#endif
