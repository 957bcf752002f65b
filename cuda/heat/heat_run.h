/* heat_run.h - a call of the heat solver in progress.
 */
#ifndef PS_CUDA_HEAT_HEAT_RUN_H
#define PS_CUDA_HEAT_HEAT_RUN_H

#include "heat/heat_clock.cuh"
#include "heat/heat_plane.h"
#include "heat/heat_resident.h"
#include "heat/heat_sections.h"
#include "heat/heat_stencils.h"
#include "heat/heat_teams.h"
#include "heat/heat_volume.h"
#include "runtime/texture.cuh"

namespace pysolvers::heat {

/* The forms of a step: kernels that make whole steps in place of sweeps along one axis after the other,
 * in the order in which they are tried. The plan of a form has
 *
 *   name      of the kernels in reports
 *   is_used   whether make() has found that the kernels make the steps
 *   bytes()   of workspace; 0 if the kernels do not make the steps of `h`
 *   make()    the plan, unless bytes() is 0; `memory` exists as long as the plan is in use
 */
template <typename Real> struct HeatForms {
    HeatVolume<Real> volume = {};
    HeatResidentPlan<Real> resident = {};
    HeatPlanePlan<Real> plane = {};

    /* call(plan) for each plan until it returns true; whether it does. */
    template <typename Call> bool any(const Call &call)
    {
        return call(volume) || call(resident) || call(plane);
    }
};

/* The form of the steps of `h` and its workspace; no name and 0 if sweeps make them. */
struct HeatForm {
    const char *name;
    size_t bytes;
};
HeatForm heat_form(const ps_heat *h, const ps_cuda_device *device);

/* Textures of the kernels of the paper. */
enum { HEAT_TEXTURES = 8 };

/* The sweeps of a call with their plans: in shared memory, or through arrays in exec.
 * Real is float or double. */
template <typename Real> struct HeatRun {
    const ps_heat *h;
    cudaStream_t stream;
    ps_exec exec; /* with the workspace for sweeps through arrays, or for the kernels of
                     the paper */
    HeatClock clock;
    int64_t steps = 0; /* of the call */
    /* w of Peaceman and Rachford's sweeps, that of h or a copy whose rows begin at sectors of
     * memory, and the distance of its rows */
    Real *w = nullptr;
    int64_t pitch = 0;
    runtime::Textures<HEAT_TEXTURES> textures = {};
    HeatForms<Real> forms = {}; /* if one is used, without the sweeps below */
    bool on_chip[PS_HEAT_AXES] = {};
    HeatPlan<Real> plan[PS_HEAT_AXES] = {};
    HeatRows<Real> rows = {};                     /* along x */
    HeatColumns<Real> columns[PS_HEAT_AXES] = {}; /* along y and z */
    bool by_teams[PS_HEAT_AXES] = {};
    HeatTeamPlan<Real> teams[PS_HEAT_AXES] = {};
};

/* Whether the lines along an axis are solved in shared memory. */
bool heat_is_on_chip(const ps_heat *h, int axis, const ps_cuda_device *device);

/* 2 a of the matrices along an axis: dt / spacing^2, except for wei2013, whose rows are
 * divided by 1 + 2 r of the other axis. */
double heat_ratio(const ps_heat *h, int axis);

/* The matrix of the sweeps along an axis. */
HeatMatrix heat_matrix(const ps_heat *h, int axis);

/* Bytes of workspace for all plans and for the sweeps through arrays. */
ps_status heat_sweeps_work(const ps_heat *h, size_t *bytes);

/* Bytes of what calls keep. */
size_t heat_sweeps_kept(const ps_heat *h);

/* Make the plans of `run`, whose h, stream and exec are set; exec->work is advanced
 * behind them. */
template <typename Real> ps_status heat_plan(HeatRun<Real> *run);

/* Copy w to where the sweeps have it, or back, if this is another place and the sweeps do not. */
template <typename Real> ps_status heat_move_w(const HeatRun<Real> &run, bool back);

/* The sweep of step s along an axis: from w to w or t. */
template <typename Real>
ps_status heat_sweep(const HeatRun<Real> &run, int axis, int64_t s, Real *w,
                     ps_cuda_heat_sink sink);

} // namespace pysolvers::heat

#endif
