/* shared_panels.h - one matrix for systems along a strided axis: panels of neighbours.
 *
 * shared_panels.cu chooses a shape and launches, shared_<dtype>.cu have the kernels.
 */
#ifndef PS_CUDA_SHARED_PANELS_H
#define PS_CUDA_SHARED_PANELS_H

#include "panel.cuh"
#include "shared.h"

/* How rows are shared out: groups of chunks of so many rows at most. */
typedef struct {
    int32_t groups, places;
} ps_cuda_panel_shape;

/* Places of a chunk: usually, and at most in three stages. */
template <typename Number> struct PanelLimits {
    static constexpr int places = 96 / sizeof(Number);
    static constexpr int most = sizeof(Number) == 4 ? 32 : places;
    static constexpr int room = 227 * 1024; /* of a block, in shared memory */

    template <int PLACES> static constexpr int stages()
    {
        constexpr int stage = PLACES * PANEL_WORKERS * static_cast<int>(sizeof(Number));
        constexpr int others = static_cast<int>(sizeof(PanelShared<Number, PLACES>));

        return room - others < 4 * stage ? 3 : 4;
    }
    template <int PLACES> static constexpr size_t bytes()
    {
        return sizeof(PanelShared<Number, PLACES>) +
               sizeof(Number) * stages<PLACES>() * PLACES * PANEL_WORKERS;
    }
};

/* Systems side by side, in lines of so many, as a Field of panel.cuh. */
template <typename Number> struct SharedPanels {
    const Number *rhs;
    Number *x;
    int64_t panels, line_panels, lanes; /* of a line */
    int64_t rhs_line, x_line;           /* from line to line, in elements */
    int32_t rhs_lane, x_lane;
    int32_t rhs_pitch, x_pitch;
    int64_t line_info, lane_info;
    int32_t *info;  /* null, or an entry a system */
    uint8_t *marks; /* as in SharedJob */

    __device__ __forceinline__ PanelColumn<Number> column(int64_t panel, int lane) const
    {
        const int64_t line = quotient(panel, line_panels);
        const int64_t place = (panel - line * line_panels) * PANEL_LANES + lane;

        return {rhs + line * rhs_line + place * rhs_lane,
                x + line * x_line + place * x_lane, place < lanes};
    }

    /* Tell info and marks, and whether to solve. */
    __device__ __forceinline__ bool begin(const PanelNote &note, const PanelPlace &at,
                                          int64_t teams) const
    {
        const bool solved = marks == nullptr || note.dominant;

        for (int64_t panel = at.team; panel < panels; panel += teams) {
            if (at.group == 0 && at.warp == PANEL_CHUNKS) {
                tell(panel, at.lane, note, solved);
            }
        }
        return solved;
    }

  private:
    __device__ __forceinline__ void tell(int64_t panel, int lane, const PanelNote &note,
                                         bool solved) const
    {
        const int64_t line = quotient(panel, line_panels);
        const int64_t place = (panel - line * line_panels) * PANEL_LANES + lane;
        const int64_t at = line * line_info + place * lane_info;

        if (info != nullptr && solved && place < lanes) {
            info[at] = note.fault == Fault::none ? 0 : note.fault + 1;
        }
        if (marks != nullptr && place < lanes) {
            marks[at] = !solved;
        }
    }
};

#define PS_DECLARE(number, name)                                               \
    ps_status ps_cuda_panels_launch_##name(const PanelTeams<number> &teams,    \
                                           const SharedPanels<number> &panels, \
                                           int places, cudaStream_t stream);   \
    ps_status ps_cuda_panels_keep_##name(                                      \
        const SharedMatrix<number> &matrix, const PanelTable<number> &table,   \
        int32_t rows, ps_cuda_panel_shape shape, cudaStream_t stream);
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

#endif
