/* panel_stencils.cuh - panels whose right-hand sides are differences of the rows in memory
 * (differences.cuh): they replace the rows in a stage before it is reduced. Blocks read rows of
 * other blocks in memory: x must be elsewhere.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_STENCILS_CUH
#define PS_CUDA_LINES_PANELS_PANEL_STENCILS_CUH

#include "lines/differences.cuh"
#include "lines/panels/panel.cuh"

namespace pysolvers::panels {

template <typename Number> struct PanelStencils {
    static constexpr bool makes_rows = true;
    static constexpr int places = panel_places<Number>;
    using Pack = PanelPack<Number>;
    using Around = PanelSurroundings<Number>;
    using Weights = lines::Differences<Number>;
    static constexpr int ends = Weights::ends;
    Weights by;
    bool is_ring;

    /* The weights of ends are in shared memory: a load from the memory of parameters that misses
     * its cache waits behind the copies of panels. */
    __device__ __forceinline__ void begin(PanelGroup<Number> &group) const
    {
        static_assert(Weights::most <= 4 * PANEL_CHUNKS &&
                          PS_DIFFERENCE_SECOND <= PANEL_CHUNKS,
                      "both rows have room");
        const int k = static_cast<int>(threadIdx.x);

        if (k < by.points[0]) {
            group.spare(k) = by.end[0][k];
        }
        if (k < by.points[1]) {
            group.other_spare(k) = by.end[1][k];
        }
    }

    template <typename Request>
    __device__ __forceinline__ void
    make(const Around &around, PanelGroup<Number> &group, int64_t panel, Pack *place,
         const PanelAhead<Number> &ahead, const Request &request_next) const
    {
        const PanelRange range = around.batch.range_of(panel);
        const bool has_rows = around.chunk.has_rows();
        const bool has_ends = has_rows && !is_ring &&
                              (around.begin < ends || around.stop > around.rows - ends);
        const int from = around.begin < ends ? 0 : ends;
        Pack before[2] = {}, behind[2] = {}, end[ends] = {};

        if (has_rows) {
#pragma unroll
            for (int k = 0; k < 2; k++) {
                before[k] = ahead.before(around, range, place, k);
                behind[k] = ahead.behind(around, range, place, k);
            }
        }
        if (has_ends) {
#pragma unroll
            for (int k = 0; k < ends; k++) {
                end[k] = end_of(around, group, range, place, from + k);
            }
        }
        __syncthreads();
        request_next();
        if (has_rows && by.is_even()) {
            sweep<true>(around.chunk.pads, place, before, behind);
        }
        else if (has_rows) {
            sweep<false>(around.chunk.pads, place, before, behind);
        }
        if (has_ends) {
#pragma unroll
            for (int k = 0; k < ends; k++) {
                const int32_t row = by.row_of(from + k);

                if (row >= around.begin && row < around.stop) {
                    place[(row - around.chunk.start) * 32] = end[k];
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

    __device__ __forceinline__ Pack end_of(const Around &around,
                                           PanelGroup<Number> &group,
                                           const PanelRange &range, const Pack *place,
                                           int which) const
    {
        const bool is_first = (which & 1) == 0, at_last = which >= ends;
        const Pack own = around.at(range, place, by.row_of(which));
        const int count = is_first ? by.points[0] : by.points[1];
        Pack result = {};

#pragma unroll 1
        for (int k = 0; k < count; k++) {
            const Number weight = is_first ? group.spare(k) : group.other_spare(k);
            const Pack value = around.at(range, place, at_last ? around.rows - 1 - k : k);

#pragma unroll
            for (int j = 0; j < Pack::count; j++) {
                result.at[j] += weight * (value.at[j] - own.at[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < Pack::count; j++) {
            result.at[j] = at_last ? by.sign * result.at[j] : result.at[j];
        }
        return result;
    }
};

} // namespace pysolvers::panels

#endif
