/* heat_teams.h - sweeps along y or z by teams of blocks: 2 words a node.
 *
 * For fields larger than the second-level cache, the rows of which are 16-byte aligned:
 * panels of 256 bytes of neighbouring columns, whose tiles come and go by the copy
 * engine. heat_panels.cuh has the kernel, heat_columns.cuh what this does not take.
 */
#ifndef PS_CUDA_HEAT_HEAT_TEAMS_H
#define PS_CUDA_HEAT_HEAT_TEAMS_H

#include <cuda.h>

#include "heat/heat_sweeps.h"

namespace pysolvers::heat {

/* Chunks of the rows of a block, a group; groups of a line and parts of a group, at most.
 */
enum { HEAT_TEAM_CHUNKS = 16, HEAT_TEAM_GROUPS = 33, HEAT_TEAM_PARTS = 4 };

/* What the sums of a group count in what comes into another, or the value of an end. */
template <typename Real> struct alignas(4 * sizeof(Real)) HeatWeights {
    Real uu, ux, xu, xx; /* u in u, x in u, u in x, x in x */
};

/* A chunk in a part of a group, or that in the group: q^rows, u before it to x of its
 * first row, and that to the first row of the whole. */
template <typename Real> struct alignas(4 * sizeof(Real)) HeatUnit {
    Real power, spread, lead, unused;
};

/* What the groups of a line are joined with. Ends are weighed by ux and xx. */
template <typename Real> struct HeatTeamTable {
    HeatWeights<Real> weight[HEAT_TEAM_GROUPS][HEAT_TEAM_GROUPS]; /* [group][from] */
    HeatWeights<Real> end[HEAT_TEAM_GROUPS][2];
    HeatUnit<Real> chunk[HEAT_TEAM_GROUPS][HEAT_TEAM_CHUNKS];
    HeatUnit<Real> part[HEAT_TEAM_GROUPS][HEAT_TEAM_PARTS];
};

/* Bytes that a sweep leaves in the second-level cache for the next one. */
static constexpr int64_t heat_kept_bytes = int64_t{24} << 20;

} // namespace pysolvers::heat

namespace pysolvers::device {

struct MailboxSlot;

} // namespace pysolvers::device

namespace pysolvers::heat {

using namespace device;

/* The blocks of a team have a group of rows each, of one panel after the other. */
template <typename Real> struct HeatTeams {
    Real q, p, weight[2], add[2]; /* as in HeatLine */
    int32_t rows, groups, chunk_rows;
    int32_t reach; /* groups on either side that count, in a ring */
    int32_t
        kept; /* last rounds of HEAT_EXTRAPOLATE that stay in the second-level cache */
    int64_t teams, panels, plane_panels;
    const HeatTeamTable<Real> *table;
    MailboxSlot *mailbox;   /* [teams][round & 1][groups][words][columns of a panel] */
    uint64_t posted_before; /* rounds of sweeps before */
};

/* What is the same for all sweeps along an axis, and how tiles lie in memory. */
template <typename Real> struct HeatTeamPlan {
    HeatTeams<Real> teams;
    CUtensorMap map;
};

/* Whether columns like `s`, with its w, go through teams, whatever the sink but HEAT_ADD.
 */
template <typename Real>
bool heat_teams_take(const HeatColumns<Real> &s, const ps_cuda_device *device);

/* Bytes that a plan needs, aligned to 256. */
template <typename Real> size_t heat_team_bytes(const ps_cuda_device *device);

/* Plan the sweeps of `s`; `work` is device memory that lives as long as the plan. */
template <typename Real>
ps_status heat_plan_teams(const HeatColumns<Real> &s, const HeatMatrix &m, void *work,
                          cudaStream_t stream, HeatTeamPlan<Real> *plan);

/* One that comes after `sweeps` others of the plan. */
template <typename Real>
ps_status heat_sweep_teams(const HeatColumns<Real> &s, const HeatTeamPlan<Real> &plan,
                           int64_t sweeps, cudaStream_t stream);

} // namespace pysolvers::heat

#endif
