/* pivoted_tree.cuh - the binary tree by which the groups of a tile are joined.
 *
 * Leaf c of a system is a chunk, or the group of another tile. For reach = 1, 2, 4, ...
 * the groups c and c + reach are joined. The tree depends on c only. The tree of a tile
 * whose number of leaves is a power of two is therefore a subtree of that of the whole
 * system, and the solution does not depend on how a system is divided into tiles. Each
 * lane holds the group of one leaf. A warp joins the groups of its lanes, then the first
 * warp of a system joins the groups of the warps. In the substitution each leaf evaluates
 * its own path of joints; leaves need no data of each other.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_TREE_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_TREE_CUH

#include "lines/join/exchange.cuh"
#include "lines/pivoted/pivoted_joints.cuh"

namespace pysolvers::pivoted {

using namespace runtime;
using join::ClusterRounds;

/* Words of a leaf, which holds a group or the joint with the group before it. */
enum { PIVOT_GROUP_WORDS = 12 };

/* The task of a launch. */
enum PivotPass {
    PIVOT_SOLVE,    /* a tile holds whole systems */
    PIVOT_EXCHANGE, /* each block of a cluster holds one tile of a system */
    PIVOT_REDUCE,   /* the groups of tiles are written to the workspace */
    PIVOT_FINISH,   /* x at the ends of all tiles is known; x is stored */
    PIVOT_CHECK     /* the same, but x of doubtful systems is checked and not stored */
};

/* For a tile that holds a part of its systems: the number of this part, and the groups of
 * tiles and x at the ends of tiles, beginning with those of the tile's first system. */
template <typename Number> struct PivotOutside {
    PivotPass pass;
    int segment, segments;
    Number *groups;
    const Number *ends;
};

/* The first word of a leaf. Eight leaves at a distance of one or two use different banks:
 * a leaf has an odd number of 16-byte units, times a power of two, and one unit is left
 * out where the banks would repeat. */
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

    /* The content of a leaf: a group, a joint, or x of the system in its first leaf. */
    template <typename Item> __device__ __forceinline__ Item &at(int leaf) const
    {
        return *reinterpret_cast<Item *>(data + pivot_leaf_place<Number>(leaf));
    }
    /* Mark a system as doubtful; any thread of the system may do this. */
    __device__ __forceinline__ void doubt(int system) const
    {
        state[system] = PIVOT_DOUBTFUL;
    }
};

/* Close a system whose leaves are one group: x at its ends and beyond them replaces the
 * first leaf. In PIVOT_REDUCE the group is written to the workspace instead. */
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

/* Join `count` groups, one for each lane. The lane of `rank` holds a group of `step`
 * leaves of the system whose first leaf is `base`. Each join is computed by the lanes of
 * the first and of the last group that it joins. All lanes of a warp call this function;
 * lanes that are not `active` hold no group. The lane of rank 0 receives the group of all.
 * Returns whether one of the lane's joints is doubtful. */
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

/* The trees by which each block of a cluster joins the groups of all blocks, one for each
 * system of a tile. Two copies of them alternate by round. */
template <typename Number> struct PivotTop {
    PivotTree<Number> tree; /* one leaf for each block */
    ClusterRounds rounds;
    int rank;
    int words;   /* of a copy */
    int systems; /* of the tile of this round */
};

/* What is sent with the two rows of a group. */
struct PivotMark {
    int state;
    short2 scales;
};

/* The message of a block to the others; not longer than a leaf. */
template <typename Number>
using PivotMessage = join::Message<PivotEnds<Number>[2], PivotMark>;

/* The range of the magnitudes of x on the path to a leaf; of each joint the larger of its
 * two unknowns counts. */
struct PivotRange {
    float least, most;

    template <typename Number>
    __device__ __forceinline__ void add(Number before, Number behind)
    {
        const float size = fmaxf(growth_of(before), growth_of(behind));

        least = fminf(least, size);
        most = fmaxf(most, size);
    }
    /* Whether the largest is 2^20 times the smallest or more. A joint or pivot row that
     * contains both has a rounding error that is large relative to the small one. */
    template <typename Number> __device__ __forceinline__ bool is_wide() const
    {
        constexpr int binade = sizeof(real_of<Number>) == 4 ? 1 << 23 : 1 << 20;

        return __float_as_int(most) - __float_as_int(least) > 20 * binade;
    }
};

/* Substitute along the path of joints from the whole system to a leaf. Returns x of the
 * first and last row of the leaf and of the rows next to them. If `is_wide` is not null, it
 * is set to whether x has a wide range on this path. */
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

/* Join the tiles of a cluster: from the group of a system in this block's tile, which the
 * lane of leaf 0 holds, to x at its ends in the tile. Each block sends its groups to all
 * blocks, and all blocks compute the same joins. The lanes of a system are at least as many
 * as the blocks. All threads of the block, or its first warp, call this function. */
template <typename Number>
__device__ __forceinline__ void
pivot_exchange_sums(const PivotTree<Number> &t, const PivotTop<Number> &at, int system,
                    int leaf, PivotGroup<Number> &g, const PivotOutside<Number> &o)
{
    using Message = PivotMessage<Number>;
    const int ranks = at.tree.leaves, base = system * t.stride, top_base = system * ranks;
    const bool there = system < at.systems, active = there && leaf < ranks;
    PivotTree<Number> top = at.tree;

    top.data += at.rounds.turn() * at.words;
    if (threadIdx.x == 0) {
        at.rounds.expect(ranks * at.systems * static_cast<unsigned>(sizeof(Message)));
    }
    if (there && leaf == 0) {
        t.template at<PivotGroup<Number>>(base) = g;
    }
    __syncwarp(); /* the group and the state are written */
    if (active) {
        const PivotGroup<Number> &own = t.template at<PivotGroup<Number>>(base);
        const Message message = {{own.upper, own.lower}, {t.state[system], own.scales}};
        send(&top.template at<Message>(top_base + at.rank), message, at.rounds.now(),
             leaf);
    }
    at.rounds.wait();
    __syncwarp(); /* the state is read */
    if (active) {
        const Message &message = top.template at<Message>(top_base + leaf);
        g = {message.unit[0], message.unit[1], message.mark.scales};
        if (message.mark.state != PIVOT_FINE) {
            t.doubt(system);
        }
    }
    __syncwarp(); /* messages are read: joints take their places */
    if (join_lanes(top, top_base, leaf, ranks, 1, active, g)) {
        t.doubt(system);
    }
    __syncwarp(); /* joints are written */
    if (there && leaf == 0) {
        close_tree(top, system, g, o);
    }
    __syncwarp(); /* x of the system is written */
    if (active) {
        /* Every block checks the tiles of all blocks, so that all have the same result. */
        bool is_wide;
        const PivotAround<Number> x = pivot_path(top, system, leaf, &is_wide);

        if (is_wide) {
            t.doubt(system);
        }
        if (leaf == at.rank) {
            t.template at<PivotAround<Number>>(base) = x;
        }
    }
}

/* Join the leaves of all systems of a tile, and write the joints and x of the systems, or
 * in PIVOT_REDUCE the group of the tile. The leaves of a system are lanes of one warp, or
 * all threads of the block. All threads of the block call this function. */
template <typename Number>
__device__ __forceinline__ void
pivot_tree(const PivotTree<Number> &t, int system, int leaf, bool active,
           PivotGroup<Number> &g, const PivotOutside<Number> &o,
           const PivotTop<Number> &at)
{
    const int base = system * t.stride, lane = leaf % 32;

    if (t.stride <= 32) {
        if (join_lanes(t, base, leaf, t.leaves, 1, active, g)) {
            t.doubt(system);
        }
        if (o.pass == PIVOT_EXCHANGE) {
            pivot_exchange_sums(t, at, system, leaf, g, o);
        }
        else if (active && leaf == 0) {
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
            pivot_exchange_sums(t, at, 0, leaf, g, o);
        }
        else if (leaf == 0) {
            close_tree(t, 0, g, o);
        }
    }
    __syncthreads(); /* joints and x are written */
}

} // namespace pysolvers::pivoted

#endif
