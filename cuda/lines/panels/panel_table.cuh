/* panel_table.cuh - the multipliers of one matrix, eliminated for panels of columns.
 *
 * A system is divided into groups of rows, one per block; a group into PANEL_CHUNKS
 * chunks, one per warp; a chunk into places. Groups are aligned to their ends: if a
 * group has fewer rows than places, the first places get rows that copy their left
 * neighbour. The elimination of segment.cuh is separated into a part for the matrix,
 * whose multipliers are stored here for the rows of a chunk, the chunks of a group and
 * the groups of the system, and a part for a right-hand side, which needs 5 operations
 * per row and no division. No pivoting: stable for diagonally dominant matrices.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_TABLE_CUH
#define PS_CUDA_LINES_PANELS_PANEL_TABLE_CUH

#include <cstdint>
#include <type_traits>

#include "lines/join/exchange.cuh"
#include "lines/join/factor.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::panels {

using namespace join;

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

/* Alignment with which two numbers are loaded at once. */
template <typename Number>
static constexpr size_t panel_alignment = sizeof(Number) < 8 ? 2 * sizeof(Number) : 16;

/* Row i of a chunk: x_i = g_i - u_i x_{i+1} with g_i = p_i rhs_i - m_i g_{i-1}. The
 * last row has only m: its unknown is y of the chunk, and d = rhs - m g. */
template <typename Number> struct alignas(panel_alignment<Number>) PanelRow {
    Number m, p;
};

/* Weights of a right-hand side in the sums x_first and d of its chunk. */
template <typename Number> struct alignas(panel_alignment<Number>) PanelSums {
    using word = std::conditional_t<sizeof(Number) == 4, uint64_t, uint4>;
    Number first, d;
};

/* The multipliers of a unit, a chunk or a group. Its right-hand side is d - next
 * x_first, where x_first is that of the next unit: c = p (d - next x_first), g = c - m
 * g_before, y = g - u y_behind. */
template <typename Number> struct alignas(16) PanelUnit {
    Number m, p, next, u;
};

/* Weights of the sums of a unit in the sums of the column: of x_first in x_first and d,
 * and of d in both. */
template <typename Number> struct alignas(16) PanelShare {
    PanelSums<Number> first, d;
};

/* The reduced matrix of a group, for the join of the groups. */
template <typename Number> using PanelPart = Message<Frame<Number>, StoredNote>;

/* The multipliers of a group; the pitch places its chunks in different banks. Before
 * the elimination, m, p and u of a row contain lower, diag and upper. */
template <typename Number> struct alignas(16) PanelGroup {
    static constexpr int pitch = panel_places<Number> + 1;
    PanelRow<Number> row[PANEL_CHUNKS][pitch];
    PanelSums<Number> count[PANEL_CHUNKS][pitch];
    Number u[PANEL_CHUNKS][pitch];
    PanelUnit<Number> unit[PANEL_CHUNKS];
    PanelShare<Number> share[PANEL_CHUNKS];

    /* Beyond the places of its chunks a group has room for 4 * PANEL_CHUNKS numbers, which a
     * source can use, and for PANEL_CHUNKS others. */
    __device__ __forceinline__ Number &spare(int k)
    {
        PanelRow<Number> &of_row = row[k / 4][pitch - 1];
        PanelSums<Number> &of_sums = count[k / 4][pitch - 1];

        switch (k % 4) {
        case 0:
            return of_row.m;
        case 1:
            return of_row.p;
        case 2:
            return of_sums.first;
        default:
            return of_sums.d;
        }
    }
    __device__ __forceinline__ Number &other_spare(int k)
    {
        return u[k][pitch - 1];
    }
};

/* The table of a matrix with `groups` groups in memory. */
template <typename Number> struct PanelTable {
    StoredNote *note;          /* null: there is no table */
    PanelGroup<Number> *group; /* [groups] */
    /* [groups + 1][groups]: weights of the sums of all groups in y before each group; the
     * last row is y of the last group */
    PanelSums<Number> *weight;
    PanelPart<Number> *part; /* [groups], during the elimination */
};

} // namespace pysolvers::panels

#endif
