/* pivoted_tree.cuh - the groups of a tile, joined two by two.
 *
 * Leaf c of system s is a chunk, or a group from another tile. The groups c and c +
 * reach become one for reach = 1, 2, 4, ...: a binary tree whose shape depends on c
 * alone, so that a tile of a power of two leaves is a part of the tree of the whole
 * system, and a system has the same solution however it is cut. The block joins two
 * levels at a time, one lane a pair in shared memory and every other lane the pairs of
 * its warp by shuffles. On the way down each leaf goes its own way through the joints,
 * and meets no other.
 */
#ifndef PS_CUDA_PIVOTED_TREE_CUH
#define PS_CUDA_PIVOTED_TREE_CUH

#include "pivoted_rows.cuh"

/* Words of a leaf: a group, or the joint with the group before it. */
enum { PIVOT_GROUP_WORDS = 12 };

/* What one launch does with its tiles. */
enum PivotPass {
    PIVOT_SOLVE,  /* a tile holds whole systems */
    PIVOT_REDUCE, /* tiles become groups in the workspace */
    PIVOT_FINISH  /* x at the ends of all tiles is known */
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
    int stride;  /* leaves from one system to the next */
    int leaves;  /* of a system in use, <= stride */
    int systems; /* in use */
    int *state;  /* PivotState of each system */

    /* Leaf `leaf` as what is there: a group, a joint, or x in the first of a system. */
    template <typename Item> __device__ __forceinline__ Item &at(int leaf) const
    {
        return *reinterpret_cast<Item *>(data + pivot_leaf_place<Number>(leaf));
    }
    __device__ __forceinline__ void tell(int system, PivotState what) const
    {
        if (what != PIVOT_FINE) {
            atomicMax(&state[system], what);
        }
    }
};

/* Groups of a system that the levels below `level` leave. */
__device__ __forceinline__ int
groups_of(int leaves, int level)
{
    return (leaves + (1 << level) - 1) >> level;
}

/* q / pairs for 0 <= q < 2^16: the quotient of floats is off by less than 1/4 of the
 * distance to the next integer. */
__device__ __forceinline__ int
small_quotient(int q, int pairs)
{
    return static_cast<int>(
        __fdividef(static_cast<float>(q) + 0.5f, static_cast<float>(pairs)));
}

template <typename Number>
__device__ __forceinline__ PivotEnds<Number>
next_lane(const PivotEnds<Number> &e)
{
    const int lane = threadIdx.x % 32 + 1;

    return {shuffle(all_lanes, e.left, lane), shuffle(all_lanes, e.first, lane),
            shuffle(all_lanes, e.last, lane), shuffle(all_lanes, e.right, lane),
            shuffle(all_lanes, e.rhs, lane)};
}

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
    if (o.pass == PIVOT_SOLVE) {
        t.tell(system, solve_group(g, x.first, x.last));
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

/* Make `a` the group of itself and `b`; the joint goes to `leaf`, where b began. Returns
 * whether a pivot was lost. */
template <typename Number>
__device__ __forceinline__ bool
join_at(const PivotTree<Number> &t, int leaf, PivotGroup<Number> &a,
        const PivotGroup<Number> &b)
{
    PivotJoint<Number> joint;
    const bool lost = join_groups(a, b, joint);

    t.template at<PivotJoint<Number>>(leaf) = joint;
    return lost;
}

/* Join the groups of two levels, four by four: a lane two of them, then the first of two
 * lanes what both have. */
template <typename Number>
__device__ __forceinline__ void
join_levels(const PivotTree<Number> &t, int level, const PivotOutside<Number> &o)
{
    using Group = PivotGroup<Number>;
    const int groups = groups_of(t.leaves, level), lanes = (groups + 3) / 4 * 2;
    const int size = 1 << level, self = threadIdx.x % 32;

    for (int q = threadIdx.x; q - self < t.systems * lanes; q += blockDim.x) {
        const int system = small_quotient(q, lanes), group = 2 * (q - system * lanes);
        const int leaf = system * t.stride + (group << level);
        const bool real = system < t.systems && group < groups;
        const bool is_first = real && group % 4 == 0;
        bool lost = false;
        Group g = {};

        if (real) {
            g = t.template at<Group>(leaf);
        }
        if (real && group + 1 < groups) {
            lost = join_at(t, leaf + size, g, t.template at<Group>(leaf + size));
        }
        const Group next = {next_lane(g.upper), next_lane(g.lower)};
        __syncwarp(); /* groups are read: joints take their places */
        if (is_first && group + 2 < groups) {
            lost = join_at(t, leaf + 2 * size, g, next) || lost;
        }
        if (lost) {
            t.tell(system, PIVOT_BAD);
        }
        if (is_first && groups > 4) {
            t.template at<Group>(leaf) = g;
        }
        else if (is_first) {
            close_tree(t, system, g, o);
        }
    }
}

/* From leaves to joints and x of the whole systems, in PIVOT_REDUCE to the group of the
 * tile. */
template <typename Number>
__device__ __forceinline__ void
pivot_tree(const PivotTree<Number> &t, const PivotOutside<Number> &o)
{
    int level = 0;

    do {
        join_levels(t, level, o);
        __syncthreads(); /* groups, and at last joints and x, are written */
        level += 2;
    } while (groups_of(t.leaves, level) > 1);
}

/* The way down from a system to one of its leaves: x of its first and last row and
 * around them. */
template <typename Number>
__device__ __forceinline__ PivotAround<Number>
pivot_path(const PivotTree<Number> &t, int system, int leaf)
{
    const int base = system * t.stride;
    auto x = t.template at<PivotAround<Number>>(base);

    for (int reach = t.leaves > 1 ? 1 << (31 - __clz(t.leaves - 1)) : 0; reach > 0;
         reach /= 2) {
        const int middle = (leaf & -2 * reach) + reach;

        if (middle < t.leaves) {
            Number before, behind;

            substitute_joint(t.template at<PivotJoint<Number>>(base + middle), x, before,
                             behind);
            const bool second = leaf >= middle;
            x.left = second ? before : x.left;
            x.first = second ? behind : x.first;
            x.last = second ? x.last : before;
            x.right = second ? x.right : behind;
        }
    }
    return x;
}

#endif
