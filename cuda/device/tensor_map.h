/* tensor_map.h - how an array of three axes lies in memory and how large its tiles are,
 * as the copy engine is told. From sm_90 on; tile_copy.cuh has the copies.
 */
#ifndef PS_CUDA_DEVICE_TENSOR_MAP_H
#define PS_CUDA_DEVICE_TENSOR_MAP_H

#include <cuda.h>

#include "runtime/engine.h"

namespace pysolvers::device {

/* Elements {i, row, plane} from `data` on, those of a row next to each other; at most 256
 * of a tile along an axis. Lines of the second-level cache come by `promotion` at once.
 */
typedef struct {
    const void *data;
    int32_t element;  /* bytes: 4 or 8 */
    int64_t size[3];  /* elements of an axis */
    int64_t pitch[2]; /* bytes from row to row, and from plane to plane */
    int32_t tile[3];
    CUtensorMapL2promotion promotion;
} ps_cuda_tiles;

/* False where the array cannot be mapped: its data and its pitches are multiples of 16
 * bytes, pitches positive and less than 2^40, sizes less than 2^31. */
bool ps_cuda_map_tiles(const ps_cuda_tiles *tiles, CUtensorMap *map);

} // namespace pysolvers::device

#endif
