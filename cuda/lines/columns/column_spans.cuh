/* column_spans.cuh - a level of the partition method in which a lane processes several
 * units.
 *
 * With few units, this saves most of the steps of parallel cyclic reduction and most of
 * the lanes.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_SPANS_CUH
#define PS_CUDA_LINES_COLUMNS_COLUMN_SPANS_CUH

#include "lines/join/driver.cuh"
#include "lines/join/row_sums.cuh"

namespace pysolvers::columns {

using namespace device;
using namespace join;

/* Neighbouring units, SPAN for each lane of a group, the last units in the last lane.
 * Within a lane they are joined one after the other, then lane by lane. */
template <typename Number, int SPAN> struct Spans {
    Chunk<Number, SPAN> chunk;
    Lanes<Number> lanes;

    /* The place of a lane for `count` units, of which the first `hidden` ones consist
     * of pads. */
    struct Place {
        Group group;
        int32_t spare, pads; /* empty slots at the begin of the group, and of the lane */

        __device__ __forceinline__ Place(int32_t count, int32_t hidden, int32_t lane,
                                         int32_t base)
        {
            const int32_t groups = (count + SPAN - 1) / SPAN;

            group = {lane, groups, base, 1};
            spare = groups * SPAN - count;
            front = spare + hidden;
            pads = min(max(front - SPAN * min(lane, groups - 1), 0), SPAN);
        }
        /* The unit in slot j of the lane; negative if there is none. */
        __device__ __forceinline__ int32_t unit(int j) const
        {
            return SPAN * min(group.i, group.count - 1) + j - spare;
        }
        __device__ __forceinline__ int32_t lane_of(int32_t unit) const
        {
            return group.lane_of((unit + spare) / SPAN);
        }
        __device__ __forceinline__ int first_lane() const
        {
            return front / SPAN;
        }

      private:
        int32_t front;
    };

    /* Reduce; get(u) is the segment of unit u, row(u) the row of its last unknown.
     * Returns the segment of all units in all lanes. */
    template <typename Get, typename RowOf, typename Inverter>
    __device__ __forceinline__ Segment<Number>
    reduce(const Place &place, const Get &get, const RowOf &row, Inverter &inverter)
    {
        Segment<Number> unit[SPAN];

#pragma unroll
        for (int j = 0; j < SPAN; j++) { /* all segments are read before one is used */
            unit[j] = get(max(place.unit(j), 0));
        }
        Spike<Number> front = own_spike<Number>();
        const auto rows = [&](int j) {
            const Segment<Number> &s = unit[j];
            const Spike<Number> next = unit[j < SPAN - 1 ? j + 1 : j].first;
            const bool is_last = j == SPAN - 1;
            Row<Number> row = is_last ? s.row() : s.row_before(next);
            if (j == place.pads) {
                front = s.first;
            }
            if (j < place.pads) {
                row = copy_row<Number>();
            }
            return row;
        };
        struct Named {
            Inverter &inverter;
            const RowOf &row;
            const Place &place;
            __device__ __forceinline__ Number invert(Number pivot, int32_t j)
            {
                return inverter.invert(pivot, row(place.unit(j)));
            }
        } named = {inverter, row, place};
        Segment<Number> s = chunk.eliminate(rows, 0, place.pads, named);

        const Spike<Number> y = s.first;
        s.first = front.through(y);
        lanes.reduce(place.group, s, row(place.unit(SPAN - 1)), inverter);
        return lanes.whole(place.group, s, place.first_lane());
    }

    /* From the ends of all units to y of each unit: put(u, y). */
    template <typename Put>
    __device__ __forceinline__ void
    substitute(const Place &place, const Ends<Number> &all, const Put &put) const
    {
        const Ends<Number> own = ends_of_lane(lanes, place.group, all);

        chunk.substitute(own.y_left, own.y, [&](int j, const ValueOf<Number> &value) {
            if (place.unit(j) >= 0) {
                put(place.unit(j), value);
            }
        });
    }
};

} // namespace pysolvers::columns

#endif
