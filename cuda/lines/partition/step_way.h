/* step_way.h - implicit steps in one pass over memory (step_way.cu). */
#ifndef PS_CUDA_LINES_PARTITION_STEP_WAY_H
#define PS_CUDA_LINES_PARTITION_STEP_WAY_H

#include "lines/columns/column.h"
#include "lines/partition/partition.h"

namespace pysolvers::partition {

using namespace columns;

/* A step of real numbers that one pass over memory solves, by columns or by tiles. */
struct StepWay {
    ps_tridiag t; /* of the step, its batch axes merged */
    StepTerms terms;
    ColumnShape columns;
    Plan plan;
    bool by_columns;
    int32_t chunk_rows, chunks; /* the words of its mask: step_terms.cuh */
};

/* Whether there is one for the rows of `t` and for terms.source, which need not be
 * dominant. The batch axes of the mask are those of `t`. */
bool ps_cuda_step_way(const ps_tridiag *t, const StepTerms &terms,
                      const ps_cuda_device *device, StepWay *way);
size_t ps_cuda_step_way_work(const StepWay &way, const ps_cuda_device *device);
/* way.terms.words and marks may be null; `marks` as of ps_cuda_partition_solve(). */
ps_status ps_cuda_step_way_solve(const StepWay &way, const ps_cuda_device *device,
                                 uint8_t *marks, void *work, cudaStream_t stream);

} // namespace pysolvers::partition

#endif
