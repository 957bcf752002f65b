/* driver.cuh - from the unit of a thread to the unknowns at its ends, level by level.
 *
 * A level joins neighbouring units: level(unit, next) reduces the units of a group to the unit
 * of the group, calls next(unit of the group), which gives the unknowns at the ends of the
 * group, and returns those at the ends of its own unit. close(unit) is called with the unit of
 * the last level, the whole system or what the caller keeps of it. A level may let a few
 * threads call next: the others get their unknowns from memory, after a barrier.
 *
 * If close gives nothing, no level gives anything: the units are only reduced.
 */
#ifndef PS_CUDA_LINES_JOIN_DRIVER_CUH
#define PS_CUDA_LINES_JOIN_DRIVER_CUH

#include <type_traits>

#include "lines/join/segment.cuh"

namespace pysolvers::join {

/* The unknown before a unit, and its last one. */
template <typename Number> struct Ends {
    ValueOf<Number> y_left, y;
};

template <typename Unit, typename Close>
__device__ __forceinline__ auto
through_levels(const Unit &unit, const Close &close)
{
    return close(unit);
}

template <typename Unit, typename Close, typename Level, typename... Upper>
__device__ __forceinline__ auto
through_levels(const Unit &unit, const Close &close, const Level &level,
               const Upper &...upper)
{
    return level(
        unit, [&](const auto &group) { return through_levels(group, close, upper...); });
}

/* What next(group) gives, passed down to the units by down(ends). */
template <typename Next, typename Unit, typename Down>
__device__ __forceinline__ auto
pass_down(const Next &next, const Unit &group, const Down &down)
{
    if constexpr (std::is_void_v<decltype(next(group))>) {
        next(group);
    }
    else {
        return down(next(group));
    }
}

/* From the ends of a group to those of the unit of this lane. */
template <typename Number>
__device__ __forceinline__ Ends<Number>
ends_of_lane(const Lanes<Number> &level, const Group &group, const Ends<Number> &all)
{
    const ValueOf<Number> last = level.y.at(all.y_left, all.y);
    const ValueOf<Number> before = shuffle(all_lanes, last, group.away(-1, group.i > 0));

    return {group.i > 0 ? before : all.y_left, last};
}

/* The same to those of unit `index`. */
template <typename Number>
__device__ __forceinline__ Ends<Number>
ends_of_unit(const Lanes<Number> &level, const Group &group, int index,
             const Ends<Number> &all)
{
    const ValueOf<Number> last = level.y.at(all.y_left, all.y);
    const ValueOf<Number> before =
        shuffle(all_lanes, last, group.lane_of(index > 0 ? index - 1 : 0));

    return {index > 0 ? before : all.y_left,
            shuffle(all_lanes, last, group.lane_of(index))};
}

/* The ends of a whole system, from its only segment. */
template <typename Number>
__device__ __forceinline__ Ends<Number>
ends_of_system(const Segment<Number> &s, bool periodic, int32_t row, BadPivot &bad_pivot)
{
    const ValueOf<Number> y = close_system(s, periodic, row, bad_pivot);

    return {periodic ? y : ValueOf<Number>(0), y};
}

} // namespace pysolvers::join

#endif
