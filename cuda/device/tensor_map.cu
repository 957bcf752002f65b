/* tensor_map.cu - tensor maps made by the driver. The driver is not linked; its entry
 * point is looked up by name.
 */
#include "device/tensor_map.h"

namespace pysolvers::device {

static constexpr int axes = 3;
/* largest pitch of a map, in bytes */
static constexpr int64_t farthest = INT64_C(1) << 40;

/* The function of the driver that encodes maps; null if the driver has none. */
static decltype(&cuTensorMapEncodeTiled)
map_maker()
{
    cudaDriverEntryPointQueryResult found;
    void *entry = nullptr;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion(
        "cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry,
                                                      cudaEnableDefault, &found);
#endif
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess
               ? reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)
               : nullptr;
}

static bool
can_be_mapped(const ps_cuda_tiles &tiles)
{
    bool can = reinterpret_cast<uintptr_t>(tiles.data) % 16 == 0;

    for (const int64_t pitch : tiles.pitch) {
        can = can && pitch > 0 && pitch % 16 == 0 && pitch < farthest;
    }
    for (const int64_t size : tiles.size) {
        can = can && size <= INT32_MAX;
    }
    return can;
}

bool
ps_cuda_map_tiles(const ps_cuda_tiles *tiles, CUtensorMap *map)
{
    static const auto make = map_maker();
    const auto type = tiles->element == 4 ? CU_TENSOR_MAP_DATA_TYPE_INT32
                                          : CU_TENSOR_MAP_DATA_TYPE_INT64;
    const cuuint32_t ones[axes] = {1, 1, 1};
    cuuint64_t size[axes], pitch[axes - 1];
    cuuint32_t tile[axes];

    if (make == nullptr || !can_be_mapped(*tiles)) {
        return false;
    }
    for (int k = 0; k < axes; k++) {
        size[k] = static_cast<cuuint64_t>(tiles->size[k]);
        tile[k] = static_cast<cuuint32_t>(tiles->tile[k]);
    }
    for (int k = 0; k < axes - 1; k++) {
        pitch[k] = static_cast<cuuint64_t>(tiles->pitch[k]);
    }
    return make(map, type, axes, const_cast<void *>(tiles->data), size, pitch, tile, ones,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                tiles->promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

} // namespace pysolvers::device
