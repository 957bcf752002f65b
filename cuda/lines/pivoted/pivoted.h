/* pivoted.h - pivoted solves of some of the systems of a batch.
 *
 * For whoever has solved the others: a solver without row exchanges marks what it
 * should not have solved, and this call solves that.
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_H
#define PS_CUDA_LINES_PIVOTED_PIVOTED_H

#include "runtime/engine.h"

namespace pysolvers::pivoted {

using namespace runtime;

/* Bytes of the marks of a batch, in front of other parts of a workspace. */
static inline size_t
ps_cuda_marks_bytes(int64_t systems)
{
    return ps_cuda_padded(static_cast<size_t>(systems));
}

/* Bytes of workspace that ps_cuda_pivoted_marked() needs. */
ps_status ps_cuda_pivoted_marked_work(const ps_tridiag *t, size_t *bytes);

/* Solve the systems with marks[system] != 0, by partial pivoting. `marks` is device
 * memory, one byte a system in the order of info, and is read when the stream comes to
 * it; null marks all, and then the workspace begins with their marks. The mark of a
 * system that is solved a second time, in order, becomes PS_SOLVED_AGAIN. Neither x nor
 * info of the other systems is touched. Where x is rhs, a marked system must still hold
 * its right-hand side. */
ps_status ps_cuda_pivoted_marked(const ps_tridiag *t, uint8_t *marks, const ps_exec *exec,
                                 void *work);

} // namespace pysolvers::pivoted

#endif
