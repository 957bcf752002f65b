/* panel_copy.cuh - copies of the rows of panels between global and shared memory.
 *
 * If the rows can be described by tensor maps, one thread starts bulk copies of the
 * rows of a group. Otherwise each warp copies its chunk element by element.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_COPY_CUH
#define PS_CUDA_LINES_PANELS_PANEL_COPY_CUH

#include "device/mailbox.cuh"
#include "device/operand.cuh"
#include "device/tile_copy.cuh"
#include "lines/compact/compact.h"
#include "lines/panels/panel_table.cuh"

namespace pysolvers::panels {

using namespace device;
using namespace runtime;

enum { PANEL_THREADS = 32 * PANEL_CHUNKS };

/* Neighbouring columns per lane, 8 bytes of them for short types; systems of a panel;
 * numbers of a chunk of a panel. */
template <typename Number> static constexpr int panel_pack = sizeof(Number) < 8 ? 2 : 1;
template <typename Number> static constexpr int panel_columns = 32 * panel_pack<Number>;
static constexpr int panel_stages = 3;
template <typename Number>
static constexpr int panel_chunk_words = panel_places<Number> * panel_columns<Number>;

/* The systems of a panel. */
struct PanelRange {
    int64_t line, first; /* the line, and the first system in it */
    int columns;
};

/* A batch of neighbouring systems in lines of `lanes` systems; steps in elements. */
template <typename Number> struct SharedPanels {
    CUtensorMap rhs_map[2], x_map[2]; /* {words of a line, rows, lines} if in_bulk: tiles
                                         of the first group, and of the others */
    const Number *rhs;
    Number *x;
    /* panels of the batch and of a line; systems of a line */
    int64_t panels, line_panels, lanes;
    int64_t rhs_line, x_line; /* distance of lines */
    int64_t rhs_row, x_row;
    int32_t rhs_lane, x_lane;
    bool in_bulk;
    bool
        is_passing; /* rows leave the cache first: solved in place, more than the cache has */
    int64_t line_info, lane_info;
    int32_t *info;  /* null, or one entry per system */
    uint8_t *marks; /* as in SharedJob */
    compact::ColumnNeeds
        needs; /* of the table for compact_columns.cuh: if they are met, panels solve nothing */

    __device__ __forceinline__ PanelRange range_of(int64_t panel) const
    {
        const int64_t line = quotient(panel, line_panels);
        const int64_t first = (panel - line * line_panels) * panel_columns<Number>;

        return {line, first,
                static_cast<int>(
                    min(lanes - first, static_cast<int64_t>(panel_columns<Number>)))};
    }

    __device__ __forceinline__ bool is_solved(const StoredNote &note) const
    {
        return marks == nullptr || note.dominant;
    }

    /* Write info and marks for the panels of a team, by the block of its first group. */
    __device__ __forceinline__ void report(const StoredNote &note, const TeamPlace &at,
                                           int64_t teams) const
    {
        if (at.group != 0 || (info == nullptr && marks == nullptr)) {
            return;
        }
        for (int64_t panel = at.team + at.warp * teams; panel < panels;
             panel += PANEL_THREADS / 32 * teams) {
            const PanelRange range = range_of(panel);

            for (int k = at.lane; k < range.columns; k += 32) {
                report(range.line * line_info + (range.first + k) * lane_info, note);
            }
        }
    }

  private:
    __device__ __forceinline__ void report(int64_t at, const StoredNote &note) const
    {
        const bool solved = is_solved(note);

        if (info != nullptr && solved) {
            info[at] = note.bad_pivot == BadPivot::none ? 0 : note.bad_pivot + 1;
        }
        if (marks != nullptr) {
            marks[at] = !solved;
        }
    }
};

/* Bulk copies of the rows of a group, by one thread. */
template <typename Number> struct PanelBulk {
    const SharedPanels<Number> &batch;
    int32_t start, rows; /* the first row, and the number of rows */
    int group;

    __device__ __forceinline__ void load(int64_t panel, Number *stage,
                                         Arrivals &arrivals) const
    {
        const PanelRange range = batch.range_of(panel);

        arrivals.expect(rows * panel_columns<Number> * static_cast<int>(sizeof(Number)));
        if (batch.is_passing) {
            copy_tile(place_in(stage), batch.rhs_map[group > 0], word_of(range), start,
                      static_cast<int>(range.line), arrivals, evict_first_policy());
        }
        else {
            copy_tile(place_in(stage), batch.rhs_map[group > 0], word_of(range), start,
                      static_cast<int>(range.line), arrivals);
        }
    }

    /* Call stores_read() before the stage is overwritten. */
    __device__ __forceinline__ void store(int64_t panel, Number *stage) const
    {
        const PanelRange range = batch.range_of(panel);

        if (batch.is_passing) {
            store_tile(batch.x_map[group > 0], word_of(range), start,
                       static_cast<int>(range.line), place_in(stage),
                       evict_first_policy());
        }
        else {
            store_tile(batch.x_map[group > 0], word_of(range), start,
                       static_cast<int>(range.line), place_in(stage));
        }
        commit_stores();
    }

  private:
    __device__ __forceinline__ Number *place_in(Number *stage) const
    {
        return stage + (panel_group_rows<Number> - rows) * panel_columns<Number>;
    }

    static __device__ __forceinline__ int word_of(const PanelRange &range)
    {
        return static_cast<int>(range.first) * static_cast<int>(sizeof(Number) / 4);
    }
};

/* The chunk of a warp: place 0 is row `start`, and the first `pads` places have no row.
 * Copies element by element if there are no bulk copies. */
template <typename Number> struct PanelChunk {
    static constexpr int columns = panel_columns<Number>, places = panel_places<Number>;
    const SharedPanels<Number> &batch;
    int32_t start, pads;
    int lane;

    __device__ __forceinline__ bool has_rows() const
    {
        return pads < places;
    }

    /* Write zeros to the pads, which are read but not loaded. */
    __device__ __forceinline__ void clear(Number *to) const
    {
        for (int k = lane; k < pads * columns; k += 32) {
            to[k] = Number(0);
        }
    }

    __device__ __forceinline__ void load(int64_t panel, Number *to) const
    {
        const PanelRange range = batch.range_of(panel);
        const Number *const from = batch.rhs + range.line * batch.rhs_line +
                                   range.first * batch.rhs_lane + start * batch.rhs_row;

        walk(range, [&](int row, int column, int place) {
            copy_async_of_line<sizeof(Number)>(to + place, from + row * batch.rhs_row +
                                                               column * batch.rhs_lane);
        });
    }

    __device__ __forceinline__ void store(int64_t panel, const Number *from) const
    {
        const PanelRange range = batch.range_of(panel);
        Number *const to = batch.x + range.line * batch.x_line +
                           range.first * batch.x_lane + start * batch.x_row;

        __syncwarp();
        walk(range, [&](int row, int column, int place) {
            to[row * batch.x_row + column * batch.x_lane] = from[place];
        });
        __syncwarp();
    }

  private:
    template <typename Visit>
    __device__ __forceinline__ void walk(const PanelRange &range,
                                         const Visit &visit) const
    {
        for (int place = pads * columns + lane; place < places * columns; place += 32) {
            const int row = place / columns, column = place % columns;

            if (column < range.columns) {
                visit(row, column, place);
            }
        }
    }
};

} // namespace pysolvers::panels

#endif
