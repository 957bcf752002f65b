/* shared_panels.cu - the choice of shape and the launches for panels of systems with
 * one matrix.
 */
#include <type_traits>

#include "device/tensor_map.h"
#include "lines/panels/panel_stencils.cuh"
#include "lines/panels/shared_panels.h"
#include "runtime/elements.cuh"
#include "runtime/math.cuh"

namespace pysolvers::panels {

/* With fewer rows, tiles (shared.cuh) are as fast. In float32, 100 to 256 rows take 0.45 to 0.63
 * of their time, in float64 200 and 256 rows 0.70 to 0.86, 160 rows at most 0.87 (H200). Kept
 * matrices have a table for panels from more rows on; periodic ones were not measured. */
static constexpr int least_kept_rows = 257;
template <typename Number>
static constexpr int least_rows = std::is_same_v<Number, float>    ? 100
                                  : std::is_same_v<Number, double> ? 160
                                                                   : least_kept_rows;
static constexpr int least_lanes = 16; /* neighbouring systems */
static constexpr int least_rounds = 4; /* rounds of a block for which a table is faster */
static constexpr int static_bytes = 128; /* static shared memory of a block */
static constexpr int sector = 32;        /* bytes of a memory transaction */
/* more than the cache has; lines of larger fields that are solved in place, as a step of
 * several fields does, are evicted first, which leaves the lines of the other fields: 0.99 of
 * the time of the step. Solves of other systems take 1.03 to 1.1 of the time with it. */
static constexpr int64_t cached_bytes = 64 << 20;
/* smallest used fraction of the multiprocessors */
static constexpr double least_use = 0.95;

/* The smallest number of groups that leaves few multiprocessors unused; 0 if there is
 * none. Clusters are placed in parts of the device that have 16 multiprocessors or a
 * few more. */
template <typename Number>
static int32_t
groups_of(int64_t rows, const ps_cuda_device *device)
{
    const int processors = device->processors;

    if (device->capability < 90 ||
        device->shared_bytes < static_cast<int>(panel_bytes<Number>) + static_bytes) {
        return 0;
    }
    for (int64_t groups = divided_up(rows, panel_group_rows<Number>);
         groups <= panel_groups<Number> && groups <= processors; groups++) {
        const auto count = static_cast<int32_t>(groups);
        const bool is_full = count <= PANEL_CLUSTER
                                 ? PANEL_CLUSTER % count == 0
                                 : processors / count * count >= least_use * processors;

        if (is_full && panel_end<Number>(0, count, static_cast<int32_t>(rows)) > 0) {
            return count;
        }
    }
    return 0;
}

/* The parts of a table of `groups` groups at `store`; returns its bytes. */
template <typename Number>
static size_t
lay_out(size_t groups, void *store, PanelTable<Number> *t)
{
    size_t bytes = 0;
    const auto part = [&](auto **to, size_t count) {
        *to = reinterpret_cast<std::remove_reference_t<decltype(*to)>>(
            static_cast<char *>(store) + bytes);
        bytes += ps_cuda_padded(count * sizeof **to);
    };

    part(&t->part, groups);
    part(&t->note, 1);
    part(&t->group, groups);
    part(&t->weight, (groups + 1) * groups);
    return bytes;
}

namespace {

/* The rows of a batch for a tensor map. */
struct Box {
    const ps_cuda_shared_batch &batch;
    int64_t all, size; /* rows of the batch, bytes of a number */
    int32_t columns, rows;
};

} // namespace

/* Make a tensor map; false if the layout does not allow it. Words of 4 bytes represent
 * all types. */
static bool
map_rows(const Box &box, const void *data, const ps_stride &s, CUtensorMap *map)
{
    constexpr int32_t word = 4;
    const ps_cuda_shared_batch &b = box.batch;
    const int64_t row = s.row * box.size;
    const int64_t line = b.lines > 1 ? s.outer * box.size : row * box.all;
    const ps_cuda_tiles tiles = {
        data,
        word,
        {b.lanes * box.size / word, box.all, b.lines},
        {row, line},
        {static_cast<int32_t>(box.columns * box.size / word), box.rows, 1},
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B};

    return s.inner == 1 && ps_cuda_map_tiles(&tiles, map);
}

namespace {

struct ClearSlots {
    MailboxSlot *slots;

    __device__ __forceinline__ void operator()(int64_t i) const
    {
        slots[i] = {};
    }
};

/* A solve: the distribution of panels and the parts of the workspace. */
template <typename Number> struct PanelPlan {
    SharedPanels<Number> panels;
    PanelTeams<Number> teams; /* without the addresses */
    bool in_clusters;
    size_t mailbox, table; /* bytes; clusters need none */

    PanelPlan(const ps_tridiag *t, const ps_cuda_device *device)
        : panels(), teams(), in_clusters(false), mailbox(0), table(0)
    {
        constexpr int columns = panel_columns<Number>;
        const ps_cuda_shared_batch b = ps_cuda_shared_batch_of(t);

        teams.rows = static_cast<int32_t>(t->rows);
        teams.groups = groups_of<Number>(t->rows, device);
        panels.line_panels = divided_up(b.lanes, columns);
        panels.panels = panels.line_panels * b.lines;
        panels.lanes = b.lanes;
        panels.rhs_line = b.rhs.outer;
        panels.x_line = b.x.outer;
        panels.rhs_lane = static_cast<int32_t>(b.rhs.inner);
        panels.x_lane = static_cast<int32_t>(b.x.inner);
        panels.rhs_row = b.rhs.row;
        panels.x_row = b.x.row;
        panels.line_info = b.line_info;
        panels.lane_info = b.lane_info;
        panels.rhs = static_cast<const Number *>(t->rhs.data);
        panels.x = static_cast<Number *>(t->x.data);
        panels.info = t->info;
        panels.is_passing = t->x.data == t->rhs.data &&
                            b.lines * b.lanes * t->rows >
                                cached_bytes / static_cast<int64_t>(sizeof(Number));
        teams.periodic = (t->flags & PS_PERIODIC) != 0;
        teams.teams = teams_of(panels.panels, device->processors / teams.groups);
        in_clusters = teams.groups <= PANEL_CLUSTER && is_of_sectors();
        if (!in_clusters) {
            mailbox = ps_cuda_padded(sizeof(MailboxSlot) * columns * 2 *
                                     PanelTeams<Number>::words *
                                     static_cast<size_t>(teams.teams * teams.groups));
            table = lay_out<Number>(teams.groups, nullptr, &teams.table);
            teams.table = {};
        }
    }

    /* Whether no memory sector belongs to two panels of x. Clusters do not run in step,
     * so the parts of such a sector are stored at different times. */
    bool is_of_sectors() const
    {
        const int64_t size = sizeof(Number);

        return panels.x_row * size % sector == 0 &&
               (panels.panels == panels.line_panels ||
                panels.x_line * size % sector == 0);
    }

    /* Clear and compute the workspace of teams that are not clusters. */
    ps_status prepare(const SharedMatrix<Number> &matrix, bool is_kept, void *work,
                      cudaStream_t stream)
    {
        const ps_status status =
            for_elements(mailbox / sizeof(MailboxSlot), stream,
                         ClearSlots{static_cast<MailboxSlot *>(work)});

        teams.mailbox = static_cast<MailboxSlot *>(work);
        if (status != PS_OK || is_kept) {
            return status;
        }
        (void)lay_out(teams.groups, static_cast<char *>(work) + mailbox, &teams.table);
        return panels_keep(matrix, teams.table, teams.rows, teams.groups, panels.needs,
                           stream);
    }

    /* Use bulk copies if the rows can be mapped. The first group has tiles of its own
     * size. */
    void map(const ps_tridiag *t)
    {
        const ps_cuda_shared_batch b = ps_cuda_shared_batch_of(t);
        const int32_t rows[] = {panel_end<Number>(0, teams.groups, teams.rows),
                                panel_rows<Number>(teams.groups, teams.rows)};

        panels.in_bulk = true;
        for (int k = 0; k < 2; k++) {
            const Box box = {b, t->rows, sizeof(Number), panel_columns<Number>, rows[k]};

            panels.in_bulk = panels.in_bulk &&
                             map_rows(box, t->rhs.data, b.rhs, &panels.rhs_map[k]) &&
                             map_rows(box, t->x.data, b.x, &panels.x_map[k]);
        }
    }

    /* The smallest number of teams that needs no more rounds than `most` teams. */
    static int64_t teams_of(int64_t panels, int64_t most)
    {
        return divided_up(panels, divided_up(panels, most));
    }
};

} // namespace

static bool
lies_side_by_side(const ps_stride &s)
{
    return s.inner == 1 || s.inner == -1;
}

template <typename Number>
static SharedMatrix<Number>
matrix_of(const ps_tridiag *t, bool transposed)
{
    const Systems<Number> s = systems_of<Number>(*t);

    return {s.lower, s.diag, s.upper, s.periodic, transposed, false, nullptr};
}

bool
ps_cuda_panels_fit(ps_dtype dtype, int64_t rows, size_t *table)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    int32_t groups = 0;

    *table = 0;
    (void)with_number(dtype, [&](auto number) {
        PanelTable<decltype(number)> parts;

        groups = device == nullptr || rows < least_kept_rows
                     ? 0
                     : groups_of<decltype(number)>(rows, device);
        *table = groups > 0 ? lay_out(groups, nullptr, &parts) : 0;
        return PS_OK;
    });
    return groups > 0;
}

bool
ps_cuda_panels_accept(const ps_tridiag *t, bool is_kept)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const ps_cuda_shared_batch b = ps_cuda_shared_batch_of(t);
    bool is_enough = is_kept;

    if (device == nullptr || b.lanes < least_lanes || !lies_side_by_side(b.rhs) ||
        !lies_side_by_side(b.x)) {
        return false;
    }
    (void)with_number(t->dtype, [&](auto number) {
        using Number = decltype(number);

        const bool is_kept_or_periodic = is_kept || (t->flags & PS_PERIODIC) != 0;

        if (t->rows < (is_kept_or_periodic ? least_kept_rows : least_rows<Number>) ||
            groups_of<Number>(t->rows, device) == 0) {
            is_enough = false;
            return PS_OK;
        }
        const PanelPlan<Number> plan(t, device);

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

        bytes = plan.mailbox + (is_kept ? 0 : plan.table);
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
        const int32_t groups = groups_of<Number>(t->rows, device);
        PanelTable<Number> parts;

        (void)lay_out(groups, table, &parts);
        return panels_keep(matrix_of<Number>(t, transposed), parts,
                           static_cast<int32_t>(t->rows), groups, {}, stream);
    });
}

/* Enqueue a solve for the right-hand sides of a source; the table may be null. */
template <typename Number, typename Source>
static ps_status
apply(const ps_tridiag *t, const Source &source, const void *table, bool conjugated,
      uint8_t *marks, const compact::ColumnNeeds &needs, void *work, cudaStream_t stream)
{
    const SharedMatrix<Number> matrix = matrix_of<Number>(t, false);
    PanelPlan<Number> plan(t, ps_cuda_device_get());
    ps_status status = PS_OK;

    plan.map(t);
    plan.panels.marks = marks;
    plan.panels.needs = needs;
    plan.teams.conjugated = conjugated;
    if (table != nullptr) {
        (void)lay_out(plan.teams.groups, const_cast<void *>(table), &plan.teams.table);
    }
    if (!plan.in_clusters) {
        status = plan.prepare(matrix, table != nullptr, work, stream);
    }
    return status == PS_OK
               ? panels_launch(plan.teams, plan.panels, matrix, source, stream)
               : status;
}

ps_status
ps_cuda_panels_apply(const ps_tridiag *t, const void *table, bool conjugated,
                     uint8_t *marks, const compact::ColumnNeeds &needs, void *work,
                     cudaStream_t stream)
{
    return with_number(t->dtype, [&](auto number) {
        return apply<decltype(number)>(t, PanelRows(), table, conjugated, marks, needs,
                                       work, stream);
    });
}

ps_status
ps_cuda_panels_stencils(const ps_tridiag *t, const ps_differences &d, const void *table,
                        void *work, cudaStream_t stream)
{
    return with_real(t->dtype, [&](auto number) {
        using Number = decltype(number);
        const PanelStencils<Number> source = {lines::Differences<Number>(d),
                                              (d.flags & PS_PERIODIC) != 0};

        return apply<Number>(t, source, table, false, nullptr, {}, work, stream);
    });
}

bool
ps_cuda_panels_accept_differences(const ps_tridiag *t)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    bool is_in_bulk = false;

    if ((t->dtype != PS_F32 && t->dtype != PS_F64) || t->rows < least_kept_rows ||
        !ps_cuda_panels_accept(t, false)) {
        return false;
    }
    (void)with_real(t->dtype, [&](auto number) {
        PanelPlan<decltype(number)> plan(t, device);

        plan.map(t);
        is_in_bulk =
            plan.panels.in_bulk &&
            panel_end<decltype(number)>(0, plan.teams.groups, plan.teams.rows) > 2;
        return PS_OK;
    });
    return is_in_bulk;
}

ps_status
ps_cuda_panels_differences(const ps_tridiag *t, const void *weight, void *copy,
                           int32_t *not_finite, void *work, cudaStream_t stream)
{
    return with_real(t->dtype, [&](auto number) {
        using Number = decltype(number);
        const PanelDifferences<Number> source = {
            static_cast<const PanelSums<Number> *>(weight), static_cast<Number *>(copy),
            not_finite};

        return apply<Number>(t, source, nullptr, false, nullptr, {}, work, stream);
    });
}

} // namespace pysolvers::panels
