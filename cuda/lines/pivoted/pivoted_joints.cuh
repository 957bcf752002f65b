/* pivoted_joints.cuh - joins two neighbouring groups of rows, with row exchanges.
 *
 * A group is two rows in four unknowns (pivoted_rows.cuh). Two neighbouring groups have
 * four rows and two unknowns between them. Each of these unknowns is eliminated by the
 * largest entry of its column, and the two other rows are the group of both. Two lanes
 * share the work: both compute the columns between the groups and the right-hand sides,
 * and each lane computes two of the four outer columns.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_JOINTS_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_JOINTS_CUH

#include "lines/pivoted/pivoted_rows.cuh"

namespace pysolvers::pivoted {

using device::shuffle;

/* One coefficient of each of the two rows of a group or of a joint. */
template <typename Number> struct PivotPair {
    Number upper, lower;
};

/* The two columns at one end of a group: that of the group's own unknown at this end, and
 * that of the neighbouring unknown beyond it. */
template <typename Number> struct alignas(16) PivotSide {
    PivotPair<Number> own, beyond;
};

/* The pivot rows of the two unknowns between two neighbouring groups: `upper` is that of
 * the last unknown of the left group, whose entry of the other one is `next`; `lower` is
 * that of the first unknown of the right group. */
template <typename Number> struct alignas(16) PivotJoint {
    PivotSide<Number> left, right;
    PivotPair<Number> rhs;
    Number next;
};

/* The coefficients that couple one end of a group to the neighbouring group, and the
 * right-hand sides. */
template <typename Number> struct PivotEdge {
    PivotSide<Number> side;
    PivotPair<Number> rhs;
};

/* The part of a joint that one of its two lanes holds: its side, and the values common to
 * both lanes. */
template <typename Number> struct PivotHalf {
    PivotSide<Number> side;
    PivotPair<Number> rhs;
    Number next;
    bool doubtful; /* a pivot was lost, or entries have grown too much */
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

/* One column of the three rows of two groups that are not the first pivot row: the row of
 * each group with the smaller entry, and the other row of the two larger ones. */
template <typename Number> struct PivotTriple {
    Number top, low, end;
};

/* Move the largest of the three entries to the middle. */
template <typename Number>
__device__ __forceinline__ void
exchange_if(bool top, bool end, PivotTriple<Number> &a)
{
    exchange_if(top, a.low, a.top);
    exchange_if(end, a.low, a.end);
}

/* A column from which `m` times the pivot row's entry is subtracted. */
template <typename Number>
__device__ __forceinline__ PivotTriple<Number>
less_product(const PivotTriple<Number> &a, const PivotTriple<Number> &m, Number pivot)
{
    return {less_product(a.top, m.top, pivot), less_product(a.low, m.low, pivot),
            less_product(a.end, m.end, pivot)};
}

/* One column of the two remaining rows, from which multiples of the entry `pivot` of the
 * second pivot row are subtracted. */
template <typename Number>
__device__ __forceinline__ PivotPair<Number>
rest_of(const PivotTriple<Number> &a, const PivotTriple<Number> &m, Number pivot)
{
    return {less_product(a.top, m.top, pivot), less_product(a.end, m.end, pivot)};
}

/* Join two groups. `a` is the right edge of the left group, `b` the left edge of the right
 * group. `far` is the outer edge of this lane: the left edge of the left group if `left`,
 * otherwise the right edge of the right group. It becomes the edge of the joined group. */
template <typename Number>
__device__ __forceinline__ PivotHalf<Number>
join_groups(bool left, PivotEdge<Number> a, PivotEdge<Number> b, PivotEdge<Number> &far)
{
    const bool turn_a = size_of(a.side.own.lower) > size_of(a.side.own.upper);
    const bool turn_b = size_of(b.side.beyond.lower) > size_of(b.side.beyond.upper);

    /* Afterwards the upper row of each group has the larger entry. */
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

    const bool has_pivot = left != take; /* the pivot row belongs to this lane's group */
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

/* The two unknowns of a joint from the four unknowns `x` around it. */
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

/* Solve the group of a whole system. Its left neighbour is its last row and its right
 * neighbour its first row; their entries are zero unless the system is periodic. Returns
 * whether x is doubtful. */
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
