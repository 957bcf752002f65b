/* step_rows.h - the rows of an implicit step as operands of a solve, and what comes after
 * the solve.
 */
#ifndef PS_CUDA_LINES_STEP_ROWS_H
#define PS_CUDA_LINES_STEP_ROWS_H

#include "lines/join/step_terms.cuh"
#include "lines/row_walk.h"
#include "ps_step.h"
#include "runtime/engine.h"

namespace pysolvers::lines {

/* The rows of a ps_step, those of join/step_terms.cuh. A row outside is a row of the
 * identity, or of another number, with the right-hand side 0. */
template <typename Number> struct StepRowsJob {
    RowWalk<Number> walk;                   /* added: the source */
    Walked<Number> lower, diag, upper, rhs; /* to be written; null data: not */
    Walked<Number> kept;                    /* null data, or u is written there */
    Walked<const uint8_t> where;
    MarkedSystems marked;
    Walked<const int32_t> ends; /* null, or the first and the last inner row of a system
                                   as its rows 0 and 1 */
    Walked<const Number> flux[2], value[2];
    bool is_flux;
    bool has_sums; /* diag has the row sums of the matrix */
    join::StepNumbers<Number> terms;
    join::FluxRows<real_of<Number>> fluxes;
    real_of<Number> outside; /* the diagonal of a row outside */
};

/* x = u + gain (y - u), or y if gain is 0; u outside. */
template <typename Number> struct StepBlendJob {
    RowWalk<Number> walk; /* added: y */
    Walked<Number> x;
    Walked<const uint8_t> where;
    MarkedSystems marked;
    real_of<Number> gain;
};

/* The first and the last inner row of each system: ends[outer * inner] of the first ones,
 * then those of the last ones; rows and -1 if there is none. */
ps_status ps_cuda_step_ends(const ps_mask &where, int64_t rows, int64_t outer,
                            int64_t inner, int32_t *ends, cudaStream_t stream);

/* step_rows.cuh */
template <typename Number>
ps_status launch_step_rows(const StepRowsJob<Number> &job, cudaStream_t stream);
template <typename Number>
ps_status launch_step_blend(const StepBlendJob<Number> &job, cudaStream_t stream);

} // namespace pysolvers::lines

#endif
