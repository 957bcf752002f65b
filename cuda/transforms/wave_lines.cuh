/* wave_lines.cuh - the kernel of the tridiagonal systems of packed waves: struct
 * ps_wave_lines.
 *
 * Resident blocks, or clusters, process one tile of waves after the other. A thread has a
 * chunk of rows of one system in registers, and the chunks are joined as in column.cuh.
 * Divide the rows by the coupling of neighbours, so that row i is
 *
 *   x_{i-1} + d_i x_i + x_{i+1} = f_i
 *
 * and eliminate a chunk: with u_{-1} = 0, l_{-1} = -1, g_{-1} = 0
 *
 *   u_i = 1 / (d_i - u_{i-1}),  l_i = -l_{i-1} u_i,  g_i = (f_i - g_{i-1}) u_i
 *   x_i = g_i - l_i y_left - u_i x_{i+1},  y_left the unknown before the chunk
 *
 * All chunks of a system have the same u and l, but for the one with row 0. A few threads
 * compute both sets for the tile, in shared memory, while its waves are read. The waves
 * are combined (waves.cuh) by exchanges within a warp; a tile is read before any of it is
 * written.
 *
 * Two words moved per unknown; 8 operations, and 4 for each of up to six rotations. No
 * pivoting: the matrices are diagonally dominant. Wang 1981.
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
          shift(job.scale *
                job.shifts[int64_t(place.row) * job.tiles.reals() + place.real]),
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
};

/* u and l of the first ROWS - 1 rows of a chunk, for all systems of a tile: those of the
 * chunk with row 0, and those of the others. Then x_first.l of the chunk (segment.cuh).
 */
template <typename Real, int ROWS> struct WaveFactors {
    Real *const memory;
    const int width; /* systems of a tile */

    __device__ __forceinline__ Real &u(int set, int i, int system) const
    {
        return memory[(set * ROWS + i) * 2 * width + system];
    }
    __device__ __forceinline__ Real &l(int set, int i, int system) const
    {
        return u(set, i, system + width);
    }
    __device__ __forceinline__ Real &first_l(int set, int system) const
    {
        return u(set, ROWS - 1, system);
    }

    /* Compute both sets by the first threads of the block; `system` is that of the
     * thread, and threads 32 apart have the same one. */
    __device__ __forceinline__ void build(const WaveJob<Real> &job,
                                          const WaveSystem<Real> &system) const
    {
        for (int t = threadIdx.x; t < 2 * width; t += blockDim.x) {
            build_set(job, system, t / width, t % width);
        }
    }

  private:
    __device__ __forceinline__ void build_set(const WaveJob<Real> &job,
                                              const WaveSystem<Real> &system, int set,
                                              int own) const
    {
        const int pads = set == 1 ? job.shape.template pads<ROWS>() : 0;
        Real before_u = 0, before_l = -1, first = 0;

#pragma unroll 4
        for (int i = 0; i < ROWS - 1; i++) {
            const bool is_first = set == 1 && i == pads;
            const Real diag = is_first ? system.first_diag * job.over_first
                                       : job.inner.diag + system.shift;
            const bool has_lower = !is_first || job.periodic;
            const Real inverse = reciprocal(diag - before_u);
            const Real now_u = i < pads ? Real(0) : inverse;
            const Real now_l = i < pads    ? Real(-1)
                               : has_lower ? -(before_l * inverse)
                                           : Real(0);

            first -= i < pads ? Real(0) : before_l * now_l;
            u(set, i, own) = before_u = now_u;
            l(set, i, own) = before_l = now_l;
        }
        first_l(set, own) = first;
    }
};

/* The rows of a thread. */
template <typename Real, int ROWS> struct WaveChunk {
    const WaveJob<Real> &job;
    const ColumnThreadPlace<ROWS> &self;
    const WaveFactors<Real, ROWS> &factors;
    const int set = self.start <= 0; /* of the factors */
    Real x[ROWS];                    /* waves; then g, but for the last one */

    __device__ __forceinline__ WaveChunk(const WaveJob<Real> &j,
                                         const ColumnThreadPlace<ROWS> &place,
                                         const WaveFactors<Real, ROWS> &all)
        : job(j), self(place), factors(all)
    {
    }

    /* The waves from row 0 of the chunk on. */
    __device__ __forceinline__ Real *waves(const WavePlace &place) const
    {
        return job.waves + int64_t(self.start) * job.plane + place.row * job.pitch +
               place.column;
    }

    __device__ __forceinline__ void load(const WavePlace &place)
    {
        const Real *const from = waves(place);

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            x[i] = i >= self.pads ? from[i * job.plane] : Real(0);
        }
    }

    __device__ __forceinline__ Segment<Real> eliminate(const WaveSystem<Real> &system,
                                                       int reach)
    {
        const int column = self.column;
        Real before = 0, first = 0, l = -1;

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const bool is_first = i < ROWS - 1 && i == -self.start;

            x[i] = system.combined(x[i], reach) *
                   (is_first ? job.scale * job.over_first : job.scale);
        }
#pragma unroll
        for (int i = 0; i < ROWS - 1; i++) {
            before = (x[i] - before) * factors.u(set, i, column);
            first -= l * before;
            l = factors.l(set, i, column);
            x[i] = before;
        }
        if (self.pads == ROWS) { /* x_first = y = y_left */
            return {{Real(0), Real(0), Real(-1)}, Real(-1), Real(1), Real(0), Real(0)};
        }
        Row<Real> last = {job.inner.lower, job.inner.diag + system.shift, job.inner.upper,
                          x[ROWS - 1]};

        if (self.start + ROWS == 1) {
            last = {job.first.lower, system.first_diag, job.first.upper, last.rhs};
        }
        if (self.start + ROWS == job.shape.rows) {
            last = {job.last.lower, job.last.diag + system.shift, job.last.upper,
                    last.rhs};
        }
        return Segment<Real>::closed({first, factors.first_l(set, column), l},
                                     {before, l, factors.u(set, ROWS - 2, column)}, last);
    }

    __device__ __forceinline__ void store(const WaveSystem<Real> &system, int reach,
                                          Real y_left, Real y) const
    {
        Real *const to = waves(system.place);

#pragma unroll
        for (int i = ROWS - 1; i >= 0; i--) {
            if (i < ROWS - 1) {
                y = x[i] - factors.l(set, i, self.column) * y_left -
                    factors.u(set, i, self.column) * y;
            }
            const Real wave = system.separated(y, reach);

            if (i >= self.pads && system.place.exists) {
                to[i * job.plane] = wave;
            }
        }
    }
};

/* Grid: any number of clusters of shape.blocks blocks. Shared memory: the factors, then
 * the ColumnExchange. */
template <typename Real, int ROWS, bool IS_CLUSTER>
__global__ void
__launch_bounds__(ColumnTuning<Real>::threads, wave_blocks<Real>)
    wave_lines_kernel(const __grid_constant__ WaveJob<Real> job)
{
    __shared__ Arrivals arrivals[2];
    const int32_t rank = IS_CLUSTER ? static_cast<int32_t>(rank_in_cluster()) : 0;
    const ColumnThreadPlace<ROWS> self(job.shape, rank);
    const int64_t tiles = job.tiles.count(), step = gridDim.x / job.shape.blocks;
    const int reach = job.tiles.reach();
    Real *const memory = reinterpret_cast<Real *>(wave_memory);
    const WaveFactors<Real, ROWS> factors = {memory, 1 << job.shape.width};
    Column<Real, ROWS, IS_CLUSTER> column(job.shape, self, job.periodic,
                                          memory + wave_words<ROWS>(job.shape), nullptr,
                                          arrivals);

    column.begin();
    column.started();
    for (int64_t tile = IS_CLUSTER ? cluster_of_grid() : blockIdx.x; tile < tiles;
         tile += step) {
        const WaveSystem<Real> system(job, tile, self.column);
        WaveChunk<Real, ROWS> chunk(job, self, factors);

        chunk.load(system.place);
        __syncthreads(); /* the factors of the last tile are read */
        factors.build(job, system);
        __syncthreads(); /* the factors are written */
        column.own = chunk.eliminate(system, reach);
        column.note = {BadPivot::none, 0};
        column.join_chunks(0, [](int32_t, const Note &) {});
        chunk.store(system, reach, column.y_left, column.y);
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
