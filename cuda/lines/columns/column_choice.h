/* column_choice.h - the choice of the shape of batches along a strided axis. */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_CHOICE_H
#define PS_CUDA_LINES_COLUMNS_COLUMN_CHOICE_H

#include <algorithm>

#include "lines/columns/column.h"
#include "runtime/math.cuh"

namespace pysolvers::columns {

static constexpr int least = 64;           /* fewest bytes of neighbouring systems */
static constexpr int most_blocks = 8;      /* of a cluster */
static constexpr int statics_bytes = 1024; /* static shared memory of a block */

/* Warps that hold a system in chunks, 1 << width systems side by side. */
inline int32_t
warps_of(int64_t rows, int32_t chunk, int32_t width)
{
    return static_cast<int32_t>(divided_up(divided_up(rows, chunk), 32 >> width));
}

/* The fewest blocks of at most ColumnTuning::usual_threads threads, or else of at most
 * ColumnTuning::threads, rounded up to a power of two, because clusters of other sizes leave
 * more multiprocessors empty. */
template <typename Tuned>
inline int32_t
blocks_of(int64_t rows, int32_t chunk, int32_t width)
{
    const int32_t warps = warps_of(rows, chunk, width);
    const int32_t blocks = 1 << log2_up(divided_up(warps, Tuned::usual_threads / 32));

    return blocks <= most_blocks ? blocks
                                 : 1 << log2_up(divided_up(warps, Tuned::threads / 32));
}

/* Rows of a chunk. If a block is as wide as a warp and holds whole systems, several
 * blocks share a multiprocessor, and the chunk is chosen so that the first one has the
 * fewest pads. Otherwise it is chosen for the fewest blocks with the most warps. */
template <typename Tuned>
inline int32_t
chunk_of(int64_t rows, int32_t width)
{
    const int32_t blocks = blocks_of<Tuned>(rows, Tuned::rows, width);
    int32_t best = Tuned::rows;

    if (rows >= Tuned::long_from) {
        return rows <= Tuned::shorter[0] && width == 5 ? Tuned::shorter[0] : best;
    }
    if (rows > best && rows <= Tuned::alone && width == 5) {
        return Tuned::alone;
    }
    if (blocks > 1 || width < 5) {
        const int32_t chunk = Tuned::shorter[2];
        return blocks_of<Tuned>(rows, chunk, width) == blocks ? chunk : best;
    }
    if (rows > best && Tuned::takes_shortest) {
        best = Tuned::shorter[0];
    }
    for (const int32_t chunk : Tuned::shorter) {
        if (blocks_of<Tuned>(rows, chunk, width) == 1 &&
            divided_up(rows, chunk) * chunk < divided_up(rows, best) * best) {
            best = chunk;
        }
    }
    return best;
}

/* The shape with the fewest blocks that hold 1 << width systems; false if there is
 * none. */
template <typename Number, typename Job>
inline bool
cut(int64_t rows, int32_t width, const ps_cuda_device *device, ColumnShape *shape)
{
    using Tuned = typename Job::Tuned;
    const int32_t most = std::min(device->cluster_blocks, most_blocks);
    const int32_t chunk = chunk_of<Tuned>(rows, width);
    const int32_t units = warps_of(rows, chunk, width);
    const int32_t blocks = blocks_of<Tuned>(rows, chunk, width);
    const int32_t warps = divided_up(units, blocks);
    const int32_t lanes =
        log2_up(std::max(divided_up(warps, Tuned::span), divided_up(blocks, 2)));

    *shape = {static_cast<int32_t>(rows), chunk, width, warps, lanes, blocks, 0, 0, 0};
    shape->set_first();
    return blocks <= most && 1 << (width + lanes) <= 32 * warps &&
           (blocks > 1
                ? column_bytes<Number, Tuned::rows, true, ColumnAccess::sectors, Job>(
                      *shape)
                : column_bytes<Number, Tuned::rows, false, ColumnAccess::sectors, Job>(
                      *shape)) +
                   statics_bytes <=
               static_cast<size_t>(device->shared_bytes);
}

/* The width: that of a warp if such a block holds whole systems. Otherwise two lines of
 * memory of neighbouring systems (one for complex128), because fewer sectors are then
 * shared by two tiles. Otherwise as many systems as a cluster can hold. */
template <typename Number, typename Job>
inline bool
shape_of(int64_t rows, int32_t widest, const ps_cuda_device *device, ColumnShape *shape)
{
    constexpr int32_t bytes = sizeof(ElementOf<Number>),
                      preferred = Job::Tuned::cluster_bytes;

    for (int32_t width = widest; (bytes << width) >= least; width--) {
        if (cut<Number, Job>(rows, width, device, shape) &&
            (shape->blocks == 1 || (bytes << width) <= preferred)) {
            return true;
        }
    }
    return false;
}

} // namespace pysolvers::columns

#endif
