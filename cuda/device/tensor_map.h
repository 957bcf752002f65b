/* tensor_map.h - the description of an array of three axes and of its tiles for bulk
 * copies (tile_copy.cuh), from sm_90 on.
 */
#ifndef PS_CUDA_DEVICE_TENSOR_MAP_H
#define PS_CUDA_DEVICE_TENSOR_MAP_H

#include <cuda.h>

#include "runtime/engine.h"

namespace pysolvers::device {

/* An array of elements {i, row, plane}, from `data` on. The elements of a row are
 * contiguous; a tile has at most 256 elements along an axis. `promotion` is the
 * granularity of reads into the L2 cache. */
typedef struct {
    const void *data;
    int32_t element;  /* 4 or 8 bytes */
    int64_t size[3];  /* elements per axis */
    int64_t pitch[2]; /* bytes between rows, and between planes */
    int32_t tile[3];
    CUtensorMapL2promotion promotion;
} ps_cuda_tiles;

/* False if the array cannot be mapped. Data and pitches must be multiples of 16 bytes,
 * pitches positive and less than 2^40, sizes less than 2^31. */
bool ps_cuda_map_tiles(const ps_cuda_tiles *tiles, CUtensorMap *map);

} // namespace pysolvers::device

#endif
