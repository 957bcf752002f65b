/* sides.cuh - numbers of matrices that have COUNT right-hand sides each: a value is the numbers
 * of all of them.
 *
 * The algebra of segment.cuh for such numbers eliminates a matrix once and carries its
 * right-hand sides along: of the 17 operations of a row, 9 are those of one right-hand side.
 * Groups of three read 2 words per unknown from the L2 cache, in place of the 4 of one side after
 * the other: for 3 sides of columns in clusters, and for systems that do not begin at 16 bytes;
 * elsewhere lines/sides is faster (docs/designs.md).
 */
#ifndef PS_CUDA_DEVICE_SIDES_CUH
#define PS_CUDA_DEVICE_SIDES_CUH

#include "device/vector.cuh"
#include "device/operand.cuh"
#include "device/pivot.cuh"
#include "device/rounded.cuh"

namespace pysolvers::device {

template <typename Real, int COUNT> struct WithSides {
    using Value = Vector<Real, COUNT>;
    Real value;

    WithSides() = default;
    __host__ __device__ constexpr WithSides(Real number) : value(number)
    {
    }
    __device__ __forceinline__ WithSides operator-() const
    {
        return -value;
    }
    friend __device__ __forceinline__ WithSides operator-(WithSides a, WithSides b)
    {
        return a.value - b.value;
    }
    friend __device__ __forceinline__ WithSides operator+(WithSides a, WithSides b)
    {
        return a.value + b.value;
    }
    friend __device__ __forceinline__ WithSides operator*(WithSides a, WithSides b)
    {
        return a.value * b.value;
    }
    friend __device__ __forceinline__ Value operator*(WithSides a, Value b)
    {
#pragma unroll
        for (int p = 0; p < COUNT; p++) {
            b.at[p] *= a.value;
        }
        return b;
    }
};

/* a b, rounded separately (join/factor.cuh). */
template <typename Real, int COUNT>
__device__ __forceinline__ Vector<Real, COUNT>
product(Vector<Real, COUNT> a, WithSides<Real, COUNT> b)
{
#pragma unroll
    for (int p = 0; p < COUNT; p++) {
        a.at[p] = times(a.at[p], b.value);
    }
    return a;
}

template <typename Real, int COUNT> struct ValueOfNumber<WithSides<Real, COUNT>> {
    using type = Vector<Real, COUNT>;
};

template <typename Real, int COUNT>
struct number_traits<WithSides<Real, COUNT>> : number_traits<Real> {};

/* The right-hand sides of a matrix. */
template <typename Number>
static constexpr int sides_of_number = sizeof(ValueOf<Number>) / sizeof(Number);

/* The most right-hand sides of a matrix that are eliminated together. */
static constexpr int most_sides = 3;

/* The right-hand sides of a batch in groups with one matrix. A group is a system of the outer
 * axis of groups_of(). */
struct SideGroups {
    int64_t rhs, x; /* from a side to the next one */
    int32_t count;  /* of all sides */

    __device__ __forceinline__ int32_t sides_of(int64_t group) const
    {
        return min(count - static_cast<int32_t>(group) * most_sides, most_sides);
    }
    /* The systems of the batch whose matrix is that of system `system` of the groups, of
     * `inner` systems each: visit(system). */
    template <typename Visit>
    __device__ __forceinline__ void each(int64_t system, int64_t inner,
                                         const Visit &visit) const
    {
        const int64_t group = quotient(system, inner);

        for (int p = 0; p < sides_of(group); p++) {
            visit(system + (group * (most_sides - 1) + p) * inner);
        }
    }
};

inline SideGroups
side_groups_of(const ps_tridiag &t)
{
    return {t.rhs.stride.outer, t.x.stride.outer, static_cast<int32_t>(t.outer)};
}

/* The batch with a system for each group. */
inline ps_tridiag
groups_of(const ps_tridiag &t)
{
    ps_tridiag g = t;

    g.outer = (t.outer + most_sides - 1) / most_sides;
    g.rhs.stride.outer *= most_sides;
    g.x.stride.outer *= most_sides;
    return g;
}

/* Whether right-hand sides of a matrix are eliminated together: those on the outer axis, of real
 * numbers in the ordinary form. */
inline bool
has_side_groups(const ps_tridiag &t)
{
    return (t.dtype == PS_F32 || t.dtype == PS_F64) && (t.flags & PS_ROW_SUMS) == 0 &&
           sharing_of(t) > 1;
}

/* The inputs of groups from those of side 0: lower, diag, upper, and the right-hand sides. */
template <typename Number, int COUNT>
inline void
set_inputs(const Systems<Number> &s, const SideGroups &groups,
           Input<Number> (&inputs)[COUNT])
{
    const Input<Number> of_system[] = {s.lower, s.diag, s.upper, s.rhs};

    for (int q = 0; q < COUNT; q++) {
        inputs[q] = of_system[q < 3 ? q : 3];
        inputs[q].data += q < 3 ? 0 : (q - 3) * groups.rhs;
    }
}

template <typename Real, int COUNT>
__device__ __forceinline__ WithSides<Real, COUNT>
shuffle(unsigned mask, WithSides<Real, COUNT> x, int lane, int width = 32)
{
    return shuffle(mask, x.value, lane, width);
}

template <typename Real, int COUNT>
__device__ __forceinline__ bool
is_dominant(WithSides<Real, COUNT> lower, WithSides<Real, COUNT> diag,
            WithSides<Real, COUNT> upper)
{
    return is_dominant(lower.value, diag.value, upper.value);
}

template <typename Real, int COUNT>
__device__ __forceinline__ bool
is_bad_pivot(WithSides<Real, COUNT> x)
{
    return is_bad_pivot(x.value);
}

template <typename Real, int COUNT>
__device__ __forceinline__ WithSides<Real, COUNT>
reciprocal(WithSides<Real, COUNT> x)
{
    return reciprocal(x.value);
}

template <typename Real, int COUNT>
struct FastReciprocal<WithSides<Real, COUNT>> : FastReciprocal<Real> {
    __device__ __forceinline__ WithSides<Real, COUNT> invert(WithSides<Real, COUNT> pivot,
                                                             int32_t row)
    {
        return FastReciprocal<Real>::invert(pivot.value, row);
    }
};

template <typename Real, int COUNT> struct SafeReciprocal<WithSides<Real, COUNT>> {
    BadPivot &bad_pivot;

    __device__ __forceinline__ WithSides<Real, COUNT> invert(WithSides<Real, COUNT> pivot,
                                                             int32_t row)
    {
        return SafeReciprocal<Real>{bad_pivot}.invert(pivot.value, row);
    }
};

} // namespace pysolvers::device

#endif
