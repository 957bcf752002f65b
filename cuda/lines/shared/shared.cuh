/* shared.cuh - the kernels of shared.h for one dtype.
 *
 * A block keeps the eliminated matrix in registers, distributed over its threads, and
 * solves one tile of right-hand sides after the other, in place, while the next tiles
 * are copied.
 */
#ifndef PS_CUDA_LINES_SHARED_SHARED_CUH
#define PS_CUDA_LINES_SHARED_SHARED_CUH

#include "lines/join/shared_matrix.cuh"
#include "lines/shared/shared_tile_scheduler.cuh"
#include "lines/shared/shared_worker.cuh"

namespace pysolvers::shared {

template <typename Number>
static constexpr int level_size = SharedLimits<Number>::level_words * 32;

/* The layout of a store: the note, then word by word one value per chunk, then the
 * words of the level of the warps. */
template <typename Number>
__device__ __forceinline__ Number *
words_of(const StoredNote *note)
{
    return reinterpret_cast<Number *>(const_cast<StoredNote *>(note) + 1);
}

__device__ __forceinline__ int32_t
info_of(const StoredNote &note)
{
    return note.bad_pivot == BadPivot::none ? 0 : note.bad_pivot + 1;
}

extern __shared__ __align__(128) int4 shared_memory[];

/* One block, one team. Shared memory: one number per row. */
template <typename Number, int ROWS>
__global__ void
__launch_bounds__(SharedLimits<Number>::threads)
    shared_keep_kernel(const __grid_constant__ SharedMatrix<Number> matrix,
                       const __grid_constant__ ps_cuda_shared_shape shape,
                       StoredNote *store, int32_t *info, uint8_t *mark)
{
    using Factor = SharedFactor<Number, ROWS>;
    static_assert(sizeof(Factor) == Factor::words * sizeof(Number),
                  "each() visits every word of a factor");
    __shared__ SharedExchange<Number> exchange;
    __shared__ SharedLevel<Number> level;
    const SharedThreadPlace self(shape, ROWS);
    Factor factor;

    wait_for_last_kernel();
    Row<Number> last = factor.request(matrix, self, shape.rows);
    factor.share(reinterpret_cast<Number *>(shared_memory), self, shape.rows, last);
    const StoredNote note =
        factor.make(last, matrix.periodic, shape, self, exchange, level);
    if (self.team > 0) {
        return;
    }
    if (self.chunk == 0) {
        *store = note;
        if (info != nullptr) {
            *info = info_of(note);
        }
        if (mark != nullptr) {
            *mark = !note.dominant;
        }
    }
    Number *const words = words_of<Number>(store);
    Number *word = words + self.chunk;
    factor.each([&](const Number &value) {
        *word = value;
        word += self.chunks;
    });
    for (int k = self.chunk; shape.warps > 1 && k < level_size<Number>;
         k += self.chunks) {
        words[Factor::words * self.chunks + k] = level[k];
    }
}

/* Write info and marks of the systems of a tile, by `threads` threads. */
template <typename Number>
__device__ __forceinline__ void
publish(const SharedJob<Number> &job, const SharedTileRange &range,
        const StoredNote &note, bool solved, int thread, int threads)
{
    if (job.info == nullptr && job.marks == nullptr) {
        return;
    }
    for (int s = thread; s < range.systems; s += threads) {
        const int64_t at = range.line * job.line_info + (range.first + s) * job.lane_info;

        if (job.info != nullptr && solved) {
            job.info[at] = info_of(note);
        }
        if (job.marks != nullptr) {
            job.marks[at] = !solved;
        }
    }
}

/* The matrix of a job while it is being loaded, or its part of a store. */
template <typename Number> struct RequestedMatrix {
    Row<Number> last;
    StoredNote note;
};

/* Start the loads of the matrix before those of the tiles, because they would be queued
 * behind them. */
template <typename Number, int ROWS>
__device__ __forceinline__ RequestedMatrix<Number>
request(const SharedJob<Number> &job, const SharedThreadPlace &self,
        SharedLevel<Number> &level, SharedFactor<Number, ROWS> &factor)
{
    const SharedMatrix<Number> &matrix = job.matrix;
    const Number *word = words_of<Number>(matrix.note) + self.chunk;

    if (matrix.note == nullptr) {
        return {factor.request(matrix, self, job.shape.rows), {}};
    }
    factor.each([&](Number &value) {
        value = *word;
        word += self.chunks;
    });
    word = words_of<Number>(matrix.note) + factor.words * self.chunks;
    for (int k = threadIdx.x; job.shape.warps > 1 && k < level_size<Number>;
         k += blockDim.x) {
        copy_async<sizeof(Number)>(level + k, word + k);
    }
    return {copy_row<Number>(), *matrix.note};
}

/* The factor from the loaded matrix or store; `buffer` has one number per row. */
template <typename Number, int ROWS>
__device__ __forceinline__ StoredNote
prepare(const SharedJob<Number> &job, const SharedThreadPlace &self,
        RequestedMatrix<Number> &requested, Number *buffer,
        SharedExchange<Number> &exchange, SharedLevel<Number> &level,
        SharedFactor<Number, ROWS> &factor)
{
    const SharedMatrix<Number> &matrix = job.matrix;

    if (matrix.note == nullptr) {
        factor.share(buffer, self, job.shape.rows, requested.last);
        return factor.make(requested.last, matrix.periodic, job.shape, self, exchange,
                           level);
    }
    copies_done();
    if (matrix.conjugated) {
        factor.each([&](Number &value) { value = conjugate(value); });
        for (int k = threadIdx.x; job.shape.warps > 1 && k < level_size<Number>;
             k += blockDim.x) {
            level[k] = conjugate(level[k]);
        }
    }
    __syncthreads();
    return requested.note;
}

/* Write zeros before every system of every stage, which pads read; the ends of systems may
 * lie further before. Ends with a barrier of the block. */
template <typename Number>
__device__ __forceinline__ void
clear_fronts(const SharedJob<Number> &job, char *tiles)
{
    const ps_cuda_shared_shape &shape = job.shape;
    const int slots = shape.teams * shape.rounds, fronts = shape.stages * slots;
    constexpr int count = SharedLimits<Number>::rows;

    for (int k = threadIdx.x; k < fronts * count; k += blockDim.x) {
        const int system = k / count, stage = system / slots;
        Number *const tile = reinterpret_cast<Number *>(tiles + stage * shape.tile_bytes);

        tile[(system - stage * slots) * shape.pitch + k % count - count] = Number(0);
    }
    __syncthreads();
}

template <typename Number, int ROWS, bool SKEWED, typename Source>
__global__ void
__launch_bounds__(SharedLimits<Number>::threads)
    shared_solve_kernel(const __grid_constant__ SharedJob<Number> job,
                        const __grid_constant__ Source source)
{
    using Copier = TileCopier<Number, SKEWED>;
    char *const memory = reinterpret_cast<char *>(shared_memory);
    __shared__ SharedExchange<Number> exchange;
    __shared__ SharedLevel<Number> level;
    __shared__ TileTickets work_queue;
    __shared__ Arrivals barriers[Copier::most_warps * Copier::most_stages];
    const ps_cuda_shared_shape &shape = job.shape;
    const bool in_bulk = SKEWED || shape.copies == COPY_IN_BULK;
    const SharedThreadPlace self(shape, ROWS);
    const Copier copier(job, self,
                        memory + shape.exchange_bytes + shape.front * sizeof(Number),
                        barriers);
    const int ahead = shape.stages > 1 ? shape.stages - 1 : 1;
    SharedTileScheduler<Number> scheduler(job, self, work_queue);
    const auto load_next = [&](int stage) {
        if (scheduler.is_there(scheduler.next)) {
            copier.load(range_of(job, scheduler.next), stage);
        }
        scheduler.loaded(stage);
        copies_committed();
    };
    SharedFactor<Number, ROWS> factor;

    scheduler.begin();
    const auto *const weight = source.begin();
    RequestedMatrix<Number> requested = request(job, self, level, factor);
    for (int k = 0; k < ahead && shape.stages > 1; k++) {
        load_next(k);
    }
    const StoredNote note = prepare(
        job, self, requested,
        reinterpret_cast<Number *>(copier.tiles + (shape.stages - 1) * shape.tile_bytes),
        exchange, level, factor);
    bulk_fence();
    clear_fronts(job, copier.tiles);
    /* The matrix was redistributed in the last stage, which is free now. */
    const bool fills_last = in_bulk && shape.stages > 1;
    if (fills_last || shape.stages == 1) {
        load_next(shape.stages - 1);
    }
    const bool solved = job.marks == nullptr || note.dominant;
    scheduler.work_queue = scheduler.work_queue && solved;
    Load<Number> *const sums = reinterpret_cast<Load<Number> *>(memory);
    SharedWorker<Number, ROWS> worker = {
        shape,
        self,
        factor,
        level,
        job.matrix.periodic,
        sums,
        reinterpret_cast<Number *>(sums + 2 * shape.rounds * (blockDim.x / 32)),
        0};
    int stage = 0, phase = 0;

    while (scheduler.is_there(scheduler.now)) {
        const int before = stage > 0 ? stage - 1 : ahead;
        const SharedTileRange range = range_of(job, scheduler.now);

        copier.wait(stage, phase, fills_last && scheduler.turn == 0 ? ahead : ahead - 1);
        if (!in_bulk && shape.stages > 1) {
            load_next(before);
        }
        publish(job, range, note, solved, in_bulk ? self.thread() : threadIdx.x,
                in_bulk ? self.threads() : blockDim.x);
        scheduler.publish();
        if (solved) {
            Number *const tile =
                reinterpret_cast<Number *>(copier.tiles + stage * shape.tile_bytes);
            const int systems = in_bulk ? range.systems : range.systems - self.first;
            const auto skews = copier.skews(range);

            source.template make<ROWS>(weight, shape, self, tile, systems, skews);
            worker.solve(tile, systems, skews);
        }
        if (in_bulk && shape.stages > 1) {
            if (scheduler.turn > 0) {
                stores_read();
                scheduler.read_ticket();
                load_next(before);
            }
            scheduler.draw_ticket();
        }
        if (solved) {
            copier.store(range, stage);
        }
        if (shape.stages == 1) {
            stores_read();
            copier.synchronize(); /* x is stored */
            load_next(0);
        }
        stage++;
        if (stage == shape.stages) {
            stage = 0;
            phase ^= 1;
        }
        scheduler.advance(stage);
    }
    stores_read();
}

/* use(std::integral_constant) of the rows of a thread. */
template <typename Number, typename Use>
static ps_status
with_chunk(const ps_cuda_shared_shape &shape, const Use &use)
{
    using Limits = SharedLimits<Number>;

    if (shape.chunk == Limits::rows) {
        return use(std::integral_constant<int, Limits::rows>());
    }
    return use(std::integral_constant<int, Limits::short_rows>());
}

template <typename Number, typename Source>
ps_status
shared_launch(const SharedJob<Number> &job, const Source &source, cudaStream_t stream)
{
    return with_chunk<Number>(job.shape, [&](auto rows) {
        void (*kernel)(const SharedJob<Number>, const Source) =
            shared_solve_kernel<Number, rows, false, Source>;

        if constexpr (!number_traits<Number>::is_complex) {
            kernel =
                job.skewed ? shared_solve_kernel<Number, rows, true, Source> : kernel;
        }
        const cudaError_t error = allow_shared(kernel);

        if (job.work_queue != nullptr &&
            clear_work_queue(job.work_queue, job.shape.teams, stream) != PS_OK) {
            return PS_DEVICE_FAILURE;
        }
        return error == cudaSuccess
                   ? launch_closely(kernel, job.blocks, job.threads, job.shared_bytes,
                                    stream, job, source)
                   : PS_DEVICE_FAILURE;
    });
}

template <typename Number>
ps_status
shared_keep(const SharedMatrix<Number> &matrix, const ps_cuda_shared_shape &shape,
            void *store, int32_t *info, uint8_t *mark, cudaStream_t stream)
{
    const int chunks = shape.width * shape.warps;

    return with_chunk<Number>(shape, [&](auto rows) {
        return launch_closely(shared_keep_kernel<Number, rows>, 1,
                              chunks < 32 ? 32 : chunks, shape.rows * sizeof(Number),
                              stream, matrix, shape, static_cast<StoredNote *>(store),
                              info, mark);
    });
}

} // namespace pysolvers::shared

#endif
