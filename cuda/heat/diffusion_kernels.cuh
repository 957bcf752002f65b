/* diffusion_kernels.cuh - the operations of ps_diffusion.h on the nodes of a level.
 *
 * One thread has one unknown node, or, where sums are taken, several with the distance
 * of a grid of at most `sum_blocks` blocks. A block adds its numbers in double by a tree,
 * and one block adds those of all blocks: the order depends on the number of unknown
 * nodes only.
 *
 * Arrays of a level have the value 0 at nodes that are not unknown; no kernel writes
 * there.
 *
 * Each kernel has its reason in the words that it moves per node with two axes, against
 * those of the element operations of the backend (copies of 2 words and sums of products
 * of 3, relayout() and add_product(), which have neither scalar products nor other
 * dtypes), and in launches, which are the time of small levels:
 *
 * - residual: 6 words, 8 with a correction to add, against 27 and 32 in 11 launches;
 * - direction: 3 words against 8 in 3 launches;
 * - advance: 6 words with two sums, 7 with the entry, against 8 and those of the sums;
 * - products: 2 words, 4 with a correction to add, against 13 in 5 launches;
 * - span: 9 words for 14 sums, against 46 in 15 launches of residual and products;
 * - move: 6 words against 12 in 4 launches;
 * - entry: 2 words; the element operations do not convert;
 * - total: sums of blocks; the host would wait for three sums in each iteration;
 * - content, centre: 1 and 2 words; the field would go to the host and come back.
 *
 * Residual has 14 operations per node with two axes.
 */
#ifndef PS_CUDA_HEAT_DIFFUSION_KERNELS_CUH
#define PS_CUDA_HEAT_DIFFUSION_KERNELS_CUH

#include "device/operand.cuh"
#include "ps_diffusion.h"
#include "runtime/elements.cuh"

namespace pysolvers::heat {

using namespace device;
using namespace runtime;

constexpr int node_threads = 256; /* of a block */
constexpr int sum_blocks = 1024;  /* of a grid that takes sums */
constexpr int node_sums = 2;      /* that most kernels take at once */
/* Sums of a basis: field i has i + 2, from span_row(i) on. */
constexpr int span_sums = PS_DIFFUSION_BASIS * (PS_DIFFUSION_BASIS + 3) / 2;

__host__ __device__ constexpr int
span_row(int field)
{
    return field * (field + 3) / 2;
}

/* The nodes of a level, and the box of its unknown ones. Index is int64_t, or int32_t for
 * a level of few nodes: index arithmetic is most of the work of a node. */
template <typename Index> struct BoxOf {
    Index nodes[PS_DIFFUSION_AXES];
    Index first[PS_DIFFUSION_AXES], count[PS_DIFFUSION_AXES];
    int32_t periodic[PS_DIFFUSION_AXES];
    int32_t axes;

    __host__ __device__ Index unknowns() const
    {
        return count[0] * count[1] * count[2];
    }
};
using NodeBox = BoxOf<int64_t>;

/* Indices of a node along the axes, and its index in an array. */
template <typename Index> struct PlaceOf {
    Index at[PS_DIFFUSION_AXES], node;
};
using NodePlace = PlaceOf<int64_t>;

/* The place of unknown node number n. */
__device__ __forceinline__ NodePlace
place_of(const NodeBox &box, int64_t n)
{
    const int64_t row = quotient(n, box.count[0]);
    const int64_t plane = quotient(row, box.count[1]);
    const int64_t i = box.first[0] + n - row * box.count[0];
    const int64_t j = box.first[1] + row - plane * box.count[1];
    const int64_t k = box.first[2] + plane;

    return {{i, j, k}, (k * box.nodes[1] + j) * box.nodes[0] + i};
}

/* body(place) for the unknown nodes of this thread. */
template <typename Body>
__device__ __forceinline__ void
for_own_nodes(const NodeBox &box, const Body &body)
{
    const int64_t step = static_cast<int64_t>(gridDim.x) * node_threads;
    const int64_t count = box.unknowns();

    for (int64_t n = static_cast<int64_t>(blockIdx.x) * node_threads + threadIdx.x;
         n < count; n += step) {
        body(place_of(box, n));
    }
}

/* The volumes of the nodes: halves at the ends that have them. */
struct NodeVolumes {
    int32_t half[PS_DIFFUSION_AXES][2];

    __device__ __forceinline__ double at(const NodeBox &box, const NodePlace &p) const
    {
        double volume = 1;

#pragma unroll
        for (int axis = 0; axis < PS_DIFFUSION_AXES; axis++) {
            if (half[axis][0] != 0 && p.at[axis] == 0) {
                volume *= 0.5;
            }
            if (half[axis][1] != 0 && p.at[axis] == box.nodes[axis] - 1) {
                volume *= 0.5;
            }
        }
        return volume;
    }
};

/* When the iteration ends (ps_diffusion.h). */
struct DiffusionLimits {
    double rtol, ratio;
};

/* Numbers of the iteration in the memory of the device. `scale` is the power of two by
 * which the last residual was multiplied on its way into the V-cycle, `unscale` its
 * reciprocal. The scale of a residual is that of the norm of the one before: the sums of
 * a residual are complete only after it has entered. */
struct DiffusionNumbers {
    double rz, zz, xx, rr, alpha, beta, scale, unscale;
    double given; /* |scale| of ps_diffusion.h */
    double share; /* an estimate of the ratio of the norms of P r and of r */
    double ended; /* not 0 if P r is small enough */
    double stops; /* not 0 if `ended`, or if p A p is not positive: x stays */
    double span[span_sums];

    /* Of the norm of P r. */
    __host__ __device__ double limit(const DiffusionLimits &l) const
    {
        return fmax(l.rtol * sqrt(xx), l.ratio * given);
    }
};

/* What is computed from the sums. */
enum class Stage { of_x, of_given, residual, first_z, direction, advance, next_z };

/* Let the scale of the next residual bring one with the sum of squares rr near 1. */
__device__ __forceinline__ void
set_scale(DiffusionNumbers &to)
{
    int exponent = 0;

    if (to.rr > 0 && isfinite(to.rr)) {
        (void)frexp(to.rr, &exponent);
    }
    to.scale = ldexp(1.0, -(exponent / 2));
    to.unscale = 1 / to.scale;
}

/* Set what follows from the sum of z^2 with volumes, for z = P r. */
__device__ __forceinline__ void
take_norm_of_z(double zz, const DiffusionLimits &limits, DiffusionNumbers &to)
{
    const double norm = sqrt(zz);

    to.zz = zz;
    to.share = fmax(PS_DIFFUSION_KEPT * to.share, norm / sqrt(to.rr));
    to.ended = norm <= to.limit(limits) ? 1 : 0;
}

__device__ __forceinline__ void
take_sums(Stage stage, const double (&sum)[node_sums], const DiffusionLimits &limits,
          DiffusionNumbers &to)
{
    switch (stage) {
    case Stage::of_x:
        to.xx = sum[1];
        to.given = 1; /* if there is no scale; otherwise computed next */
        break;
    case Stage::of_given:
        to.given = sqrt(sum[1]);
        break;
    case Stage::residual:
        to.rr = sum[0];
        set_scale(to);
        break;
    case Stage::first_z:
        to.rz = sum[0];
        to.beta = to.share = 0;
        take_norm_of_z(sum[1], limits, to);
        break;
    case Stage::direction:
        to.alpha = to.rz / sum[0];
        to.stops = 0;
        if (to.ended != 0 || !(to.alpha > 0) || !isfinite(to.alpha)) {
            to.alpha = 0;
            to.stops = 1;
        }
        set_scale(to);
        break;
    case Stage::advance:
        to.xx = sum[0];
        to.rr = sum[1];
        break;
    case Stage::next_z:
        to.beta = sum[0] / to.rz;
        to.rz = sum[0];
        take_norm_of_z(sum[1], limits, to);
        break;
    }
}

/* Add the numbers of the threads of a block; thread 0 has the sums. */
template <int COUNT>
__device__ __forceinline__ void
add_in_block(double (&sum)[COUNT])
{
    __shared__ double part[COUNT][node_threads];
    const int x = static_cast<int>(threadIdx.x);

#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        part[k][x] = sum[k];
    }
    __syncthreads();
    for (int reach = node_threads / 2; reach > 0; reach /= 2) {
        if (x < reach) {
#pragma unroll
            for (int k = 0; k < COUNT; k++) {
                part[k][x] += part[k][x + reach];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        sum[k] = part[k][0];
    }
}

/* Store the sums of a block: sum k of block b at parts[k * sum_blocks + b]. */
template <int COUNT>
__device__ __forceinline__ void
store_sums(double (&sum)[COUNT], double *parts)
{
    add_in_block(sum);
    if (threadIdx.x == 0) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            parts[k * sum_blocks + blockIdx.x] = sum[k];
        }
    }
}

/* Add the sums of `blocks` blocks to zeros; thread 0 has the sums. */
template <int COUNT>
__device__ __forceinline__ void
add_blocks(const double *parts, int blocks, double (&sum)[COUNT])
{
    for (int b = static_cast<int>(threadIdx.x); b < blocks; b += node_threads) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            sum[k] += parts[k * sum_blocks + b];
        }
    }
    add_in_block(sum);
}

/* What the sums of all blocks become: the next numbers of the iteration. */
struct StageTotal {
    static constexpr int sums = node_sums;
    Stage stage;
    DiffusionLimits limits;
    DiffusionNumbers *to;

    __device__ __forceinline__ void take(const double (&sum)[sums]) const
    {
        take_sums(stage, sum, limits, *to);
    }
};

/* The same for the sums of a basis, which are kept. */
struct SpanTotal {
    static constexpr int sums = span_sums;
    DiffusionNumbers *to;

    __device__ __forceinline__ void take(const double (&sum)[sums]) const
    {
#pragma unroll
        for (int k = 0; k < sums; k++) {
            to->span[k] = sum[k];
        }
    }
};

/* Grid: one block. */
template <typename Total> struct AddBlocks {
    const double *parts;
    int blocks;
    Total total;

    __device__ __forceinline__ void operator()() const
    {
        double sum[Total::sums] = {};

        wait_for_last_kernel();
        add_blocks(parts, blocks, sum);
        if (threadIdx.x == 0) {
            total.take(sum);
        }
    }
};

/* A on the nodes of a level. */
template <typename Real, typename Index = int64_t> struct DiffusionOperator {
    BoxOf<Index> box;
    const Real *sum, *face[PS_DIFFUSION_AXES];

    /* A x at a node, for x = value(node). */
    template <typename Value>
    __device__ __forceinline__ Real at(const PlaceOf<Index> &p, const Value &value) const
    {
        const Real own = value(p.node);
        Real result = sum[p.node] * own;
        Index stride = 1;

#pragma unroll
        for (int axis = 0; axis < PS_DIFFUSION_AXES; axis++) {
            if (axis < box.axes) {
                const Index last = box.nodes[axis] - 1;
                const bool wraps = box.periodic[axis] != 0;
                const Index after = p.at[axis] < last ? p.node + stride
                                    : wraps           ? p.node - last * stride
                                                      : p.node;
                const Index before = p.at[axis] > 0 ? p.node - stride
                                     : wraps        ? p.node + last * stride
                                                    : p.node;
                Real flow = Real(0);

                if (after != p.node) {
                    flow += face[axis][p.node] * (own - value(after));
                }
                if (before != p.node) {
                    flow += face[axis][before] * (own - value(before));
                }
                result += flow;
                stride *= box.nodes[axis];
            }
        }
        return result;
    }
};

/* What an operation of the nodes of a level computes: an operation has nodes(), the box,
 * and body(), a function of the place of a node, which may read the numbers of the
 * iteration when it is made. With `sums` > 0 body(sum) adds to that many sums, whose
 * parts are stored at `parts`. Grid: any number of blocks. */
template <typename Operation> struct OverNodes {
    Operation operation;

    __device__ __forceinline__ void operator()() const
    {
        if constexpr (Operation::sums > 0) {
            double sum[Operation::sums] = {};

            wait_for_last_kernel();
            for_own_nodes(operation.nodes(), operation.body(sum));
            store_sums(sum, operation.parts);
        }
        else {
            wait_for_last_kernel();
            for_own_nodes(operation.nodes(), operation.body());
        }
    }
};

/* out = rhs - A v, or A v if rhs is null, for v = x or, if ADDS, v = x + t; then y = v.
 * `out` is not x or t. */
template <typename Real, bool ADDS> struct Residual {
    static constexpr int sums = 0;
    DiffusionOperator<Real> a;
    const Real *x, *t, *rhs;
    Real *y, *out;

    __host__ __device__ const NodeBox &nodes() const
    {
        return a.box;
    }

    /* Store the residual of a node, and return v there and A v. */
    __device__ __forceinline__ void store(const NodePlace &p, Real &v,
                                          Real &product) const
    {
        const auto value = [&](int64_t node) {
            return ADDS ? x[node] + t[node] : x[node];
        };

        product = a.at(p, value);
        v = value(p.node);
        out[p.node] = rhs != nullptr ? rhs[p.node] - product : product;
        if (ADDS) {
            y[p.node] = v;
        }
    }

    __device__ __forceinline__ auto body() const
    {
        return [this](const NodePlace &p) {
            Real v, product;

            store(p, v, product);
        };
    }
};

/* The same with sum 0 of v out. */
template <typename Real> struct SummedResidual {
    static constexpr int sums = node_sums;
    Residual<Real, false> residual;
    double *parts;

    __host__ __device__ const NodeBox &nodes() const
    {
        return residual.nodes();
    }

    __device__ __forceinline__ auto body(double (&sum)[sums]) const
    {
        return [this, &sum](const NodePlace &p) {
            Real v, product;

            residual.store(p, v, product);
            sum[0] += static_cast<double>(v) * static_cast<double>(product);
        };
    }
};

/* Sum 0 of a v, and sum 1 of v^2 with volumes, for v = unscale z, or z if `numbers` is
 * null. If t is not null, z += t first. */
template <typename Real, typename Cycle> struct Products {
    static constexpr int sums = node_sums;
    NodeBox box;
    NodeVolumes volumes;
    const Real *a;
    Cycle *z;
    const Cycle *t;
    const DiffusionNumbers *numbers;
    double *parts;

    __host__ __device__ const NodeBox &nodes() const
    {
        return box;
    }

    __device__ __forceinline__ auto body(double (&sum)[sums]) const
    {
        const double unscale = numbers != nullptr ? numbers->unscale : 1;

        return [this, unscale, &sum](const NodePlace &p) {
            Cycle own = z[p.node];

            if (t != nullptr) {
                own += t[p.node];
                z[p.node] = own;
            }
            const double v = unscale * static_cast<double>(own);

            sum[0] += static_cast<double>(a[p.node]) * v;
            sum[1] += volumes.at(box, p) * v * v;
        };
    }
};

/* p = unscale z + beta p. */
template <typename Real, typename Cycle> struct Direction {
    static constexpr int sums = 0;
    NodeBox box;
    const Cycle *z;
    Real *direction;
    const DiffusionNumbers *numbers;
    bool scales; /* otherwise unscale is 1 */

    __host__ __device__ const NodeBox &nodes() const
    {
        return box;
    }

    __device__ __forceinline__ auto body() const
    {
        const Real beta = static_cast<Real>(numbers->beta);
        const Real unscale = scales ? static_cast<Real>(numbers->unscale) : Real(1);

        return [this, beta, unscale](const NodePlace &p) {
            const Real before = direction[p.node];

            direction[p.node] = unscale * static_cast<Real>(z[p.node]) + beta * before;
        };
    }
};

/* x += alpha p, r -= alpha q; sum 0 of x^2 with volumes and sum 1 of r^2. If `entry` is
 * not null, r enters the V-cycle there, times the scale. */
template <typename Real, typename Cycle> struct Advance {
    static constexpr int sums = node_sums;
    NodeBox box;
    NodeVolumes volumes;
    Real *x, *r;
    const Real *direction, *q;
    Cycle *entry;
    const DiffusionNumbers *numbers;
    double *parts;

    __host__ __device__ const NodeBox &nodes() const
    {
        return box;
    }

    __device__ __forceinline__ auto body(double (&sum)[sums]) const
    {
        const Real alpha = static_cast<Real>(numbers->alpha);
        const Real scale = static_cast<Real>(entry != nullptr ? numbers->scale : 1);
        const bool stops = numbers->stops != 0; /* then x and r are not changed */

        return [this, alpha, scale, stops, &sum](const NodePlace &p) {
            Real own_x = x[p.node], own_r = r[p.node];

            if (!stops) {
                own_x += alpha * direction[p.node];
                own_r -= alpha * q[p.node];
                x[p.node] = own_x;
                r[p.node] = own_r;
            }
            if (entry != nullptr) {
                entry[p.node] = static_cast<Cycle>(scale * own_r);
            }
            sum[0] += volumes.at(box, p) * static_cast<double>(own_x) *
                      static_cast<double>(own_x);
            sum[1] += static_cast<double>(own_r) * static_cast<double>(own_r);
        };
    }
};

/* to = scale r: the first residual enters the V-cycle. */
template <typename Real, typename Cycle> struct Entry {
    static constexpr int sums = 0;
    NodeBox box;
    const Real *r;
    Cycle *to;
    const DiffusionNumbers *numbers;

    __host__ __device__ const NodeBox &nodes() const
    {
        return box;
    }

    __device__ __forceinline__ auto body() const
    {
        const Real scale = static_cast<Real>(numbers->scale);

        return [this, scale](const NodePlace &p) {
            to[p.node] = static_cast<Cycle>(scale * r[p.node]);
        };
    }
};

/* The sums of a basis for ps_diffusion_combine(): at span_row(i) those of field i with A
 * times the fields up to itself, then that with rhs - A x. */
template <typename Real> struct Span {
    static constexpr int sums = span_sums;
    DiffusionOperator<Real> a;
    const Real *x, *rhs, *basis[PS_DIFFUSION_BASIS];
    int fields;
    double *parts;

    __host__ __device__ const NodeBox &nodes() const
    {
        return a.box;
    }

    __device__ __forceinline__ auto body(double (&sum)[sums]) const
    {
        return [this, &sum](const NodePlace &p) {
            const auto apply = [&](const Real *field) {
                return a.at(p, [field](int64_t node) { return field[node]; });
            };
            const double r = static_cast<double>(rhs[p.node] - apply(x));
            double own[PS_DIFFUSION_BASIS];

#pragma unroll
            for (int i = 0; i < PS_DIFFUSION_BASIS; i++) {
                if (i < fields) {
                    const double product = static_cast<double>(apply(basis[i]));

                    own[i] = static_cast<double>(basis[i][p.node]);
#pragma unroll
                    for (int j = 0; j <= i; j++) {
                        sum[span_row(i) + j] += own[j] * product;
                    }
                    sum[span_row(i) + i + 1] += own[i] * r;
                }
            }
        };
    }
};

/* x += the sum of the fields of a basis times their factors. A field with the factor 0 is
 * not read. */
template <typename Real> struct Move {
    static constexpr int sums = 0;
    NodeBox box;
    Real *x;
    const Real *basis[PS_DIFFUSION_BASIS];
    Real factor[PS_DIFFUSION_BASIS];

    __host__ __device__ const NodeBox &nodes() const
    {
        return box;
    }

    __device__ __forceinline__ auto body() const
    {
        return [this](const NodePlace &p) {
            Real own = x[p.node];

#pragma unroll
            for (int i = 0; i < PS_DIFFUSION_BASIS; i++) {
                if (factor[i] != Real(0)) {
                    own += factor[i] * basis[i][p.node];
                }
            }
            x[p.node] = own;
        };
    }
};

/* x += mean - the sum of the parts of all blocks / volume. */
template <typename Real> struct Centre {
    static constexpr int sums = 0;
    NodeBox box;
    Real *x;
    const double *parts;
    int blocks;
    double mean, volume;

    __host__ __device__ const NodeBox &nodes() const
    {
        return box;
    }

    /* All threads of a block call it together. */
    __device__ __forceinline__ auto body() const
    {
        __shared__ Real shift;
        double sum[node_sums] = {};

        add_blocks(parts, blocks, sum);
        if (threadIdx.x == 0) {
            shift = static_cast<Real>(mean - sum[0] / volume);
        }
        __syncthreads();
        const Real own = shift;

        return [this, own](const NodePlace &p) { x[p.node] += own; };
    }
};

/* Sum 0 of x with volumes. */
template <typename Real> struct Content {
    static constexpr int sums = node_sums;
    NodeBox box;
    NodeVolumes volumes;
    const Real *x;
    double *parts;

    __host__ __device__ const NodeBox &nodes() const
    {
        return box;
    }

    __device__ __forceinline__ auto body(double (&sum)[sums]) const
    {
        return [this, &sum](const NodePlace &p) {
            sum[0] += volumes.at(box, p) * static_cast<double>(x[p.node]);
        };
    }
};

} // namespace pysolvers::heat

#endif
