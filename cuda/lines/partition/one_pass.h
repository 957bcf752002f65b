/* one_pass.h - implicit steps in one pass over memory (one_pass.cu). */
#ifndef PS_CUDA_LINES_PARTITION_ONE_PASS_H
#define PS_CUDA_LINES_PARTITION_ONE_PASS_H

#include "lines/columns/column.h"
#include "lines/partition/partition.h"

namespace pysolvers::partition {

using namespace columns;

/* A step of real numbers that one pass over memory solves, by columns or by tiles. */
struct OnePassStep {
    ps_tridiag t; /* of the step, its batch axes merged */
    StepTerms terms;
    ColumnShape columns;
    Plan plan;
    bool by_columns;
    int32_t chunk_rows, chunks; /* of columns: those of the bits of the mask */
};

/* Whether there is one for the rows of `t` and for terms.source, which need not be
 * dominant. The batch axes of the mask are those of `t`. */
bool ps_cuda_one_pass(const ps_tridiag *t, const StepTerms &terms,
                      const ps_cuda_device *device, OnePassStep *step);
size_t ps_cuda_one_pass_work(const OnePassStep &step, const ps_cuda_device *device);
/* step.terms.words and marks may be null; `marks` as of ps_cuda_partition_solve(). */
ps_status ps_cuda_one_pass_solve(const OnePassStep &step, const ps_cuda_device *device,
                                 uint8_t *marks, void *work, cudaStream_t stream);

} // namespace pysolvers::partition

#endif
