/* gceidd_rows.cuh - the rows and the predictions of a sweep on the device.
 *
 * The formulas are those of ps_gceidd.h. The flows to the right and to the left over
 * the point between nodes p and p+1 are
 *
 *   right = dt a"/h^2 + dt b'+/h,   left = dt a"/h^2 - dt b'-/h.
 *
 * with characteristics both are dt a'/h^2. The rows are -right[p-1/2] V[p-1] +
 * (1 + q + right[p-1/2] + left[p+1/2]) V[p] - left[p+1/2] V[p+1]: their sum is 1 + q,
 * and eliminations keep it instead of the diagonal.
 */
#ifndef PS_CUDA_TRANSPORT_GCEIDD_ROWS_CUH
#define PS_CUDA_TRANSPORT_GCEIDD_ROWS_CUH

#include "device/number.cuh"
#include "transport/gceidd_sweep.cuh"

namespace pysolvers::transport {

using namespace device;

template <typename Real> struct Flow {
    Real right, left;
};

/* Mean of a table halfway between p and p+1; beyond an end, the value at the end. */
template <typename Real>
__device__ __forceinline__ Real
halfway(const Sweep<Real> &s, const Table<Real> &t, int32_t p, int32_t l)
{
    const int32_t before = p < 0 ? 0 : p, behind = p < s.cells ? p + 1 : s.cells;

    return t.along == 0 ? t.at(0, l) : Real(0.5) * (t.at(before, l) + t.at(behind, l));
}

/* a' (a'/(a' + h |b'|/2)), 0 where a' is 0. The square of a' may be no number; the
 * fraction is at most 1 even if the reciprocal overflows. */
template <typename Real>
__device__ __forceinline__ Real
upwind_diffusion(const Sweep<Real> &s, Real a, Real b)
{
    const Real sum = fma(Real(0.5) * s.h, fabs(b), a);

    return !s.modified || a == 0 ? a : a * fmin(a * reciprocal(sum), Real(1));
}

/* The flows over the point between p and p+1, -1 <= p <= cells. */
template <typename Real>
__device__ __forceinline__ Flow<Real>
flow_at(const Sweep<Real> &s, int32_t p, int32_t l)
{
    const Real a = halfway(s, s.diffusion, p, l);

    if (s.scheme == PS_GCEIDD_CFD) {
        return {s.dt_hh * a, s.dt_hh * a};
    }
    const Real b = halfway(s, s.velocity, p, l);
    const Real diffuse = s.dt_hh * upwind_diffusion(s, a, b);

    return {fma(s.dt_h, fmax(b, Real(0)), diffuse),
            fma(s.dt_h, fmax(-b, Real(0)), diffuse)};
}

/* q, from the velocity at both neighbours, so that it has one rounding error even if
 * the velocity is nearly constant; it is 0 if the velocity is constant along its line. */
template <typename Real>
__device__ __forceinline__ Real
divergence(const Sweep<Real> &s, int32_t p, int32_t l)
{
    if (s.velocity.along == 0) {
        return Real(0);
    }
    const int32_t before = p > 0 ? p - 1 : 0, behind = p < s.cells ? p + 1 : s.cells;

    return Real(0.5) * s.dt_h * (s.velocity.at(behind, l) - s.velocity.at(before, l));
}

/* dt f/2 */
template <typename Real>
__device__ __forceinline__ Real
source_at(const Sweep<Real> &s, int32_t p, int32_t l)
{
    Real sum = 0;

#pragma unroll 1
    for (int k = 0; k < s.terms; k++) {
        sum = fma(s.factor[k], s.source[k].at(p, l), sum);
    }
    return sum;
}

/* U on line l, in global memory. */
template <typename Real> struct Field {
    const Sweep<Real> &s;
    int32_t l;

    /* U at node p and the nodes after it. */
    template <int COUNT>
    __device__ __forceinline__ void get(int32_t p, Real (&u)[COUNT]) const
    {
        const Real *const from = row(p);

#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            u[k] = from[k * step()];
        }
    }
    __device__ __forceinline__ const Real *row(int32_t p) const
    {
        return s.u + s.node(p, l);
    }
    __device__ __forceinline__ int64_t step() const
    {
        return s.along;
    }
    /* Load U for the last time in this sweep; the cache need not keep it. */
    static __device__ __forceinline__ Real load_once(const Real *from)
    {
        return __ldcs(from);
    }
};

/* U between nodes k and k + 1; `values` is a Field or has the same functions. */
template <typename Real, typename Values>
__device__ __forceinline__ Real
value_between(const Values &values, int32_t k, Real part)
{
    Real u[2];

    values.get(k, u);
    return fma(part, u[1] - u[0], u[0]);
}

/* U at the foot of the characteristic that ends in node p. */
template <typename Real, typename Values>
__device__ __forceinline__ Real
foot_value(const Sweep<Real> &s, const Values &values, int32_t p, int32_t l)
{
    const Real shift = -s.dt_h * s.velocity.at(p, l), whole = floor(shift);
    const Real place = static_cast<Real>(p) + whole;
    const Real cell = fmin(fmax(place, Real(0)), static_cast<Real>(s.cells - 1));
    const Real beyond = (shift - whole) + (place - cell);
    const Real part = s.extrapolate ? beyond : fmin(fmax(beyond, Real(0)), Real(1));

    return value_between(values, static_cast<int32_t>(cell), part);
}

/* The prediction of MU at interface p, where U is `here`. */
template <typename Real>
__device__ __forceinline__ Real
earlier_prediction(const Sweep<Real> &s, int32_t p, int32_t l, Real here)
{
    const int64_t at = s.node(p, l);
    const bool newest = s.predictor == PS_GCEIDD_PREDICTOR_NEWEST;

    return here + (newest ? here - s.s1[at] : s.s1[at] - s.s2[at]);
}

/* The prediction at interface p. */
template <typename Real, typename Values>
__device__ __forceinline__ Real
prediction(const Sweep<Real> &s, const Values &values, int32_t p, int32_t l)
{
    Real u[3];

    values.get(p - 1, u);
    if (s.scheme == PS_GCEIDD_MU) {
        return earlier_prediction(s, p, l, u[1]);
    }
    const Real diffused = halfway(s, s.diffusion, p, l) * (u[2] - u[1]) -
                          halfway(s, s.diffusion, p - 1, l) * (u[1] - u[0]);
    const Real foot = foot_value(s, values, p, l);

    return fma(s.dt_hh, diffused,
               fma(-divergence(s, p, l), foot, foot) + source_at(s, p, l));
}

/* The right-hand side of node p. */
template <typename Real, typename Values>
__device__ __forceinline__ Real
right_side(const Sweep<Real> &s, const Values &values, int32_t p, int32_t l)
{
    Real u[1];

    if (s.scheme == PS_GCEIDD_CFD) {
        u[0] = foot_value(s, values, p, l);
    }
    else {
        values.get(p, u);
    }
    return s.terms == 0 ? u[0] : u[0] + source_at(s, p, l);
}

/* V of a row, d + c V of the row that is eliminated after it. */
template <typename Real> struct Link {
    Real d, c;
};

/* What the elimination of a row needs of the row that was eliminated before it: z, h, and S,
 * its share. A known value has h = 0 and S = 1. */
template <typename Real> struct Eliminated {
    Real z, h, share;
};

/* The link of a row of which h is known. */
template <typename Real>
__device__ __forceinline__ Link<Real>
link_of(Real z, Real h, Real c)
{
    return {fma(-c, z, z + h), c};
}

/* The link of a row with the flows from the row that was eliminated `last` and from the row
 * that is eliminated next; with the row `sum` its right-hand side is sum z + f. The row
 * becomes the last one. */
template <typename Real>
__device__ __forceinline__ Link<Real>
eliminated_row(Eliminated<Real> &last, Real from_last, Real from_next, Real sum, Real z,
               Real f)
{
    const Real sigma = fma(from_last, last.share, sum);
    const Real r = fast_reciprocal(sigma + from_next);
    const Real carried = fma(last.share, last.z - z, last.h);
    const Real h = fma(from_last, carried, f) * r;

    last = {z, h, sigma * r};
    return link_of(z, h, from_next * r);
}

/* The corrected value from V after and before the interface, nearest first: the weights
 * are 2/3 and -1/6, written so that a constant keeps its bits. */
template <typename Real>
__device__ __forceinline__ Real
correction(Real before, Real before2, Real behind, Real behind2)
{
    constexpr Real sixth = Real(1) / 6;
    const Real near = before + behind, far = before2 + behind2;

    return fma(sixth, near - far, Real(0.5) * near);
}

/* Record the step if some v of this thread is out of range. */
template <typename Real>
__device__ __forceinline__ void
report_growth(const Sweep<Real> &s, bool grown)
{
    if (s.checked && grown) {
        atomicMin(s.grown, s.step);
    }
}

} // namespace pysolvers::transport

#endif
