/* pivoted.h - pivoted solves of some of the systems of a batch.
 *
 * The second step of PS_PIVOT_AUTO: a solver without row exchanges marks the systems that
 * are not diagonally dominant, and this call solves the marked ones.
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
 * memory, one byte for each system in the order of info, and is read in the order of the
 * stream. Null: all systems are solved, and their marks are the first part of the
 * workspace. The mark of a system that is solved a second time, in order, becomes
 * PS_SOLVED_AGAIN. x and info of the other systems are not written. If x is rhs, a marked
 * system must still contain its right-hand side. */
ps_status ps_cuda_pivoted_marked(const ps_tridiag *t, uint8_t *marks, const ps_exec *exec,
                                 void *work);

} // namespace pysolvers::pivoted

#endif
