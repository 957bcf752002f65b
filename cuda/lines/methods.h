/* methods.h - the direct methods: what the files of each give to tridiag.cu. */
#ifndef PS_CUDA_LINES_METHODS_H
#define PS_CUDA_LINES_METHODS_H

#include "runtime/engine.h"

namespace pysolvers::lines {

/* One way to solve. `work` gives the bytes of exec->work that `solve` needs. Both take
 * what ps_tridiag_check() has accepted, with at least one system, and a concrete
 * method. `solve` sets report->kernel; it writes t->info if that is not null. */
typedef struct {
    ps_status (*work)(const ps_tridiag *t, const ps_options *options, size_t *bytes);
    ps_status (*solve)(const ps_tridiag *t, const ps_options *options,
                       const ps_exec *exec, ps_report *report);
} ps_cuda_method;

extern const ps_cuda_method ps_cuda_thomas; /* PS_THOMAS */

} // namespace pysolvers::lines

namespace pysolvers::reduction {

using namespace lines;

extern const ps_cuda_method ps_cuda_reduction; /* PS_CR .. PS_PCR_THOMAS */

} // namespace pysolvers::reduction

namespace pysolvers::partition {

using namespace lines;

extern const ps_cuda_method ps_cuda_partition; /* PS_PARTITION; PS_PIVOT_AUTO pivots
                                                  the systems that are not dominant */

} // namespace pysolvers::partition

namespace pysolvers::pivoted {

using namespace lines;

extern const ps_cuda_method ps_cuda_pivoted; /* PS_PIVOTED */

} // namespace pysolvers::pivoted

namespace pysolvers::shared {

using namespace lines;

/* PS_PARTITION with 2 words an unknown, for the batches that ps_cuda_shared_takes():
 * several systems with one matrix, which fits a block. */
bool ps_cuda_shared_takes(const ps_tridiag *t);

extern const ps_cuda_method ps_cuda_shared;

} // namespace pysolvers::shared

#endif
