/* shared_panels.cuh - the kernels of shared_panels.h for one dtype.
 */
#ifndef PS_CUDA_SHARED_PANELS_CUH
#define PS_CUDA_SHARED_PANELS_CUH

#include "shared_factor.cuh"
#include "shared_panels.h"

enum { PANEL_KEEPERS = 128, PANEL_JOINERS = 2 * PANEL_GROUPS };

template <typename Number>
__global__ void
__launch_bounds__(PANEL_KEEPERS)
    panel_keep_kernel(const __grid_constant__ SharedMatrix<Number> matrix,
                      const __grid_constant__ PanelTable<Number> table, int32_t rows,
                      ps_cuda_panel_shape shape)
{
    const SharedRows<Number> all(matrix, rows);

    wait_for_last_kernel();
    make_panel_group<Number, PanelLimits<Number>::most>(
        table, [&](int32_t i) { return all.row(i, true); }, rows, shape.groups,
        shape.places);
}

template <typename Number>
__global__ void
__launch_bounds__(PANEL_JOINERS)
    panel_join_kernel(const __grid_constant__ PanelTable<Number> table, int32_t rows,
                      int32_t groups, bool periodic)
{
    wait_for_last_kernel();
    join_panel_groups(table, rows, groups, periodic);
}

template <typename Number>
inline ps_status
panels_keep(const SharedMatrix<Number> &matrix, const PanelTable<Number> &table,
            int32_t rows, ps_cuda_panel_shape shape, cudaStream_t stream)
{
    const ps_status status =
        launch_closely(panel_keep_kernel<Number>, shape.groups, PANEL_KEEPERS, 0, stream,
                       matrix, table, rows, shape);

    return status == PS_OK
               ? launch_closely(panel_join_kernel<Number>, 1, PANEL_JOINERS, 0, stream,
                                table, rows, shape.groups, matrix.periodic)
               : status;
}

/* Blocks that wait for each other are started together. */
template <typename Number, int PLACES>
inline ps_status
panels_launch(const PanelTeams<Number> &teams, const SharedPanels<Number> &panels,
              cudaStream_t stream)
{
    using Limits = PanelLimits<Number>;
    constexpr int stages = Limits::template stages<PLACES>();
    constexpr size_t shared = Limits::template bytes<PLACES>();
    static_assert(shared <= Limits::room, "three stages have room");
    const auto kernel = panel_kernel<Number, PLACES, stages, SharedPanels<Number>>;
    const int64_t blocks = teams.teams * teams.groups;
    cudaLaunchAttribute together = {};
    cudaLaunchConfig_t config = {};
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));

    if (error != cudaSuccess) {
        return PS_DEVICE_FAILURE;
    }
    if (teams.groups == 1) {
        return launch_closely(kernel, blocks, PANEL_THREADS, shared, stream, teams,
                              panels);
    }
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(PANEL_THREADS);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &together;
    config.numAttrs = 1;
    return ps_cuda_status(cudaLaunchKernelEx(&config, kernel, teams, panels));
}

#define PS_CUDA_PANELS_DEFINE(number, name)                                              \
    ps_status ps_cuda_panels_launch_##name(const PanelTeams<number> &teams,              \
                                           const SharedPanels<number> &panels,           \
                                           int places, cudaStream_t stream)              \
    {                                                                                    \
        using Limits = PanelLimits<number>;                                              \
        return places == Limits::most                                                    \
                   ? panels_launch<number, Limits::most>(teams, panels, stream)          \
                   : panels_launch<number, Limits::places>(teams, panels, stream);       \
    }                                                                                    \
    ps_status ps_cuda_panels_keep_##name(const SharedMatrix<number> &matrix,             \
                                         const PanelTable<number> &table, int32_t rows,  \
                                         ps_cuda_panel_shape shape, cudaStream_t stream) \
    {                                                                                    \
        return panels_keep(matrix, table, rows, shape, stream);                          \
    }

#endif
