/* panel_table.cuh - one matrix eliminated for panels of columns: what is kept of it.
 *
 * Rows are cut into groups of PANEL_CHUNKS chunks of so many places. Rows that copy their
 * left neighbour fill up the front of a group. What segment.cuh computes for matrix and
 * right-hand side at once is cut in two here: the multipliers are kept, for the rows of a
 * chunk, the chunks of a group and the groups of the system alike, and a right-hand side
 * is taken through them with 5 operations a row, no division. No pivoting: for dominant
 * matrices.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_TABLE_CUH
#define PS_CUDA_LINES_PANELS_PANEL_TABLE_CUH

#include <type_traits>

#include "lines/join/segment.cuh"
#include "lines/panels/panel_shape.cuh"
#include "runtime/launch.cuh"

namespace pysolvers::panels {

/* Of two numbers side by side, loaded at once. */
template <typename Number>
static constexpr size_t panel_alignment = sizeof(Number) < 8 ? 2 * sizeof(Number) : 16;

/* Row i of a chunk: x_i = g_i - u_i x_{i+1} with g_i = p_i rhs_i - m_i g_{i-1}. Of the
 * last row only m counts: its unknown is the chunk's y, and d = rhs - m g. */
template <typename Number> struct alignas(panel_alignment<Number>) PanelRow {
    Number m, p;
};

/* Weights of a right-hand side in the sums x_first and d of its chunk. */
template <typename Number> struct alignas(panel_alignment<Number>) PanelSums {
    using word = std::conditional_t<sizeof(Number) == 4, uint64_t, uint4>;
    Number first, d;
};

/* The same for a unit, a chunk or a group, whose right-hand side is d - next x_first,
 * that of the unit behind: c = p (d - next x_first), g = c - m g_before, y = g - u
 * y_behind. */
template <typename Number> struct alignas(16) PanelUnit {
    Number m, p, next, u;
};

/* Weights of the sums of a unit in those of the whole column: x_first in x_first and in
 * d, and d. */
template <typename Number> struct alignas(16) PanelShare {
    PanelSums<Number> first, d;
};

/* The last unknown: p d - first x_first. */
template <typename Number> struct PanelClose {
    Number p, first;
};

/* The matrix of a Segment: x_first = .. - first_l y_left - first_u y. */
template <typename Number> struct PanelFrame {
    Number first_l, first_u, a, b, c;
};

struct PanelNote {
    int32_t bad_pivot; /* row of the first bad pivot, or INT32_MAX */
    int32_t dominant;  /* in every row */
    int32_t unused[2];
};

/* A group for its system. */
template <typename Number> struct alignas(16) PanelPart {
    using word = uint4;
    PanelFrame<Number> frame;
    PanelNote note;
};

/* The multipliers of a group, chunks in banks of their own. While they are made, a row
 * comes as lower, diag and upper in m, p and u. */
template <typename Number> struct alignas(16) PanelGroup {
    static constexpr int pitch = panel_places<Number> + 1;
    PanelRow<Number> row[PANEL_CHUNKS][pitch];
    PanelSums<Number> count[PANEL_CHUNKS][pitch];
    Number u[PANEL_CHUNKS][pitch];
    PanelUnit<Number> unit[PANEL_CHUNKS];
    PanelShare<Number> share[PANEL_CHUNKS];
};

/* A table of `groups` groups in memory. */
template <typename Number> struct PanelTable {
    PanelNote *note;           /* null: there is no table */
    PanelGroup<Number> *group; /* [groups] */
    PanelSums<Number> *weight; /* [groups + 1][groups]: what the sums of all groups count
                                  in y before a group, which is that of the last one */
    PanelPart<Number> *part;   /* [groups], while it is made */
};

} // namespace pysolvers::panels

#endif
