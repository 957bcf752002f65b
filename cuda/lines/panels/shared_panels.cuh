/* shared_panels.cuh - the kernels of shared_panels.h for one dtype.
 */
#ifndef PS_CUDA_LINES_PANELS_SHARED_PANELS_CUH
#define PS_CUDA_LINES_PANELS_SHARED_PANELS_CUH

#include "lines/panels/shared_panels.h"
#include "runtime/math.cuh"

namespace pysolvers::panels {

/* Eliminate the matrix: one block per group. */
template <typename Number>
__global__ void
__launch_bounds__(panel_group_rows<Number>)
    panel_factor_kernel(const __grid_constant__ SharedMatrix<Number> matrix,
                        const __grid_constant__ PanelTable<Number> table, int32_t rows,
                        int32_t groups, const compact::ColumnNeeds needs)
{
    using Group = PanelGroup<Number>;
    __shared__ __align__(16) char memory[sizeof(Group)];
    Group &own = *reinterpret_cast<Group *>(memory);
    __shared__ __align__(16) char room[sizeof(PanelScratch<Number>)];
    PanelScratch<Number> &scratch = *reinterpret_cast<PanelScratch<Number> *>(room);
    const int group = blockIdx.x;
    const SharedRows<Number> all(matrix, rows);

    wait_for_last_kernel();
    let_next_kernel_in();
    if (needs.are_met()) {
        return;
    }
    const bool dominant =
        put_panel_row(panel_row_of<Number>(all, group, groups, rows), own);

    factor_panel_group(dominant, group, groups, rows, own, scratch);
    if (threadIdx.x == 0) {
        table.part[group] = scratch.part;
        share_group(group, groups, rows, own);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < static_cast<int>(sizeof(Group) / 16);
         k += panel_group_rows<Number>) {
        reinterpret_cast<int4 *>(table.group + group)[k] =
            reinterpret_cast<const int4 *>(memory)[k];
    }
}

template <typename Number>
__global__ void __launch_bounds__(2 * panel_groups<Number>)
    panel_reduce_kernel(const __grid_constant__ PanelTable<Number> table, int32_t rows,
                        int32_t groups, bool periodic, const compact::ColumnNeeds needs)
{
    using Groups = PanelGroups<Number>;
    __shared__ __align__(16) char memory[sizeof(Groups)];
    Groups &all = *reinterpret_cast<Groups *>(memory);

    wait_for_last_kernel();
    let_next_kernel_in();
    if (needs.are_met()) {
        return;
    }

    const StoredNote note =
        reduce_panel_groups(table.part, groups, rows, periodic, all, [] {});

    if (threadIdx.x == 0) {
        *table.note = note;
    }
    for (int k = threadIdx.x; k < (groups + 1) * groups; k += 2 * panel_groups<Number>) {
        const Number(&weight)[2] = all.weight[k / groups][k % groups];

        table.weight[k] = {weight[0], weight[1]};
    }
}

template <typename Number>
ps_status
panels_keep(const SharedMatrix<Number> &matrix, const PanelTable<Number> &table,
            int32_t rows, int32_t groups, const compact::ColumnNeeds &needs,
            cudaStream_t stream)
{
    const ps_status status =
        launch_closely(panel_factor_kernel<Number>, groups, panel_group_rows<Number>, 0,
                       stream, matrix, table, rows, groups, needs);

    return status == PS_OK
               ? launch_closely(panel_reduce_kernel<Number>, 1, 2 * panel_groups<Number>,
                                0, stream, table, rows, groups, matrix.periodic, needs)
               : status;
}

/* As many teams as clusters fit the device, or fewer if they need no more rounds. */
template <typename Number, typename Source>
inline ps_status
panels_launch_clusters(PanelTeams<Number> teams, const SharedPanels<Number> &panels,
                       const SharedMatrix<Number> &matrix, const Source &source,
                       cudaStream_t stream)
{
    const auto kernel = panel_kernel<Number, PanelCluster<Number>, Source>;
    const size_t bytes = panel_bytes<Number>;
    int fit = 0;
    const ps_status status =
        resident(kernel, PANEL_THREADS, bytes, static_cast<int>(teams.groups), &fit);

    if (status != PS_OK) {
        return status;
    }
    const int64_t rounds = divided_up(panels.panels, fit);

    teams.teams = divided_up(panels.panels, rounds);
    return Launch(teams.teams * teams.groups, PANEL_THREADS, bytes, stream)
        .in_clusters(teams.groups)
        .closely()
        .run(kernel, teams, panels, matrix, source);
}

template <typename Number, typename Source>
ps_status
panels_launch(const PanelTeams<Number> &teams, const SharedPanels<Number> &panels,
              const SharedMatrix<Number> &matrix, const Source &source,
              cudaStream_t stream)
{
    const auto kernel = panel_kernel<Number, PanelMemory<Number>, Source>;

    if (teams.mailbox == nullptr) {
        return panels_launch_clusters(teams, panels, matrix, source, stream);
    }
    return allow_shared(kernel) == cudaSuccess
               ? Launch(teams.teams * teams.groups, PANEL_THREADS, panel_bytes<Number>,
                        stream)
                     .closely()
                     .together()
                     .run(kernel, teams, panels, matrix, source)
               : PS_DEVICE_FAILURE;
}

} // namespace pysolvers::panels

#endif
