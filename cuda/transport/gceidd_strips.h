/* gceidd_strips.h - sweeps with one strip per thread, for both dtypes. */
#ifndef PS_CUDA_TRANSPORT_GCEIDD_STRIPS_H
#define PS_CUDA_TRANSPORT_GCEIDD_STRIPS_H

#include "transport/gceidd.h"

namespace pysolvers::transport {

/* Cells of the longest strip; the most that a thread can solve; the largest number of
 * rows of a table. */
int64_t ps_cuda_gceidd_longest(const ps_gceidd *g, int axis);
enum { PS_CUDA_GCEIDD_MOST_CELLS = 32, PS_CUDA_GCEIDD_TABLE_ROWS = 36 };

/* Whether all rows of a line have the same coefficients. */
bool ps_cuda_gceidd_is_steady(const ps_gceidd *g, int axis);

template <typename Real> struct GceiddStrips {
    static ps_status prepare(const ps_gceidd *g, int axis);
    static ps_status tabulate(const ps_cuda_gceidd_sweep *sweep, void *table,
                              cudaStream_t stream);
    static ps_status launch(const ps_cuda_gceidd_sweep *sweep, const void *table,
                            cudaStream_t stream);
};
extern template struct GceiddStrips<float>;
extern template struct GceiddStrips<double>;

} // namespace pysolvers::transport

#endif
