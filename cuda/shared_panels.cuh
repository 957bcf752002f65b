/* shared_panels.cuh - the kernels of shared_panels.h for one dtype.
 */
#ifndef PS_CUDA_SHARED_PANELS_CUH
#define PS_CUDA_SHARED_PANELS_CUH

#include "shared_factor.cuh"
#include "shared_panels.h"

enum { PANEL_KEEPERS = 128 };

template <typename Number>
__global__ void
__launch_bounds__(PANEL_KEEPERS)
    panel_keep_kernel(const __grid_constant__ SharedMatrix<Number> matrix,
                      const __grid_constant__ PanelTable<Number> table, int32_t rows,
                      int32_t groups)
{
    const SharedRows<Number> all(matrix, rows);

    wait_for_last_kernel();
    let_next_kernel_in();
    make_panel_group(table, [&](int32_t i) { return all.row(i, true); }, rows, groups);
}

template <typename Number>
__global__ void __launch_bounds__(2 * panel_groups<Number>)
    panel_join_kernel(const __grid_constant__ PanelTable<Number> table, int32_t rows,
                      int32_t groups, bool periodic)
{
    wait_for_last_kernel();
    let_next_kernel_in();
    join_panel_groups(table, rows, groups, periodic);
}

template <typename Number>
inline ps_status
panels_keep(const SharedMatrix<Number> &matrix, const PanelTable<Number> &table,
            int32_t rows, int32_t groups, cudaStream_t stream)
{
    const ps_status status =
        launch_closely(panel_keep_kernel<Number>, groups, PANEL_KEEPERS, 0, stream,
                       matrix, table, rows, groups);

    return status == PS_OK
               ? launch_closely(panel_join_kernel<Number>, 1, 2 * panel_groups<Number>, 0,
                                stream, table, rows, groups, matrix.periodic)
               : status;
}

/* Blocks that wait for each other are started together; the table may be under way. */
template <typename Number>
inline ps_status
panels_launch(const PanelTeams<Number> &teams, const SharedPanels<Number> &panels,
              cudaStream_t stream)
{
    const auto kernel = panel_kernel<Number>;
    cudaLaunchAttribute how[2] = {};
    cudaLaunchConfig_t config = {};
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(panel_bytes<Number>));

    if (error != cudaSuccess) {
        return PS_DEVICE_FAILURE;
    }
    how[0].id = cudaLaunchAttributeCooperative;
    how[0].val.cooperative = 1;
    how[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    how[1].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(static_cast<unsigned>(teams.teams * teams.groups));
    config.blockDim = dim3(PANEL_THREADS);
    config.dynamicSmemBytes = panel_bytes<Number>;
    config.stream = stream;
    config.attrs = how;
    config.numAttrs = ps_cuda_device_get()->capability >= 90 ? 2 : 1;
    return ps_cuda_status(cudaLaunchKernelEx(&config, kernel, teams, panels));
}

#define PS_CUDA_PANELS_DEFINE(number, name)                                             \
    ps_status ps_cuda_panels_launch_##name(const PanelTeams<number> &teams,             \
                                           const SharedPanels<number> &panels,          \
                                           cudaStream_t stream)                         \
    {                                                                                   \
        return panels_launch(teams, panels, stream);                                    \
    }                                                                                   \
    ps_status ps_cuda_panels_keep_##name(const SharedMatrix<number> &matrix,            \
                                         const PanelTable<number> &table, int32_t rows, \
                                         int32_t groups, cudaStream_t stream)           \
    {                                                                                   \
        return panels_keep(matrix, table, rows, groups, stream);                        \
    }

#endif
