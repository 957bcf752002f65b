/* shared_panels.cu - panels of systems with one matrix, on the host. */
#include <type_traits>

#include "shared_panels.h"

static constexpr int least_rows = 257;    /* fewer go through tiles at no loss */
static constexpr int least_lanes = 16;    /* side by side */
static constexpr int least_rounds = 4;    /* of a block that pay for a table */
static constexpr double least_use = 0.96; /* of the multiprocessors */

static int64_t
quotient_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The fewest groups that leave few multiprocessors without one; none if none do. */
template <typename Number>
static ps_cuda_panel_shape
shape_of(int64_t rows, const ps_cuda_device *device)
{
    using Limits = PanelLimits<Number>;
    const int processors = device->processors;

    if (rows < least_rows || device->capability < 80 ||
        device->shared_bytes < Limits::room) {
        return {};
    }
    for (int groups = 1; groups <= PANEL_GROUPS && groups <= processors; groups++) {
        const int64_t chunk = quotient_up(rows, groups * PANEL_CHUNKS);

        if (chunk <= Limits::most &&
            processors / groups * groups >= least_use * processors) {
            return {groups, chunk <= Limits::places ? Limits::places : Limits::most};
        }
    }
    return {};
}

/* The parts of a table at `store`, and its bytes. */
template <typename Number>
static size_t
lay_out(ps_cuda_panel_shape shape, void *store, PanelTable<Number> *t)
{
    const size_t groups = static_cast<size_t>(shape.groups);
    const size_t chunks = groups * PANEL_CHUNKS;
    const size_t rows = chunks * static_cast<size_t>(shape.places);
    size_t bytes = 0;
    const auto part = [&](auto **to, size_t count) {
        *to = reinterpret_cast<std::remove_reference_t<decltype(*to)>>(
            static_cast<char *>(store) + bytes);
        bytes += ps_cuda_padded(count * sizeof **to);
    };

    part(&t->note, 1);
    part(&t->rows, rows);
    part(&t->counts, rows);
    part(&t->u, rows);
    part(&t->chunks, chunks);
    part(&t->shares, chunks);
    part(&t->weights, (groups + 1) * groups);
    part(&t->parts, groups);
    return bytes;
}

/* A solve: how it is shared out, and what of the workspace it takes. */
template <typename Number> struct PanelPlan {
    ps_cuda_panel_shape shape;
    SharedPanels<Number> panels;
    PanelTeams<Number> teams; /* but for the addresses */
    size_t told, table;       /* bytes */

    PanelPlan(const ps_tridiag *t, const ps_cuda_device *device)
        : shape(shape_of<Number>(t->rows, device)), panels(), teams(), told(0)
    {
        const ps_cuda_shared_batch b = ps_cuda_shared_batch_of(t);
        const int64_t most = device->processors / shape.groups;

        panels.line_panels = quotient_up(b.lanes, PANEL_LANES);
        panels.panels = panels.line_panels * b.lines;
        panels.lanes = b.lanes;
        panels.rhs_line = b.rhs.outer;
        panels.x_line = b.x.outer;
        panels.rhs_lane = static_cast<int32_t>(b.rhs.inner);
        panels.x_lane = static_cast<int32_t>(b.x.inner);
        panels.rhs_pitch = static_cast<int32_t>(b.rhs.row * sizeof(Number));
        panels.x_pitch = static_cast<int32_t>(b.x.row * sizeof(Number));
        panels.line_info = b.line_info;
        panels.lane_info = b.lane_info;
        panels.rhs = static_cast<const Number *>(t->rhs.data);
        panels.x = static_cast<Number *>(t->x.data);
        panels.info = t->info;
        teams.rows = static_cast<int32_t>(t->rows);
        teams.groups = shape.groups;
        teams.periodic = (t->flags & PS_PERIODIC) != 0;
        teams.teams = panels.panels < most ? panels.panels : most;
        if (shape.groups > 1) {
            told = ps_cuda_padded(sizeof(PanelWord) * PANEL_LANES * 2 *
                                  PanelTeams<Number>::words *
                                  static_cast<size_t>(teams.teams * shape.groups));
        }
        table = lay_out<Number>(shape, nullptr, &teams.table);
    }
};

static bool
lies_side_by_side(const ps_stride &s, int64_t size)
{
    const int64_t pitch = s.row * size;

    return (s.inner == 1 || s.inner == -1) && pitch <= INT32_MAX && pitch >= -INT32_MAX;
}

template <typename Number>
static SharedMatrix<Number>
matrix_of(const ps_tridiag *t, bool transposed)
{
    const Systems<Number> s = systems_of<Number>(*t);

    return {s.lower, s.diag, s.upper, s.periodic, transposed, false, nullptr};
}

/* call(n), the modules of a dtype by their name. */
#define PS_MODULES(number, name)                                               \
    static ps_status keep_of(const SharedMatrix<number> &matrix,               \
                             const PanelTable<number> &table, int32_t rows,    \
                             ps_cuda_panel_shape shape, cudaStream_t stream)   \
    {                                                                          \
        return ps_cuda_panels_keep_##name(matrix, table, rows, shape, stream); \
    }                                                                          \
    static ps_status launch_of(const PanelTeams<number> &teams,                \
                               const SharedPanels<number> &panels, int places, \
                               cudaStream_t stream)                            \
    {                                                                          \
        return ps_cuda_panels_launch_##name(teams, panels, places, stream);    \
    }
PS_CUDA_DTYPES(PS_MODULES)
#undef PS_MODULES

bool
ps_cuda_panels_fit(ps_dtype dtype, int64_t rows, size_t *table)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    ps_cuda_panel_shape shape = {};

    *table = 0;
    (void)with_number(dtype, [&](auto number) {
        PanelTable<decltype(number)> parts;

        shape = device == nullptr ? shape : shape_of<decltype(number)>(rows, device);
        *table = shape.groups > 0 ? lay_out(shape, nullptr, &parts) : 0;
        return PS_OK;
    });
    return shape.groups > 0;
}

bool
ps_cuda_panels_take(const ps_tridiag *t, bool is_kept)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const ps_cuda_shared_batch b = ps_cuda_shared_batch_of(t);
    const int64_t size = ps_dtype_size(t->dtype);
    bool is_enough = is_kept;
    size_t table;

    if (b.lanes < least_lanes || !lies_side_by_side(b.rhs, size) ||
        !lies_side_by_side(b.x, size) || !ps_cuda_panels_fit(t->dtype, t->rows, &table)) {
        return false;
    }
    (void)with_number(t->dtype, [&](auto number) {
        const PanelPlan<decltype(number)> plan(t, device);

        is_enough = is_enough || plan.panels.panels >= least_rounds * plan.teams.teams;
        return PS_OK;
    });
    return is_enough;
}

size_t
ps_cuda_panels_work(const ps_tridiag *t, bool is_kept)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    size_t bytes = 0;

    (void)with_number(t->dtype, [&](auto number) {
        const PanelPlan<decltype(number)> plan(t, device);

        bytes = plan.told + (is_kept ? 0 : plan.table);
        return PS_OK;
    });
    return bytes;
}

ps_status
ps_cuda_panels_keep(const ps_tridiag *t, bool transposed, void *table,
                    cudaStream_t stream)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    return with_number(t->dtype, [&](auto number) {
        using Number = decltype(number);
        const ps_cuda_panel_shape shape = shape_of<Number>(t->rows, device);
        PanelTable<Number> parts;

        (void)lay_out(shape, table, &parts);
        return keep_of(matrix_of<Number>(t, transposed), parts,
                       static_cast<int32_t>(t->rows), shape, stream);
    });
}

ps_status
ps_cuda_panels_apply(const ps_tridiag *t, const void *table, bool conjugated,
                     uint8_t *marks, void *work, cudaStream_t stream)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    return with_number(t->dtype, [&](auto number) {
        using Number = decltype(number);
        PanelPlan<Number> plan(t, device);
        ps_status status = PS_OK;

        (void)lay_out(plan.shape,
                      table != nullptr ? const_cast<void *>(table)
                                       : static_cast<char *>(work) + plan.told,
                      &plan.teams.table);
        plan.panels.marks = marks;
        plan.teams.conjugated = conjugated;
        plan.teams.told = static_cast<PanelWord *>(work);
        if (plan.told > 0) {
            status = ps_cuda_status(cudaMemsetAsync(work, 0, plan.told, stream));
        }
        if (status == PS_OK && table == nullptr) {
            status = keep_of(matrix_of<Number>(t, false), plan.teams.table,
                             plan.teams.rows, plan.shape, stream);
        }
        return status == PS_OK
                   ? launch_of(plan.teams, plan.panels, plan.shape.places, stream)
                   : status;
    });
}
