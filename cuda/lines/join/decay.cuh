/* decay.cuh - the join of the units of whole systems, which depend on each other less the more rows a unit has.
 *
 * The last unknowns of the units of a system satisfy
 *
 *   y_i + l_i y_{i-r} + u_i y_{i+r} = g_i,   r = 1
 *
 * where l and u decay with the number of rows of a unit if these rows are dominant. A step of parallel cyclic
 * reduction (Hockney and Jesshope 1981) doubles r, with p_i = (1 - l_i u_{i-r} - u_i l_{i+r})^-1:
 *
 *   g_i := p_i (g_i - l_i g_{i-r} - u_i g_{i+r}),  l_i := -p_i l_i l_{i-r},  u_i := -p_i u_i u_{i+r}
 *
 * As soon as |l_i| + |u_i| is at most 2^-8 in all units of a system, sweeps
 *
 *   y_i := g_i - l_i y_{i-r} - u_i y_{i+r}
 *
 * (Jacobi iteration) make the error smaller by at least this factor, and the system is joined when no unknown
 * changes by more than one unit of its rounding. The unknowns are then exact to rounding, also in a system in
 * which they differ by orders of magnitude. A system that six sweeps do not join is reduced until l and u are
 * zero. How a system is joined does not depend on other systems.
 *
 * For blocks of 2 a sweep has 16 operations and reads 4 numbers of other units, a step of cyclic reduction 150 and
 * 20, with an inverse. Stable for block diagonally dominant and for definite matrices. A system is bad if a
 * pivot is.
 *
 * Systems of a warp or of a block are joined by ReducingUnits, in one loop, whose kernels have 170 registers and no
 * stack in place of 240 and 192 bytes with a second join by levels.cuh: 256, 1000 and 4096 contiguous rows of five
 * diagonals in float64 have of the speed of a copy 0.87, 0.75 and 0.67 in place of 0.85, 0.72 and 0.66 if they are
 * dominant, and 0.77, 0.58 and 0.48 in place of 0.65, 0.49 and 0.47 if units depend on each other over many rows
 * (H200). Systems of a cluster try sweeps at once and are otherwise joined by levels.cuh: with steps of cyclic
 * reduction through the memory of other blocks 1000, 2048 and 4096 neighbouring rows of float32 have 0.44, 0.45 and
 * 0.38 in place of 0.51, 0.48 and 0.37 to 0.41, and 0.13 to 0.18 if they are not dominant. ClusterExchange lets
 * blocks of a cluster have parts of neighbouring systems: 2000 systems of 1000 rows 0.34 in place of 0.16, of 256
 * rows 0.31 in place of 0.13 in one block each.
 */
#ifndef PS_CUDA_LINES_JOIN_DECAY_CUH
#define PS_CUDA_LINES_JOIN_DECAY_CUH

#include "device/cluster.cuh"
#include "lines/join/levels.cuh"

namespace pysolvers::join {

/* The ends of a unit, and whether its system is bad. */
template <typename Number> struct JoinedEnds {
    Ends<Number> ends;
    bool is_bad;
};

/* What the blocks of a cluster exchange by sweeps. */
template <typename Number, int SYSTEMS> struct DecayExchange {
    Spike<Number> first[SYSTEMS];
    /* the unknowns of the first and of the last unit of a block, of two sweeps */
    ValueOf<Number> front[2][SYSTEMS], back[2][SYSTEMS];
};

/* The exchange of the blocks of a cluster, which have up to SYSTEMS systems. System s is closed by block
 * s % blocks. */
template <typename Number, int SYSTEMS> struct ClusterExchange {
    static constexpr int systems = SYSTEMS;
    struct Part {
        Segment<Number> unit;
        bool is_bad;
    };
    union {
        Part parts[SYSTEMS +
                   most_cluster_blocks]; /* of the systems that this block closes */
        DecayExchange<Number, SYSTEMS> decay;
    };
    /* at the ends of the rows of this block */
    JoinedEnds<Number> ends[SYSTEMS];
    /* of each block, whether a system decays, or has settled */
    alignas(16) uint8_t votes[2][SYSTEMS][most_cluster_blocks];

    /* Called by all threads before the first join. */
    __device__ __forceinline__ void begin()
    {
        for (int i = threadIdx.x; i < 2 * SYSTEMS * most_cluster_blocks;
             i += blockDim.x) {
            (&votes[0][0][0])[i] = 1;
        }
        cluster_sync();
    }
    __device__ __forceinline__ bool has_all(int parity, int system) const
    {
        const uint4 all = *reinterpret_cast<const uint4 *>(
            votes[parity][system < SYSTEMS ? system : 0]);

        return system >= SYSTEMS || (all.x & all.y & all.z & all.w) == 0x01010101u;
    }
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

/* Sweeps of a system, at most, and the norm of l and u up to which they are tried. */
static constexpr int most_sweeps = 6;
template <typename Real> static constexpr Real most_norm = Real(1) / 256;

/* What a unit exchanges with those of other warps. */
template <typename Number> struct alignas(16) UnitSlot {
    Spike<Number> y;
    alignas(2 * sizeof(ElementOf<Number>)) ValueOf<Number> value[2]; /* of two sweeps */
};

/* The slots of the units of a system that several warps have, `pitch` bytes from one to the next. */
template <typename Number> struct UnitSlots {
    char *memory;
    int pitch;

    __device__ __forceinline__ UnitSlot<Number> &at(int unit) const
    {
        return *reinterpret_cast<UnitSlot<Number> *>(memory + unit * pitch);
    }
};

/* Inverts the pivots of units in the range of the fast reciprocal; others are bad. */
template <typename Number> struct FastPivots {
    bool is_definite; /* a pivot that is not positive definite is bad */

    __device__ __forceinline__ Number invert(const Number &pivot, bool *is_good) const
    {
        FastReciprocal<Number> inverter;
        const Number inverse = inverter.invert(pivot, 0);

        *is_good = inverter.in_safe_range() && (!is_definite || inverter.is_definite);
        return inverse;
    }
};

/* The units of the systems of a warp, or, if IS_BLOCK, of the only system of a block of several warps, one for
 * each lane. */
template <typename Number, int ROWS, bool IS_BLOCK> struct ReducingUnits {
    using Value = ValueOf<Number>;
    using Real = ElementOf<Number>;
    const ThreadPlace<ROWS> &self;
    const bool is_idle;     /* this lane has no unit */
    const bool are_several; /* warps of a system */
    const int unit, count;  /* of the system */
    const UnitSlots<Number> slots;
    Ends<Number> ends;
    bool is_bad; /* the system */

    __device__ __forceinline__ ReducingUnits(const Shape &shape,
                                             const ThreadPlace<ROWS> &place, bool idle,
                                             const UnitSlots<Number> &memory)
        : self(place), is_idle(idle), are_several(IS_BLOCK && shape.warps > 1),
          unit(are_several ? self.warp * shape.lanes + self.group.i : self.group.i),
          count(are_several ? shape.warps * shape.lanes : self.group.count), slots(memory)
    {
    }

    /* Find the ends, and whether the system is bad. Called by all threads of the block without
     * divergence. */
    __device__ __forceinline__ void join(const Segment<Number> &s, bool is_definite,
                                         bool is_bad_unit)
    {
        const FastPivots<Number> pivots = {is_definite};
        const Number none(Real(0)), one(Real(1));
        int reach = 1, most_reach = 1, k = 0;
        bool is_good = true;
        Votes joined = 0;
        Spike<Number> y;

        put(s.first);
        {
            const Spike<Number> next = spike_of(s.first, 1);
            const Number c = has(1) ? s.c : none;
            const Number p =
                pivots.invert(is_idle ? one : less_product(s.b, c, next.l), &is_good);

            y = {p * less_product(s.d, c, next.g), has(-1) ? p * s.a : none,
                 p * -(c * next.u)};
            is_good = is_good && !is_bad_unit;
        }
        ends.y = y.g;
#pragma unroll 1
        for (Real limit = most_norm<Real>;; limit = 0) {
#pragma unroll 1
            for (;; most_reach *= 2) {
                publish(y.g, 0);
                const Votes reduced =
                    joined | vote(reach >= count ||
                                  (is_good && norm_of(y.l) + norm_of(y.u) <= limit));

                if (is_complete(reduced)) {
                    break;
                }
                put(y);
                const Spike<Number> up = spike_of(y, -reach), down = spike_of(y, reach);
                bool is_own_good = true;
                const Number p =
                    pivots.invert(less_product(less_product(one, y.l, up.u), y.u, down.l),
                                  &is_own_good);

                if (!of_own(reduced)) {
                    is_good = is_good && is_own_good;
                    y = {p * less_product(less_product(y.g, y.l, up.g), y.u, down.g),
                         p * -(y.l * up.l), p * -(y.u * down.u)};
                    reach *= 2;
                }
            }
            if (!of_own(joined)) {
                ends.y = y.g;
            }
            joined |= those_of(reach >= count); /* l and u are zero */
#pragma unroll 1
            for (k = 0; k < most_sweeps && !is_complete(joined); k++) {
                const Value left = value_of(ends.y, -reach, k),
                            right = value_of(ends.y, reach, k);
                const Value value =
                    less_product(less_product(y.g, y.l, left), y.u, right);
                const bool is_same = is_near(value, ends.y);

                if (!of_own(joined)) {
                    ends.y = value;
                }
                publish(ends.y, k + 1);
                joined |= vote(is_same);
            }
            if (limit == 0 || is_complete(joined)) {
                break;
            }
        }
        const Value left = value_of(ends.y, -1, k);

        ends.y_left = has(-1) ? left : Value(Real(0));
        /* units that hardly depend on each other are good */
        is_bad = (!are_several || most_reach >= count) && !of_own(vote(is_good));
    }

  private:
    /* One bit for each lane of the warp. */
    using Votes = unsigned;

    __device__ __forceinline__ bool of_own(Votes of) const
    {
        return (of >> threadIdx.x % 32 & 1u) != 0;
    }
    /* The lanes whose system has this, which is the same in all its lanes. */
    __device__ __forceinline__ Votes those_of(bool is) const
    {
        return are_several ? (is ? all_lanes : 0) : __ballot_sync(all_lanes, is);
    }
    static __device__ __forceinline__ bool is_complete(Votes of)
    {
        return of == all_lanes;
    }
    /* Whether the system has the unit that is `away` units from this one. */
    __device__ __forceinline__ bool has(int away) const
    {
        return !is_idle && unit + away >= 0 && unit + away < count;
    }
    /* The unit that is `away` units from this one, or, if there is none, this one. */
    __device__ __forceinline__ int other(int away) const
    {
        return has(away) ? unit + away : is_idle ? 0 : unit;
    }
    __device__ __forceinline__ void put(const Spike<Number> &y) const
    {
        if (are_several) {
            if (!is_idle) {
                slots.at(unit).y = y;
            }
            __syncthreads();
        }
    }
    /* y of another unit, or of this one, whose y is given, if there is no such unit. */
    __device__ __forceinline__ Spike<Number> spike_of(const Spike<Number> &y,
                                                      int away) const
    {
        return are_several ? slots.at(other(away)).y
                           : shuffle(y, self.group.away(away, has(away)));
    }
    /* For sweep k of other units. */
    __device__ __forceinline__ void publish(const Value &y, int k) const
    {
        if (are_several && !is_idle) {
            slots.at(unit).value[k % 2] = y;
        }
    }
    __device__ __forceinline__ Value value_of(const Value &y, int away, int k) const
    {
        return are_several ? slots.at(other(away)).value[k % 2]
                           : shuffle(all_lanes, y, self.group.away(away, has(away)));
    }
    /* Whether all units of a system agree; a barrier of its warps. */
    __device__ __forceinline__ Votes vote(bool is) const
    {
        is = is || is_idle;
        if (are_several) {
            return __syncthreads_and(is) != 0 ? all_lanes : 0;
        }
        const unsigned lanes = __ballot_sync(all_lanes, is);

        return __ballot_sync(all_lanes, (lanes & self.members) == self.members);
    }
};

/* The part of a system that a block of a cluster has, in one warp. */
template <typename Number, int ROWS, typename Exchange> struct JoinPart {
    const Shape &shape;
    const ThreadPlace<ROWS> &self;
    const bool is_idle; /* this lane has no unit */
    Exchange &shared;

    __device__ __forceinline__ bool has_left() const
    {
        return !is_idle && (self.group.i > 0 || self.block > 0);
    }
    __device__ __forceinline__ bool has_right() const
    {
        return !is_idle &&
               (self.group.i + 1 < self.group.count || self.block + 1 < shape.blocks);
    }
    /* Whether the unit is the first, or the last, of its part, and the other one is in another
     * block. */
    __device__ __forceinline__ bool is_front() const
    {
        return self.group.i == 0 && has_left();
    }
    __device__ __forceinline__ bool is_back() const
    {
        return self.group.i + 1 == self.group.count && has_right();
    }
    /* Lanes of the units before and after this one, or this lane. */
    __device__ __forceinline__ int left_lane() const
    {
        return self.group.away(-1, has_left() && self.group.i > 0);
    }
    __device__ __forceinline__ int right_lane() const
    {
        return self.group.away(1, has_right() && self.group.i + 1 < self.group.count);
    }
    /* The exchange of the block that is `away` from this one. */
    __device__ __forceinline__ auto &memory(int away) const
    {
        return in_block(shared, self.block + away).decay;
    }
};

/* The units of the systems of a cluster, one for each lane, that are joined by sweeps. */
template <typename Number, int ROWS, typename Exchange>
struct DecayingUnits : JoinPart<Number, ROWS, Exchange> {
    using Part = JoinPart<Number, ROWS, Exchange>;
    using Value = ValueOf<Number>;
    using Part::self, Part::shape, Part::shared, Part::is_idle;
    Ends<Number> ends; /* of the unit */
    bool is_joined;    /* the system of this lane */
    bool are_joined;   /* all systems of those that go on together */

    __device__ __forceinline__ explicit DecayingUnits(const Part &part) : Part(part)
    {
    }

    /* Find the ends. Called by all threads of the cluster without divergence. */
    __device__ __forceinline__ void join(const Segment<Number> &s, bool is_definite,
                                         bool is_bad)
    {
        const bool has_left = this->has_left(), has_right = this->has_right(),
                   is_front = this->is_front(), is_back = this->is_back();
        const int left_lane = this->left_lane(), right_lane = this->right_lane();
        const Number none(0);
        Spike<Number> next = shuffle(s.first, right_lane);

        if (is_front) {
            this->memory(-1).first[self.slot] = s.first;
        }
        cluster_sync();
        if (is_back) {
            next = shared.decay.first[self.slot];
        }
        FastReciprocal<Number> inverter;
        const Number c = has_right ? s.c : none;
        const Number p = inverter.invert(is_idle ? Number(1) : s.b - c * next.l, 0);
        const Value g = p * (s.d - c * next.g);
        const Number l = has_left ? p * s.a : none, u = p * -(c * next.u);
        const bool decays =
            !is_bad && norm_of(l) + norm_of(u) <= most_norm<ElementOf<Number>> &&
            inverter.in_safe_range() && (!is_definite || inverter.is_definite);

        ends = {Value(0), g};
        is_joined = false;
        publish(g, 0, is_front, is_back);
        vote(decays, 0);

        const Votes all = votes;
        const bool may_be_joined = of_own(all);
        Votes joined = 0;

#pragma unroll 1
        for (int k = 0; k < most_sweeps && !is_complete(joined | ~all); k++) {
            Value left = shuffle(all_lanes, ends.y, left_lane),
                  right = shuffle(all_lanes, ends.y, right_lane);

            if (is_front) {
                left = shared.decay.back[k % 2][self.slot];
            }
            if (is_back) {
                right = shared.decay.front[k % 2][self.slot];
            }
            const Value y = g - l * left - u * right;
            const bool is_same = is_near(y, ends.y);

            publish(y, k + 1, is_front, is_back);
            if (!is_joined) {
                ends = {has_left ? left : Value(0), y};
            }
            vote(is_same, k + 1);
            joined |= votes & all;
            is_joined = may_be_joined && of_own(joined);
        }
        are_joined = is_complete(joined);
    }

  private:
    /* The verdicts of the last vote: one bit for each system of the cluster. */
    using Votes = unsigned;
    Votes votes;

    /* Whether the system of this lane has all votes. */
    __device__ __forceinline__ bool of_own(Votes of) const
    {
        return (of >> self.slot % 32 & 1u) != 0;
    }
    static __device__ __forceinline__ bool is_complete(Votes of)
    {
        return of == all_lanes;
    }
    /* `votes` of vote k; a barrier of the cluster. */
    __device__ __forceinline__ void vote(bool is, int k)
    {
        const unsigned lanes = __ballot_sync(all_lanes, is || is_idle);
        const bool is_all = (lanes & self.members) == self.members;

        if (self.lane < shape.lanes && self.slot < Exchange::systems) {
            for (int rank = self.lane; rank < shape.blocks; rank += shape.lanes) {
                in_block(shared, rank).votes[k % 2][self.slot][self.block] = is_all;
            }
        }
        cluster_sync();
        votes = __ballot_sync(all_lanes, shared.has_all(k % 2, threadIdx.x % 32));
    }
    /* For sweep k of the neighbours. */
    __device__ __forceinline__ void publish(const Value &y, int k, bool is_front,
                                            bool is_back) const
    {
        if (is_front) {
            this->memory(-1).front[k % 2][self.slot] = y;
        }
        if (is_back) {
            this->memory(1).back[k % 2][self.slot] = y;
        }
    }
};

/* The unknowns at the ends of the parts that this block closes, one for each lane of its first warp. */
template <typename Number, int SYSTEMS>
__device__ __forceinline__ void
close_parts(const Shape &shape, int32_t block, bool is_definite,
            ClusterExchange<Number, SYSTEMS> &shared)
{
    const int lane = threadIdx.x, blocks = shape.blocks;
    const int systems = (SYSTEMS - block + blocks - 1) / blocks, of = lane / blocks;
    const bool is_there = of < systems;
    const Group group = {is_there ? lane % blocks : blocks, blocks,
                         is_there ? of * blocks : 0, 1};
    const auto &part = shared.parts[is_there ? lane : 0];
    Lanes<Number> parts;
    FastReciprocal<Number> inverter;

    parts.reduce(group, part.unit, 0, inverter);

    BadPivot bad_pivot = {BadPivot::none, is_definite};
    const Ends<Number> all =
        ends_of_system(parts.whole(group, part.unit, 0), false, 0, bad_pivot);
    const Ends<Number> own = ends_of_lane(parts, group, all);
    const bool is_bad = part.is_bad || bad_pivot.row != BadPivot::none ||
                        !inverter.in_safe_range() ||
                        (is_definite && !inverter.is_definite);
    const unsigned bad =
        __ballot_sync(all_lanes, is_bad) >> group.base & (all_lanes >> (32 - blocks));

    if (is_there) {
        in_block(shared, group.i).ends[of * blocks + block] = {own, bad != 0};
    }
}

/* The same as DecayingUnits by parallel cyclic reduction, of systems that may be bad. Not inlined, because
 * its registers would be those of all that surrounds it. */
template <typename Number, int ROWS, typename Exchange>
__device__ __noinline__ JoinedEnds<Number>
joined_by_levels(const Shape &shape, const ThreadPlace<ROWS> self, bool is_definite,
                 bool is_bad, const Segment<Number> own, Exchange &shared)
{
    Levels<Number, ROWS, true> levels;
    JoinedEnds<Number> found;

    levels.own = own;
    levels.bad_pivot.is_definite = is_definite;
    levels.bad_pivot.row = is_bad ? 0 : BadPivot::none;

    const Ends<Number> ends = levels.join_lanes(self, [&](const Segment<Number> &s) {
        const bool has_place = self.slot < Exchange::systems;

        if (has_place && self.lane == 0) {
            in_block(shared, self.slot % shape.blocks)
                .parts[self.slot / shape.blocks * shape.blocks + self.block] = {
                s, levels.bad_pivot.row != BadPivot::none};
        }
        cluster_sync();
        if (threadIdx.x < 32) {
            close_parts(shape, self.block, is_definite, shared);
        }
        cluster_sync();
        found = shared.ends[has_place ? self.slot : 0];
        return found.ends;
    });
    return {ends, found.is_bad};
}

/* The ends of the unit of this lane in a whole system of a cluster, and whether the system is bad: by sweeps,
 * or, if they do not join all systems of the cluster, by levels. A system is bad if one of its units is, or a
 * pivot. */
template <typename Number, int ROWS, typename Exchange>
__device__ __forceinline__ JoinedEnds<Number>
joined_in_cluster(const Shape &shape, const ThreadPlace<ROWS> &self, bool is_idle,
                  bool is_definite, bool is_bad, const Segment<Number> &own,
                  Exchange &shared)
{
    DecayingUnits<Number, ROWS, Exchange> units({shape, self, is_idle, shared});

    units.join(own, is_definite, is_bad);
    if (units.are_joined) {
        return {units.ends, false};
    }
    const JoinedEnds<Number> found =
        joined_by_levels<Number, ROWS>(shape, self, is_definite, is_bad, own, shared);

    return units.is_joined ? JoinedEnds<Number>{units.ends, false} : found;
}

/* As joined_in_cluster(), of systems of a warp, or, if IS_BLOCK, of a block. */
template <typename Number, int ROWS, bool IS_BLOCK>
__device__ __forceinline__ JoinedEnds<Number>
joined(const Shape &shape, const ThreadPlace<ROWS> &self, bool is_idle, bool is_definite,
       bool is_bad, const Segment<Number> &own, const UnitSlots<Number> &slots)
{
    ReducingUnits<Number, ROWS, IS_BLOCK> units(shape, self, is_idle, slots);

    units.join(own, is_definite, is_bad);
    return {units.ends, units.is_bad};
}

} // namespace pysolvers::join

#endif
