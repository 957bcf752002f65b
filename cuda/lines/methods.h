/* methods.h - the direct methods: the functions that tridiag.cu calls. */
#ifndef PS_CUDA_LINES_METHODS_H
#define PS_CUDA_LINES_METHODS_H

#include "ps_step.h"
#include "runtime/engine.h"

namespace pysolvers::lines {

/* PS_PIVOT_AUTO without the second step: systems that are not dominant are marked in
 * exec->marks and not solved. */
static constexpr ps_pivot mark_only = PS_PIVOT_COUNT;

/* A method. `work` returns the bytes of exec->work that `solve` needs. Both require a
 * problem that ps_tridiag_check() has accepted, at least one system, and a concrete
 * method. `solve` sets report->kernel, and writes t->info if it is not null. */
typedef struct {
    ps_status (*work)(const ps_tridiag *t, const ps_options *options, size_t *bytes);
    ps_status (*solve)(const ps_tridiag *t, const ps_options *options,
                       const ps_exec *exec, ps_report *report);
} ps_cuda_method;

extern const ps_cuda_method ps_cuda_thomas; /* PS_THOMAS */

/* The same for real systems that are not periodic, with bounds: x is at least `least` in
 * the rows inside `where`, whose data may be null. */
ps_status ps_cuda_thomas_bounded_work(const ps_tridiag *t, size_t *bytes);
ps_status ps_cuda_thomas_bounded(const ps_tridiag *t, const ps_input &least,
                                 const ps_mask &where, const ps_exec *exec,
                                 ps_report *report);

} // namespace pysolvers::lines

namespace pysolvers::reduction {

using namespace lines;

extern const ps_cuda_method ps_cuda_reduction; /* PS_CR .. PS_PCR_THOMAS */

} // namespace pysolvers::reduction

namespace pysolvers::partition {

using namespace lines;

/* PS_PARTITION; with PS_PIVOT_AUTO, systems that are not dominant are solved with
 * pivoting */
extern const ps_cuda_method ps_cuda_partition;

} // namespace pysolvers::partition

namespace pysolvers::pivoted {

using namespace lines;

extern const ps_cuda_method ps_cuda_pivoted; /* PS_PIVOTED */

} // namespace pysolvers::pivoted

namespace pysolvers::shared {

using namespace lines;

/* PS_PARTITION with 2 words per unknown, for batches that ps_cuda_shared_accepts():
 * several systems with one matrix, whose rows fit a block. */
bool ps_cuda_shared_accepts(const ps_tridiag *t);

extern const ps_cuda_method ps_cuda_shared;

} // namespace pysolvers::shared

#endif
