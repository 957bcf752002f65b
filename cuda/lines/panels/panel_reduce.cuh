/* panel_reduce.cuh - reduction of the chunks of a panel.
 *
 * Each block publishes the two sums of its group and forms its boundary values as a
 * weighted sum of those of all groups: no block waits for a result of another one. The
 * part of the solution of the chunks that does not depend on the boundary values is
 * computed meanwhile.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_REDUCE_CUH
#define PS_CUDA_LINES_PANELS_PANEL_REDUCE_CUH

#include "lines/panels/panel_exchange.cuh"

namespace pysolvers::panels {

/* Joins the chunks of a panel, for the columns that the exchange assigns to a lane. */
template <typename Number, typename Exchange> struct PanelReducer {
    static constexpr int columns = Exchange::columns, parts = Exchange::parts;
    static constexpr int own_chunks = PANEL_CHUNKS / parts;
    const Exchange &exchange;
    PanelShared<Number> &shared;

    /* After the chunks have been reduced: the sums of the group, in all lanes of a
     * column. */
    __device__ __forceinline__ PanelSums<Number> sum_up(uint32_t round) const
    {
        return sum_over_parts(sum_up_own(round & 1));
    }

    /* y before the group and at its end, from the sums of all groups. */
    __device__ __forceinline__ void poll(uint32_t round) const
    {
        const PanelSums<Number> all = sum_over_parts(exchange.poll(round));

        if (exchange.part == 0) {
            shared.ends[0][exchange.column] = all.first;
            shared.ends[1][exchange.column] = all.d;
        }
    }

    /* y of the chunks without the contribution of the ends of the group, by the first
     * warps, one column per lane; after all lanes have computed their sums. */
    __device__ __forceinline__ void join(uint32_t round) const
    {
        constexpr int pitch = PanelShared<Number>::pitch;
        Number *const chunk = &shared.y[round & 1][1][threadIdx.x];
        Number g(0), y[PANEL_CHUNKS - 1];

        if (threadIdx.x >= panel_columns<Number>) {
            return;
        }
#pragma unroll
        for (int i = 0; i < PANEL_CHUNKS - 1; i++) {
            y[i] = chunk[i * pitch];
        }
#pragma unroll
        for (int i = 0; i < PANEL_CHUNKS - 1; i++) {
            g = y[i] - shared.group.unit[i].m * g;
            y[i] = g;
        }
        g = Number(0);
#pragma unroll
        for (int i = PANEL_CHUNKS - 2; i >= 0; i--) {
            g = y[i] - shared.group.unit[i].u * g;
            chunk[i * pitch] = g;
        }
    }

  private:
    /* The sum over the parts of a column, the same in all its lanes. */
    static __device__ __forceinline__ PanelSums<Number>
    sum_over_parts(PanelSums<Number> s)
    {
#pragma unroll
        for (int reach = columns; reach < 32; reach *= 2) {
            const int other = static_cast<int>(threadIdx.x % 32) ^ reach;

            s.first = s.first + shuffle(all_lanes, s.first, other);
            s.d = s.d + shuffle(all_lanes, s.d, other);
        }
        return s;
    }

    /* The contribution of the chunks of this lane to the sums of the group; replaces d
     * of each chunk by c. */
    __device__ __forceinline__ PanelSums<Number> sum_up_own(int turn) const
    {
        PanelSums<Number> all = {Number(0), Number(0)};

#pragma unroll
        for (int k = 0; k < own_chunks; k++) {
            const int i = exchange.part + k * parts, column = exchange.column;
            const Number first = shared.first[i][column],
                         d = shared.y[turn][i + 1][column];
            const PanelShare<Number> by = shared.group.share[i];
            const PanelUnit<Number> unit = shared.group.unit[i];

            all.first = all.first + by.first.first * first + by.d.first * d;
            all.d = all.d + by.first.d * first + by.d.d * d;
            shared.y[turn][i + 1][column] =
                unit.p * (d - unit.next * shared.first[i + 1][column]);
        }
        return all;
    }
};

} // namespace pysolvers::panels

#endif
