/* pivoted_joints.cuh - two neighbouring groups of rows made one, with row exchanges.
 *
 * A group is two rows in four unknowns (pivoted_rows.cuh). Of the four rows of two
 * neighbours two eliminate the unknowns between them, each the largest of all rows that
 * contain it, and two stay. A joint takes 39 multiply-adds.
 */
#ifndef PS_CUDA_PIVOTED_JOINTS_CUH
#define PS_CUDA_PIVOTED_JOINTS_CUH

#include "pivoted_rows.cuh"

/* Pivot rows of two neighbours: x of the last row of one (which sees the first row of
 * the other), and x of that first row. */
template <typename Number> struct alignas(16) PivotJoint {
    PivotEnds<Number> before, behind;
    Number next;
};

/* rhs - left x_left - first x_first - last x_last - right x_right */
template <typename Number>
__device__ __forceinline__ Number
residual_of(const PivotEnds<Number> &row, const PivotAround<Number> &x)
{
    Number r = less_product(row.rhs, row.left, x.left);

    r = less_product(r, row.right, x.right);
    r = less_product(r, row.first, x.first);
    return less_product(r, row.last, x.last);
}

/* Make a the group of two neighbours. Returns whether a pivot was lost. */
template <typename Number>
__device__ __forceinline__ bool
join_groups(PivotGroup<Number> &a, const PivotGroup<Number> &b, PivotJoint<Number> &joint)
{
    /* Column `last` of a is column `left` of b, `right` of a is `first` of b. */
    PivotEnds<Number> p = a.upper, q = a.lower, u = b.upper, v = b.lower;
    exchange_if(size_of(q.last) > size_of(p.last), p, q);
    exchange_if(size_of(v.left) > size_of(u.left), u, v);
    const bool take = size_of(u.left) > size_of(p.last);
    Number pivot = p.last, next = p.right, other = u.left, other_next = u.first;
    exchange_if(take, pivot, other);
    exchange_if(take, next, other_next);
    PivotEnds<Number> top = {p.left, p.first, Number(0), Number(0), p.rhs};
    PivotEnds<Number> low = {Number(0), Number(0), u.last, u.right, u.rhs};
    exchange_if(take, top, low);
    bool lost = is_lost_pivot(pivot);

    Number inverse = inverse_of(pivot);
    joint.next = inverse * next;
    joint.before = scaled(inverse, top);
    Number c1 = less_product(other_next, other, joint.next);
    Number c2 = less_product(q.right, q.last, joint.next);
    Number c3 = less_product(v.first, v.left, joint.next);
    low = less_product(low, other, joint.before);
    top = less_product({q.left, q.first, Number(0), Number(0), q.rhs}, q.last,
                       joint.before);
    PivotEnds<Number> end = less_product({Number(0), Number(0), v.last, v.right, v.rhs},
                                         v.left, joint.before);

    const bool second = size_of(c2) > size_of(c1);
    exchange_if(second, c1, c2);
    exchange_if(second, low, top);
    const bool third = size_of(c3) > size_of(c1);
    exchange_if(third, c1, c3);
    exchange_if(third, low, end);
    lost = lost || is_lost_pivot(c1);
    inverse = inverse_of(c1);
    joint.behind = scaled(inverse, low);
    a.upper = less_product(top, c2, joint.behind);
    a.lower = less_product(end, c3, joint.behind);
    return lost;
}

/* The unknowns between two neighbours whose surroundings `x` are known. */
template <typename Number>
__device__ __forceinline__ void
substitute_joint(const PivotJoint<Number> &joint, const PivotAround<Number> &x,
                 Number &before, Number &behind)
{
    behind = residual_of(joint.behind, x);
    before = less_product(residual_of(joint.before, x), joint.next, behind);
}

/* The whole system as one group: left is its last row and right its first (their
 * entries are zero unless the system is periodic). */
template <typename Number>
__device__ __forceinline__ PivotState
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
    return is_lost_pivot(a) || is_lost_pivot(d) ? PIVOT_BAD
           : size_of(d) >= 0                    ? PIVOT_FINE
                                                : PIVOT_DOUBTFUL;
}

#endif
