/* shared.cuh - the kernels of shared.h for one dtype.
 *
 * A block keeps its part of the eliminated matrix in registers and takes one tile of
 * right-hand sides after the other through them, in place, while the next tiles are on
 * their way.
 */
#ifndef PS_CUDA_SHARED_CUH
#define PS_CUDA_SHARED_CUH

#include "shared_order.cuh"
#include "shared_worker.cuh"

template <typename Number> static constexpr int factor_size = SharedLimits<Number>::words;
template <typename Number>
static constexpr int level_size = SharedLimits<Number>::level_words * 32;

/* A store: the note, then word by word one value a chunk, then the level of the warps. */
template <typename Number>
__device__ __forceinline__ Number *
words_of(const ps_cuda_shared_note *note)
{
    return reinterpret_cast<Number *>(const_cast<ps_cuda_shared_note *>(note) + 1);
}

__device__ __forceinline__ int32_t
info_of(const ps_cuda_shared_note &note)
{
    return note.fault == Fault::none ? 0 : note.fault + 1;
}

extern __shared__ __align__(128) int4 shared_memory[];

/* One block, one team. Shared: a number a row. */
template <typename Number>
__global__ void
__launch_bounds__(SharedLimits<Number>::threads)
    shared_keep_kernel(const __grid_constant__ SharedMatrix<Number> matrix,
                       const __grid_constant__ ps_cuda_shared_shape shape,
                       ps_cuda_shared_note *store, int32_t *info, uint8_t *mark)
{
    static_assert(sizeof(SharedFactor<Number>) == factor_size<Number> * sizeof(Number),
                  "each() visits every word of a factor");
    __shared__ SharedMeeting<Number> meeting;
    const SharedSeat seat(shape, SharedLimits<Number>::rows);
    SharedFactor<Number> factor;

    wait_for_last_kernel();
    Row<Number> last = factor.ask(matrix, seat, shape.rows);
    factor.share(reinterpret_cast<Number *>(shared_memory), seat, shape.rows, last);
    const ps_cuda_shared_note note =
        factor.make(last, matrix.periodic, shape, seat, meeting);
    if (seat.team > 0) {
        return;
    }
    if (seat.chunk == 0) {
        *store = note;
        if (info != nullptr) {
            *info = info_of(note);
        }
        if (mark != nullptr) {
            *mark = !note.dominant;
        }
    }
    Number *const words = words_of<Number>(store);
    Number *word = words + seat.chunk;
    factor.each([&](const Number &value) {
        *word = value;
        word += seat.chunks;
    });
    for (int k = seat.chunk; shape.warps > 1 && k < level_size<Number>;
         k += seat.chunks) {
        words[factor_size<Number> * seat.chunks + k] = meeting.level[k];
    }
}

/* info and marks of the systems of a tile, by `threads` threads. */
template <typename Number>
__device__ __forceinline__ void
tell(const SharedJob<Number> &job, const TileSpot &spot, const ps_cuda_shared_note &note,
     bool solved, int me, int threads)
{
    if (job.info == nullptr && job.marks == nullptr) {
        return;
    }
    for (int s = me; s < spot.systems; s += threads) {
        const int64_t at = spot.line * job.line_info + (spot.first + s) * job.lane_info;

        if (job.info != nullptr && solved) {
            job.info[at] = info_of(note);
        }
        if (job.marks != nullptr) {
            job.marks[at] = !solved;
        }
    }
}

/* The matrix of a job, or what a store has of it. */
template <typename Number> struct Asked {
    Row<Number> last;
    ps_cuda_shared_note note;
};

/* Ask for it before tiles are asked for, so that it need not wait behind them. */
template <typename Number>
__device__ __forceinline__ Asked<Number>
ask(const SharedJob<Number> &job, const SharedSeat &seat, SharedMeeting<Number> &meeting,
    SharedFactor<Number> &factor)
{
    const SharedMatrix<Number> &matrix = job.matrix;
    const Number *word = words_of<Number>(matrix.note) + seat.chunk;

    if (matrix.note == nullptr) {
        return {factor.ask(matrix, seat, job.shape.rows), {}};
    }
    factor.each([&](Number &value) {
        value = *word;
        word += seat.chunks;
    });
    word = words_of<Number>(matrix.note) + factor_size<Number> * seat.chunks;
    for (int k = threadIdx.x; job.shape.warps > 1 && k < level_size<Number>;
         k += blockDim.x) {
        copy_async<sizeof(Number)>(meeting.level + k, word + k);
    }
    return {copy_row<Number>(), *matrix.note};
}

/* The factor of what was asked for; `buffer` has a number a row. */
template <typename Number>
__device__ __forceinline__ ps_cuda_shared_note
prepare(const SharedJob<Number> &job, const SharedSeat &seat, Asked<Number> &asked,
        Number *buffer, SharedMeeting<Number> &meeting, SharedFactor<Number> &factor)
{
    const SharedMatrix<Number> &matrix = job.matrix;

    if (matrix.note == nullptr) {
        factor.share(buffer, seat, job.shape.rows, asked.last);
        return factor.make(asked.last, matrix.periodic, job.shape, seat, meeting);
    }
    copies_done();
    if (matrix.conjugated) {
        factor.each([&](Number &value) { value = conjugate(value); });
        for (int k = threadIdx.x; job.shape.warps > 1 && k < level_size<Number>;
             k += blockDim.x) {
            meeting.level[k] = conjugate(meeting.level[k]);
        }
    }
    __syncthreads();
    return asked.note;
}

/* What pads read, and nobody writes: zeros in front of every system of every stage. The
 * block meets behind. */
template <typename Number>
__device__ __forceinline__ void
clear_fronts(const SharedJob<Number> &job, char *tiles)
{
    const ps_cuda_shared_shape &shape = job.shape;
    const int slots = shape.teams * shape.rounds, fronts = shape.stages * slots;

    for (int k = threadIdx.x; k < fronts * shape.front; k += blockDim.x) {
        const int system = k / shape.front, stage = system / slots;
        Number *const tile = reinterpret_cast<Number *>(tiles + stage * shape.tile_bytes);

        tile[(system - stage * slots) * shape.pitch + k % shape.front - shape.front] =
            Number(0);
    }
    __syncthreads();
}

template <typename Number>
__global__ void
__launch_bounds__(SharedLimits<Number>::threads)
    shared_solve_kernel(const __grid_constant__ SharedJob<Number> job)
{
    using Copier = TileCopier<Number>;
    char *const memory = reinterpret_cast<char *>(shared_memory);
    __shared__ SharedMeeting<Number> meeting;
    __shared__ TileClaims claims;
    __shared__ Arrivals barriers[Copier::most_warps * Copier::most_stages];
    const ps_cuda_shared_shape &shape = job.shape;
    const bool in_bulk = shape.copies == COPY_IN_BULK;
    const SharedSeat seat(shape, SharedLimits<Number>::rows);
    const Copier copier(job, seat,
                        memory + shape.exchange_bytes + shape.front * sizeof(Number),
                        barriers);
    const int ahead = shape.stages > 1 ? shape.stages - 1 : 1;
    TileOrder<Number> order(job, seat, claims, ahead);
    const auto load_next = [&](int stage) {
        if (order.is_there(order.next)) {
            copier.load(spot_of(job, order.next), stage);
        }
        order.loaded(stage);
        copies_committed();
    };
    SharedFactor<Number> factor;

    order.begin();
    Asked<Number> asked = ask(job, seat, meeting, factor);
    for (int k = 0; k < ahead && shape.stages > 1; k++) {
        load_next(k);
    }
    const ps_cuda_shared_note note = prepare(
        job, seat, asked,
        reinterpret_cast<Number *>(copier.tiles + (shape.stages - 1) * shape.tile_bytes),
        meeting, factor);
    bulk_fence();
    clear_fronts(job, copier.tiles);
    if (shape.stages == 1) {
        load_next(0);
    }
    const bool solved = job.marks == nullptr || note.dominant;
    order.claims = order.claims && solved;
    Load<Number> *const exchange = reinterpret_cast<Load<Number> *>(memory);
    SharedWorker<Number> worker = {
        shape,
        seat,
        factor,
        meeting.level,
        job.matrix.periodic,
        exchange,
        reinterpret_cast<Number *>(exchange + 2 * shape.rounds * (blockDim.x / 32)),
        0};
    int stage = 0, phase = 0;

    while (order.is_there(order.now)) {
        const int before = stage > 0 ? stage - 1 : ahead;
        const TileSpot spot = spot_of(job, order.now);

        copier.wait(stage, phase, ahead - 1);
        if (!in_bulk && shape.stages > 1) {
            load_next(before);
        }
        tell(job, spot, note, solved, in_bulk ? seat.chunk : threadIdx.x,
             in_bulk ? seat.chunks : blockDim.x);
        order.tell();
        if (solved) {
            worker.solve(
                reinterpret_cast<Number *>(copier.tiles + stage * shape.tile_bytes),
                in_bulk ? spot.systems : spot.systems - seat.first);
        }
        if (in_bulk && shape.stages > 1) {
            stores_read();
            order.ask();
            load_next(before);
            order.make_claim();
        }
        if (solved) {
            copier.store(spot, stage);
        }
        if (shape.stages == 1) {
            stores_read();
            copier.meet(); /* x is stored */
            load_next(0);
        }
        stage++;
        if (stage == shape.stages) {
            stage = 0;
            phase ^= 1;
        }
        order.advance(stage);
    }
    stores_read();
}

template <typename Number>
inline ps_status
shared_launch(const SharedJob<Number> &job, cudaStream_t stream)
{
    void (*const kernel)(const SharedJob<Number>) = shared_solve_kernel<Number>;
    const cudaError_t error = allow_shared(kernel);

    if (job.claims != nullptr &&
        clear_claims(job.claims, job.shape.teams, stream) != PS_OK) {
        return PS_DEVICE_FAILURE;
    }
    return error == cudaSuccess ? launch_closely(kernel, job.blocks, job.threads,
                                                 job.shared_bytes, stream, job)
                                : PS_DEVICE_FAILURE;
}

template <typename Number>
inline ps_status
shared_keep(const SharedMatrix<Number> &matrix, const ps_cuda_shared_shape &shape,
            void *store, int32_t *info, uint8_t *mark, cudaStream_t stream)
{
    const int chunks = shape.width * shape.warps;

    return launch_closely(shared_keep_kernel<Number>, 1, chunks < 32 ? 32 : chunks,
                          shape.rows * sizeof(Number), stream, matrix, shape,
                          static_cast<ps_cuda_shared_note *>(store), info, mark);
}

#define PS_CUDA_SHARED_DEFINE(number, name)                                    \
    ps_status ps_cuda_shared_launch_##name(const SharedJob<number> &job,       \
                                           cudaStream_t stream)                \
    {                                                                          \
        return shared_launch(job, stream);                                     \
    }                                                                          \
    ps_status ps_cuda_shared_keep_##name(                                      \
        const SharedMatrix<number> &matrix, const ps_cuda_shared_shape &shape, \
        void *store, int32_t *info, uint8_t *mark, cudaStream_t stream)        \
    {                                                                          \
        return shared_keep(matrix, shape, store, info, mark, stream);          \
    }

#endif
