/* column_kernel.cuh - the partition method along a strided axis, included once a dtype.
 *
 * Blocks, or clusters, stay and take tile after tile of neighbouring systems. A warp
 * copies its own rows to its own part of shared memory, eliminates them into registers,
 * and starts the copies for its next tile, which arrive while the warps meet, substitute
 * and store. Five words of memory traffic a row; as a tile is read before any of its x is
 * written, x may be rhs.
 */
#ifndef PS_CUDA_COLUMN_KERNEL_CUH
#define PS_CUDA_COLUMN_KERNEL_CUH

#include "column.h"

extern __shared__ int4 column_memory[];

/* A system's place on the two batch axes. */
struct ColumnPlace {
    int64_t outer, inner;

    template <typename Number>
    __device__ __forceinline__ ColumnPlace(const Systems<Number> &t, int64_t system)
    {
        outer = t.outer > 1 ? quotient(system, t.inner) : 0;
        inner = system - outer * t.inner;
    }
    template <typename Operand>
    __device__ __forceinline__ auto at(const Operand &operand, int32_t row) const
        -> decltype(operand.data)
    {
        return operand.system(outer, inner) + row * operand.row;
    }
};

/* The rows of a warp in shared memory: operand q of row i of lane k's chunk at (4 i +
 * q) 32 + k. Neighbouring lanes may bring each other's, 16 bytes a lane. */
template <typename Number, int ROWS> struct ColumnStage {
    static constexpr int words = ROWS * 4 * 32; /* of a warp */
    const ColumnJob<Number> &job;
    const ColumnSeat<ROWS> &seat;
    Number *const warp;

    __device__ __forceinline__ ColumnStage(const ColumnJob<Number> &j,
                                           const ColumnSeat<ROWS> &place)
        : job(j), seat(place),
          warp(reinterpret_cast<Number *>(column_memory) + threadIdx.x / 32 * words)
    {
    }

    /* Start the copies of a tile, if there is one, once the last one is not read any
     * more; one after the other if there is time. */
    __device__ __forceinline__ void load(int64_t tile, bool in_time) const
    {
        __syncwarp();
        if (tile >= job.tiles) {
            return;
        }
        if (job.vectors != 0) {
            load_vectors(tile, in_time);
        }
        if (job.vectors != all_operands) {
            load_elements(tile);
        }
    }

    /* The tile of load() is there. */
    __device__ __forceinline__ void wait() const
    {
        copies_done();
        __syncwarp();
    }

    __device__ __forceinline__ Row<Number> row(int i, bool has_lower,
                                               bool has_upper) const
    {
        const Number *const at = warp + i * 4 * 32 + threadIdx.x % 32;

        return {has_lower ? at[0] : Number(0), at[32], has_upper ? at[64] : Number(0),
                at[96]};
    }

  private:
    static constexpr uint32_t all_operands = 15;
    /* Of the clock, for a row: all at once, the copies of the warps that only wait
     * hold up what the others read from shared memory. */
    static constexpr unsigned pace = 200;

    /* Copy rows of operand q for the lanes from `lane` on: BYTES of them. */
    template <int BYTES>
    __device__ __forceinline__ void copy(int64_t tile, int q, int32_t lane,
                                         bool in_time) const
    {
        const unsigned begin = static_cast<unsigned>(clock());
        const int32_t column = lane & ((1 << job.shape.width) - 1);
        const int32_t part = lane >> job.shape.width;
        const int32_t start = seat.start + (part - seat.part) * ROWS;
        const int64_t system = (tile << job.shape.width) + column;
        const Input<Number> &input = job.inputs[q];
        const int32_t pads = -start, absent = job.absent[q] - start;
        Number *const to = warp + q * 32 + lane;

        if (system >= job.t.outer * job.t.inner) {
            return;
        }
        const Number *from = ColumnPlace(job.t, system).at(input, start);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            while (in_time && i % 2 == 0 &&
                   static_cast<unsigned>(clock()) - begin < i * pace) {
            }
            if (i >= pads && i != absent) {
                copy_async_of_line<BYTES>(to + i * 4 * 32, from);
            }
            from += input.row;
        }
    }

    __device__ __forceinline__ void load_vectors(int64_t tile, bool in_time) const
    {
        constexpr int lanes = 2 * sizeof(Number); /* that bring a row of the warp */
        const int32_t lane = threadIdx.x % 32;

#pragma unroll
        for (int k = 0; k < 4; k += 32 / lanes) {
            const int q = k + lane / lanes;

            if ((job.vectors >> q & 1u) != 0) {
                copy<16>(tile, q, lane % lanes * (16 / static_cast<int>(sizeof(Number))),
                         in_time);
            }
        }
    }

    __device__ __forceinline__ void load_elements(int64_t tile) const
    {
#pragma unroll 1
        for (int q = 0; q < 4; q++) {
            if ((job.vectors >> q & 1u) == 0) {
                copy<sizeof(Number)>(tile, q, threadIdx.x % 32, false);
            }
        }
    }
};

/* Grid: any number of clusters of shape.blocks blocks. Shared: the warps' stages, then
 * what a Column needs. */
template <typename Number, bool IS_CLUSTER>
__global__ void
__launch_bounds__(ColumnTuning<Number>::threads, 1)
    column_kernel(const __grid_constant__ ColumnJob<Number> job)
{
    constexpr int ROWS = ColumnTuning<Number>::rows;
    using Stage = ColumnStage<Number, ROWS>;
    __shared__ Arrivals arrivals[2];
    const Systems<Number> &t = job.t;
    const int32_t rank = IS_CLUSTER ? static_cast<int32_t>(rank_in_cluster()) : 0;
    const int64_t step = gridDim.x / job.shape.blocks, systems = t.outer * t.inner;
    const bool watches = !number_traits<Number>::is_complex || job.marks != nullptr;
    const ColumnSeat<ROWS> own(job.shape, rank);
    const int32_t first_row = t.periodic ? -1 : -own.start;
    const int32_t last_row = t.periodic ? -1 : t.rows - 1 - own.start;
    const Stage stage(job, own);
    Column<Number, ROWS, IS_CLUSTER> column(job.shape, own, t.periodic,
                                            reinterpret_cast<Number *>(column_memory) +
                                                blockDim.x / 32 * Stage::words,
                                            arrivals);
    int64_t tile = IS_CLUSTER ? cluster_of_grid() : blockIdx.x;

    column.begin();
    stage.load(tile, false);
    column.started();
    for (; tile < job.tiles; tile += step) {
        const int64_t first = tile << job.shape.width;
        const bool there = first + own.column < systems;

        stage.wait();
        column.eliminate(
            [&](int i) {
                return stage.row(i, i > 0 || first_row != 0,
                                 i < ROWS - 1 || last_row != ROWS - 1);
            },
            [&](int i) { return stage.row(i, i != first_row, i != last_row); }, watches);
        column.meet(
            [&](int32_t which, const Note &note) {
                const int64_t at = first + which;

                if (at < systems && t.info != nullptr) {
                    t.info[at] = note.fault == Fault::none ? 0 : note.fault + 1;
                }
                if (at < systems && job.marks != nullptr) {
                    job.marks[at] = note.weak != 0;
                }
            },
            [&](bool in_time) { stage.load(tile + step, in_time); });
        if (there && (job.marks == nullptr || column.note.weak == 0)) {
            const ColumnPlace place(t, first + own.column);
            Number *const x = place.at(t.x, own.start);

            column.substitute([&](int i, Number value) { x[i * t.x.row] = value; });
        }
    }
}

template <typename Number>
inline cudaError_t
launch_columns(const ColumnJob<Number> &job, cudaStream_t stream)
{
    void (*const kernel)(const ColumnJob<Number>) =
        job.shape.blocks > 1 ? column_kernel<Number, true> : column_kernel<Number, false>;
    const int threads = 32 * job.shape.warps;
    const size_t bytes = column_bytes<Number>(job.shape);
    const ps_cuda_device *const device = ps_cuda_device_get();
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute cluster = {};
    int fit = 0;

    if (device == nullptr) {
        return cudaErrorInvalidDevice;
    }
    config.gridDim = dim3(static_cast<unsigned>(job.shape.blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {config.gridDim.x, 1, 1};
    config.attrs = &cluster;
    config.numAttrs = job.shape.blocks > 1 ? 1 : 0;

    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (error == cudaSuccess && job.shape.blocks > 1) {
        error = cudaOccupancyMaxActiveClusters(&fit, kernel, &config);
    }
    else if (error == cudaSuccess) {
        error =
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, kernel, threads, bytes);
        fit *= device->processors;
    }
    if (error != cudaSuccess || fit == 0) {
        return error != cudaSuccess ? error : cudaErrorInvalidConfiguration;
    }
    const int64_t rounds = (job.tiles + fit - 1) / fit;
    const int64_t units = (job.tiles + rounds - 1) / rounds;
    config.gridDim.x *= static_cast<unsigned>(units);
    return cudaLaunchKernelEx(&config, kernel, job);
}

#endif
