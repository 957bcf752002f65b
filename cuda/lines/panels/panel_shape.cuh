/* panel_shape.cuh - the distribution of the rows of a system for panels.
 *
 * A system is divided into groups of rows, one per block; a group into PANEL_CHUNKS
 * chunks, one per warp; a chunk into places. Groups are aligned to their ends: if a
 * group has fewer rows than places, the first places have no row.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_SHAPE_CUH
#define PS_CUDA_LINES_PANELS_PANEL_SHAPE_CUH

#include <cstdint>

namespace pysolvers::panels {

enum {
    PANEL_CHUNKS = 16, /* per group */
    PANEL_CLUSTER = 16 /* largest number of groups of a cluster */
};

/* Places of a chunk, and of a group. */
template <typename Number>
static constexpr int panel_places = sizeof(Number) < 16 ? 16 : 7;
template <typename Number>
static constexpr int panel_group_rows = PANEL_CHUNKS * panel_places<Number>;

/* The largest number of groups of a system. */
template <typename Number>
static constexpr int panel_groups = sizeof(Number) == 4 ? 33 : 22;

/* Rows of a group: whole chunks, except that the first group has the remaining rows. */
template <typename Number>
__host__ __device__ __forceinline__ int32_t
panel_rows(int32_t groups, int32_t rows)
{
    const int32_t step = groups * panel_places<Number>;

    return (rows + step - 1) / step * panel_places<Number>;
}

/* The row after a group. */
template <typename Number>
__host__ __device__ __forceinline__ int32_t
panel_end(int32_t group, int32_t groups, int32_t rows)
{
    return rows - (groups - 1 - group) * panel_rows<Number>(groups, rows);
}

/* Places of a group without a row. */
template <typename Number>
__device__ __forceinline__ int32_t
panel_pads(int32_t group, int32_t groups, int32_t rows)
{
    return panel_group_rows<Number> -
           min(panel_rows<Number>(groups, rows), panel_end<Number>(group, groups, rows));
}

} // namespace pysolvers::panels

#endif
