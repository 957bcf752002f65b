/* decay.cuh - the join of units of a system that hardly depend on each other.
 *
 * The last unknowns of the units of a system satisfy
 *
 *   y_i + l_i y_{i-1} + u_i y_{i+1} = g_i
 *
 * where l and u decay with the number of rows of a unit if these rows are dominant. If |l_i| + |u_i| is
 * at most 2^-8 in all units, sweeps
 *
 *   y_i := g_i - l_i y_{i-1} - u_i y_{i+1}
 *
 * (Jacobi iteration) make the error smaller by this factor at least, and the system is joined as soon as no
 * unknown changes by more than one unit of its rounding. The numbers are exact to rounding then, also those
 * of a system whose unknowns differ by orders of magnitude. Otherwise the system is not joined here, but by
 * parallel cyclic reduction (levels.cuh).
 *
 * For blocks of 2 a sweep has 16 operations and the exchange of 4 numbers, a step of cyclic reduction
 * 150 and 20, with an inverse. Whether a system is joined here does not depend on other systems of its warp.
 */
#ifndef PS_CUDA_LINES_JOIN_DECAY_CUH
#define PS_CUDA_LINES_JOIN_DECAY_CUH

#include "lines/join/levels.cuh"

namespace pysolvers::join {

/* What the warps of a system exchange, in shared memory. */
template <typename Number, int WARPS> struct DecayExchange {
    Spike<Number> first[WARPS];
    /* the unknowns of the first and of the last unit of a warp, of two sweeps */
    ValueOf<Number> front[2][WARPS], back[2][WARPS];
};

/* Both joins of the systems of a block, of which one has the memory at a time. */
template <typename Number> union JoinExchange {
    WarpExchange<Number> levels;
    DecayExchange<Number, 256 / sizeof(Number)> decay;
};

/* Whether the numbers are the same up to a unit of rounding; false for NaN. */
template <typename Real, int COUNT>
__device__ __forceinline__ bool
is_near(const Vector<Real, COUNT> &a, const Vector<Real, COUNT> &b)
{
    bool is = true;

#pragma unroll
    for (int p = 0; p < COUNT; p++) {
        is = is && fabs(a.at[p] - b.at[p]) <= eps_of<Real> * fabs(a.at[p]);
    }
    return is;
}

/* The units of the systems of a warp, one for each lane; with HAS_WARPS a system may have several warps,
 * and is then the only one of its block. */
template <typename Number, int ROWS, bool HAS_WARPS> struct DecayingUnits {
    using Value = ValueOf<Number>;
    static constexpr int most_sweeps = 6;
    const Shape &shape;
    const ThreadPlace<ROWS> &self;
    const bool is_idle; /* without a unit */
    JoinExchange<Number> *const shared;
    Ends<Number> ends; /* of the unit */

    /* Find the ends; returns whether the system of this lane is joined. Called by all threads of
     * the system, without divergence. */
    __device__ __forceinline__ bool join(const Segment<Number> &s, bool is_definite)
    {
        const Group &group = self.group;
        const bool is_first = group.i == 0, is_last = group.i + 1 == group.count;
        const bool has_left = !is_idle && (!is_first || (has_warps() && self.warp > 0));
        const bool has_right =
            !is_idle && (!is_last || (has_warps() && self.warp + 1 < shape.warps));
        const int left_lane = group.away(-1, has_left && !is_first),
                  right_lane = group.away(1, has_right && !is_last);
        const Number none(0);
        Spike<Number> next = shuffle(s.first, right_lane);

        if (has_warps()) {
            if (is_first) {
                shared->decay.first[self.warp] = s.first;
            }
            __syncthreads();
            if (has_right && is_last) {
                next = shared->decay.first[self.warp + 1];
            }
        }
        FastReciprocal<Number> inverter;
        const Number c = has_right ? s.c : none;
        const Number p = inverter.invert(is_idle ? Number(1) : s.b - c * next.l, 0);
        const Value g = p * (s.d - c * next.g);
        const Number l = has_left ? p * s.a : none, u = p * -(c * next.u);
        const bool decays = norm_of(l) + norm_of(u) <= eps_of_sweep &&
                            inverter.in_safe_range() &&
                            (!is_definite || inverter.is_definite);

        ends = {Value(0), g};
        publish(g, 0, is_first, is_last);

        const bool may_be_joined = of_system(decays);
        bool is_joined = false;

#pragma unroll 1
        for (int k = 0; k < most_sweeps; k++) {
            if (__all_sync(all_lanes, is_joined || !may_be_joined)) {
                break;
            }
            Value left = shuffle(all_lanes, ends.y, left_lane),
                  right = shuffle(all_lanes, ends.y, right_lane);

            if (has_warps()) {
                if (has_left && is_first) {
                    left = shared->decay.back[k % 2][self.warp - 1];
                }
                if (has_right && is_last) {
                    right = shared->decay.front[k % 2][self.warp + 1];
                }
            }
            const Value y = g - l * left - u * right;
            const bool is_same = is_near(y, ends.y);

            publish(y, k + 1, is_first, is_last);
            if (!is_joined) {
                ends = {has_left ? left : Value(0), y};
            }
            is_joined = may_be_joined && (of_system(is_same) || is_joined);
        }
        return is_joined;
    }

  private:
    static constexpr ElementOf<Number> eps_of_sweep = ElementOf<Number>(1) / 256;

    __device__ __forceinline__ bool has_warps() const
    {
        return HAS_WARPS && shape.warps > 1;
    }
    /* Whether `is` holds in all units of the system of this lane; a barrier of its warps. */
    __device__ __forceinline__ bool of_system(bool is) const
    {
        if (has_warps()) {
            return __syncthreads_and(is || is_idle) != 0;
        }
        return (__ballot_sync(all_lanes, is || is_idle) & self.members) == self.members;
    }
    /* Before sweep k. */
    __device__ __forceinline__ void publish(const Value &y, int k, bool is_first,
                                            bool is_last) const
    {
        if (has_warps()) {
            if (is_first) {
                shared->decay.front[k % 2][self.warp] = y;
            }
            if (is_last) {
                shared->decay.back[k % 2][self.warp] = y;
            }
        }
    }
};

/* The ends of a unit, and whether a pivot of its system is bad. */
template <typename Number> struct JoinedEnds {
    Ends<Number> ends;
    bool is_bad;
};

/* The same by parallel cyclic reduction. Not inlined, so that its registers are those of rows without it. */
template <typename Number, int ROWS, bool HAS_WARPS>
__device__ __noinline__ JoinedEnds<Number>
joined_by_levels(const Shape &shape, bool is_idle, bool is_definite,
                 const Segment<Number> own, JoinExchange<Number> *shared)
{
    ThreadPlace<ROWS> self(shape, 0);
    Levels<Number, ROWS, true> levels;
    Ends<Number> ends;

    if (is_idle) {
        self.clear();
    }
    levels.own = own;
    levels.bad_pivot.is_definite = is_definite;
    if constexpr (HAS_WARPS) {
        ends = levels.join_system(shape, self, false, shared->levels);
    }
    else {
        ends = levels.join_system(shape, self, false);
    }
    return {ends, levels.bad_pivot.row != BadPivot::none};
}

/* The ends of the unit of this lane in a whole system: by sweeps, or, if they do not join all systems of a
 * warp, or of a block whose system has several warps, by levels. */
template <typename Number, int ROWS, bool HAS_WARPS>
__device__ __forceinline__ JoinedEnds<Number>
joined(const Shape &shape, const ThreadPlace<ROWS> &self, bool is_idle, bool is_definite,
       const Segment<Number> &own, JoinExchange<Number> *shared)
{
    DecayingUnits<Number, ROWS, HAS_WARPS> units = {shape, self, is_idle, shared, {}};
    const bool is_joined = units.join(own, is_definite);

    if (__all_sync(all_lanes, is_joined || is_idle)) {
        return {units.ends, false};
    }
    if constexpr (HAS_WARPS) {
        if (shape.warps > 1) {
            __syncthreads(); /* the unknowns of the last sweep have been read */
        }
    }
    const JoinedEnds<Number> found = joined_by_levels<Number, ROWS, HAS_WARPS>(
        shape, is_idle, is_definite, own, shared);

    return is_joined ? JoinedEnds<Number>{units.ends, false} : found;
}

} // namespace pysolvers::join

#endif
