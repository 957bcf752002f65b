/* panel_stencils.cuh - panels whose right-hand sides are differences of the rows in memory
 * (differences.cuh).
 *
 * The rows beside those of a chunk are in the stage, or, beyond the group of the block, in
 * memory, where all blocks find them: x must be elsewhere.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_STENCILS_CUH
#define PS_CUDA_LINES_PANELS_PANEL_STENCILS_CUH

#include "lines/differences.cuh"
#include "lines/panels/panel.cuh"

namespace pysolvers::panels {

template <typename Number> struct PanelStencils {
    static constexpr bool reads_neighbours = true;
    static constexpr int places = panel_places<Number>;
    using Pack = PanelPack<Number>;
    using Weights = lines::Differences<Number>;
    Weights by;

    /* The rows of a group in a stage, for the columns of a lane; others from memory. */
    struct Rows {
        const SharedPanels<Number> &batch;
        const PanelRange &range;
        const Pack *place;          /* of row `start` */
        int32_t start, begin, stop; /* rows begin .. stop-1 are in the stage */
        int column;

        __device__ __forceinline__ Pack from_memory(int32_t row) const
        {
            const Number *const line =
                batch.rhs + range.line * batch.rhs_line + row * batch.rhs_row;
            Pack p;

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                const int safe = min(column + k, range.columns - 1);

                p.at[k] = line[(range.first + safe) * batch.rhs_lane];
            }
            return p;
        }
        __device__ __forceinline__ Pack at(int32_t row) const
        {
            return row >= begin && row < stop ? place[(row - start) * 32]
                                              : from_memory(row);
        }
    };

    struct Reader {
        const PanelStencils &source;
        const Pack *place;
        int32_t start, pads;
        Pack before2, before, own, after; /* of the next row that is asked for */
        Pack behind[2];                   /* the rows after the chunk */
        Pack end[4];
        bool has_ends;

        /* Called for i = 0 .. places - 1. */
        __device__ __forceinline__ Pack operator()(int i)
        {
            Pack rhs = {};

            if (i < pads) {
                return rhs;
            }
            const Pack after2 = i + 2 < places
                                    ? place[(i + 2) * 32]
                                    : behind[i + 2 < places ? 0 : i + 2 - places];

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                rhs.at[k] = source.by.inner(before2.at[k], before.at[k], own.at[k],
                                            after.at[k], after2.at[k]);
            }
            if (has_ends) {
#pragma unroll
                for (int which = 0; which < 4; which++) {
                    rhs = source.by.row_of(which) == start + i ? end[which] : rhs;
                }
            }
            before2 = before;
            before = own;
            own = after;
            after = after2;
            return rhs;
        }
    };

    __device__ __forceinline__ Reader reader(const SharedPanels<Number> &batch,
                                             const PanelTeams<Number> &t,
                                             const PanelChunk<Number> &chunk,
                                             const TeamPlace &at, int32_t group_start,
                                             int64_t panel, const Pack *place) const
    {
        const PanelRange range = batch.range_of(panel);
        const int32_t begin = chunk.start + chunk.pads, stop = chunk.start + places;
        const int32_t group_stop =
            chunk.start + (PANEL_CHUNKS - at.warp) * places; /* row after the group */
        const Rows rows = {batch,
                           range,
                           place,
                           chunk.start,
                           group_start,
                           group_stop,
                           at.lane * Pack::count};
        Reader r = {*this, place, chunk.start, chunk.pads, {}, {}, {}, {}, {}, {}, false};

        if (begin >= 2) {
            r.before2 = rows.at(begin - 2);
        }
        if (begin >= 1) {
            r.before = rows.at(begin - 1);
        }
        r.own = place[chunk.pads * 32];
        if (begin + 1 < t.rows) {
            r.after = rows.at(begin + 1);
        }
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (stop + k < t.rows) {
                r.behind[k] = rows.at(stop + k);
            }
        }
        r.has_ends = begin < Weights::ends || stop > t.rows - Weights::ends;
        if (r.has_ends) {
#pragma unroll
            for (int which = 0; which < 4; which++) {
                const int32_t row = by.row_of(which);

                if (row >= begin && row < stop) {
                    r.end[which] = end_of(rows, which);
                }
            }
        }
        return r;
    }

  private:
    __device__ __forceinline__ Pack end_of(const Rows &rows, int which) const
    {
        const Pack own = rows.at(by.row_of(which));
        Pack result = {};

        by.each_point(which, [&](Number weight, int32_t row) {
            const Pack value = rows.at(row);

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
