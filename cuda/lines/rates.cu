/* rates.cu - the passes of ps_rates.h: those of rates_packs.cuh, and all others here.
 *
 * A warp has 32 neighbouring nodes along x, a thread `rows_of` nodes along y, and a block
 * adjacent rows, whose halos are in its cache. A thread loads all values of y = u + d that
 * its nodes need before it stores a result: each value is read once from memory, and
 * 3 (1 + 2 / rows_of) times from a cache. Words moved per node: 1 for u, d and each array
 * of coefficients that varies along all axes, 1 for a result, and 1 more if `own` is not 0.
 * Indices have 32 bits where the fields allow it: with 64 bits and branches for each value
 * of a coefficient the passes were limited by instructions, at 1.6 to 2.7 times this time.
 *
 * A kernel apart from products along an axis (row_walk.cuh), because one pass over the
 * field takes all axes and the mixed derivatives.
 */
#include "lines/rates.h"

#include <algorithm>
#include <cmath>

#include "device/number.cuh"
#include "lines/rates_packs.cuh"
#include "runtime/elements.cuh"
#include "runtime/math.cuh"

namespace pysolvers::lines {

using namespace device;
using namespace runtime;

namespace {

/* Nodes of a thread along y. */
template <int SPACE> constexpr int rows_of = SPACE == 1 ? 1 : SPACE == 2 ? 4 : 2;

/* The distance, in nodes, from a node to its neighbour along an axis of n nodes. */
template <typename Index>
__device__ __forceinline__ Index
step_of(Index at, Index n, bool is_periodic, bool is_after)
{
    if (is_after ? at + 1 < n : at > 0) {
        return is_after ? 1 : -1;
    }
    return is_periodic ? (is_after ? 1 - n : n - 1) : 0;
}

/* The nodes of a thread: the first one, in the box, and how many there are. */
template <typename Index> struct RatesPlace {
    Index b, z, y, x;
    int rows;

    /* The values of an input there. */
    template <typename Real>
    __device__ __forceinline__ const Real *of(const ps_rates_input &in) const
    {
        return static_cast<const Real *>(in.data) +
               (b * static_cast<Index>(in.stride[0]) +
                z * static_cast<Index>(in.stride[1]) +
                y * static_cast<Index>(in.stride[2]) +
                x * static_cast<Index>(in.stride[3]));
    }
    /* The distance from the first node to node k, or to the last one. */
    __device__ __forceinline__ Index step(const ps_rates_input &in, int k) const
    {
        return min(k, rows - 1) * static_cast<Index>(in.stride[2]);
    }
};

/* Add weight(k) * value(k) of the nodes of a thread to sums. */
template <int ROWS, typename Index, typename Real, typename Value>
__device__ __forceinline__ void
add_products(const ps_rates_input &in, const RatesPlace<Index> &p, Real (&sums)[ROWS],
             const Value &value)
{
    const Real *const weights = p.template of<Real>(in);

    if (in.stride[2] == 0) { /* one weight for all rows */
        const Real weight = __ldg(weights);

#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            sums[k] += weight * value(k);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        sums[k] += __ldg(weights + p.step(in, k)) * value(k);
    }
}

/* y at the nodes of a thread and around them: rows -1 to ROWS of its plane, of which three
 * nodes along x; of the planes before and behind the node itself, and both others in the
 * rows of the thread. Nodes between axes are loaded if MIXED. */
template <int SPACE, bool MIXED, typename Real> struct RatesStencil {
    static constexpr int rows = rows_of<SPACE>;
    Real plane[rows + 2][3], around[SPACE == 3 ? 2 : 1][rows + 2][3];

    template <typename Index>
    __device__ __forceinline__ RatesStencil(const ps_rates &r, const RatesPlace<Index> &p)
    {
        const Real *const u = static_cast<const Real *>(r.u);
        const Real *const d = static_cast<const Real *>(r.d);
        const auto y_at = [&](Index place) {
            return d != nullptr ? __ldg(u + place) + __ldg(d + place) : __ldg(u + place);
        };
        const Index size[] = {static_cast<Index>(r.size[3]),
                              static_cast<Index>(r.size[2]),
                              static_cast<Index>(r.size[1])};
        const Index along[] = {p.x + static_cast<Index>(r.begin[3]),
                               p.y + static_cast<Index>(r.begin[2]),
                               p.z + static_cast<Index>(r.begin[1])};
        const Index layer = size[0] * size[1];
        const Index own = (p.b * size[2] + along[2]) * layer + along[0];
        const Index steps[] = {step_of(along[0], size[0], r.periodic[0], false), 0,
                               step_of(along[0], size[0], r.periodic[0], true)};

#pragma unroll
        for (int j = 0; j < rows + 2; j++) {
            const bool is_own = j > 0 && j <= rows;
            Index row = along[1] + j - 1;

            if (SPACE == 1 && !is_own) {
                continue;
            }
            if (row < 0 || row >= size[1]) { /* or a row that is not stored */
                row = (row < 0) == (r.periodic[1] != 0) ? size[1] - 1 : 0;
            }
            const Index at = own + row * size[0];

#pragma unroll
            for (int i = 0; i < 3; i++) {
                if (i == 1 || is_own || MIXED) {
                    plane[j][i] = y_at(at + steps[i]);
                }
            }
            if constexpr (SPACE == 3) {
#pragma unroll
                for (int side = 0; side < 2; side++) {
                    const Index there =
                        at + layer * step_of(along[2], size[2], r.periodic[2], side != 0);

#pragma unroll
                    for (int i = 0; i < 3; i++) {
                        if (i == 1 ? is_own || MIXED : is_own && MIXED) {
                            around[side][j][i] = y_at(there + steps[i]);
                        }
                    }
                }
            }
        }
    }

    /* y of node k of the thread, or of a neighbour along an axis: 0 before, 2 behind. */
    template <int AXIS> __device__ __forceinline__ Real at(int k, int step) const
    {
        if (AXIS == 0) {
            return plane[k + 1][step];
        }
        if (AXIS == 1) {
            return plane[k + step][1];
        }
        return step == 1 ? plane[k + 1][1] : around[step / 2][k + 1][1];
    }
};

/* Add the products of three weights and value(w, k): weights that differ between the rows
 * of a thread are loaded before the first product, so that the loads overlap. */
template <int ROWS, typename Index, typename Real, typename Value>
__device__ __forceinline__ void
add_rows(const ps_rates_input (&in)[3], const RatesPlace<Index> &p, Real (&sums)[ROWS],
         const Value &value)
{
    if (ROWS > 1 && in[0].stride[2] != 0 && in[1].stride[2] != 0 &&
        in[2].stride[2] != 0) {
        Real weights[3][ROWS];

#pragma unroll
        for (int w = 0; w < 3; w++) {
            const Real *const from = p.template of<Real>(in[w]);

#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                weights[w][k] = __ldg(from + p.step(in[w], k));
            }
        }
#pragma unroll
        for (int w = 0; w < 3; w++) {
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                sums[k] += weights[w][k] * value(w, k);
            }
        }
        return;
    }
#pragma unroll
    for (int w = 0; w < 3; w++) {
        add_products(in[w], p, sums, [&](int k) { return value(w, k); });
    }
}

/* Add minus the products of the rows along the axes from AXIS on. */
template <int AXIS, int SPACE, bool MIXED, typename Index, typename Real>
__device__ __forceinline__ void
add_lines(const ps_rates &r, const RatesPlace<Index> &p,
          const RatesStencil<SPACE, MIXED, Real> &y, Real (&sums)[rows_of<SPACE>])
{
    if constexpr (AXIS < SPACE) {
        add_rows(r.rows[AXIS], p, sums,
                 [&](int w, int k) { return -y.template at<AXIS>(k, w); });
        add_lines<AXIS + 1>(r, p, y, sums);
    }
}

/* Add the mixed derivatives. */
template <int SPACE, typename Index, typename Real>
__device__ __forceinline__ void
add_mixed(const ps_rates &r, const RatesPlace<Index> &p,
          const RatesStencil<SPACE, true, Real> &y, Real (&sums)[rows_of<SPACE>])
{
    constexpr int rows = rows_of<SPACE>;
    Real along_x[3], along_y[3][rows];

#pragma unroll
    for (int w = 0; w < 3; w++) {
        const ps_rates_input &in = r.slope[1][w];
        const Real *const weights = p.template of<Real>(in);

        along_x[w] = __ldg(p.template of<Real>(r.slope[0][w]));
#pragma unroll
        for (int k = 0; k < rows; k++) {
            along_y[w][k] = __ldg(weights + p.step(in, k));
        }
    }
    if (r.mixed[0].data != nullptr) {
        add_products(r.mixed[0], p, sums, [&](int k) {
            Real cross = 0;

#pragma unroll
            for (int i = 0; i < 3; i++) {
                cross += along_x[i] * (along_y[0][k] * y.plane[k][i] +
                                       along_y[1][k] * y.plane[k + 1][i] +
                                       along_y[2][k] * y.plane[k + 2][i]);
            }
            return cross;
        });
    }
    if constexpr (SPACE == 3) {
        const Real along_z[] = {__ldg(p.template of<Real>(r.slope[2][0])),
                                __ldg(p.template of<Real>(r.slope[2][1])),
                                __ldg(p.template of<Real>(r.slope[2][2]))};
        const auto slope_z = [&](int j, int i) {
            return along_z[0] * y.around[0][j][i] + along_z[1] * y.plane[j][i] +
                   along_z[2] * y.around[1][j][i];
        };

        if (r.mixed[1].data != nullptr) {
            add_products(r.mixed[1], p, sums, [&](int k) {
                return along_x[0] * slope_z(k + 1, 0) + along_x[1] * slope_z(k + 1, 1) +
                       along_x[2] * slope_z(k + 1, 2);
            });
        }
        if (r.mixed[2].data != nullptr) {
            add_products(r.mixed[2], p, sums, [&](int k) {
                return along_y[0][k] * slope_z(k, 1) + along_y[1][k] * slope_z(k + 1, 1) +
                       along_y[2][k] * slope_z(k + 2, 1);
            });
        }
    }
}

/* Write the results at the nodes of a thread. */
template <int ROWS, typename Index, typename Real>
__device__ __forceinline__ void
store_outs(const RatesJob &job, const RatesPlace<Index> &p, const Real (&lines)[ROWS],
           const Real (&parts)[ROWS])
{
    const ps_rates &r = job.r;
    const Index pitch = static_cast<Index>(r.size[3]);
    const Index plane =
        p.b * static_cast<Index>(r.size[1]) + p.z + static_cast<Index>(r.begin[1]);
    const Index row =
        plane * static_cast<Index>(r.size[2]) + p.y + static_cast<Index>(r.begin[2]);
    const Index first = row * pitch + p.x + static_cast<Index>(r.begin[3]);
    Real found[PS_RATES_OUTS][ROWS];

#pragma unroll
    for (int o = 0; o < PS_RATES_OUTS; o++) {
        const Real *const fields[] = {static_cast<const Real *>(r.out[o]),
                                      static_cast<const Real *>(r.d),
                                      static_cast<const Real *>(r.u)};
        const Real factors[] = {static_cast<Real>(r.own[o]),
                                static_cast<Real>(r.change[o]),
                                static_cast<Real>(r.base[o])};

#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            found[o][k] = (job.with_lines ? static_cast<Real>(r.line[o]) * lines[k] : 0) +
                          (job.with_parts ? static_cast<Real>(r.part[o]) * parts[k] : 0);
        }
        if (r.out[o] == nullptr) {
            continue;
        }
#pragma unroll
        for (int f = 0; f < 3; f++) {
            if (factors[f] == 0 || fields[f] == nullptr) {
                continue;
            }
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                if (k < p.rows) {
                    found[o][k] += factors[f] * fields[f][first + k * pitch];
                }
            }
        }
    }
#pragma unroll
    for (int o = 0; o < PS_RATES_OUTS; o++) {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            if (r.out[o] != nullptr && k < p.rows) {
                static_cast<Real *>(r.out[o])[first + k * pitch] = found[o][k];
            }
        }
    }
}

/* Block: (lanes, walks_a_block). */
template <int SPACE, bool MIXED, typename Index, typename Real> struct Rates {
    RatesJob job;

    __device__ __forceinline__ void operator()() const
    {
        constexpr int rows = rows_of<SPACE>;
        const ps_rates &r = job.r;
        const Index block = static_cast<Index>(blockIdx.x);
        const Index group = block / static_cast<Index>(job.tiles);
        const Index walk = group * walks_a_block + threadIdx.y;
        const Index line = walk / static_cast<Index>(job.chunks);
        RatesPlace<Index> p;

        p.x = (block - group * static_cast<Index>(job.tiles)) * lanes + threadIdx.x;
        p.y = (walk - line * static_cast<Index>(job.chunks)) * rows;
        p.b = line / static_cast<Index>(r.count[1]);
        p.z = line - p.b * static_cast<Index>(r.count[1]);
        p.rows = static_cast<int>(min(Index(rows), static_cast<Index>(r.count[2]) - p.y));
        if (p.x >= r.count[3] || walk >= job.walks) {
            return;
        }
        wait_for_last_kernel();
        Real lines[rows] = {}, parts[rows] = {};

        if (job.with_lines || job.with_parts) {
            const RatesStencil<SPACE, MIXED, Real> y(r, p);

            if (job.with_lines) {
                add_lines<0>(r, p, y, lines);
            }
            if constexpr (MIXED) {
                if (job.with_parts) {
                    add_mixed(r, p, y, parts);
                }
            }
        }
        if (job.with_lines && r.source.data != nullptr) {
            add_products(r.source, p, lines, [](int) { return Real(1); });
        }
        if (job.with_parts && r.extra.data != nullptr) {
            add_products(r.extra, p, parts, [](int) { return Real(1); });
        }
        store_outs(job, p, lines, parts);
    }
};

/* Whether a factor of any result is not 0. */
bool
is_needed(const ps_rates *r, const double *factors)
{
    return (r->out[0] != nullptr && factors[0] != 0) ||
           (r->out[1] != nullptr && factors[1] != 0);
}

template <int BLOCKS = 0, typename Operation>
ps_status
launch_walks(const RatesJob &job, cudaStream_t stream, const Operation &operation)
{
    return for_threads<lanes * walks_a_block, BLOCKS>(
        job.tiles * divided_up(job.walks, walks_a_block), dim3(lanes, walks_a_block),
        stream, operation);
}

template <int SPACE, bool MIXED, typename Index, typename Real>
ps_status
launch(RatesJob &job, cudaStream_t stream)
{
    const ps_rates &r = job.r;

    job.tiles = divided_up(r.count[3], lanes);
    job.chunks = divided_up(r.count[2], rows_of<SPACE>);
    job.walks = r.count[0] * r.count[1] * job.chunks;
    return launch_walks(job, stream, Rates<SPACE, MIXED, Index, Real>{job});
}

template <typename Index, typename Real>
ps_status
launch(RatesJob &job, cudaStream_t stream)
{
    const ps_rates &r = job.r;
    const bool is_mixed =
        job.with_parts && (r.mixed[0].data != nullptr || r.mixed[1].data != nullptr ||
                           r.mixed[2].data != nullptr);

    switch (r.space) {
    case 1:
        return launch<1, false, Index, Real>(job, stream);
    case 2:
        return is_mixed ? launch<2, true, Index, Real>(job, stream)
                        : launch<2, false, Index, Real>(job, stream);
    default:
        return is_mixed ? launch<3, true, Index, Real>(job, stream)
                        : launch<3, false, Index, Real>(job, stream);
    }
}

/* Whether the box has all nodes of the field. */
bool
is_whole(const ps_rates &r)
{
    return std::equal(r.count, r.count + PS_RATES_AXES, r.size);
}

/* Whether the stride along an axis is that of all three inputs, and 0 along another one. */
bool
is_along(const ps_rates_input (&in)[3], int axis, int other)
{
    return std::all_of(in, in + 3, [&](const ps_rates_input &each) {
        return each.stride[axis] == in[0].stride[axis] && each.stride[other] == 0;
    });
}

/* Whether rates_packs.cuh has the pass: weights of rows that depend on their own axis
 * only, a mixed coefficient that is a number, no source, and fields whose rows begin at
 * packs. */
template <int WIDTH, typename Real>
bool
has_packs(const RatesJob &job)
{
    constexpr size_t bytes = WIDTH * sizeof(Real);
    const ps_rates &r = job.r;
    const void *const fields[] = {r.u, r.d, r.out[0], r.out[1]};
    const ps_rates_input &mixed = r.mixed[0];
    const bool is_sum = !job.with_lines && !job.with_parts;
    if (r.size[3] % WIDTH != 0 || !std::all_of(fields, fields + 4, [](const void *at) {
            return reinterpret_cast<uintptr_t>(at) % bytes == 0;
        })) {
        return false;
    }
    if (is_sum) {
        return is_whole(r);
    }
    for (int o = 0; o < PS_RATES_OUTS; o++) { /* without d: u, or nothing */
        if (r.d == nullptr && r.out[o] != nullptr &&
            (r.own[o] != 0 || (r.base[o] != 0 && r.base[o] != 1))) {
            return false;
        }
    }
    return r.space == 2 && job.with_lines && is_along(r.rows[0], 3, 2) &&
           is_along(r.rows[1], 2, 3) && r.source.data == nullptr &&
           (!job.with_parts ||
            (r.extra.data == nullptr && mixed.data != nullptr && mixed.stride[2] == 0 &&
             mixed.stride[3] == 0 && is_along(r.slope[0], 3, 2) &&
             is_along(r.slope[1], 2, 3)));
}

template <int WIDTH, typename Real, typename Form>
ps_status
launch_packs(RatesJob job, const Form &, cudaStream_t stream)
{
    ps_rates &r = job.r;

    if (!Form::rates) { /* as one plane */
        r.size[2] = r.count[2] = r.size[0] * r.size[1] * r.size[2];
        r.size[0] = r.size[1] = r.count[0] = r.count[1] = 1;
    }
    for (int o = 0; o < PS_RATES_OUTS; o++) {
        const bool has_rates = r.line[o] != 0 || r.part[o] != 0;

        job.adds_y[o] = r.own[o] == 0 && r.base[o] == 1 &&
                        (r.d == nullptr || (r.change[o] == 1 && !has_rates));
    }
    job.tiles = divided_up(r.begin[3] + r.count[3], lanes * WIDTH);
    job.chunks = divided_up(r.count[2], Form::walk);
    job.walks = r.count[0] * job.chunks;
    return launch_walks<Form::blocks>(job, stream, RatesPacks<WIDTH, Form, Real>{job});
}

template <int WIDTH, typename Real>
ps_status
launch_packs(const RatesJob &job, cudaStream_t stream)
{
    const auto launch = [&](auto form) {
        return launch_packs<WIDTH, Real>(job, form, stream);
    };

    if (!job.with_lines && !job.with_parts) {
        return launch(RatesForm<false, false, false>{});
    }
    if (job.with_parts) {
        return job.r.d != nullptr ? launch(RatesForm<true, true, true>{})
                                  : launch(RatesForm<true, false, true>{});
    }
    return job.r.d != nullptr ? launch(RatesForm<true, true, false>{})
                              : launch(RatesForm<true, false, false>{});
}

/* Whether the elements of all operands have indices of 32 bits. */
bool
is_small(const ps_rates &r)
{
    constexpr int64_t most = INT32_MAX / 2;
    const auto spans = [&](const ps_rates_input &in) {
        double span = 0;

        for (int k = 0; k < PS_RATES_AXES; k++) {
            span += static_cast<double>(r.count[k]) *
                    std::abs(static_cast<double>(in.stride[k]));
        }
        return span;
    };
    double largest = 1;

    for (const int64_t size : r.size) {
        largest *= static_cast<double>(size);
    }
    for (int axis = 0; axis < PS_RATES_SPACE; axis++) {
        for (int w = 0; w < 3; w++) {
            largest =
                std::max({largest, spans(r.rows[axis][w]), spans(r.slope[axis][w])});
        }
        largest = std::max(largest, spans(r.mixed[axis]));
    }
    return std::max({largest, spans(r.source), spans(r.extra)}) < most;
}

} // namespace

ps_status
ps_cuda_rates(const ps_rates *r, const ps_exec *exec)
{
    RatesJob job = {};

    if (ps_rates_check(r) != PS_OK) {
        return PS_BAD_ARGUMENT;
    }
    if (r->count[0] * r->count[1] * r->count[2] * r->count[3] == 0) {
        return PS_OK;
    }
    job.r = *r;
    job.with_lines = is_needed(r, r->line);
    job.with_parts = is_needed(r, r->part) &&
                     (r->extra.data != nullptr || r->mixed[0].data != nullptr ||
                      r->mixed[1].data != nullptr || r->mixed[2].data != nullptr);
    return with_real(r->dtype, [&](auto real) {
        using Real = decltype(real);
        const cudaStream_t stream = ps_cuda_stream(exec);
        constexpr int width = 16 / sizeof(Real);

        if (is_small(*r) && has_packs<width, Real>(job)) {
            return launch_packs<width, Real>(job, stream);
        }
        return is_small(*r) ? launch<int32_t, Real>(job, stream)
                            : launch<int64_t, Real>(job, stream);
    });
}

} // namespace pysolvers::lines
