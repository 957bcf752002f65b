/* partition.cu - the partition method on the host: PS_PARTITION.
 *
 * Systems that fit a block or a cluster need one pass over memory, longer ones two.
 * Systems along a strided axis use the column kernels if possible, all others tiles.
 * With PS_PIVOT_AUTO, the kernels mark the systems that are not dominant and do not
 * store their solution; the pivoted solver, which runs after them, solves the marked
 * ones.
 */
#include "device/work_queue.cuh"
#include "lines/columns/column.h"
#include "lines/sides/ring.h"
#include "lines/sides/rows.h"
#include "lines/geometry.h"
#include "lines/methods.h"
#include "lines/partition/long.h"
#include "lines/partition/partition.h"
#include "lines/pivoted/pivoted.h"

namespace pysolvers::partition {

using namespace columns;
using namespace pivoted;
using namespace sides;

ps_tridiag
ps_cuda_merged(const ps_tridiag *t)
{
    ps_tridiag m = *t;
    ps_stride *const strides[] = {&m.lower.stride, &m.diag.stride, &m.upper.stride,
                                  &m.rhs.stride, &m.x.stride};
    bool one = true;

    for (ps_stride *s : strides) {
        if (t->inner == 1) {
            s->inner = s->outer;
        }
        one = one && (t->inner == 1 || t->outer == 1 || s->outer == s->inner * t->inner);
    }
    if (one) {
        m.inner = t->outer * t->inner;
        m.outer = 1;
    }
    return m;
}

namespace {

/* Whole systems along a strided axis, or several right-hand sides of each matrix: one after the other
 * along a contiguous axis and along a strided one, or in groups along a strided axis. Otherwise by
 * `plan`: tiles, groups of right-hand sides in tiles, long systems. */
enum class Kernels {
    columns,
    side_rows,
    side_ring,
    side_columns,
    tiles,
    groups,
    long_systems
};

/* How a batch is solved. */
struct Shapes {
    Plan plan;
    ColumnShape columns;
    SideRing ring;
    SideRows rows;
    Kernels kernels;
    bool is_there;  /* otherwise no plan fits the device */
    bool has_halos; /* of long systems */
};

/* A batch with its plan. */
struct Planned : Shapes {
    ps_tridiag t;
};

} // namespace

/* visit(kernels, shape) for `Kernels` up to side_columns, which have a shape. */
template <typename Any, typename Visit>
static auto
with_shape(Any &s, const Visit &visit)
{
    switch (s.kernels) {
    case Kernels::side_rows:
        return visit(ps_cuda_side_rows, s.rows);
    case Kernels::side_ring:
        return visit(ps_cuda_side_ring, s.ring);
    case Kernels::side_columns:
        return visit(ps_cuda_side_columns, s.columns);
    default:
        return visit(ps_cuda_columns, s.columns);
    }
}

static bool
has_shape(const Shapes &s)
{
    return s.kernels <= Kernels::side_columns;
}

static Shapes
shapes_of(const ps_tridiag &t, const ps_cuda_device *device)
{
    Shapes s = {};

    s.is_there = true;
    for (Kernels of : {Kernels::side_rows, Kernels::side_ring, Kernels::side_columns,
                       Kernels::columns}) {
        s.kernels = of;
        if (with_shape(s, [&](const auto &kernels, auto &shape) {
                return kernels.accepts(&t, device, &shape);
            })) {
            return s;
        }
    }
    if (has_side_groups(t)) {
        const ps_tridiag groups = groups_of(t);
        Choice of_groups;

        s.kernels = Kernels::groups;
        if (ps_cuda_choose_groups(&groups, device, &of_groups) &&
            ps_cuda_plan(&groups, device, of_groups, &s.plan)) {
            return s;
        }
    }
    const Choice c = ps_cuda_choose(&t, device);
    s.has_halos = ps_cuda_plan_halos(&t, device, &s.plan);
    s.kernels = s.has_halos || c.warps > 0 ? Kernels::long_systems : Kernels::tiles;
    s.is_there = s.has_halos || ps_cuda_plan(&t, device, c, &s.plan);
    if (s.is_there && s.kernels == Kernels::tiles) {
        ps_cuda_plan_ahead(&t, device, &s.plan);
    }
    return s;
}

static bool
plan_of(const ps_tridiag *t, const ps_cuda_device *device, Planned *p)
{
    /* the lines of a V-cycle (heat/diffusion.cu) have some 20 geometries */
    static thread_local Remembered<Geometry, Shapes, 32> known;

    p->t = ps_cuda_merged(t);
    static_cast<Shapes &>(*p) = remembered_plan(known, geometry_of(p->t, device, 0),
                                                [&] { return shapes_of(p->t, device); });
    return p->is_there;
}

static size_t
work_of(const Planned &p, const ps_cuda_device *device)
{
    if (has_shape(p)) {
        return with_shape(p, [&](const auto &kernels, const auto &shape) {
            return kernels.work(&p.t, shape, device);
        });
    }
    if (p.kernels == Kernels::long_systems) {
        return ps_cuda_long_work(&p.t, p.plan, p.has_halos, device);
    }
    return p.plan.work_queue ? work_queue_bytes(1) : 0;
}

size_t
ps_cuda_partition_work(const ps_tridiag *t, const ps_cuda_device *device)
{
    Planned p;

    return plan_of(t, device, &p) ? work_of(p, device) : 0;
}

template <typename Number>
static ps_status
solve_at_once(const Planned &p, uint8_t *marks, void *work, cudaStream_t stream)
{
    const Job<Number> job = job_of<Number>(p.t, p.plan, marks, work);

    return launch_partition(job, p.plan.shape.blocks > 1 ? TOP_CLUSTER : TOP_BLOCK,
                            p.plan, stream);
}

/* Tiling::aligned of groups: whether the tiles of all operands are contiguous and begin and end
 * at 16-byte boundaries. */
template <typename Number>
static bool
are_aligned(const SideJob<Number> &job)
{
    constexpr int64_t vector = 16 / sizeof(Number);
    const Systems<Number> &t = job.t;
    const Tiling &how = job.tiling;
    const auto is_aligned = [&](const auto &operand, int64_t side) {
        return reinterpret_cast<uintptr_t>(operand.data) % 16 == 0 &&
               how.systems * operand.inner % vector == 0 && operand.outer % vector == 0 &&
               side % vector == 0;
    };

    return how.runs == 31 && how.shorts == 0 && how.systems * t.rows % vector == 0 &&
           t.inner * t.rows % vector == 0 && is_aligned(t.lower, 0) &&
           is_aligned(t.diag, 0) && is_aligned(t.upper, 0) &&
           is_aligned(t.rhs, job.groups.rhs) && is_aligned(t.x, job.groups.x);
}

/* In passes if systems of float64 have several warps. On an H200, parts of the time of k solves
 * with 3 and 10 sides: 0.65 and 0.51 in place of 0.76 and 0.67 with 1000 rows, but 0.69 and 0.58
 * in place of 0.66 and 0.55 with 100 rows, and 0.60 and 0.48 in place of 0.59 and 0.46 with 1000
 * rows in float32. */
template <typename Real>
static ps_status
solve_groups(const Planned &p, uint8_t *marks, void *work, cudaStream_t stream)
{
    using Number = WithSides<Real, most_sides>;
    SidePassJob<Number> job = {};

    static_cast<Job<Number> &>(job) = job_of<Number>(groups_of(p.t), p.plan, marks, work);
    job.groups = side_groups_of(p.t);
    set_inputs(job.t, job.groups, job.inputs);
    job.tiling.aligned = are_aligned(job);
    if constexpr (std::is_same_v<Real, double>) {
        if (p.plan.shape.warps > 1) {
            return launch_side_passes(job, p.plan, stream);
        }
    }
    return launch_side_partition<Number>(job, p.plan, stream);
}

static ps_status
solve_planned(const Planned &p, const ps_cuda_device *device, uint8_t *marks,
              const ps_exec *exec, void *work)
{
    if (has_shape(p)) {
        return with_shape(p, [&](const auto &kernels, const auto &shape) {
            return kernels.solve(&p.t, shape, device, marks, work, ps_cuda_stream(exec));
        });
    }
    if (p.kernels == Kernels::groups) {
        return with_real(p.t.dtype, [&](auto zero) {
            return solve_groups<decltype(zero)>(p, marks, work, ps_cuda_stream(exec));
        });
    }
    if (p.kernels == Kernels::long_systems) {
        return ps_cuda_long_solve(&p.t, p.plan, p.has_halos, device, marks, exec, work);
    }
    return with_form(p.t, [&](auto zero) {
        return solve_at_once<decltype(zero)>(p, marks, work, ps_cuda_stream(exec));
    });
}

ps_status
ps_cuda_partition_solve(const ps_tridiag *t, const ps_cuda_device *device, uint8_t *marks,
                        const ps_exec *exec, void *work)
{
    Planned p;

    return plan_of(t, device, &p) ? solve_planned(p, device, marks, exec, work)
                                  : PS_DEVICE_FAILURE;
}

namespace {

/* The workspace: the marks, the part for the solve, the part for the pivoted solve. */
struct Store {
    size_t solve, pivoted, bytes;
};

} // namespace

static ps_status
store_of(const ps_tridiag *t, const ps_options *options, const Planned &p,
         const ps_cuda_device *device, Store *store)
{
    const bool marks = options->pivot == PS_PIVOT_AUTO;
    size_t pivoted = 0;
    const ps_status status = marks ? ps_cuda_pivoted_marked_work(t, &pivoted) : PS_OK;

    store->solve = marks ? ps_cuda_padded(static_cast<size_t>(t->outer * t->inner)) : 0;
    store->pivoted = store->solve + ps_cuda_padded(work_of(p, device));
    store->bytes = store->pivoted + pivoted;
    return status;
}

static ps_status
work(const ps_tridiag *t, const ps_options *options, size_t *bytes)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    Store store = {};
    Planned p;

    if (device == nullptr || !plan_of(t, device, &p)) {
        return PS_DEVICE_FAILURE;
    }
    const ps_status status = store_of(t, options, p, device, &store);
    *bytes = store.bytes;
    return status;
}

static const char *
kernel_of(const Planned &p)
{
    switch (p.kernels) {
    case Kernels::side_rows:
        return "partition rows";
    case Kernels::side_ring:
        return p.ring.blocks > 1 ? "partition ring cluster" : "partition ring";
    case Kernels::side_columns:
    case Kernels::columns:
        return p.columns.blocks > 1 ? "partition columns cluster" : "partition columns";
    case Kernels::long_systems:
        return p.has_halos ? "partition halos" : "partition two passes";
    default:
        break;
    }
    if (p.plan.shape.blocks > 1) {
        return "partition cluster";
    }
    return p.plan.shape.warps > 1 ? "partition block" : "partition warp";
}

static ps_status
solve(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
      ps_report *report)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    char *const memory = static_cast<char *>(exec->work);
    Store store = {};
    Planned p;

    if (device == nullptr || !plan_of(t, device, &p)) {
        return PS_DEVICE_FAILURE;
    }
    ps_status status = store_of(t, options, p, device, &store);
    if (status != PS_OK) {
        return status;
    }
    const bool pivots = options->pivot == PS_PIVOT_AUTO;
    uint8_t *const marks = pivots ? reinterpret_cast<uint8_t *>(memory)
                           : options->pivot == mark_only ? exec->marks
                                                         : nullptr;
    report->kernel = kernel_of(p);
    status = solve_planned(p, device, marks, exec, memory + store.solve);
    if (status == PS_OK && pivots) {
        status = ps_cuda_pivoted_marked(t, marks, exec, memory + store.pivoted);
    }
    return status;
}

const ps_cuda_method ps_cuda_partition = {work, solve};

} // namespace pysolvers::partition
