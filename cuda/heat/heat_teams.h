/* heat_teams.h - sweeps along y or z by teams of blocks: 2 words per node.
 *
 * For fields larger than the L2 cache whose rows are 16-byte aligned. The tiles of
 * panels of neighbouring columns, 256 bytes wide, are loaded and stored by bulk copies.
 * heat_panels.cuh contains the kernel, heat_columns.cuh the one for all other sweeps.
 */
#ifndef PS_CUDA_HEAT_HEAT_TEAMS_H
#define PS_CUDA_HEAT_HEAT_TEAMS_H

#include <cuda.h>

#include "heat/heat_sweeps.h"

namespace pysolvers::heat {

/* Chunks of a group, which is the rows of a block; the largest numbers of groups of a
 * line and of parts of a group. */
enum { HEAT_TEAM_CHUNKS = 16, HEAT_TEAM_GROUPS = 132, HEAT_TEAM_PARTS = 4 };

/* The weights of the sums of a group, or of the value of an end, in the boundary values
 * of another group. */
template <typename Real> struct alignas(4 * sizeof(Real)) HeatWeights {
    Real uu, ux, xu, xx; /* u in u, x in u, u in x, x in x */
};

/* Factors of a chunk in a part of a group, or of a part in the group: q^rows, the
 * factor from u before it to x of its first row, and that from there to the first row
 * of the whole. */
template <typename Real> struct alignas(4 * sizeof(Real)) HeatUnit {
    Real power, spread, lead, unused;
};

/* The weights of all groups of a line. The values of the ends are multiplied by ux and
 * xx. */
template <typename Real> struct HeatTeamTable {
    HeatWeights<Real> weight[HEAT_TEAM_GROUPS][HEAT_TEAM_GROUPS]; /* [group][from] */
    HeatWeights<Real> end[HEAT_TEAM_GROUPS][2];
    HeatUnit<Real> chunk[HEAT_TEAM_GROUPS][HEAT_TEAM_CHUNKS];
    HeatUnit<Real> part[HEAT_TEAM_GROUPS][HEAT_TEAM_PARTS];
};

/* Bytes that a sweep leaves in the L2 cache for the next one. */
static constexpr int64_t heat_kept_bytes = int64_t{24} << 20;

} // namespace pysolvers::heat

namespace pysolvers::device {

struct MailboxSlot;

} // namespace pysolvers::device

namespace pysolvers::heat {

using namespace device;

/* Parameters of the kernel: each block of a team has a group of rows, for one panel
 * after the other. */
template <typename Real> struct HeatTeams {
    Real q, p, weight[2], add[2]; /* as in HeatLine */
    int32_t rows, groups, chunk_rows;
    int32_t reach; /* groups on either side that contribute, cyclically */
    int32_t kept;  /* last rounds of HEAT_EXTRAPOLATE whose stores stay in the L2 cache */
    int64_t teams, panels, plane_panels;
    const HeatTeamTable<Real> *table;
    MailboxSlot *mailbox;   /* [teams][round & 1][groups][words][columns of a panel] */
    uint64_t posted_before; /* rounds of the previous sweeps */
};

/* The constants of all sweeps along an axis, and the layout of tiles in memory. */
template <typename Real> struct HeatTeamPlan {
    HeatTeams<Real> teams;
    CUtensorMap map;
};

/* Whether teams can process columns like `s` with its w, for every sink but HEAT_ADD. */
template <typename Real>
bool heat_teams_accept(const HeatColumns<Real> &s, const ps_cuda_device *device);

/* Bytes of a plan, aligned to 256. */
template <typename Real> size_t heat_team_bytes(const ps_cuda_device *device);

/* Plan the sweeps of `s`; `work` is device memory that exists as long as the plan. */
template <typename Real>
ps_status heat_plan_teams(const HeatColumns<Real> &s, const HeatMatrix &m, void *work,
                          cudaStream_t stream, HeatTeamPlan<Real> *plan);

/* A sweep that follows `sweeps` earlier ones of the plan. */
template <typename Real>
ps_status heat_sweep_teams(const HeatColumns<Real> &s, const HeatTeamPlan<Real> &plan,
                           int64_t sweeps, cudaStream_t stream);

} // namespace pysolvers::heat

#endif
