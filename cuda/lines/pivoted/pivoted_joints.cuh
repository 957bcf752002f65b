/* pivoted_joints.cuh - two neighbouring groups of rows made one, with row exchanges.
 *
 * A group is two rows in four unknowns (pivoted_rows.cuh). Of the four rows of two
 * neighbours two eliminate the unknowns between them, each the largest of all rows that
 * contain it, and two stay. Two lanes do it together: both know the columns between the
 * groups and the right sides, and do the same with them, and each has two of the four
 * columns around.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_JOINTS_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_JOINTS_CUH

#include "lines/pivoted/pivoted_rows.cuh"

namespace pysolvers::pivoted {

using device::shuffle;

/* Of the two rows of a group, or of a joint. */
template <typename Number> struct PivotPair {
    Number upper, lower;
};

/* Two columns on one side of a group: that of its own unknown at this end, and that of
 * the unknown beyond it. */
template <typename Number> struct alignas(16) PivotSide {
    PivotPair<Number> own, beyond;
};

/* Pivot rows of two neighbours: in `upper` that of x of the last row of one (which sees
 * the first row of the other), in `lower` that of x of that first row. */
template <typename Number> struct alignas(16) PivotJoint {
    PivotSide<Number> left, right;
    PivotPair<Number> rhs;
    Number next;
};

/* What one end of a group is to its neighbour there. */
template <typename Number> struct PivotEdge {
    PivotSide<Number> side;
    PivotPair<Number> rhs;
};

/* What a lane knows of a joint: one side, and what both know. */
template <typename Number> struct PivotHalf {
    PivotSide<Number> side;
    PivotPair<Number> rhs;
    Number next;
    bool doubtful; /* a pivot was lost, or entries have grown */
};

template <typename Number>
__device__ __forceinline__ PivotEdge<Number>
edge_of(const PivotGroup<Number> &g, bool left)
{
    const PivotEnds<Number> &u = g.upper, &v = g.lower;
    const PivotSide<Number> first = {{u.first, v.first}, {u.left, v.left}};
    const PivotSide<Number> last = {{u.last, v.last}, {u.right, v.right}};

    return {left ? first : last, {u.rhs, v.rhs}};
}

template <typename Number>
__device__ __forceinline__ float
growth_of(const PivotSide<Number> &a)
{
    return larger_growth(
        larger_growth(growth_of(a.own.upper), growth_of(a.own.lower)),
        larger_growth(growth_of(a.beyond.upper), growth_of(a.beyond.lower)));
}

template <typename Number>
__device__ __forceinline__ PivotGroup<Number>
group_of(const PivotEdge<Number> &left, const PivotSide<Number> &right, short2 scales)
{
    const PivotPair<Number> &before = left.side.beyond, &first = left.side.own;

    return {
        {before.upper, first.upper, right.own.upper, right.beyond.upper, left.rhs.upper},
        {before.lower, first.lower, right.own.lower, right.beyond.lower, left.rhs.lower},
        scales};
}

template <typename Number>
__device__ __forceinline__ PivotPair<Number>
shuffle(const PivotPair<Number> &a, int lane)
{
    return {shuffle(all_lanes, a.upper, lane), shuffle(all_lanes, a.lower, lane)};
}

template <typename Number>
__device__ __forceinline__ PivotSide<Number>
shuffle(const PivotSide<Number> &a, int lane)
{
    return {shuffle(a.own, lane), shuffle(a.beyond, lane)};
}

template <typename Number>
__device__ __forceinline__ PivotEdge<Number>
shuffle(const PivotEdge<Number> &a, int lane)
{
    return {shuffle(a.side, lane), shuffle(a.rhs, lane)};
}

template <typename Number>
__device__ __forceinline__ void
turn_if(bool yes, PivotSide<Number> &a)
{
    exchange_if(yes, a.own.upper, a.own.lower);
    exchange_if(yes, a.beyond.upper, a.beyond.lower);
}

template <typename Number>
__device__ __forceinline__ void
turn_if(bool yes, PivotEdge<Number> &a)
{
    turn_if(yes, a.side);
    exchange_if(yes, a.rhs.upper, a.rhs.lower);
}

/* One column of the rows between two groups: the smaller one of each, and the larger one
 * that is not the pivot row. */
template <typename Number> struct PivotTriple {
    Number top, low, end;
};

/* The largest of three to the middle. */
template <typename Number>
__device__ __forceinline__ void
exchange_if(bool top, bool end, PivotTriple<Number> &a)
{
    exchange_if(top, a.low, a.top);
    exchange_if(end, a.low, a.end);
}

/* A column without the pivot row's part in it, `m` times `pivot`. */
template <typename Number>
__device__ __forceinline__ PivotTriple<Number>
less_product(const PivotTriple<Number> &a, const PivotTriple<Number> &m, Number pivot)
{
    return {less_product(a.top, m.top, pivot), less_product(a.low, m.low, pivot),
            less_product(a.end, m.end, pivot)};
}

/* The rows that stay, in one column, when `pivot` is what the other one has in it. */
template <typename Number>
__device__ __forceinline__ PivotPair<Number>
rest_of(const PivotTriple<Number> &a, const PivotTriple<Number> &m, Number pivot)
{
    return {less_product(a.top, m.top, pivot), less_product(a.end, m.end, pivot)};
}

/* Join two groups, of which `a` is the right edge of the left one and `b` the left edge
 * of the right one. `far` is the left edge of the left one, or not `left` the right edge
 * of the right one, and becomes that of both. */
template <typename Number>
__device__ __forceinline__ PivotHalf<Number>
join_groups(bool left, PivotEdge<Number> a, PivotEdge<Number> b, PivotEdge<Number> &far)
{
    const bool turn_a = size_of(a.side.own.lower) > size_of(a.side.own.upper);
    const bool turn_b = size_of(b.side.beyond.lower) > size_of(b.side.beyond.upper);

    /* The larger row is the upper one then. */
    turn_if(turn_a, a);
    turn_if(turn_b, b);
    turn_if(left ? turn_a : turn_b, far.side);
    const bool take = size_of(b.side.beyond.upper) > size_of(a.side.own.upper);
    Number pivot = a.side.own.upper, other = b.side.beyond.upper;
    Number next = a.side.beyond.upper, other_next = b.side.own.upper;
    Number value = a.rhs.upper, other_value = b.rhs.upper;
    exchange_if(take, pivot, other);
    exchange_if(take, next, other_next);
    exchange_if(take, value, other_value);

    const bool has_pivot = left != take; /* its row is of this lane's group */
    const Number zero = Number(0), inverse = inverse_of(pivot);
    const Number factor = has_pivot ? inverse : zero;
    const real_of<Number> is_left = left ? 1 : 0, is_right = left ? 0 : 1;
    const auto rows_of = [&](const PivotPair<Number> &column) {
        return PivotTriple<Number>{times_power(column.lower, is_left),
                                   has_pivot ? zero : column.upper,
                                   times_power(column.lower, is_right)};
    };
    const PivotTriple<Number> m = {a.side.own.lower, other, b.side.beyond.lower};
    PivotHalf<Number> half;
    half.next = inverse * next;
    half.rhs.upper = inverse * value;
    half.side.own.upper = factor * far.side.own.upper;
    half.side.beyond.upper = factor * far.side.beyond.upper;
    PivotTriple<Number> c =
        less_product({a.side.beyond.lower, other_next, b.side.own.lower}, m, half.next);
    PivotTriple<Number> own = less_product(rows_of(far.side.own), m, half.side.own.upper);
    PivotTriple<Number> beyond =
        less_product(rows_of(far.side.beyond), m, half.side.beyond.upper);
    PivotTriple<Number> rhs =
        less_product({a.rhs.lower, other_value, b.rhs.lower}, m, half.rhs.upper);

    const bool top = size_of(c.top) > size_of(c.low);
    const bool end = size_of(c.end) > (top ? size_of(c.top) : size_of(c.low));
    exchange_if(top, end, c);
    exchange_if(top, end, own);
    exchange_if(top, end, beyond);
    exchange_if(top, end, rhs);
    const Number second = inverse_of(c.low);
    half.rhs.lower = second * rhs.low;
    half.side.own.lower = second * own.low;
    half.side.beyond.lower = second * beyond.low;
    far = {{rest_of(own, c, half.side.own.lower),
            rest_of(beyond, c, half.side.beyond.lower)},
           rest_of(rhs, c, half.rhs.lower)};
    half.doubtful = is_lost_pivot(pivot) || is_lost_pivot(c.low) ||
                    has_grown<Number>(growth_of(far.side));
    return half;
}

/* The unknowns between two neighbours whose surroundings `x` are known. */
template <typename Number>
__device__ __forceinline__ void
substitute_joint(const PivotJoint<Number> &joint, const PivotAround<Number> &x,
                 Number &before, Number &behind)
{
    const PivotSide<Number> &left = joint.left, &right = joint.right;

    before = less_product(joint.rhs.upper, left.beyond.upper, x.left);
    behind = less_product(joint.rhs.lower, left.beyond.lower, x.left);
    before = less_product(before, right.beyond.upper, x.right);
    behind = less_product(behind, right.beyond.lower, x.right);
    before = less_product(before, left.own.upper, x.first);
    behind = less_product(behind, left.own.lower, x.first);
    before = less_product(before, right.own.upper, x.last);
    behind = less_product(behind, right.own.lower, x.last);
    before = less_product(before, joint.next, behind);
}

/* The whole system as one group: left is its last row and right its first (their
 * entries are zero unless the system is periodic). Returns whether x is doubtful. */
template <typename Number>
__device__ __forceinline__ bool
solve_group(const PivotGroup<Number> &group, Number &first, Number &last)
{
    Number a = group.upper.first + group.upper.right;
    Number b = group.upper.last + group.upper.left;
    Number c = group.lower.first + group.lower.right;
    Number d = group.lower.last + group.lower.left;
    Number r = group.upper.rhs, s = group.lower.rhs;
    const bool lower = size_of(c) > size_of(a);

    exchange_if(lower, a, c);
    exchange_if(lower, b, d);
    exchange_if(lower, r, s);
    const Number inverse = inverse_of(a);
    b = inverse * b;
    r = inverse * r;
    d = less_product(d, c, b);
    last = inverse_of(d) * less_product(s, c, r);
    first = less_product(r, b, last);
    const auto x = size_of(first) + size_of(last);
    return is_lost_pivot(a) || is_lost_pivot(d) || !(size_of(d) >= 0) || !(x - x == 0) ||
           are_uneven(group.scales);
}

} // namespace pysolvers::pivoted

#endif
