/* panel_stencils.cuh - panels whose right-hand sides are differences of the rows in memory
 * (differences.cuh): they replace the rows in a stage before it is reduced.
 *
 * The rows beside those of a chunk are in the stage, and are read before any of them is
 * replaced. Those beside the group of the block come from memory, behind the copies of the
 * panels; they are requested a panel before. All blocks read them: x must be elsewhere.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_STENCILS_CUH
#define PS_CUDA_LINES_PANELS_PANEL_STENCILS_CUH

#include "lines/differences.cuh"
#include "lines/panels/panel.cuh"

namespace pysolvers::panels {

template <typename Number> struct PanelStencils {
    static constexpr bool reads_neighbours = true, makes_rows = true;
    static constexpr int places = panel_places<Number>;
    using Pack = PanelPack<Number>;
    using Weights = lines::Differences<Number>;
    Weights by;

    /* Two rows beside the group: before it for the warp with its first row, otherwise after it for
     * the last warp. */
    struct Ahead {
        Pack row[2];
    };

    /* The rows of a group for the columns of a lane, in a stage or in memory. */
    struct Rows {
        const SharedPanels<Number> &batch;
        const PanelChunk<Number> &chunk;
        const Weights &by;
        int32_t begin, stop, group_begin, group_stop; /* of the chunk, and of the group */
        int column;
        bool is_last; /* warp */

        __device__ __forceinline__ Rows(const PanelStencils &source,
                                        const SharedPanels<Number> &panels,
                                        const PanelChunk<Number> &own,
                                        const TeamPlace &at, int32_t group_start)
            : batch(panels), chunk(own), by(source.by), begin(own.start + own.pads),
              stop(own.start + places), group_begin(group_start),
              group_stop(own.start + (PANEL_CHUNKS - at.warp) * places),
              column(at.lane * Pack::count), is_last(at.warp == PANEL_CHUNKS - 1)
        {
        }

        __device__ __forceinline__ bool is_first() const
        {
            return begin == group_begin;
        }
        __device__ __forceinline__ bool has_ends() const
        {
            return !by.is_ring() &&
                   (begin < Weights::ends || stop > by.rows - Weights::ends);
        }

        /* A row of a ring, or the nearest one: those beyond an end do not count. */
        __device__ __forceinline__ int32_t wrapped(int32_t row) const
        {
            if (by.is_ring()) {
                return row < 0 ? row + by.rows : row < by.rows ? row : row - by.rows;
            }
            return min(max(row, 0), by.rows - 1);
        }

        __device__ __forceinline__ Pack from_memory(const PanelRange &range,
                                                    int32_t row) const
        {
            const Number *const line =
                batch.rhs + range.line * batch.rhs_line + wrapped(row) * batch.rhs_row;
            Pack p;

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                const int safe = min(column + k, range.columns - 1);

                p.at[k] = line[(range.first + safe) * batch.rhs_lane];
            }
            return p;
        }

        __device__ __forceinline__ Pack at(const PanelRange &range, const Pack *place,
                                           int32_t row) const
        {
            return row >= group_begin && row < group_stop
                       ? place[(row - chunk.start) * 32]
                       : from_memory(range, row);
        }
    };

    /* Request what a panel needs beside the group. */
    __device__ __forceinline__ Ahead request(const Rows &rows, int64_t panel) const
    {
        const PanelRange range = rows.batch.range_of(panel);
        const int32_t first = rows.is_first() ? rows.begin - 2 : rows.stop;
        Ahead ahead = {};

        if (rows.chunk.has_rows() && (rows.is_first() || rows.is_last)) {
#pragma unroll
            for (int k = 0; k < 2; k++) {
                ahead.row[k] = rows.from_memory(range, first + k);
            }
        }
        return ahead;
    }

    /* Replace the rows of a panel, by all threads; `next` is the panel to request, or negative. */
    __device__ __forceinline__ void make(const Rows &rows, int64_t panel, int64_t next,
                                         Pack *place, Ahead &ahead) const
    {
        const PanelRange range = rows.batch.range_of(panel);
        const bool has_rows = rows.chunk.has_rows(), has_ends = rows.has_ends();
        const int from = rows.begin < Weights::ends ? 0 : Weights::ends;
        Pack before[2] = {}, behind[2] = {}, end[Weights::ends] = {};

        if (has_rows) {
#pragma unroll
            for (int k = 0; k < 2; k++) {
                before[k] = rows.is_first() ? ahead.row[k]
                                            : rows.at(range, place, rows.begin - 2 + k);
                behind[k] = rows.is_last && !rows.is_first()
                                ? ahead.row[k]
                                : rows.at(range, place, rows.stop + k);
            }
            if (has_ends) {
#pragma unroll
                for (int k = 0; k < Weights::ends; k++) {
                    end[k] = end_of(rows, range, place, from + k);
                }
            }
        }
        __syncthreads();
        if (next >= 0) {
            ahead = request(rows, next);
        }
        if (!has_rows) {
            return;
        }
        if (by.is_even()) {
            sweep<true>(rows.chunk.pads, place, before, behind);
        }
        else {
            sweep<false>(rows.chunk.pads, place, before, behind);
        }
        if (has_ends) {
#pragma unroll
            for (int k = 0; k < Weights::ends; k++) {
                const int32_t row = by.row_of(from + k);

                if (row >= rows.begin && row < rows.stop) {
                    place[(row - rows.chunk.start) * 32] = end[k];
                }
            }
        }
    }

  private:
    template <bool IS_EVEN>
    __device__ __forceinline__ void sweep(int pads, Pack *place, const Pack (&before)[2],
                                          const Pack (&behind)[2]) const
    {
        Pack before2 = before[0], before1 = before[1], own = place[pads * 32];
        Pack after = pads + 1 < places ? place[(pads + 1) * 32] : behind[0];

#pragma unroll
        for (int i = 0; i < places; i++) {
            if (i < pads) {
                continue;
            }
            const Pack after2 = i + 2 < places
                                    ? place[(i + 2) * 32]
                                    : behind[i + 2 < places ? 0 : i + 2 - places];
            Pack g;

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                g.at[k] = by.template inner<IS_EVEN>(
                    before2.at[k], before1.at[k], own.at[k], after.at[k], after2.at[k]);
            }
            place[i * 32] = g;
            before2 = before1;
            before1 = own;
            own = after;
            after = after2;
        }
    }

    __device__ __forceinline__ Pack end_of(const Rows &rows, const PanelRange &range,
                                           const Pack *place, int which) const
    {
        const Pack own = rows.at(range, place, by.row_of(which));
        Pack result = {};

        by.each_point(which, [&](Number weight, int32_t row) {
            const Pack value = rows.at(range, place, row);

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                result.at[k] += weight * (value.at[k] - own.at[k]);
            }
        });
        return result;
    }
};

} // namespace pysolvers::panels

#endif
