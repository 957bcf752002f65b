/* panel_shape.cuh - how the rows of a system are shared out for panels.
 *
 * A system has groups of rows, a block each, a group PANEL_CHUNKS chunks, a warp each,
 * and a chunk some places. Groups are aligned to their ends: where they have fewer rows
 * than places, those in front have none.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_SHAPE_CUH
#define PS_CUDA_LINES_PANELS_PANEL_SHAPE_CUH

#include <cstdint>

namespace pysolvers::panels {

enum {
    PANEL_CHUNKS = 16, /* of a group */
    PANEL_CLUSTER = 16 /* groups of a cluster, at most */
};

/* Rows of a chunk, and of a group. */
template <typename Number>
static constexpr int panel_places = sizeof(Number) < 16 ? 16 : 7;
template <typename Number>
static constexpr int panel_group_rows = PANEL_CHUNKS * panel_places<Number>;

/* Groups of a system, at most. */
template <typename Number>
static constexpr int panel_groups = sizeof(Number) == 4 ? 33 : 22;

/* Rows of a group: whole chunks, but for the first, which has what is left. */
template <typename Number>
__host__ __device__ __forceinline__ int32_t
panel_rows(int32_t groups, int32_t rows)
{
    const int32_t step = groups * panel_places<Number>;

    return (rows + step - 1) / step * panel_places<Number>;
}

/* The row behind a group. */
template <typename Number>
__host__ __device__ __forceinline__ int32_t
panel_end(int32_t group, int32_t groups, int32_t rows)
{
    return rows - (groups - 1 - group) * panel_rows<Number>(groups, rows);
}

/* Places in front of a group without a row. */
template <typename Number>
__device__ __forceinline__ int32_t
panel_pads(int32_t group, int32_t groups, int32_t rows)
{
    return panel_group_rows<Number> -
           min(panel_rows<Number>(groups, rows), panel_end<Number>(group, groups, rows));
}

} // namespace pysolvers::panels

#endif
