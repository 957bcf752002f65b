/* heat_stencils.cu - right-hand sides, boundary nodes and the largest value of the heat
 * solver: one thread per node.
 */
#include "heat/heat_stencil.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::heat {

namespace {

constexpr int block_threads = 256;

/* 2 k k' / (k + k') */
template <typename Real>
__device__ __forceinline__ Real
face_value(const Real *k, int64_t p, int64_t q)
{
    return k == nullptr ? Real(1) : 2 * k[p] * k[q] / (k[p] + k[q]);
}

/* The term of an axis at node p, which has index i along the axis and index `other` on
 * its sides. */
template <typename Real>
__device__ __forceinline__ Real
term(const HeatStencil<Real> &s, const HeatAxis<Real> &a, int64_t p, int64_t i,
     int64_t other)
{
    Real sum = Real(0);

#pragma unroll
    for (int end = 0; end < 2; end++) {
        const bool outermost = i == (end == 0 ? 0 : a.nodes - 1);
        const int64_t step = end == 0 ? -a.pitch : a.pitch;
        int64_t near = p + step;
        Real weight = a.ratio;

        if (outermost && a.kind[end] == PS_HEAT_FLUX) {
            sum += a.level[end].at(other) - a.exchange[end] * s.t[p];
            continue;
        }
        if (outermost) {
            near = p - step * (a.nodes - 1);
        }
        if (i == (end == 0 ? a.nodes - 1 : 0) && a.kind[1 - end] == PS_HEAT_FLUX) {
            weight = 2 * weight;
        }
        sum += weight * face_value(s.k, p, near) * (s.t[near] - s.t[p]);
    }
    return sum;
}

/* The unknowns as rows along x: row number `row` of those of all planes. */
template <typename Real> struct Stencil {
    HeatStencil<Real> s;
    unsigned lines; /* of a plane */

    __device__ __forceinline__ void operator()(unsigned row, int64_t at) const
    {
        const unsigned plane = row / lines;
        const int64_t i = s.axis[0].begin + at, j = s.axis[1].begin + row - plane * lines;
        const int64_t k = s.axis[2].begin + plane;
        const int64_t nx = s.axis[0].nodes, ny = s.axis[1].nodes;
        const int64_t p = (k * ny + j) * nx + i;
        Real sum = Real(0);

        if (s.axis[0].is_included) {
            sum += term(s, s.axis[0], p, i, k * ny + j);
        }
        if (s.axis[1].is_included) {
            sum += term(s, s.axis[1], p, j, k * nx + i);
        }
        if (s.axis[2].is_included) {
            sum += term(s, s.axis[2], p, k, j * nx + i);
        }
        s.w[p] = s.own * s.t[p] + s.added.at(p) + s.factor * sum;
    }
};

template <typename Real>
ps_status
launch_stencil(const HeatStencil<Real> &s, cudaStream_t stream)
{
    const int64_t lines = s.axis[1].end - s.axis[1].begin;

    return for_rows_of_elements(lines * (s.axis[2].end - s.axis[2].begin),
                                s.axis[0].end - s.axis[0].begin, stream,
                                Stencil<Real>{s, static_cast<unsigned>(lines)});
}

/* Node p of a side lies at (p / across) * far + (p % across) * near. */
template <typename Real> struct Sides {
    Real *t[2];
    HeatValues<Real> value[2];
    bool is_set[2];
    int64_t across, near, far;

    __device__ __forceinline__ void operator()(int64_t p) const
    {
        const int64_t at = p / across * far + p % across * near;

#pragma unroll
        for (int end = 0; end < 2; end++) {
            if (is_set[end]) {
                t[end][at] = value[end].at(p);
            }
        }
    }
};

/* The bits of magnitudes have the order of the magnitudes; NaN is greater than all
 * numbers. */
template <typename Real> struct Largest {
    const Real *t;
    int64_t count;
    unsigned long long *largest;

    __device__ __forceinline__ void operator()() const
    {
        unsigned long long most = 0;

        wait_for_last_kernel();
        for (int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
             i < count; i += static_cast<int64_t>(gridDim.x) * block_threads) {
            const double size = fabs(static_cast<double>(t[i]));

            most = max(most, static_cast<unsigned long long>(__double_as_longlong(size)));
        }
        for (int reach = 16; reach > 0; reach /= 2) {
            most = max(most, __shfl_down_sync(~0u, most, reach));
        }
        if (threadIdx.x % 32 == 0) {
            atomicMax(largest, most);
        }
    }
};

} // namespace

HeatRange
heat_unknowns(const ps_heat *h, int axis)
{
    if (axis >= h->axes) {
        return {0, 1};
    }
    return {h->side[axis][0].kind == PS_HEAT_VALUE,
            h->nodes[axis] - (h->side[axis][1].kind == PS_HEAT_VALUE)};
}

int64_t
heat_pitch(const ps_heat *h, int axis)
{
    return axis == 0 ? 1 : axis == 1 ? h->nodes[0] : h->nodes[0] * h->nodes[1];
}

template <typename Real>
ps_status
heat_make_half(const ps_heat *h, int axis, const Real *t, Real *w, cudaStream_t stream)
{
    HeatStencil<Real> s = heat_stencil_of<Real>(h, 1u << axis, 0);

    s.t = t;
    s.w = w;
    s.own = Real(1);
    s.factor = Real(0.5);
    return launch_stencil(s, stream);
}

template <typename Real>
ps_status
heat_make_change_varied(const ps_heat *h, int64_t s, cudaStream_t stream)
{
    return launch_stencil(heat_change_stencil<Real>(h, s), stream);
}

/* (t + r (t_before + t_after)) / (1 + 2 r) = t + r (t_before - 2 t + t_after) / (1 + 2 r)
 */
template <typename Real>
ps_status
heat_make_neighbours(const ps_heat *h, int axis, const Real *t, Real *w,
                     cudaStream_t stream)
{
    HeatStencil<Real> s = heat_stencil_of<Real>(h, 1u << axis, 0);

    s.t = t;
    s.w = w;
    s.own = Real(1);
    s.factor = static_cast<Real>(1 / (1 + 2 * h->ratio[axis]));
    return launch_stencil(s, stream);
}

template <typename Real>
ps_status
heat_set_sides(const ps_heat *h, int64_t steps, bool changing, cudaStream_t stream)
{
    ps_status status = PS_OK;

    for (int axis = 0; status == PS_OK && axis < h->axes; axis++) {
        const int64_t pitch = heat_pitch(h, axis);
        Sides<Real> s = {};

        for (int end = 0; end < 2; end++) {
            const ps_heat_side &side = h->side[axis][end];

            s.t[end] = static_cast<Real *>(h->t) + end * (h->nodes[axis] - 1) * pitch;
            s.value[end] = heat_values<Real>(side.level, steps, 0);
            s.is_set[end] =
                side.kind == PS_HEAT_VALUE &&
                (!changing || (side.level.data != nullptr && side.level.level_step != 0));
        }
        s.across = axis == 0 ? h->nodes[1] : h->nodes[0];
        s.near = axis == 0 ? h->nodes[0] : 1;
        s.far = axis == 2 ? h->nodes[0] : h->nodes[0] * h->nodes[1];
        if (s.is_set[0] || s.is_set[1]) {
            status = for_elements(heat_nodes(h) / h->nodes[axis], stream, s);
        }
    }
    return status;
}

template <typename Real>
ps_status
heat_find_largest(const ps_heat *h, cudaStream_t stream)
{
    const int64_t count = heat_nodes(h);
    const int64_t blocks = divided_up(count, block_threads), most = 1024;

    if (h->largest == nullptr) {
        return PS_OK;
    }
    if (cudaMemsetAsync(h->largest, 0, sizeof(double), stream) != cudaSuccess) {
        return PS_DEVICE_FAILURE;
    }
    return for_threads<block_threads>(
        blocks < most ? blocks : most, stream,
        Largest<Real>{static_cast<const Real *>(h->t), count,
                      reinterpret_cast<unsigned long long *>(h->largest)});
}

#define PS_INSTANTIATE(real)                                                            \
    template ps_status heat_make_half<real>(const ps_heat *, int, const real *, real *, \
                                            cudaStream_t);                              \
    template ps_status heat_make_change_varied<real>(const ps_heat *, int64_t,          \
                                                     cudaStream_t);                     \
    template ps_status heat_make_neighbours<real>(const ps_heat *, int, const real *,   \
                                                  real *, cudaStream_t);                \
    template ps_status heat_set_sides<real>(const ps_heat *, int64_t, bool,             \
                                            cudaStream_t);                              \
    template ps_status heat_find_largest<real>(const ps_heat *, cudaStream_t);
PS_INSTANTIATE(float)
PS_INSTANTIATE(double)
#undef PS_INSTANTIATE

} // namespace pysolvers::heat
