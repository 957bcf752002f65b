/* heat_varied.cu - sweeps of the heat solver with variable coefficients, by row sums.
 *
 * Row i has the off-diagonals -r_-/2, -r_+/2 and the row sum s, which is 1 but for sides
 * with an exchange or a given value (join/row_sums.cuh). A level of each line, w at its
 * first unknown, is taken out: with the right-hand side w + f the solver is given
 * w - level + f - (s - 1) level, and level is added to its solution. A constant between
 * insulated or periodic sides is therefore kept exactly, and rounding errors are relative
 * to the differences along a line. Sweeps of Douglas and Gunn, which solve for
 * differences, have the level 0.
 *
 * Sweeps of Peaceman and Rachford are solved by factors (heat_factor.cu) where these are offered,
 * sweeps of Douglas and Gunn in one pass, with the row of PS_STEP_FLUX: r of a face is 2 K over the
 * sum of the two thicknesses, which are 2, or 1 at a node of a side with a flux, which is half a
 * cell, so that K = r times half of this sum, K = r of an outer face at a side with a value and
 * exchange / 4 at a side with an exchange, with the value 0. The last sweep stores the change,
 * which a second kernel adds to t. Along y and z the lines of nodes with given values, whose w is
 * undefined, are solved too, so that rows begin at sectors of memory.
 */
#include <algorithm>

#include "device/work_queue.cuh"
#include "heat/heat_factor.h"
#include "heat/heat_varied.h"
#include "lines/methods.h"
#include "lines/partition/one_pass.h"
#include "runtime/elements.cuh"

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

template <typename Real> struct MakeRows {
    Rows<Real> r;

    __device__ __forceinline__ void operator()() const
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
            const Real half =
                ratio_towards(r, p, near) * (is_mirror ? Real(1) : Real(0.5));

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
};

/* The solution, less the level, has replaced the right-hand side. */
template <typename Real> struct Sink {
    Rows<Real> r;

    __device__ __forceinline__ void operator()() const
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
};

/* K of the face after each node, see above, to r.rhs; by the first threads also the numbers of
 * the axis: see FluxPlan. */
template <typename Real> struct MakeFaces {
    Rows<Real> r;
    Real *numbers;

    __device__ __forceinline__ void operator()() const
    {
        const Place at = own_place(r);
        const int64_t last = r.nodes[r.axis] - 1;
        const auto thickness = [&](int64_t along) {
            const bool is_half = (along == 0 && r.kind[0] == PS_HEAT_FLUX) ||
                                 (along == last && r.kind[1] == PS_HEAT_FLUX);

            return is_half ? Real(1) : Real(2);
        };

        wait_for_last_kernel();
        if (blockIdx.x == 0) {
            const int64_t first = r.kind[0] == PS_HEAT_VALUE;
            const int64_t rows = r.nodes[r.axis] - first - (r.kind[1] == PS_HEAT_VALUE);

            if (threadIdx.x == 0) {
                numbers[0] = Real(0);
                numbers[1] = r.exchange[0] / 4;
            }
            for (int64_t i = threadIdx.x; i < rows; i += block_threads) {
                numbers[2 + i] = thickness(first + i);
            }
        }
        if (!at.is_there) {
            return;
        }
        if (at.along == last) { /* used at sides with fluxes */
            r.rhs[at.node] = r.exchange[1] / 4;
            return;
        }
        const bool is_outer = (at.along == 0 && r.kind[0] == PS_HEAT_VALUE) ||
                              (at.along + 1 == last && r.kind[1] == PS_HEAT_VALUE);
        const Real weight =
            is_outer ? Real(1) : (thickness(at.along) + thickness(at.along + 1)) / 2;

        r.rhs[at.node] = weight * ratio_towards(r, at.node, at.node + r.pitch);
    }
};

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
    r.tiles = divided_up(r.range[0].count(), block_threads);
    return r;
}

/* The workspace of sweeps in one pass. */
struct FluxPlan {
    bool is_there[PS_HEAT_AXES]; /* whether there is one along an axis */
    bool is_factored[PS_HEAT_AXES];
    void *faces[PS_HEAT_AXES];   /* the factors, or K of the face after each node */
    void *numbers[PS_HEAT_AXES]; /* 0, K of the outer face at the first row of a side with
                                    an exchange, the thicknesses of all rows */
    char *rest;
};

/* The sweep of step s along an axis, without its operands in `plan`. false: none. */
bool
flux_step_of(const ps_heat *h, int axis, int64_t s, const FluxPlan &plan,
             OnePassStep *step)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const int64_t element = ps_dtype_size(h->dtype);
    const int64_t pitch[] = {heat_pitch(h, 0), heat_pitch(h, 1), heat_pitch(h, 2)};
    const int outer = axis == 2 ? 1 : 2, inner = axis == 0 ? 1 : 0;
    const bool all_inner = axis > 0;
    const HeatRange along = heat_unknowns(h, axis), of_outer = heat_unknowns(h, outer);
    const HeatRange of_inner =
        all_inner ? HeatRange{0, h->nodes[inner]} : heat_unknowns(h, inner);
    const ps_stride stride = {pitch[axis], pitch[outer], pitch[inner]};
    const int64_t first = along.begin * pitch[axis] + of_outer.begin * pitch[outer] +
                          of_inner.begin * pitch[inner];
    const auto field = [&](void *base, int64_t node) {
        return static_cast<char *>(base) + node * element;
    };
    const auto number = [&](int64_t k) { return field(plan.numbers[axis], k); };
    ps_tridiag t = {};
    StepTerms terms = {};

    if (device == nullptr || h->k == nullptr || h->scheme != PS_HEAT_DOUGLAS_GUNN ||
        h->side[axis][0].kind == PS_HEAT_PERIODIC) {
        return false;
    }
    t.dtype = h->dtype;
    t.rows = along.count();
    t.outer = of_outer.count();
    t.inner = of_inner.count();
    t.lower = {field(plan.faces[axis], first - pitch[axis]), stride};
    t.diag = {number(2), {1, 0, 0}};
    t.upper = {field(plan.faces[axis], first), stride};
    t.rhs = {field(h->w, first), stride};
    t.x = {field(h->w, first), stride};
    terms.is_flux = true;
    terms.step = 1;
    terms.gain = 1;
    for (int end = 0; end < 2; end++) {
        const ps_heat_side &side = h->side[axis][end];
        const int64_t across = h->nodes[axis == 0 ? 1 : 0];
        const int64_t step_of_node =
            side.sweep.data != nullptr ? side.sweep.node_step : 0;
        const ps_input given = {
            side.sweep.data == nullptr
                ? nullptr
                : static_cast<const char *>(side.sweep.data) +
                      (s * side.sweep.level_step +
                       (of_inner.begin + of_outer.begin * across) * step_of_node) *
                          element,
            {0, across * step_of_node, step_of_node}};
        const ps_input zero = {number(0), {0, 0, 0}};

        if (side.kind == PS_HEAT_VALUE) {
            terms.value[end] = given.data != nullptr ? given : zero;
            continue;
        }
        terms.flux[end] = given;
        if (side.exchange != 0) {
            terms.value[end] = zero;
        }
        if (end == 0) {
            t.lower = {number(1), {0, 0, 0}};
        }
    }
    return ps_cuda_one_pass(&t, terms, device, step);
}

/* The parts of the workspace from `memory` on. */
FluxPlan
flux_plan_of(const ps_heat *h, int64_t pitch, char *memory)
{
    const int64_t element = ps_dtype_size(h->dtype);
    char *kept = static_cast<char *>(h->kept);
    FluxPlan plan = {};

    plan.rest = memory;
    for (int axis = 0; axis < h->axes; axis++) {
        OnePassStep step;

        plan.is_factored[axis] = heat_factor_fits(h, axis);
        if (plan.is_factored[axis]) {
            char *&free = h->kept != nullptr ? kept : plan.rest;

            plan.is_there[axis] = true;
            plan.faces[axis] = free;
            free += heat_factor_bytes(h, pitch, axis);
            continue;
        }
        plan.faces[axis] = plan.rest;
        plan.numbers[axis] = plan.rest + heat_field_bytes(h);
        plan.is_there[axis] = flux_step_of(h, axis, 0, plan, &step);
        if (plan.is_there[axis]) {
            plan.rest += heat_field_bytes(h) +
                         ps_cuda_padded(static_cast<size_t>(
                             (heat_unknowns(h, axis).count() + 2) * element));
        }
    }
    return plan;
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
heat_varied_work(const ps_heat *h, int64_t pitch, size_t *bytes)
{
    char *const nowhere = reinterpret_cast<char *>(256);
    const FluxPlan plan = flux_plan_of(h, pitch, nowhere);
    size_t most = work_queue_bytes(1);
    ps_status status = PS_OK;

    for (int axis = 0; status == PS_OK && axis < h->axes; axis++) {
        const ps_tridiag t = lines_of(h, axis, nullptr);
        size_t needed = 0;

        if (!plan.is_there[axis]) {
            status = ps_cuda_partition.work(&t, &options, &needed);
            most = std::max(most, array_bytes(h) + needed);
        }
    }
    *bytes = static_cast<size_t>(plan.rest - nowhere) + most;
    return status;
}

template <typename Real>
ps_status
heat_varied_begin(const ps_heat *h, int64_t pitch, const ps_exec *exec)
{
    const FluxPlan plan = flux_plan_of(h, pitch, static_cast<char *>(exec->work));
    const bool has_factors = h->kept != nullptr && *h->kept_as == pitch;
    ps_status status = PS_OK;

    if (h->kept != nullptr) {
        *h->kept_as = 0; /* until all are enqueued */
    }
    for (int axis = 0; status == PS_OK && axis < h->axes; axis++) {
        if (!plan.is_there[axis] || (plan.is_factored[axis] && has_factors)) {
            continue;
        }
        if (plan.is_factored[axis]) {
            status = heat_factor_begin<Real>(h, pitch, axis, plan.faces[axis],
                                             ps_cuda_stream(exec));
            continue;
        }
        Rows<Real> r = rows_of<Real>(h, axis, 0, HEAT_PLAIN, nullptr);

        for (int k = 0; k < PS_HEAT_AXES; k++) {
            r.range[k] = {0, h->nodes[k]};
        }
        r.rhs = static_cast<Real *>(plan.faces[axis]);
        r.tiles = divided_up(h->nodes[0], block_threads);
        status = for_threads<block_threads>(
            h->nodes[1] * h->nodes[2] * r.tiles, ps_cuda_stream(exec),
            MakeFaces<Real>{r, static_cast<Real *>(plan.numbers[axis])});
    }
    if (h->kept != nullptr && status == PS_OK) {
        *h->kept_as = pitch;
    }
    return status;
}

/* A sweep in one pass. */
template <typename Real>
static ps_status
flux_sweep(const ps_heat *h, int axis, int64_t s, ps_cuda_heat_sink sink,
           const FluxPlan &plan, cudaStream_t stream)
{
    OnePassStep step;

    if (!flux_step_of(h, axis, s, plan, &step)) {
        return PS_UNSUPPORTED; /* flux_plan_of() has found one */
    }
    const ps_status status =
        ps_cuda_one_pass_solve(step, ps_cuda_device_get(), nullptr, plan.rest, stream);

    if (status != PS_OK || sink != HEAT_ADD) {
        return status;
    }
    Rows<Real> r = rows_of<Real>(h, axis, s, sink, nullptr);

    r.rhs = r.w;
    return for_threads<block_threads>(r.range[1].count() * r.range[2].count() * r.tiles,
                                      stream, Sink<Real>{r});
}

template <typename Real>
ps_status
heat_varied_sweep(const ps_heat *h, int64_t pitch, int axis, int64_t s,
                  ps_cuda_heat_sink sink, const ps_exec *exec)
{
    const cudaStream_t stream = ps_cuda_stream(exec);
    const FluxPlan plan = flux_plan_of(h, pitch, static_cast<char *>(exec->work));

    if (plan.is_factored[axis]) {
        return heat_factor_sweep<Real>(h, pitch, axis, s, sink, plan.faces[axis], stream);
    }
    if (plan.is_there[axis]) {
        return flux_sweep<Real>(h, axis, s, sink, plan, stream);
    }
    const Rows<Real> r = rows_of<Real>(h, axis, s, sink, plan.rest);
    const ps_tridiag t = lines_of(h, axis, plan.rest);
    const int64_t blocks = r.range[1].count() * r.range[2].count() * r.tiles;
    ps_exec rest = *exec;
    ps_report report = {};
    ps_status status = for_threads<block_threads>(blocks, stream, MakeRows<Real>{r});

    rest.work = plan.rest + array_bytes(h);
    rest.work_bytes =
        exec->work_bytes -
        static_cast<size_t>(plan.rest + array_bytes(h) - static_cast<char *>(exec->work));
    if (status == PS_OK) {
        status = ps_cuda_partition.solve(&t, &options, &rest, &report);
    }
    if (status == PS_OK) {
        status = for_threads<block_threads>(blocks, stream, Sink<Real>{r});
    }
    return status;
}

template ps_status heat_varied_begin<float>(const ps_heat *, int64_t, const ps_exec *);
template ps_status heat_varied_begin<double>(const ps_heat *, int64_t, const ps_exec *);
template ps_status heat_varied_sweep<float>(const ps_heat *, int64_t, int, int64_t,
                                            ps_cuda_heat_sink, const ps_exec *);
template ps_status heat_varied_sweep<double>(const ps_heat *, int64_t, int, int64_t,
                                             ps_cuda_heat_sink, const ps_exec *);

} // namespace pysolvers::heat
