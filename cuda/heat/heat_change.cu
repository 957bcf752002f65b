/* heat_change.cu - the right-hand side of Douglas and Gunn, q + the sum of (level - K
 * t) over the axes, for constant k: 2 words per node.
 *
 * A thread advances from plane to plane and keeps the values of t of its column in
 * registers. Its neighbours in a plane are loaded by other threads of the block, so
 * that the L1 cache contains them.
 */
#include "heat/heat_stencil.cuh"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::heat {

namespace {

constexpr int block_width = 64, block_lines = 8;
/* Planes of a block: fewer where blocks would be too few for the device, because a thread
 * waits for each plane. A step of 128^3 nodes in float64 takes 69 us, and 84 with 32 planes
 * (H200). */
constexpr int most_planes = 32, fewest_planes = 8;
constexpr int block_threads = block_width * block_lines;
constexpr int blocks = resident_threads < 3 * block_threads ? 2 : 3;

/* The contribution of an axis to a node: the distances of the neighbours in elements,
 * and the side on which the node lies, if `end` is one. */
template <typename Real> struct Reach {
    int64_t before, after;
    Real weight_before, weight_after, exchange;
    int end;
};

/* The same for node i of the axis. */
template <typename Real>
__device__ __forceinline__ Reach<Real>
reach_of(const HeatAxis<Real> &a, int64_t i)
{
    const int64_t last = a.nodes - 1;
    const Real r = a.ratio;
    Reach<Real> reach = {-a.pitch, a.pitch, r, r, Real(0), -1};

    if (!a.is_included) {
        return {0, 0, Real(0), Real(0), Real(0), -1};
    }
    if (i == 0) {
        reach = a.kind[0] == PS_HEAT_FLUX
                    ? Reach<Real>{0, a.pitch, Real(0), 2 * r, a.exchange[0], 0}
                    : Reach<Real>{last * a.pitch, a.pitch, r, r, Real(0), -1};
    }
    if (i == last) {
        reach = a.kind[1] == PS_HEAT_FLUX
                    ? Reach<Real>{-a.pitch, 0, 2 * r, Real(0), a.exchange[1], 1}
                    : Reach<Real>{-a.pitch, -last * a.pitch, r, r, Real(0), -1};
    }
    return reach;
}

/* The term of an axis at a node with the value `here`, which is node `other` of its
 * sides. */
template <typename Real>
__device__ __forceinline__ Real
term(const HeatAxis<Real> &a, const Reach<Real> &reach, Real here, Real before,
     Real after, int64_t other)
{
    const Real sum =
        reach.weight_before * (before - here) + reach.weight_after * (after - here);

    return reach.end < 0 ? sum
                         : sum + (a.level[reach.end].at(other) - reach.exchange * here);
}

/* The place of a thread, and the planes that it processes. */
struct BlockedSweep {
    int64_t i, j, first, end;
};

/* INNER: node i, j lies on no side. */
template <bool INNER, typename Real>
__device__ __forceinline__ void
make_change(const HeatStencil<Real> &s, const BlockedSweep &m)
{
    const int64_t nx = s.axis[0].nodes, ny = s.axis[1].nodes;
    const Real rx = s.axis[0].ratio, ry = s.axis[1].ratio;
    int64_t p = (m.first * ny + m.j) * nx + m.i;
    Real here = __ldg(s.t + p);
    Real below = __ldg(s.t + p + reach_of(s.axis[2], m.first).before);

#pragma unroll(INNER ? 2 : 1)
    for (int64_t k = m.first; k < m.end; k++, p += ny * nx) {
        const Reach<Real> z = reach_of(s.axis[2], k);
        const Real *const t = s.t + p;
        const Real above = __ldg(t + z.after);
        Real sum;

        if (INNER) {
            sum = rx * ((__ldg(t - 1) - here) + (__ldg(t + 1) - here)) +
                  ry * ((__ldg(t - nx) - here) + (__ldg(t + nx) - here));
        }
        else {
            const Reach<Real> x = reach_of(s.axis[0], m.i), y = reach_of(s.axis[1], m.j);

            sum = term(s.axis[0], x, here, __ldg(t + x.before), __ldg(t + x.after),
                       k * ny + m.j) +
                  term(s.axis[1], y, here, __ldg(t + y.before), __ldg(t + y.after),
                       k * nx + m.i);
        }
        s.w[p] = s.added.at(p) +
                 (sum + term(s.axis[2], z, here, below, above, m.j * nx + m.i));
        below = here;
        here = above;
    }
}

template <typename Real>
__global__ void
__launch_bounds__(block_threads, blocks)
    change_kernel(const __grid_constant__ HeatStencil<Real> s, unsigned lines,
                  unsigned planes)
{
    const unsigned row = blockIdx.x / static_cast<unsigned>(s.tiles), slab = row / lines;
    const int thread = static_cast<int>(threadIdx.x);
    BlockedSweep m;

    m.i = (blockIdx.x - row * s.tiles) * block_width + thread % block_width;
    m.j = s.axis[1].begin + (row - slab * lines) * block_lines + thread / block_width;
    m.first = s.axis[2].begin + static_cast<int64_t>(slab) * planes;
    m.end = min(m.first + planes, s.axis[2].end);
    wait_for_last_kernel();
    if (m.i < s.axis[0].begin || m.i >= s.axis[0].end || m.j >= s.axis[1].end) {
        return;
    }
    if (m.i > 0 && m.i < s.axis[0].nodes - 1 && m.j > 0 && m.j < s.axis[1].nodes - 1) {
        make_change<true>(s, m);
    }
    else {
        make_change<false>(s, m);
    }
}

} // namespace

template <typename Real>
ps_status
heat_make_change(const ps_heat *h, int64_t s, cudaStream_t stream)
{
    HeatStencil<Real> stencil = heat_change_stencil<Real>(h, s);

    if (h->k != nullptr) {
        return heat_make_change_varied<Real>(h, s, stream);
    }
    const int64_t lines =
        divided_up(stencil.axis[1].end - stencil.axis[1].begin, block_lines);
    const int64_t along_z = stencil.axis[2].end - stencil.axis[2].begin;
    const ps_cuda_device *const device = ps_cuda_device_get();
    int planes = most_planes;

    stencil.tiles = divided_up(stencil.axis[0].end, block_width);
    const auto count = [&] {
        return stencil.tiles * lines * divided_up(along_z, planes);
    };
    while (device != nullptr && planes > fewest_planes &&
           count() < 4 * device->processors) {
        planes /= 2;
    }
    return launch_closely(change_kernel<Real>, count(), block_threads, 0, stream, stencil,
                          static_cast<unsigned>(lines), static_cast<unsigned>(planes));
}

template ps_status heat_make_change<float>(const ps_heat *, int64_t, cudaStream_t);
template ps_status heat_make_change<double>(const ps_heat *, int64_t, cudaStream_t);

} // namespace pysolvers::heat
