/* staggered_stages.h - the explicit stages of a step on the staggered grid. */
#ifndef PS_CUDA_FLOW_STAGGERED_STAGES_H
#define PS_CUDA_FLOW_STAGGERED_STAGES_H

#include "ps_laplace.h"
#include "ps_staggered.h"
#include "runtime/engine.h"

namespace pysolvers::flow {

/* Parts of the maxima that the stage correct computes, one for each block. */
int64_t ps_cuda_staggered_parts(int64_t cells);

/* What the stage correct sets in the clock apart from what it measures. */
struct Swept {
    double sweeps;   /* added */
    double residual; /* set if `counts` */
    bool counts;
};

/* Enqueue q from the velocity, or the source of `l`, unless the last step has ended the
 * call. Sets DT and NEXT of the clock. */
ps_status ps_cuda_staggered_predict(const ps_staggered *s, const ps_laplace *l,
                                    cudaStream_t stream);

/* Enqueue the next velocity from the pressure, p or that of `l`, which is copied to p,
 * and the clock. `parts` has room for 3 ps_cuda_staggered_parts() numbers. */
ps_status ps_cuda_staggered_correct(const ps_staggered *s, const ps_laplace *l,
                                    const Swept &swept, uint64_t *parts,
                                    cudaStream_t stream);

/* Enqueue: the fields of `l`, which are 0, receive p and the tables of the relaxation. */
ps_status ps_cuda_staggered_colour(const ps_staggered *s, const ps_laplace *l,
                                   cudaStream_t stream);

/* Enqueue: u and v receive the current velocity. */
ps_status ps_cuda_staggered_settle(const ps_staggered *s, cudaStream_t stream);

} // namespace pysolvers::flow

#endif
