/* cavity_run.h - a call of the cavity in progress, and the stages of its iterations. */
#ifndef PS_CUDA_FLOW_CAVITY_RUN_H
#define PS_CUDA_FLOW_CAVITY_RUN_H

#include "flow/cavity.h"

namespace pysolvers::flow {

/* The parts of the workspace, and the fields that currently hold psi and omega: a sweep
 * exchanges one of them with a field of the workspace. */
struct CavityRun {
    const ps_cavity *c;
    const ps_options *options;
    ps_cavity_report *report;
    bool fused;
    ps_exec exec; /* its workspace is what the unfused sweeps may use */
    cudaStream_t stream;
    double *psi, *omega, *half, *other;
    double *sums, *rows;
    bool walls_wait; /* the walls are to be relaxed by the next sweep of line Jacobi for
                        psi, which does not read them */
};

/* Stage k = 0, 1, 2 of an iteration. */
ps_stage ps_cuda_stage_at(const CavityRun &r, int k);

/* Enqueue a stage if the call includes it. */
ps_status ps_cuda_make_stage(CavityRun &r, ps_stage stage);

/* Relax the walls if they are still to be relaxed. */
ps_status ps_cuda_relax_walls(CavityRun &r);

} // namespace pysolvers::flow

#endif
