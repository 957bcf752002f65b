/* relax_rules.cuh - what a rule is: how a node is relaxed.
 *
 * A rule reads `fields` values at each node. field[0] is the weight where masks_field,
 * and the rule makes it up, instead of reading it, where computes_weight. column(p,
 * parity) and line(j) are what it knows of a column, i = 2 p + parity, and of a row, also
 * of those around the interior. relax() is the arithmetic of the contract, operation by
 * operation.
 */
#ifndef PS_CUDA_RELAXATION_RELAX_RULES_CUH
#define PS_CUDA_RELAXATION_RELAX_RULES_CUH

#include "relaxation/relax.cuh"

namespace pysolvers::relaxation {

/* The neighbours of a node. */
template <typename T> struct Around {
    T west, east, north, south;
};

} // namespace pysolvers::relaxation

#endif
