/* heat_team_launch.cuh - launches of sweeps by teams of blocks, for one dtype.
 */
#ifndef PS_CUDA_HEAT_HEAT_TEAM_LAUNCH_CUH
#define PS_CUDA_HEAT_HEAT_TEAM_LAUNCH_CUH

#include "device/tensor_map.h"
#include "heat/heat_panels.cuh"
#include "heat/heat_team_table.cuh"
#include "runtime/math.cuh"

namespace pysolvers::heat {

static constexpr int heat_table_threads = 160; /* at least one per group */
/* fewest rounds of a team for which the sweep is faster */
static constexpr int heat_least_rounds = 6;
static constexpr int heat_panel_bytes = 256; /* width of a panel */
/* time of a round apart from that of its rows, in rows of a chunk */
static constexpr int heat_round_rows = 8;
static constexpr int heat_group_rows = HEAT_TEAM_PLACES * HEAT_TEAM_CHUNKS;

/* Places of a chunk. */
static constexpr int
heat_places(int chunk_rows)
{
    return chunk_rows > HEAT_TEAM_PLACES ? HEAT_TEAM_MORE_PLACES : HEAT_TEAM_PLACES;
}

template <typename Real>
static constexpr size_t
heat_team_shared(int places)
{
    return alignof(HeatTeamShared<Real>) + sizeof(HeatTeamShared<Real>) +
           static_cast<size_t>(heat_panel_bytes) * places * HEAT_TEAM_CHUNKS *
               HEAT_TEAM_STAGES;
}

/* call(kernel) with the kernel of a sink. */
template <typename Real, int PLACES, typename Call>
static ps_status
with_sink_kernel(ps_cuda_heat_sink sink, const Call &call)
{
    switch (sink) {
    case HEAT_EXTRAPOLATE:
        return call(heat_panels_kernel<Real, HEAT_EXTRAPOLATE, PLACES>);
    case HEAT_EXTRAPOLATE_BOTH:
        return call(heat_panels_kernel<Real, HEAT_EXTRAPOLATE_BOTH, PLACES>);
    default:
        return call(heat_panels_kernel<Real, HEAT_PLAIN, PLACES>);
    }
}

/* The same for chunks of `chunk_rows` rows. */
template <typename Real, typename Call>
static ps_status
with_panels_kernel(ps_cuda_heat_sink sink, int chunk_rows, const Call &call)
{
    return heat_places(chunk_rows) == HEAT_TEAM_PLACES
               ? with_sink_kernel<Real, HEAT_TEAM_PLACES>(sink, call)
               : with_sink_kernel<Real, HEAT_TEAM_MORE_PLACES>(sink, call);
}

/* The number of rows per chunk with which the blocks need the least time for all rounds.
 * A round takes as long as the rows of a chunk and `heat_round_rows` more: on an H100, a
 * sweep of 4154 rows of 8192 columns takes 0.102 ms with chunks of 16 rows, and 0.121 ms
 * with chunks of 8, although their blocks have fewer rows in all (float64: 0.218 and
 * 0.239 ms). With 17 rows, 4171 rows have as many blocks as 4096. */
template <typename Real>
static void
heat_divide_rows(const HeatColumns<Real> &s, const ps_cuda_device *device,
                 HeatTeams<Real> *t)
{
    constexpr int64_t width = HeatTeamShared<Real>::width;
    const bool has_more = heat_team_shared<Real>(HEAT_TEAM_MORE_PLACES) <=
                          static_cast<size_t>(device->shared_bytes);
    const int processors = device->processors;
    const int64_t most = processors < HEAT_TEAM_GROUPS ? processors : HEAT_TEAM_GROUPS;
    int64_t least = INT64_MAX;

    t->rows = static_cast<int32_t>(s.rows);
    t->plane_panels = divided_up(s.c1 - s.c0, width);
    t->panels = t->plane_panels * s.planes;
    for (int32_t rows = has_more ? HEAT_TEAM_MORE_PLACES : HEAT_TEAM_PLACES; rows > 0;
         rows--) {
        const int64_t group = rows * HEAT_TEAM_CHUNKS;
        const int64_t groups = divided_up(s.rows, group);
        const int64_t teams =
            t->panels < processors / groups ? t->panels : processors / groups;

        if (groups > most) {
            continue;
        }
        const int64_t rounds = divided_up(t->panels, teams);
        const int64_t time = rounds * (rows + heat_round_rows);

        if (time < least) {
            least = time;
            t->chunk_rows = rows;
            t->groups = static_cast<int32_t>(groups);
            t->teams = teams;
        }
    }
}

/* The tiles of half the rows of a group. */
template <typename Real>
static bool
heat_make_map(const HeatColumns<Real> &s, const HeatTeams<Real> &t, CUtensorMap *map)
{
    const int64_t plane = s.planes > 1 ? s.plane : s.pitch, size = sizeof(Real);
    const ps_cuda_tiles tiles = {
        s.w + s.c0,
        sizeof(Real),
        {s.c1 - s.c0, s.rows, s.planes},
        {s.pitch * size, plane * size},
        {HeatTeamShared<Real>::width, t.chunk_rows * HEAT_TEAM_CHUNKS / 2, 1},
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B};

    return ps_cuda_map_tiles(&tiles, map);
}

/* The number of groups on either side whose weights exceed the cube of the rounding
 * error and are therefore added. */
template <typename Real>
static int32_t
heat_reach(const ps_cuda_heat_line &l, const HeatTeams<Real> &t)
{
    const double rows = log(heat_negligible<Real>) / log1p(-l.p);
    const double groups =
        2 + rows / (t.chunk_rows * HEAT_TEAM_CHUNKS); /* the last group may be small */

    return groups < t.groups ? static_cast<int32_t>(groups) : t.groups;
}

template <typename Real>
bool
heat_teams_accept(const HeatColumns<Real> &s, const ps_cuda_device *device)
{
    HeatTeams<Real> t = {};

    if (device->capability < 90 || s.pitch * sizeof(Real) % 16 != 0 ||
        reinterpret_cast<uintptr_t>(s.w + s.c0) % 16 != 0 || s.c1 - s.c0 > INT32_MAX ||
        static_cast<size_t>(device->shared_bytes) <
            heat_team_shared<Real>(HEAT_TEAM_PLACES) ||
        s.rows > int64_t{heat_group_rows} * HEAT_TEAM_GROUPS) {
        return false;
    }
    heat_divide_rows(s, device, &t);
    return t.groups > 0 && (t.panels >= heat_least_rounds * t.teams ||
                            !heat_columns_fit<Real>(s.rows, device));
}

template <typename Real>
size_t
heat_team_bytes(const ps_cuda_device *device)
{
    const size_t rounds = 2, words = sizeof(HeatPair<Real>) / sizeof(uint64_t);

    return ps_cuda_padded(sizeof(HeatTeamTable<Real>)) +
           ps_cuda_padded(sizeof(MailboxSlot) * rounds * words *
                          HeatTeamShared<Real>::width *
                          static_cast<size_t>(device->processors));
}

template <typename Real>
ps_status
heat_plan_teams(const HeatColumns<Real> &s, const HeatMatrix &m, void *work,
                cudaStream_t stream, HeatTeamPlan<Real> *plan)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const ps_cuda_heat_line l =
        ps_cuda_heat_line_of(m.a, m.end, m.is_periodic, s.rows, 1, sizeof(Real) == 4);
    HeatTeams<Real> &t = plan->teams;
    auto *const table = static_cast<HeatTeamTable<Real> *>(work);
    char *const mailbox =
        static_cast<char *>(work) + ps_cuda_padded(sizeof(HeatTeamTable<Real>));

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    heat_divide_rows(s, device, &t);
    t.q = static_cast<Real>(l.q);
    t.p = static_cast<Real>(l.p);
    for (int k = 0; k < 2; k++) {
        t.weight[k] = static_cast<Real>(m.end[k].weight);
        t.add[k] = static_cast<Real>(m.end[k].add);
    }
    t.reach = heat_reach(l, t);
    t.kept =
        static_cast<int32_t>(heat_kept_bytes / (t.teams * t.rows * heat_panel_bytes));
    t.table = table;
    t.mailbox = reinterpret_cast<MailboxSlot *>(mailbox);
    plan->map = {};
    if (!heat_make_map(s, t, &plan->map)) {
        return PS_DEVICE_FAILURE;
    }
    const ps_status status = ps_cuda_status(cudaMemsetAsync(
        mailbox, 0, heat_team_bytes<Real>(device) - (mailbox - static_cast<char *>(work)),
        stream));
    return status == PS_OK
               ? for_threads<heat_table_threads>(
                     t.groups, stream, MakeHeatTeamTable<Real>{l, t.chunk_rows, table})
               : status;
}

template <typename Real>
ps_status
heat_sweep_teams(const HeatColumns<Real> &s, const HeatTeamPlan<Real> &plan,
                 int64_t sweeps, cudaStream_t stream)
{
    HeatTeams<Real> t = plan.teams;

    t.posted_before = static_cast<uint64_t>(sweeps * divided_up(t.panels, t.teams));
    return with_panels_kernel<Real>(s.sink, t.chunk_rows, [&](auto kernel) {
        return allow_shared(kernel) == cudaSuccess
                   ? Launch(t.teams * t.groups, HEAT_TEAM_THREADS,
                            heat_team_shared<Real>(heat_places(t.chunk_rows)), stream)
                         .closely()
                         .together()
                         .run(kernel, t, s, plan.map)
                   : PS_DEVICE_FAILURE;
    });
}

} // namespace pysolvers::heat

#endif
