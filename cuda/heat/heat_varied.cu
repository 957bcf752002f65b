/* heat_varied.cu - sweeps of the heat solver through arrays of rows, by row sums.
 *
 * Row i has the off-diagonals -r_-/2, -r_+/2 and the row sum s, which is 1 but for sides
 * with an exchange or a given value (join/row_sums.cuh). A level of each line, w at its
 * first unknown, is taken out: with the right-hand side w + f the solver is given
 * w - level + f - (s - 1) level, and level is added to its solution. A constant between
 * insulated or periodic sides is therefore kept exactly, and rounding errors are relative
 * to the differences along a line. Sweeps of Douglas and Gunn, which solve for
 * differences, have the level 0.
 */
#include "heat/heat_varied.h"
#include "lines/methods.h"
#include "runtime/launch.cuh"

namespace pysolvers::heat {

using namespace partition;

namespace {

constexpr int block_threads = 256;

/* The unknowns, and the rows of the lines along one axis. */
template <typename Real> struct Rows {
    const Real *k;
    Real *w, *t;
    Real *lower, *sum, *upper, *rhs;
    Real *level; /* null, or that of each line, by its node on the sides */
    int64_t nodes[PS_HEAT_AXES];
    HeatRange range[PS_HEAT_AXES];
    int axis;
    int64_t pitch;
    Real ratio;
    ps_heat_side_kind kind[2];
    Real exchange[2];
    HeatValues<Real> sweep[2], added;
    ps_cuda_heat_sink sink;
    int64_t tiles;
};

struct Place {
    /* index along the axis, and index of the node on its sides */
    int64_t node, along, side;
    bool is_there;
};

template <typename Real>
__device__ __forceinline__ Place
own_place(const Rows<Real> &r)
{
    const unsigned row = blockIdx.x / static_cast<unsigned>(r.tiles);
    const unsigned lines = static_cast<unsigned>(r.range[1].end - r.range[1].begin);
    const unsigned plane = row / lines;
    const int64_t i = r.range[0].begin + (blockIdx.x - row * r.tiles) * block_threads +
                      static_cast<int64_t>(threadIdx.x);
    const int64_t j = r.range[1].begin + row - plane * lines;
    const int64_t k = r.range[2].begin + plane;

    return {(k * r.nodes[1] + j) * r.nodes[0] + i,
            r.axis == 0   ? i
            : r.axis == 1 ? j
                          : k,
            r.axis == 0   ? k * r.nodes[1] + j
            : r.axis == 1 ? k * r.nodes[0] + i
                          : j * r.nodes[0] + i,
            i < r.range[0].end};
}

/* r_- or r_+ of node p: ratio times the harmonic mean of k. */
template <typename Real>
__device__ __forceinline__ Real
ratio_towards(const Rows<Real> &r, int64_t p, int64_t near)
{
    return r.k == nullptr ? r.ratio
                          : r.ratio * (2 * r.k[p] * r.k[near] / (r.k[p] + r.k[near]));
}

template <typename Real>
__global__ void
__launch_bounds__(block_threads) rows_kernel(const __grid_constant__ Rows<Real> r)
{
    const Place at = own_place(r);
    const int64_t p = at.node, last = r.nodes[r.axis] - 1;

    wait_for_last_kernel();
    if (!at.is_there) {
        return;
    }
    const int64_t first = r.range[r.axis].begin;
    const Real level =
        r.level != nullptr ? r.w[p - (at.along - first) * r.pitch] : Real(0);
    Real off_diagonal[2] = {Real(0), Real(0)}, sum = Real(1),
         rhs = r.w[p] - level + r.added.at(p);

    if (r.level != nullptr && at.along == first) {
        r.level[at.side] = level;
    }

#pragma unroll
    for (int end = 0; end < 2; end++) {
        const int64_t step = end == 0 ? -r.pitch : r.pitch;
        const int64_t outermost = end == 0 ? 0 : last, next = end == 0 ? 1 : last - 1;
        const bool is_flux = at.along == outermost && r.kind[end] == PS_HEAT_FLUX;
        const bool is_mirror =
            at.along == last - outermost && r.kind[1 - end] == PS_HEAT_FLUX;

        if (is_flux) {
            const Real exchange = r.exchange[end] / 2;

            sum += exchange;
            rhs += r.sweep[end].at(at.side) - exchange * level;
            continue;
        }
        const int64_t near = at.along == outermost ? p - step * last : p + step;
        const Real half = ratio_towards(r, p, near) * (is_mirror ? Real(1) : Real(0.5));

        off_diagonal[end] = -half;
        if (at.along == next && r.kind[end] == PS_HEAT_VALUE) {
            sum += half;
            rhs += half * (r.sweep[end].at(at.side) - level);
            off_diagonal[end] = Real(0);
        }
    }
    r.lower[p] = off_diagonal[0];
    r.sum[p] = sum;
    r.upper[p] = off_diagonal[1];
    r.rhs[p] = rhs;
}

/* The solution, less the level, has replaced the right-hand side. */
template <typename Real>
__global__ void
__launch_bounds__(block_threads) sink_kernel(const __grid_constant__ Rows<Real> r)
{
    const Place at = own_place(r);
    const int64_t p = at.node;

    wait_for_last_kernel();
    if (!at.is_there) {
        return;
    }
    const Real x = r.rhs[p], level = r.level != nullptr ? r.level[at.side] : Real(0);

    if (r.sink == HEAT_ADD) {
        r.t[p] += x + level;
        return;
    }
    r.w[p] = r.sink == HEAT_PLAIN ? x + level : 2 * x + (2 * level - r.w[p]);
    if (r.sink == HEAT_EXTRAPOLATE_BOTH) {
        r.t[p] = x + level;
    }
}

/* The lines along an axis, in arrays of rows from `base` on. */
ps_tridiag
lines_of(const ps_heat *h, int axis, void *base)
{
    const int64_t pitch[] = {heat_pitch(h, 0), heat_pitch(h, 1), heat_pitch(h, 2)};
    const int outer = axis == 2 ? 1 : 2, inner = axis == 0 ? 1 : 0;
    const ps_stride stride = {pitch[axis], pitch[outer], pitch[inner]};
    int64_t first = 0;
    ps_tridiag t = {};

    for (int k = 0; k < PS_HEAT_AXES; k++) {
        first += heat_unknowns(h, k).begin * pitch[k];
    }
    const auto array = [&](size_t k) {
        return static_cast<char *>(base) + k * heat_field_bytes(h) +
               first * ps_dtype_size(h->dtype);
    };
    t.dtype = h->dtype;
    t.flags = h->side[axis][0].kind == PS_HEAT_PERIODIC ? PS_PERIODIC : 0;
    t.flags |= PS_ROW_SUMS;
    t.rows = heat_unknowns(h, axis).count();
    t.outer = heat_unknowns(h, outer).count();
    t.inner = heat_unknowns(h, inner).count();
    t.lower = {array(0), stride};
    t.diag = {array(1), stride};
    t.upper = {array(2), stride};
    t.rhs = {array(3), stride};
    t.x = {array(3), stride};
    return t;
}

template <typename Real>
Rows<Real>
rows_of(const ps_heat *h, int axis, int64_t s, ps_cuda_heat_sink sink, void *base)
{
    const auto array = [&](size_t k) {
        return reinterpret_cast<Real *>(static_cast<char *>(base) +
                                        k * heat_field_bytes(h));
    };
    Rows<Real> r = {};

    r.k = static_cast<const Real *>(h->k);
    r.w = static_cast<Real *>(h->w);
    r.t = static_cast<Real *>(h->t);
    r.lower = array(0);
    r.sum = array(1);
    r.upper = array(2);
    r.rhs = array(3);
    r.level = h->scheme == PS_HEAT_DOUGLAS_GUNN ? nullptr : array(4);
    for (int k = 0; k < PS_HEAT_AXES; k++) {
        r.nodes[k] = h->nodes[k];
        r.range[k] = heat_unknowns(h, k);
    }
    r.axis = axis;
    r.pitch = heat_pitch(h, axis);
    r.ratio = static_cast<Real>(h->ratio[axis]);
    for (int end = 0; end < 2; end++) {
        const ps_heat_side &side = h->side[axis][end];

        r.kind[end] = side.kind;
        r.exchange[end] = static_cast<Real>(side.exchange);
        r.sweep[end] = heat_values<Real>(side.sweep, s, 0);
    }
    if (h->scheme == PS_HEAT_PR && axis == 0) {
        r.added = heat_values<Real>(h->source, s, 0);
    }
    r.sink = sink;
    r.tiles = (r.range[0].count() + block_threads - 1) / block_threads;
    return r;
}

constexpr ps_options options = {PS_PARTITION, PS_PIVOT_NEVER, 0};

/* Bytes of the rows and of the levels. */
size_t
array_bytes(const ps_heat *h)
{
    const size_t size = static_cast<size_t>(ps_dtype_size(h->dtype));
    int64_t lines = 0;

    for (int axis = 0; axis < h->axes; axis++) {
        const int64_t along = heat_nodes(h) / h->nodes[axis];

        lines = along > lines ? along : lines;
    }
    return 4 * heat_field_bytes(h) + ps_cuda_padded(static_cast<size_t>(lines) * size);
}

} // namespace

ps_status
heat_varied_work(const ps_heat *h, size_t *bytes)
{
    size_t most = 0;
    ps_status status = PS_OK;

    for (int axis = 0; status == PS_OK && axis < h->axes; axis++) {
        const ps_tridiag t = lines_of(h, axis, nullptr);
        size_t needed = 0;

        status = ps_cuda_partition.work(&t, &options, &needed);
        most = needed > most ? needed : most;
    }
    *bytes = array_bytes(h) + most;
    return status;
}

template <typename Real>
ps_status
heat_varied_sweep(const ps_heat *h, int axis, int64_t s, ps_cuda_heat_sink sink,
                  const ps_exec *exec)
{
    const Rows<Real> r = rows_of<Real>(h, axis, s, sink, exec->work);
    const ps_tridiag t = lines_of(h, axis, exec->work);
    const int64_t blocks = r.range[1].count() * r.range[2].count() * r.tiles;
    const cudaStream_t stream = ps_cuda_stream(exec);
    ps_exec rest = *exec;
    ps_report report = {};
    ps_status status =
        launch_closely(rows_kernel<Real>, blocks, block_threads, 0, stream, r);

    rest.work = static_cast<char *>(exec->work) + array_bytes(h);
    rest.work_bytes = exec->work_bytes - array_bytes(h);
    if (status == PS_OK) {
        status = ps_cuda_partition.solve(&t, &options, &rest, &report);
    }
    if (status == PS_OK) {
        status = launch_closely(sink_kernel<Real>, blocks, block_threads, 0, stream, r);
    }
    return status;
}

template ps_status heat_varied_sweep<float>(const ps_heat *, int, int64_t,
                                            ps_cuda_heat_sink, const ps_exec *);
template ps_status heat_varied_sweep<double>(const ps_heat *, int, int64_t,
                                             ps_cuda_heat_sink, const ps_exec *);

} // namespace pysolvers::heat
