/* wave_lines.cuh - the kernel of the tridiagonal systems of packed waves: struct
 * ps_wave_lines.
 *
 * Resident blocks, or clusters, process one tile of waves after the other. A thread has a
 * chunk of rows of one system. It copies its next chunk to words of shared memory that
 * only it uses while it solves the current one by the partition method (column.cuh). The
 * waves are combined (waves.cuh) when they are read and when they are stored, by
 * exchanges within a warp; a tile is read before any of it is written.
 *
 * The rows differ in the right-hand side only, but for the first and the last one, so
 * that a solve moves two words per unknown. 17 operations and one reciprocal, and 4 for
 * each of up to six rotations. No pivoting: the matrices are diagonally dominant.
 */
#ifndef PS_CUDA_TRANSFORMS_WAVE_LINES_CUH
#define PS_CUDA_TRANSFORMS_WAVE_LINES_CUH

#include "lines/columns/column_grid.cuh"
#include "transforms/wave_lines.h"

namespace pysolvers::transforms {

extern __shared__ __align__(128) int4 wave_memory[];

/* What a thread has of a tile. */
template <typename Real> struct WaveSystem {
    WavePlace place;
    WaveTurns<Real> turns;
    Real shift, first_diag;

    __device__ __forceinline__ WaveSystem(const WaveJob<Real> &job, int64_t tile,
                                          int slot)
        : place(job.tiles, tile, slot),
          turns(place, job.turns[place.real / 2],
                job.row_turns[min(place.row, place.mirror)]),
          shift(job.shifts[int64_t(place.row) * job.tiles.reals() + place.real]),
          first_diag(shift == Real(0) ? job.null_diag : job.first.diag + shift)
    {
    }

    /* All lanes of the warp take part. */
    __device__ __forceinline__ Real combined(Real x, int reach) const
    {
        x = turns.values.apply(x, __shfl_xor_sync(all_lanes, x, 1));
        if (reach > 0) {
            x = turns.both.apply(x, __shfl_xor_sync(all_lanes, x, reach));
            x = turns.rows.apply(x, __shfl_xor_sync(all_lanes, x, 1));
        }
        return x;
    }
    __device__ __forceinline__ Real separated(Real x, int reach) const
    {
        if (reach > 0) {
            x = turns.rows.undo(x, __shfl_xor_sync(all_lanes, x, 1));
            x = turns.both.undo(x, __shfl_xor_sync(all_lanes, x, reach));
        }
        return turns.values.undo(x, __shfl_xor_sync(all_lanes, x, 1));
    }

    __device__ __forceinline__ Row<Real> row(const WaveJob<Real> &job, bool is_first,
                                             bool is_last, Real rhs) const
    {
        Row<Real> row = {job.inner.lower, job.inner.diag + shift, job.inner.upper, rhs};

        if (is_first) {
            row = {job.first.lower, first_diag, job.first.upper, rhs};
        }
        if (is_last) {
            row = {job.last.lower, job.last.diag + shift, job.last.upper, rhs};
        }
        return row;
    }
};

/* The waves of the chunk of this thread, from row 0 of the chunk on. */
template <typename Real, int ROWS>
__device__ __forceinline__ Real *
chunk_of(const WaveJob<Real> &job, const ColumnThreadPlace<ROWS> &self,
         const WavePlace &place)
{
    return job.waves + int64_t(self.start) * job.plane + place.row * job.pitch +
           place.column;
}

/* Start the copies of the chunk of this thread in a tile. */
template <typename Real, int ROWS>
__device__ __forceinline__ void
load_chunk(const WaveJob<Real> &job, const ColumnThreadPlace<ROWS> &self, int64_t tile,
           Real *to)
{
    if (tile < job.tiles.count()) {
        const WavePlace place(job.tiles, tile, self.column);
        const Real *from = chunk_of(job, self, place);

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (i >= self.pads) {
                copy_async_of_line<sizeof(Real)>(to + 32 * i, from);
            }
            from += job.plane;
        }
    }
    copies_committed();
}

/* Grid: any number of clusters of shape.blocks blocks. Shared memory: the words of the
 * warps, then the ColumnExchange. */
template <typename Real, int ROWS, bool IS_CLUSTER>
__global__ void
__launch_bounds__(ColumnTuning<Real>::threads, 1)
    wave_lines_kernel(const __grid_constant__ WaveJob<Real> job)
{
    constexpr int words = wave_words<Real, ROWS>;
    __shared__ Arrivals arrivals[2];
    const int32_t rank = IS_CLUSTER ? static_cast<int32_t>(rank_in_cluster()) : 0;
    const ColumnThreadPlace<ROWS> self(job.shape, rank);
    const int32_t first_row = -self.start, last_row = job.shape.rows - 1 - self.start;
    const int64_t tiles = job.tiles.count(), step = gridDim.x / job.shape.blocks;
    const int reach = job.tiles.reach();
    Real *const memory = reinterpret_cast<Real *>(wave_memory);
    Real *const own = memory + threadIdx.x / 32 * words + threadIdx.x % 32;
    Real *chunk = own, *next = own + 32 * ROWS;
    Column<Real, ROWS, IS_CLUSTER> column(job.shape, self, job.periodic,
                                          memory + blockDim.x / 32 * words,
                                          own + 2 * 32 * ROWS, arrivals);
    int64_t tile = IS_CLUSTER ? cluster_of_grid() : blockIdx.x;

    column.begin();
    load_chunk(job, self, tile, chunk);
    column.started();
    for (; tile < tiles; tile += step) {
        const WaveSystem<Real> system(job, tile, self.column);

        load_chunk(job, self, tile + step, next);
        copies_done_but<1>();
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            chunk[32 * i] = system.combined(chunk[32 * i], reach);
        }
        const auto rows = [&](int i) {
            return system.row(job, i == first_row, i == last_row, chunk[32 * i]);
        };

        column.eliminate(
            [&](int i) {
                return system.row(job, i == 0 && first_row == 0,
                                  i == ROWS - 1 && last_row == ROWS - 1, chunk[32 * i]);
            },
            rows, rows, false);
        column.join_chunks(0, [](int32_t, const Note &) {});

        Real *const to = chunk_of(job, self, system.place);

        column.chunk.substitute(column.y_left, column.y, [&](int i, Real x) {
            const Real wave = system.separated(x, reach);

            if (i >= self.pads && system.place.exists) {
                to[i * job.plane] = wave;
            }
        });
        Real *const done = chunk;
        chunk = next;
        next = done;
    }
}

template <typename Real, int ROWS, bool IS_CLUSTER>
inline cudaError_t
launch_chunks(const WaveJob<Real> &job, cudaStream_t stream)
{
    void (*const kernel)(const WaveJob<Real>) = wave_lines_kernel<Real, ROWS, IS_CLUSTER>;
    ColumnGrid grid;
    const cudaError_t error = grid.set<IS_CLUSTER>(
        kernel, job.shape, job.tiles.count(), wave_bytes<Real, ROWS>(job.shape), stream);

    return error == cudaSuccess ? cudaLaunchKernelEx(&grid.config, kernel, job) : error;
}

template <typename Real>
inline cudaError_t
launch_wave_lines(const WaveJob<Real> &job, cudaStream_t stream)
{
    return with_chunks<Real>(job.shape, [&](auto rows, auto is_cluster) {
        return launch_chunks<Real, rows.value, is_cluster.value>(job, stream);
    });
}

} // namespace pysolvers::transforms

#endif
