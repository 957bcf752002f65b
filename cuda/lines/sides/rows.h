/* rows.h - several right-hand sides of each matrix along a contiguous axis: the shape and the kernel.
 *
 * rows.cu chooses the shape; rows.cuh has the kernel, which rows_reals.cu compiles once per dtype.
 */
#ifndef PS_CUDA_LINES_SIDES_ROWS_H
#define PS_CUDA_LINES_SIDES_ROWS_H

#include "device/operand.cuh"
#include "device/shared_arrays.h"
#include "lines/shared/shared.h"
#include "lines/sides/loader.h"

namespace pysolvers::sides {

using namespace device;
using namespace join;
using namespace shared;

/* Rows of a chunk: odd numbers, so that neighbouring threads use other banks. The most threads of
 * chunks of a block, limited by the registers. */
static constexpr int long_chunk = 17, short_chunk = 13;
template <typename Number, int ROWS>
static constexpr int side_rows_threads =
    sizeof(Number) == 4 ? (ROWS == long_chunk ? 480 : 608)
                        : (ROWS == long_chunk ? 224 : 352);

/* The distribution of systems over blocks. A team of lanes of a warp, or of whole warps, has one
 * system of a tile. */
struct SideRows {
    ps_cuda_shared_shape team;
    int32_t chunk;      /* rows of a thread */
    int32_t slots;      /* of the ring */
    int32_t numbers;    /* of a slot */
    int32_t blocks = 1; /* per cluster */
    bool by_warps;      /* warps copy what they solve; otherwise one more warp, tiles */
    int32_t part;       /* of a slot that a warp copies, numbers */

    /* Threads of chunks, rounded up to warps; perhaps one warp more copies. */
    __host__ __device__ __forceinline__ int32_t workers() const
    {
        return (team.teams * team.width * team.warps + 31) / 32 * 32;
    }
    __host__ __device__ __forceinline__ int32_t threads() const
    {
        return workers() + (by_warps ? 0 : 32);
    }
    int64_t tiles(const ps_tridiag &t) const
    {
        return divided_up(t.inner, team.teams);
    }
};

/* The shared memory of a block apart from the slots, for each team. */
template <typename Number> struct RowsArrays {
    Number *level;       /* of the warps */
    Frame<Number> *unit; /* of the warps */
    Load<Number> *load;  /* of the warps, in two turns */
    int32_t *bad_pivot;  /* of the matrix */
    int32_t *not_dominant;
    void *end;

    __host__ __device__ __forceinline__ RowsArrays(const SideRows &s, void *memory)
    {
        const int32_t teams = s.team.teams;
        const int32_t warps = s.team.warps > 1 ? teams * s.team.warps : 0;

        level = static_cast<Number *>(memory);
        load = reinterpret_cast<Load<Number> *>(
            level + (warps > 0 ? teams * SharedLimits<Number>::level_words * 32 : 0));
        unit = reinterpret_cast<Frame<Number> *>(load + 2 * warps);
        bad_pivot = reinterpret_cast<int32_t *>(unit + warps);
        not_dominant = bad_pivot + teams;
        end = not_dominant + teams;
    }
};

template <typename Number> using SideRowsJob = SideTiles<Number, SideRows>;

/* For several right-hand sides of each matrix on the outer axis. */
extern const ShapedKernels<SideRows> ps_cuda_side_rows;

/* rows.cuh: enqueue the kernel of a job. */
template <typename Number>
ps_status launch_side_rows(const SideRowsJob<Number> &job, cudaStream_t stream);

} // namespace pysolvers::sides

#endif
