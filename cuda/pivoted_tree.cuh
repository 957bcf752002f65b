/* pivoted_tree.cuh - the groups of a tile, joined two by two.
 *
 * Leaf c of system s is a chunk, or a group from another tile. The groups c and c +
 * reach become one for reach = 1, 2, 4, ...: a binary tree whose shape depends on c
 * alone, so that a tile of a power of two leaves is a part of the tree of the whole
 * system, and a system has the same solution however it is cut. The block joins pairs
 * in shared memory, a thread a pair, until few are left; the top of the tree, which the
 * block has to wait for, is joined by lanes of a warp that pass groups on by shuffles.
 */
#ifndef PS_CUDA_PIVOTED_TREE_CUH
#define PS_CUDA_PIVOTED_TREE_CUH

#include "pivoted_rows.cuh"

/* Words of a leaf: a group or a joint, then x of its first and last row. */
enum { PIVOT_GROUP_WORDS = 10, PIVOT_FIRST = 11, PIVOT_LAST = 12, PIVOT_TREE_WORDS = 13 };

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

/* The place of a leaf. Leaves whose distance is a power of two lie in different banks: an
 * odd number of words each, and a step where their multiples come around. */
template <typename Number>
__host__ __device__ constexpr int
pivot_leaf_place(int leaf)
{
    return leaf * PIVOT_TREE_WORDS + (leaf >> (sizeof(Number) == 4   ? 5
                                               : sizeof(Number) == 8 ? 4
                                                                     : 3));
}

template <typename Number> struct PivotTree {
    Number *data;
    int stride;  /* leaves from one system to the next */
    int leaves;  /* of a system in use, <= stride */
    int systems; /* in use */
    int edges;   /* the slot of system 0 behind all leaves */
    bool whole;  /* the leaves are the whole system: it closes upon itself */
    int *state;  /* PivotState of each system */

    __device__ __forceinline__ Number &at(int word, int leaf) const
    {
        return data[pivot_leaf_place<Number>(leaf) + word];
    }
};

template <typename Number>
__device__ __forceinline__ void
put_ends(const PivotTree<Number> &t, int word, int leaf, const PivotEnds<Number> &e)
{
    t.at(word, leaf) = e.left;
    t.at(word + 1, leaf) = e.first;
    t.at(word + 2, leaf) = e.last;
    t.at(word + 3, leaf) = e.right;
    t.at(word + 4, leaf) = e.rhs;
}

template <typename Number>
__device__ __forceinline__ PivotEnds<Number>
ends_at(const PivotTree<Number> &t, int word, int leaf)
{
    return {t.at(word, leaf), t.at(word + 1, leaf), t.at(word + 2, leaf),
            t.at(word + 3, leaf), t.at(word + 4, leaf)};
}

template <typename Number>
__device__ __forceinline__ void
put_group(const PivotTree<Number> &t, int leaf, const PivotGroup<Number> &g)
{
    put_ends(t, 0, leaf, g.upper);
    put_ends(t, 5, leaf, g.lower);
}

template <typename Number>
__device__ __forceinline__ PivotGroup<Number>
group_at(const PivotTree<Number> &t, int leaf)
{
    return {ends_at(t, 0, leaf), ends_at(t, 5, leaf)};
}

/* The surroundings of the leaves first .. end-1 of a system. Those of a tile that is not
 * the whole system are in a slot behind the leaves: x of the last row before the first
 * leaf and of the first row behind the last one. */
template <typename Number>
__device__ __forceinline__ PivotEnds<Number>
surroundings(const PivotTree<Number> &t, int system, int first, int end)
{
    const int base = system * t.stride, edge = t.edges + system;
    const int before = first > 0 ? base + first - 1
                       : t.whole ? base + t.leaves - 1
                                 : edge;
    const int behind = end < t.leaves ? base + end : t.whole ? base : edge;

    return {t.at(PIVOT_LAST, before), t.at(PIVOT_FIRST, base + first),
            t.at(PIVOT_LAST, base + end - 1), t.at(PIVOT_FIRST, behind), Number(0)};
}

template <typename Number>
__device__ __forceinline__ void
put_joint(const PivotTree<Number> &t, int leaf, const PivotJoint<Number> &joint)
{
    put_ends(t, 0, leaf, joint.before);
    put_ends(t, 5, leaf, joint.behind);
    t.at(10, leaf) = joint.next;
}

template <typename Number>
__device__ __forceinline__ PivotJoint<Number>
joint_at(const PivotTree<Number> &t, int leaf)
{
    return {t.at(10, leaf), ends_at(t, 0, leaf), ends_at(t, 5, leaf)};
}

/* Groups of a system that the levels below `level` leave. */
__device__ __forceinline__ int
groups_of(int leaves, int level)
{
    return (leaves + (1 << level) - 1) >> level;
}

/* The levels that the block joins in shared memory: they leave what the lanes of a warp
 * can hold. */
template <typename Number>
__device__ __forceinline__ int
wide_levels(const PivotTree<Number> &t)
{
    int level = 0;

    while (groups_of(t.leaves, level) > 1 &&
           t.systems * groups_of(t.leaves, level) > 32) {
        level++;
    }
    return level;
}

/* q / pairs for 0 <= q < 2^16: the quotient of floats is off by less than 1/4 of the
 * distance to the next integer. */
__device__ __forceinline__ int
small_quotient(int q, int pairs)
{
    return static_cast<int>(
        __fdividef(static_cast<float>(q) + 0.5f, static_cast<float>(pairs)));
}

/* Join the pairs of a level; the pivot rows stay in the leaf that was joined to its
 * neighbour. */
template <typename Number>
__device__ __forceinline__ void
join_level(const PivotTree<Number> &t, int level)
{
    const int pairs = groups_of(t.leaves, level) / 2;

    for (int q = threadIdx.x; q < t.systems * pairs; q += blockDim.x) {
        const int system = small_quotient(q, pairs);
        const int a = system * t.stride + ((q - system * pairs) << (level + 1));
        const int b = a + (1 << level);
        PivotGroup<Number> upper = group_at(t, a);
        PivotJoint<Number> joint;

        if (join_groups(upper, group_at(t, b), joint)) {
            t.state[system] = PIVOT_BAD;
        }
        put_group(t, a, upper);
        put_joint(t, b, joint);
    }
    __syncthreads(); /* groups are written */
}

/* x between the pairs of a level. */
template <typename Number>
__device__ __forceinline__ void
substitute_level(const PivotTree<Number> &t, int level)
{
    const int pairs = groups_of(t.leaves, level) / 2;

    __syncthreads(); /* x around the pairs is written */
    for (int q = threadIdx.x; q < t.systems * pairs; q += blockDim.x) {
        const int system = small_quotient(q, pairs);
        const int first = (q - system * pairs) << (level + 1);
        const int b = system * t.stride + first + (1 << level);
        const PivotEnds<Number> x =
            surroundings(t, system, first, min(first + (2 << level), t.leaves));

        substitute_joint(joint_at(t, b), x, t.at(PIVOT_LAST, b - 1),
                         t.at(PIVOT_FIRST, b));
    }
}

/* A lane of the top: group `pos` of `groups` of a system, which begins with `leaf`. */
struct PivotLane {
    bool real;
    int system, pos, groups, leaf;
};

template <typename Number>
__device__ __forceinline__ PivotEnds<Number>
shuffle(unsigned mask, const PivotEnds<Number> &e, int lane)
{
    return {shuffle(mask, e.left, lane), shuffle(mask, e.first, lane),
            shuffle(mask, e.last, lane), shuffle(mask, e.right, lane),
            shuffle(mask, e.rhs, lane)};
}

/* Lane 0 of a system gets the group of all; the pivot rows go to shared memory. */
template <typename Number>
__device__ __forceinline__ PivotGroup<Number>
join_top(const PivotTree<Number> &t, const PivotLane &lane, int level)
{
    constexpr unsigned all = all_lanes;
    const int self = threadIdx.x % 32;
    PivotGroup<Number> g = {};

    if (lane.real) {
        g = group_at(t, lane.leaf);
    }
    __syncwarp(); /* groups are read: joints take their places */
    for (int reach = 1; reach < lane.groups; reach *= 2) {
        const PivotGroup<Number> below = {shuffle(all, g.upper, self + reach),
                                          shuffle(all, g.lower, self + reach)};

        if (lane.real && (lane.pos & (2 * reach - 1)) == 0 &&
            lane.pos + reach < lane.groups) {
            PivotJoint<Number> joint;

            if (join_groups(g, below, joint)) {
                t.state[lane.system] = PIVOT_BAD;
            }
            put_joint(t, lane.leaf + (reach << level), joint);
        }
    }
    return g;
}

/* From first and last row of the system, held by its first and its last lane, and what
 * lies around them, to those of every group. */
template <typename Number>
__device__ __forceinline__ void
substitute_top(const PivotTree<Number> &t, const PivotLane &lane, int level,
               Number &first, Number &last, Number left, Number right)
{
    constexpr unsigned all = all_lanes;
    const int self = threadIdx.x % 32;
    int reach = 1;

    while (2 * reach < lane.groups) {
        reach *= 2;
    }
    for (; reach > 0 && lane.groups > 1; reach /= 2) {
        const int within = lane.pos & (2 * reach - 1);
        const int end = min(lane.pos + 2 * reach, lane.groups);
        const Number before_a = shuffle(all, last, self - 1);
        const Number last_b = shuffle(all, last, self + end - 1 - lane.pos);
        const Number behind_b = shuffle(all, first, self + end - lane.pos);
        Number before = Number(0), behind = Number(0);

        if (lane.real && within == 0 && lane.pos + reach < lane.groups) {
            const PivotEnds<Number> x = {lane.pos > 0 ? before_a : left, first, last_b,
                                         end < lane.groups ? behind_b : right, Number(0)};
            substitute_joint(joint_at(t, lane.leaf + (reach << level)), x, before,
                             behind);
        }
        before = shuffle(all, before, self - reach + 1);
        behind = shuffle(all, behind, self - reach);
        if (within == reach) {
            first = behind;
        }
        if (within == reach - 1 && lane.pos + 1 < lane.groups) {
            last = before;
        }
    }
}

/* The top of the tree, from `level` up and down again: x of the first and last row of
 * its groups, or in PIVOT_REDUCE the group of the tile. */
template <typename Number>
__device__ __forceinline__ void
tree_top(const PivotTree<Number> &t, int level, const PivotOutside<Number> &o)
{
    constexpr unsigned all = all_lanes;
    const int groups = groups_of(t.leaves, level), systems = 32 / groups;
    const int self = threadIdx.x % 32, mine = small_quotient(self, groups);
    PivotLane lane = {false, 0, self - mine * groups, groups, 0};

    for (int base = threadIdx.x / 32 * systems; base < t.systems;
         base += blockDim.x / 32 * systems) {
        lane.system = base + mine;
        lane.leaf = lane.system * t.stride + (lane.pos << level);
        lane.real = mine < systems && lane.system < t.systems;
        const PivotGroup<Number> g = join_top(t, lane, level);
        const bool root = lane.real && lane.pos == 0;
        const int64_t tiles = static_cast<int64_t>(lane.system) * o.segments;
        Number first = Number(0), last = Number(0), left, right;

        if (o.pass == PIVOT_REDUCE) {
            if (root) {
                reinterpret_cast<PivotGroup<Number> *>(o.groups)[tiles + o.segment] = g;
            }
            continue;
        }
        if (o.pass == PIVOT_SOLVE) {
            __syncwarp(); /* what the joints have found is written */
            if (root) {
                const PivotState state = solve_group(g, first, last);
                if (state > t.state[lane.system]) {
                    t.state[lane.system] = state;
                }
            }
            right = shuffle(all, first, self - lane.pos);
            left = shuffle(all, last, self - lane.pos);
            last = left;
        }
        else if (lane.real) {
            const Number *const ends = o.ends + 2 * tiles;
            const int before = o.segment > 0 ? o.segment : o.segments;
            const int behind = o.segment < o.segments - 1 ? o.segment + 1 : 0;
            first = ends[2 * o.segment];
            last = ends[2 * o.segment + 1];
            left = ends[2 * before - 1];
            right = ends[2 * behind];
        }
        substitute_top(t, lane, level, first, last, left, right);
        if (lane.real) {
            const int end = min((lane.pos + 1) << level, t.leaves);
            t.at(PIVOT_FIRST, lane.leaf) = first;
            t.at(PIVOT_LAST, lane.system * t.stride + end - 1) = last;
        }
        if (root && !t.whole) {
            t.at(PIVOT_LAST, t.edges + lane.system) = left;
            t.at(PIVOT_FIRST, t.edges + lane.system) = right;
        }
    }
}

/* From leaves to x of their first and last rows, in PIVOT_REDUCE to the group of the
 * tile. */
template <typename Number>
__device__ __forceinline__ void
pivot_tree(const PivotTree<Number> &t, const PivotOutside<Number> &o)
{
    const int levels = wide_levels(t);

    for (int level = 0; level < levels; level++) {
        join_level(t, level);
    }
    tree_top(t, levels, o);
    if (o.pass != PIVOT_REDUCE) {
        for (int level = levels - 1; level >= 0; level--) {
            substitute_level(t, level);
        }
    }
    __syncthreads(); /* x at the ends of leaves is written */
}

#endif
