/* shared_panels.h - one matrix for systems along a strided axis, solved in panels of
 * neighbouring systems.
 *
 * shared_panels.cu chooses a shape and launches; shared_panels.cuh has the kernels, which
 * shared_dtypes.cu compiles once per dtype.
 */
#ifndef PS_CUDA_LINES_PANELS_SHARED_PANELS_H
#define PS_CUDA_LINES_PANELS_SHARED_PANELS_H

#include "lines/join/shared_matrix.cuh"
#include "lines/panels/panel.cuh"
#include "ps_differences.h"

namespace pysolvers::panels {

/* Shared memory of a block. */
template <typename Number>
static constexpr size_t panel_bytes =
    sizeof(Number) * panel_stages * PANEL_CHUNKS * panel_chunk_words<Number> +
    sizeof(PanelShared<Number>);

/* shared_panels.cuh: enqueue a solve; eliminate a matrix into a table. */
template <typename Number, typename Source>
ps_status panels_launch(const PanelTeams<Number> &teams,
                        const SharedPanels<Number> &panels,
                        const SharedMatrix<Number> &matrix, const Source &source,
                        cudaStream_t stream);
template <typename Number>
ps_status panels_keep(const SharedMatrix<Number> &matrix, const PanelTable<Number> &table,
                      int32_t rows, int32_t groups, const compact::ColumnNeeds &needs,
                      cudaStream_t stream);

/* Whether the device can solve systems of `rows` rows in panels; then `table` gets the
 * bytes of the table of their matrix. */
bool ps_cuda_panels_fit(ps_dtype dtype, int64_t rows, size_t *table);

/* Whether the layout of the systems of `t` is suitable for panels; and if no table is
 * kept, whether there are enough systems for the cost of a table. */
bool ps_cuda_panels_accept(const ps_tridiag *t, bool is_kept);

/* Whether ps_cuda_panels_differences() solves `t`: in panels, which bulk copies fetch, with
 * the first three rows in one group. */
bool ps_cuda_panels_accept_differences(const ps_tridiag *t);

/* Solve for right-hand sides that are made of differences of the rows in t->rhs, copy these
 * to `copy`, which has the strides of t->x, and set *not_finite if they are not finite:
 * PanelDifferences. `weight` has 2 * t->rows numbers. */
ps_status ps_cuda_panels_differences(const ps_tridiag *t, const void *weight, void *copy,
                                     int32_t *not_finite, void *work,
                                     cudaStream_t stream);

/* Solve with a table for right-hand sides that are the differences of t->rhs, which x does not
 * overlap: PanelStencils. */
ps_status ps_cuda_panels_stencils(const ps_tridiag *t, const ps_differences &d,
                                  const void *table, void *work, cudaStream_t stream);

/* Bytes of workspace of a solve. */
size_t ps_cuda_panels_work(const ps_tridiag *t, bool is_kept);

/* Eliminate the matrix of `t`, or its transpose, into `table`. */
ps_status ps_cuda_panels_keep(const ps_tridiag *t, bool transposed, void *table,
                              cudaStream_t stream);

/* Solve for the right-hand sides of `t` with a table, or without one if it is null; the
 * matrix is conjugated if `conjugated` is set; marks as in SharedJob. */
ps_status ps_cuda_panels_apply(const ps_tridiag *t, const void *table, bool conjugated,
                               uint8_t *marks, const compact::ColumnNeeds &needs,
                               void *work, cudaStream_t stream);

} // namespace pysolvers::panels

#endif
