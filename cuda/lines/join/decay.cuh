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
 * 150 and 20, with an inverse. How a system is joined does not depend on other systems.
 *
 * Measured (five diagonals, dominant, float64, part of a copy, H200): 256, 1000 and 4096 contiguous rows 0.85,
 * 0.72 and 0.66 in place of 0.78, 0.59 and 0.56 by reduction alone; systems that are reduced in the end take longer, 0.65,
 * 0.49 and 0.47. DecayExchange is what sweeps exchange between warps or blocks, in the memory of the exchange of
 * reduction. ClusterExchange lets blocks of a cluster have parts of neighbouring systems: 2000 systems of
 * 1000 rows 0.34 in place of 0.16, of 256 rows 0.31 in place of 0.13 in one block each.
 */
#ifndef PS_CUDA_LINES_JOIN_DECAY_CUH
#define PS_CUDA_LINES_JOIN_DECAY_CUH

#include "device/cluster.cuh"
#include "lines/join/levels.cuh"

namespace pysolvers::join {

/* Where the units of a system are: in one warp; in the warps of a block, which has no other system if
 * these are several; in one warp of each block of a cluster. */
enum class JoinScope { warp, block, cluster };

/* The ends of a unit, and whether its system is bad. */
template <typename Number> struct JoinedEnds {
    Ends<Number> ends;
    bool is_bad;
};

/* What the parts of a system, which are warps or the blocks of a cluster, exchange by sweeps: PLACES is the
 * number of parts, or of systems of a block. */
template <typename Number, int PLACES> struct DecayExchange {
    Spike<Number> first[PLACES];
    /* the unknowns of the first and of the last unit of a part, of two sweeps */
    ValueOf<Number> front[2][PLACES], back[2][PLACES];
};

/* The exchange of the warps of a block, which single warps do not use: both joins, of which one has the
 * memory at a time. */
template <typename Number> union WarpsExchange {
    WarpExchange<Number> levels;
    DecayExchange<Number, 256 / sizeof(Number)> decay;
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

/* The parts of the systems, and what they exchange. */
template <typename Number, int ROWS, JoinScope SCOPE, typename Exchange>
struct JoinParts {
    static constexpr bool is_block = SCOPE == JoinScope::block,
                          is_cluster = SCOPE == JoinScope::cluster;
    const Shape &shape;
    const ThreadPlace<ROWS> &self;
    const bool is_idle; /* this lane has no unit */
    Exchange *const shared;

    __device__ __forceinline__ bool are_several() const
    {
        return (is_block && shape.warps > 1) || is_cluster;
    }
    __device__ __forceinline__ bool has_left() const
    {
        return !is_idle && (self.group.i > 0 || (is_block && self.warp > 0) ||
                            (is_cluster && self.block > 0));
    }
    __device__ __forceinline__ bool has_right() const
    {
        return !is_idle && (self.group.i + 1 < self.group.count ||
                            (is_block && self.warp + 1 < shape.warps) ||
                            (is_cluster && self.block + 1 < shape.blocks));
    }
    /* Whether the unit is the first, or the last, of its part, and the other one is in another
     * part. */
    __device__ __forceinline__ bool is_front() const
    {
        return are_several() && self.group.i == 0 && has_left();
    }
    __device__ __forceinline__ bool is_back() const
    {
        return are_several() && self.group.i + 1 == self.group.count && has_right();
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
    /* The number of the place of the part that is `away` from this one, in memory(away). */
    __device__ __forceinline__ int place() const
    {
        return is_cluster ? self.slot : self.warp;
    }
    __device__ __forceinline__ auto &memory(int away) const
    {
        if constexpr (is_cluster) {
            return in_block(*shared, self.block + away).decay;
        }
        else {
            return shared->decay;
        }
    }
    __device__ __forceinline__ void wait() const
    {
        if (is_cluster) {
            cluster_sync();
        }
        else {
            __syncthreads();
        }
    }
};

/* The units of the systems of a block, one for each lane. */
template <typename Number, int ROWS, JoinScope SCOPE, typename Exchange>
struct DecayingUnits : JoinParts<Number, ROWS, SCOPE, Exchange> {
    using Parts = JoinParts<Number, ROWS, SCOPE, Exchange>;
    using Value = ValueOf<Number>;
    using Parts::is_cluster, Parts::self, Parts::shape, Parts::shared, Parts::is_idle;
    static constexpr int most_sweeps = 6;
    static constexpr ElementOf<Number> most_norm = ElementOf<Number>(1) / 256;
    Ends<Number> ends; /* of the unit */
    bool is_joined;    /* the system of this lane */
    bool are_joined;   /* all systems of those that go on together */

    __device__ __forceinline__ explicit DecayingUnits(const Parts &parts) : Parts(parts)
    {
    }

    /* Find the ends. Called by all threads of the block without divergence, or of the cluster. */
    __device__ __forceinline__ void join(const Segment<Number> &s, bool is_definite,
                                         bool is_bad)
    {
        const bool has_left = this->has_left(), has_right = this->has_right(),
                   is_front = this->is_front(), is_back = this->is_back();
        const int left_lane = this->left_lane(), right_lane = this->right_lane();
        const Number none(0);
        Spike<Number> next = shuffle(s.first, right_lane);

        if (this->are_several()) {
            if (is_front) {
                this->memory(-1).first[before()] = s.first;
            }
            this->wait();
            if (is_back) {
                next = shared->decay.first[this->place()];
            }
        }
        FastReciprocal<Number> inverter;
        const Number c = has_right ? s.c : none;
        const Number p = inverter.invert(is_idle ? Number(1) : s.b - c * next.l, 0);
        const Value g = p * (s.d - c * next.g);
        const Number l = has_left ? p * s.a : none, u = p * -(c * next.u);
        const bool decays = !is_bad && norm_of(l) + norm_of(u) <= most_norm &&
                            inverter.in_safe_range() &&
                            (!is_definite || inverter.is_definite);

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
                left = shared->decay.back[k % 2][this->place()];
            }
            if (is_back) {
                right = shared->decay.front[k % 2][this->place()];
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
    /* The verdicts of the last vote: one bit for each lane of the warp, or for each system of the
     * cluster. */
    using Votes = unsigned;
    Votes votes;

    /* Whether the system of this lane has all votes. */
    __device__ __forceinline__ bool of_own(Votes of) const
    {
        return is_cluster ? (of >> self.slot % 32 & 1u) != 0
                          : (of & self.members) == self.members;
    }
    static __device__ __forceinline__ bool is_complete(Votes of)
    {
        return of == all_lanes;
    }
    /* `votes` of vote k; a barrier of all parts. */
    __device__ __forceinline__ void vote(bool is, int k)
    {
        is = is || is_idle;
        if (SCOPE == JoinScope::block && this->are_several()) {
            votes = __syncthreads_and(is) != 0 ? all_lanes : 0;
            return;
        }
        const unsigned lanes = __ballot_sync(all_lanes, is);

        if constexpr (is_cluster) {
            const bool is_all = (lanes & self.members) == self.members;

            if (self.lane < shape.lanes && self.slot < shared->systems) {
                for (int rank = self.lane; rank < shape.blocks; rank += shape.lanes) {
                    in_block(*shared, rank).votes[k % 2][self.slot][self.block] = is_all;
                }
            }
            cluster_sync();
            votes = __ballot_sync(all_lanes, shared->has_all(k % 2, threadIdx.x % 32));
        }
        else {
            /* all lanes of a system, or none */
            votes = lanes;
            votes = __ballot_sync(all_lanes, (lanes & self.members) == self.members);
        }
    }
    __device__ __forceinline__ int before() const
    {
        return is_cluster ? self.slot : self.warp - 1;
    }
    __device__ __forceinline__ int after() const
    {
        return is_cluster ? self.slot : self.warp + 1;
    }
    /* For sweep k of the neighbours. */
    __device__ __forceinline__ void publish(const Value &y, int k, bool is_front,
                                            bool is_back) const
    {
        if (is_front) {
            this->memory(-1).front[k % 2][before()] = y;
        }
        if (is_back) {
            this->memory(1).back[k % 2][after()] = y;
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
template <typename Number, int ROWS, JoinScope SCOPE, typename Exchange>
__device__ __noinline__ JoinedEnds<Number>
joined_by_levels(const Shape &shape, const ThreadPlace<ROWS> self, bool is_definite,
                 bool is_bad, const Segment<Number> own, Exchange *shared)
{
    Levels<Number, ROWS, true> levels;
    Ends<Number> ends;

    levels.own = own;
    levels.bad_pivot.is_definite = is_definite;
    levels.bad_pivot.row = is_bad ? 0 : BadPivot::none;
    if constexpr (SCOPE == JoinScope::cluster) {
        JoinedEnds<Number> found;

        ends = levels.join_lanes(self, [&](const Segment<Number> &s) {
            const bool has_place = self.slot < Exchange::systems;

            if (has_place && self.lane == 0) {
                in_block(*shared, self.slot % shape.blocks)
                    .parts[self.slot / shape.blocks * shape.blocks + self.block] = {
                    s, levels.bad_pivot.row != BadPivot::none};
            }
            cluster_sync();
            if (threadIdx.x < 32) {
                close_parts(shape, self.block, is_definite, *shared);
            }
            cluster_sync();
            found = shared->ends[has_place ? self.slot : 0];
            return found.ends;
        });
        return {ends, found.is_bad};
    }
    else if constexpr (SCOPE == JoinScope::block) {
        ends = levels.join_system(shape, self, false, shared->levels);
    }
    else {
        ends = levels.join_system(shape, self, false);
    }
    return {ends, levels.bad_pivot.row != BadPivot::none};
}

/* The ends of the unit of this lane in a whole system, and whether the system is bad: by sweeps, or, if they
 * do not join all systems of a warp, of a block or of a cluster, by levels. A system is bad if one of its
 * units is, or a pivot. */
template <typename Number, int ROWS, JoinScope SCOPE, typename Exchange>
__device__ __forceinline__ JoinedEnds<Number>
joined(const Shape &shape, const ThreadPlace<ROWS> &self, bool is_idle, bool is_definite,
       bool is_bad, const Segment<Number> &own, Exchange *shared)
{
    using Units = DecayingUnits<Number, ROWS, SCOPE, Exchange>;
    Units units({shape, self, is_idle, shared});

    units.join(own, is_definite, is_bad);
    if (units.are_joined) {
        return {units.ends, false};
    }
    const JoinedEnds<Number> found = joined_by_levels<Number, ROWS, SCOPE>(
        shape, self, is_definite, is_bad, own, shared);

    return units.is_joined ? JoinedEnds<Number>{units.ends, false} : found;
}

} // namespace pysolvers::join

#endif
