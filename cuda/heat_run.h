/* heat_run.h - a call of the heat solver in progress.
 */
#ifndef PS_CUDA_HEAT_RUN_H
#define PS_CUDA_HEAT_RUN_H

#include "heat_clock.cuh"
#include "heat_stencils.h"

/* Sweeps of a call, planned: on chip, or through arrays in exec. Real is float or
 * double. */
template <typename Real> struct HeatRun {
    const ps_heat *h;
    cudaStream_t stream;
    ps_exec exec; /* with what sweeps through arrays, or the paper's kernels, may use */
    HeatClock clock;
    bool on_chip[PS_HEAT_AXES] = {};
    HeatPlan<Real> plan[PS_HEAT_AXES] = {};
    HeatRows<Real> rows = {};                     /* along x */
    HeatColumns<Real> columns[PS_HEAT_AXES] = {}; /* along y and z */
};

/* Whether the lines along an axis are solved on chip. */
bool heat_is_on_chip(const ps_heat *h, int axis, const ps_cuda_device *device);

/* 2 a of the matrices along an axis, dt / spacing^2 but for wei2013, the rows of which
 * are divided by 1 + 2 r of the other axis. */
double heat_ratio(const ps_heat *h, int axis);

/* Bytes of workspace of all plans and of the sweeps through arrays. */
ps_status heat_sweeps_work(const ps_heat *h, size_t *bytes);

/* Make the plans of `run`, whose h, stream and exec are set; exec becomes the rest. */
template <typename Real> ps_status heat_plan(HeatRun<Real> *run);

/* The sweep of step s along an axis: from w, and to w or t. */
template <typename Real>
ps_status heat_sweep(const HeatRun<Real> &run, int axis, int64_t s, Real *w,
                     ps_cuda_heat_sink sink);

#endif
