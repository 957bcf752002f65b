/* pivoted_tree.cuh - the groups of a tile, joined two by two.
 *
 * Leaf c of system s is a chunk, or a group from another tile. The groups c and c +
 * reach become one for reach = 1, 2, 4, ...: a binary tree whose shape depends on c
 * alone, so that a tile of a power of two leaves is a part of the tree of the whole
 * system, and a system has the same solution however it is cut. A lane has the group of a
 * leaf; warps join the groups of their lanes by themselves, and the first warp of a
 * system those of warps. On the way down each leaf goes its own way through the joints,
 * and meets no other.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_TREE_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_TREE_CUH

#include "device/cluster.cuh"
#include "lines/pivoted/pivoted_joints.cuh"

namespace pysolvers::pivoted {

using namespace runtime;

/* Words of a leaf: a group, or the joint with the group before it. */
enum { PIVOT_GROUP_WORDS = 12 };

/* What one launch does with its tiles. */
enum PivotPass {
    PIVOT_SOLVE,    /* a tile holds whole systems */
    PIVOT_EXCHANGE, /* the tiles of a system are those of the blocks of a cluster */
    PIVOT_REDUCE,   /* tiles become groups in the workspace */
    PIVOT_FINISH,   /* x at the ends of all tiles is known */
    PIVOT_CHECK     /* so it is: x of doubtful systems is judged, and not stored */
};

/* A tile that is a part of its systems: its place in them, and groups and x at the ends
 * of tiles, from the tile's first system on. */
template <typename Number> struct PivotOutside {
    PivotPass pass;
    int segment, segments;
    Number *groups;
    const Number *ends;
};

/* The word where a leaf begins. Eight leaves at a distance of one or two lie in different
 * banks: a leaf is an odd multiple of a power of two units of 16 bytes, with a step of
 * one where these multiples come around. */
template <typename Number>
__host__ __device__ constexpr int
pivot_leaf_place(int leaf)
{
    constexpr int unit = 16 / sizeof(Number);

    return leaf * PIVOT_GROUP_WORDS + (leaf >> (sizeof(Number) == 4   ? 3
                                                : sizeof(Number) == 8 ? 2
                                                                      : 1)) *
                                          unit;
}

template <typename Number> struct PivotTree {
    Number *data;
    int stride; /* leaves from one system to the next */
    int leaves; /* of a system in use, <= stride */
    int *state; /* PivotState of each system */

    /* Leaf `leaf` as what is there: a group, a joint, or x in the first of a system. */
    template <typename Item> __device__ __forceinline__ Item &at(int leaf) const
    {
        return *reinterpret_cast<Item *>(data + pivot_leaf_place<Number>(leaf));
    }
    /* Any thread of a system may say so. */
    __device__ __forceinline__ void doubt(int system) const
    {
        state[system] = PIVOT_DOUBTFUL;
    }
};

/* The group of all leaves of a system: its x, and what is around it, takes the place of
 * the first leaf, or in PIVOT_REDUCE the group goes to the workspace. */
template <typename Number>
__device__ __forceinline__ void
close_tree(const PivotTree<Number> &t, int system, const PivotGroup<Number> &g,
           const PivotOutside<Number> &o)
{
    const int64_t tiles = static_cast<int64_t>(system) * o.segments;
    PivotAround<Number> x = {};

    if (o.pass == PIVOT_REDUCE) {
        *reinterpret_cast<PivotGroup<Number> *>(o.groups + (tiles + o.segment) *
                                                               PIVOT_GROUP_WORDS) = g;
        return;
    }
    if (o.pass != PIVOT_FINISH && o.pass != PIVOT_CHECK) {
        if (solve_group(g, x.first, x.last)) {
            t.doubt(system);
        }
        x.left = x.last;
        x.right = x.first;
    }
    else {
        const Number *const ends = o.ends + 2 * tiles;
        const int before = o.segment > 0 ? o.segment : o.segments;
        const int behind = o.segment < o.segments - 1 ? o.segment + 1 : 0;
        x = {ends[2 * before - 1], ends[2 * o.segment], ends[2 * o.segment + 1],
             ends[2 * behind]};
    }
    t.template at<PivotAround<Number>>(system * t.stride) = x;
}

__device__ __forceinline__ short2
wider(short2 a, short2 b)
{
    return make_short2(max(a.x, b.x), max(a.y, b.y));
}

__device__ __forceinline__ short2
shuffle(short2 a, int lane)
{
    const unsigned both = __shfl_sync(
        all_lanes, static_cast<unsigned short>(a.x) | static_cast<unsigned>(a.y) << 16,
        lane);

    return make_short2(static_cast<short>(both & 0xffff), static_cast<short>(both >> 16));
}

/* Join the groups of lanes, one a lane: that of `rank` of `count` in the system that
 * begins with leaf `base` is of `step` leaves. The lanes of the first and the last group
 * of each half of the tree do it. All lanes of a warp take part; those that are not
 * `active` have no group. Rank 0 gets the group of all. Returns whether it is doubtful.
 */
template <typename Number>
__device__ __forceinline__ bool
join_lanes(const PivotTree<Number> &t, int base, int rank, int count, int step,
           bool active, PivotGroup<Number> &g)
{
    const int first = threadIdx.x % 32 - rank; /* the lane of rank 0 */
    const bool left = rank % 2 == 0 && rank != count - 1;
    PivotEdge<Number> far = edge_of(g, left), near = edge_of(g, !left);
    short2 scales = g.scales;
    bool doubtful = false;

    if (count == 1) {
        return false;
    }
    for (int reach = 1; reach < count; reach *= 2) {
        const int begin = rank & -2 * reach, middle = begin + reach;
        const int end = min(begin + 2 * reach, count) - 1;
        const PivotEdge<Number> a = shuffle(near, first + middle - 1);
        const PivotEdge<Number> b = shuffle(near, first + middle);

        scales = wider(scales, shuffle(scales, first + min(rank + reach, count - 1)));

        if (active && middle < count && (rank == begin || rank == end)) {
            auto &joint = t.template at<PivotJoint<Number>>(base + middle * step);
            const PivotHalf<Number> half = join_groups(left, a, b, far);

            near = far;
            doubtful = doubtful || half.doubtful;
            (left ? joint.left : joint.right) = half.side;
            if (left) {
                joint.rhs = half.rhs;
                joint.next = half.next;
            }
        }
    }
    g = group_of(far, shuffle(far.side, first + count - 1), scales);
    return doubtful;
}

/* Where the blocks of a cluster join the groups of their tiles, each for itself; the
 * places are those of two rounds in turn. */
template <typename Number> struct PivotExchange {
    PivotTree<Number> tree; /* a leaf a block */
    Arrivals *arrivals;
    int rank, round;
};

/* What a block tells the others; the length of a leaf at most. */
template <typename Number> struct alignas(16) PivotMessage {
    using word = uint4;
    PivotEnds<Number> upper, lower;
    int state;
    short2 scales;
};

/* The range of the sizes of x on the way to a leaf, of the larger one of two neighbours
 * each. */
struct PivotRange {
    float least, most;

    template <typename Number>
    __device__ __forceinline__ void add(Number before, Number behind)
    {
        const float size = fmaxf(growth_of(before), growth_of(behind));

        least = fminf(least, size);
        most = fmaxf(most, size);
    }
    /* Whether the least is smaller than the most by a factor of 2^20 or more: joints and
     * pivot rows with both of them lose the small one. */
    template <typename Number> __device__ __forceinline__ bool is_wide() const
    {
        constexpr int binade = sizeof(real_of<Number>) == 4 ? 1 << 23 : 1 << 20;

        return __float_as_int(most) - __float_as_int(least) > 20 * binade;
    }
};

/* The way down from a system to one of its leaves: x of its first and last row and
 * around them; `is_wide`, if not null, whether x on this way has a wide range. */
template <typename Number>
__device__ __forceinline__ PivotAround<Number>
pivot_path(const PivotTree<Number> &t, int system, int leaf, bool *is_wide)
{
    const int base = system * t.stride;
    auto x = t.template at<PivotAround<Number>>(base);
    PivotRange range = {};

    if (is_wide != nullptr) {
        range.least = range.most = fmaxf(growth_of(x.first), growth_of(x.last));
    }
    for (int reach = t.leaves > 1 ? 1 << (31 - __clz(t.leaves - 1)) : 0; reach > 0;
         reach /= 2) {
        const int middle = (leaf & -2 * reach) + reach;

        if (middle < t.leaves) {
            Number before, behind;

            substitute_joint(t.template at<PivotJoint<Number>>(base + middle), x, before,
                             behind);
            if (is_wide != nullptr) {
                range.add(before, behind);
            }
            const bool second = leaf >= middle;
            x.left = second ? before : x.left;
            x.first = second ? behind : x.first;
            x.last = second ? x.last : before;
            x.right = second ? x.right : behind;
        }
    }
    if (is_wide != nullptr) {
        *is_wide = range.is_wide<Number>();
    }
    return x;
}

/* From the group of a tile, in the first lane of a warp, to x of the tile: blocks send
 * each other their groups, and all do the same with them. */
template <typename Number>
__device__ __forceinline__ void
pivot_exchange_sums(const PivotTree<Number> &t, const PivotExchange<Number> &at,
                    PivotGroup<Number> &g, const PivotOutside<Number> &o)
{
    using Message = PivotMessage<Number>;
    const int lane = threadIdx.x % 32, ranks = at.tree.leaves, turn = at.round & 1;
    const bool active = lane < ranks;
    Arrivals &arrivals = at.arrivals[turn];
    PivotTree<Number> top = at.tree;

    top.data += turn * pivot_leaf_place<Number>(ranks);
    if (lane == 0) {
        arrivals.expect(ranks * static_cast<unsigned>(sizeof(Message)));
        t.template at<PivotGroup<Number>>(0) = g;
    }
    __syncwarp(); /* the group and the state are written */
    if (active) {
        const PivotGroup<Number> &own = t.template at<PivotGroup<Number>>(0);
        const Message message = {own.upper, own.lower, t.state[0], own.scales};
        send(&top.template at<Message>(at.rank), message, arrivals, lane);
    }
    arrivals.wait(at.round >> 1 & 1);
    __syncwarp(); /* the state is read */
    if (active) {
        const Message &message = top.template at<Message>(lane);
        g = {message.upper, message.lower, message.scales};
        if (message.state != PIVOT_FINE) {
            t.doubt(0);
        }
    }
    __syncwarp(); /* messages are read: joints take their places */
    if (join_lanes(top, 0, lane, ranks, 1, active, g)) {
        t.doubt(0);
    }
    __syncwarp(); /* joints are written */
    if (lane == 0) {
        close_tree(top, 0, g, o);
    }
    __syncwarp(); /* x of the system is written */
    if (active) {
        /* Every block looks at the tiles of all, so that all come to the same result. */
        bool is_wide;
        const PivotAround<Number> x = pivot_path(top, 0, lane, &is_wide);

        if (is_wide) {
            t.doubt(0);
        }
        if (lane == at.rank) {
            t.template at<PivotAround<Number>>(0) = x;
        }
    }
}

/* From the groups of leaves to joints and x of the whole systems, in PIVOT_REDUCE to the
 * group of the tile. The leaves of a system are lanes of one warp, or all threads of the
 * block; all of the block take part. */
template <typename Number>
__device__ __forceinline__ void
pivot_tree(const PivotTree<Number> &t, int system, int leaf, bool active,
           PivotGroup<Number> &g, const PivotOutside<Number> &o,
           const PivotExchange<Number> &at)
{
    const int base = system * t.stride, lane = leaf % 32;

    if (t.stride <= 32) {
        if (join_lanes(t, base, leaf, t.leaves, 1, active, g)) {
            t.doubt(system);
        }
        if (active && leaf == 0) {
            close_tree(t, system, g, o);
        }
        __syncwarp(); /* joints and x are written */
        return;
    }
    const int warps = (t.leaves + 31) / 32;
    if (join_lanes(t, leaf - lane, lane, min(t.leaves - leaf + lane, 32), 1, active, g)) {
        t.doubt(0);
    }
    if (lane == 0 && leaf > 0 && active) {
        t.template at<PivotGroup<Number>>(leaf) = g;
    }
    __syncthreads(); /* the groups of warps are written */
    if (leaf < 32) {
        if (leaf > 0 && leaf < warps) {
            g = t.template at<PivotGroup<Number>>(32 * leaf);
        }
        __syncwarp(); /* groups are read: joints take their places */
        if (join_lanes(t, 0, leaf, warps, 32, leaf < warps, g)) {
            t.doubt(0);
        }
        if (o.pass == PIVOT_EXCHANGE) {
            pivot_exchange_sums(t, at, g, o);
        }
        else if (leaf == 0) {
            close_tree(t, 0, g, o);
        }
    }
    __syncthreads(); /* joints and x are written */
}

} // namespace pysolvers::pivoted

#endif
