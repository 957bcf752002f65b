/* shared_panels.h - one matrix for systems along a strided axis: panels of neighbours.
 *
 * shared_panels.cu chooses a shape and launches, shared_<dtype>.cu have the kernels.
 */
#ifndef PS_CUDA_LINES_PANELS_SHARED_PANELS_H
#define PS_CUDA_LINES_PANELS_SHARED_PANELS_H

#include "lines/join/shared_matrix.cuh"
#include "lines/panels/panel.cuh"

namespace pysolvers::panels {

/* Shared memory of a block. */
template <typename Number>
static constexpr size_t panel_bytes =
    sizeof(Number) * panel_stages * PANEL_CHUNKS * panel_chunk_words<Number> +
    sizeof(PanelShared<Number>);

#define PS_DECLARE(number, name)                                                        \
    ps_status ps_cuda_panels_launch_##name(                                             \
        const PanelTeams<number> &teams, const SharedPanels<number> &panels,            \
        const SharedMatrix<number> &matrix, cudaStream_t stream);                       \
    ps_status ps_cuda_panels_keep_##name(const SharedMatrix<number> &matrix,            \
                                         const PanelTable<number> &table, int32_t rows, \
                                         int32_t groups, cudaStream_t stream);
PS_CUDA_DTYPES(PS_DECLARE)
#undef PS_DECLARE

/* Whether the device has panels for systems of so many rows; then `table` gets the bytes
 * of the table of their matrix. */
bool ps_cuda_panels_fit(ps_dtype dtype, int64_t rows, size_t *table);

/* Whether the systems of `t`, one matrix for all, lie as panels want it, and are enough
 * to pay for a table of the matrix if none is kept. */
bool ps_cuda_panels_take(const ps_tridiag *t, bool is_kept);

/* Bytes of workspace of a solve. */
size_t ps_cuda_panels_work(const ps_tridiag *t, bool is_kept);

/* Eliminate the matrix of `t`, or its transpose, into `table`. */
ps_status ps_cuda_panels_keep(const ps_tridiag *t, bool transposed, void *table,
                              cudaStream_t stream);

/* Solve for the right-hand sides of `t` with a table, or null, then conjugated if asked
 * for; marks as in SharedJob. */
ps_status ps_cuda_panels_apply(const ps_tridiag *t, const void *table, bool conjugated,
                               uint8_t *marks, void *work, cudaStream_t stream);

} // namespace pysolvers::panels

#endif
