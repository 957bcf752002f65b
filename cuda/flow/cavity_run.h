/* cavity_run.h - a call of the cavity in progress, and the stages of its iterations. */
#ifndef PS_CUDA_FLOW_CAVITY_RUN_H
#define PS_CUDA_FLOW_CAVITY_RUN_H

#include "flow/cavity.h"

namespace pysolvers::flow {

/* The workspace, carved, and where psi and omega are now: sweeps swap them with the
 * fields of the workspace. */
struct CavityRun {
    const ps_cavity *c;
    const ps_options *options;
    ps_cavity_report *report;
    bool fused;
    ps_exec exec; /* with what the unfused sweeps may use */
    cudaStream_t stream;
    double *psi, *omega, *half, *other;
    double *sums, *rows;
    bool walls_wait; /* for the next sweep of line Jacobi for psi, which does not need
                        them and relaxes them beside its lines */
};

/* Stage k = 0, 1, 2 of an iteration. */
ps_stage ps_cuda_stage_at(const CavityRun &r, int k);

/* Enqueue a stage, if it is among those of the call. */
ps_status ps_cuda_make_stage(CavityRun &r, ps_stage stage);

/* Relax the walls if they wait. */
ps_status ps_cuda_relax_walls(CavityRun &r);

} // namespace pysolvers::flow

#endif
