/* relax_rules.cuh - the interface of a rule, which relaxes a node.
 *
 * A rule reads `fields` values at each node. With masks_field, field[0] is the weight;
 * with computes_weight the rule computes the weight instead of reading it. column(p,
 * parity) and line(j) are the numbers of a column i = 2 p + parity and of a row,
 * including those around the interior. relax() is the arithmetic of the contract,
 * operation by operation.
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
