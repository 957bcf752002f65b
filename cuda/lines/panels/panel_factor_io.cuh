/* panel_factor_io.cuh - the multipliers of the group of rows of a block: loaded, or
 * computed.
 *
 * They are loaded from a table in memory, or computed from the matrix: then each block
 * eliminates its group, sends the reduced matrix of its group to the other blocks of
 * its team, and joins those of all groups. Both overlap the copies of the first panels.
 * The loads are started before these copies, because they would be queued behind them.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_FACTOR_IO_CUH
#define PS_CUDA_LINES_PANELS_PANEL_FACTOR_IO_CUH

#include "lines/join/shared_matrix.cuh"
#include "lines/panels/panel_factor.cuh"
#include "lines/panels/panel_reduce.cuh"

namespace pysolvers::panels {

/* The multipliers for one block. */
template <typename Number, bool IN_CLUSTER> struct PanelFactorLoader {
    const PanelTeams<Number> &t;
    const SharedMatrix<Number> &matrix; /* used if there is no table */
    const TeamPlace &at;
    PanelShared<Number> &shared;
    Arrivals &parts_received; /* receives the parts of the matrix */
    Row<Number> row;
    StoredNote note;
    bool dominant;

    __device__ __forceinline__ bool is_made() const
    {
        return IN_CLUSTER && t.table.note == nullptr;
    }

    /* Start the loads. */
    __device__ __forceinline__ void request()
    {
        if (is_made()) {
            row = panel_row_of<Number>(SharedRows<Number>(matrix, t.rows), at.group,
                                       t.groups, t.rows);
            return;
        }
        note = *t.table.note;
        copy(&shared.group, t.table.group + at.group, 1);
        for (int k = 0; k < 2; k++) {
            copy(shared.weight[k], t.table.weight + (at.group + k) * t.groups, t.groups);
        }
    }

    /* Wait for the loads. Called by all threads. */
    __device__ __forceinline__ void wait()
    {
        if (is_made()) {
            dominant = put_panel_row(row, shared.group);
        }
        else {
            copies_done();
        }
        __syncthreads();
    }

    /* Compute the multipliers, or complete those of the table; returns the note of the
     * matrix. Called by all threads. */
    __device__ __forceinline__ StoredNote finish()
    {
        if (is_made()) {
            make();
        }
        else {
            if (IN_CLUSTER) {
                cluster_wait();
            }
            if (t.conjugated) {
                conjugate_all(&shared.group, 1);
                conjugate_all(shared.weight[0], 2 * panel_groups<Number>);
            }
            __syncthreads();
            make_spikes();
        }
        __syncthreads();
        clear_columns();
        __syncthreads();
        return note;
    }

  private:
    __device__ __forceinline__ void make()
    {
        PanelScratch<Number> &scratch = shared.template scratch<PanelScratch<Number>>();
        PanelGroups<Number> &all = shared.template scratch<PanelGroups<Number>>();

        factor_panel_group(dominant, at.group, t.groups, t.rows, shared.group, scratch);
        cluster_wait();
        if (threadIdx.x == 0) {
            parts_received.expect(t.groups * static_cast<int>(sizeof scratch.part));
        }
        if (threadIdx.x < t.groups) {
            send(shared.parts() + at.group, scratch.part, parts_received, threadIdx.x);
        }
        parts_received.wait(0);
        __syncthreads();
        note =
            reduce_panel_groups(shared.parts(), t.groups, t.rows, t.periodic, all, [&] {
                make_spikes();
                if (threadIdx.x == PANEL_THREADS - 64) {
                    share_group(at.group, t.groups, t.rows, shared.group);
                }
            });
        for (int k = threadIdx.x; k < 2 * t.groups; k += PANEL_THREADS) {
            const int end = k / t.groups, group = k % t.groups;
            const Number(&weight)[2] = all.weight[at.group + end][group];

            shared.weight[end][group] = {weight[0], weight[1]};
        }
    }

    /* Copy by pieces of 8 or 16 bytes, according to the alignment of the parts of a
     * table. */
    template <typename Part>
    static __device__ __forceinline__ void copy(Part *to, const Part *from, int count)
    {
        constexpr int piece = alignof(Part) < 16 ? 8 : 16;
        const int pieces = count * static_cast<int>(sizeof(Part)) / piece;

        for (int k = threadIdx.x; k < pieces; k += PANEL_THREADS) {
            copy_async<piece>(reinterpret_cast<char *>(to) + k * piece,
                              reinterpret_cast<const char *>(from) + k * piece);
        }
    }

    template <typename Part>
    static __device__ __forceinline__ void conjugate_all(Part *parts, int count)
    {
        Number *const number = reinterpret_cast<Number *>(parts);
        const int numbers = count * static_cast<int>(sizeof(Part) / sizeof(Number));

        __syncthreads();
        for (int k = threadIdx.x; k < numbers; k += PANEL_THREADS) {
            number[k] = conjugate(number[k]);
        }
    }

    __device__ __forceinline__ void clear_columns() const
    {
        const int thread = threadIdx.x;

        if (thread < panel_columns<Number>) {
            shared.first[PANEL_CHUNKS][thread] = Number(0);
            shared.y[0][0][thread] = Number(0);
            shared.y[1][0][thread] = Number(0);
        }
    }

    /* y of the chunks where only one end is not zero, by two threads of the last warp. */
    __device__ __forceinline__ void make_spikes() const
    {
        const PanelUnit<Number> *const unit = shared.group.unit;
        const int thread = PANEL_THREADS - 1 - static_cast<int>(threadIdx.x);

        if (thread < 2) {
            Number *const spike = &shared.spike[0].l + thread;
            Number g = Number(1 - thread), y = Number(thread);

            spike[0] = -g;
            for (int i = 0; i < PANEL_CHUNKS - 1; i++) {
                g = -(unit[i].m * g);
                spike[2 * (i + 1)] = g;
            }
            spike[2 * PANEL_CHUNKS] = -y;
            for (int i = PANEL_CHUNKS - 2; i >= 0; i--) {
                y = spike[2 * (i + 1)] - unit[i].u * y;
                spike[2 * (i + 1)] = -y;
            }
        }
    }
};

} // namespace pysolvers::panels

#endif
