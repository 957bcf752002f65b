/* loader.cuh - what the kernels for several right-hand sides share: the ring of slots and what loads
 * it, the rows of a matrix, and what is known of them.
 *
 * Items of the ring are the three operands of the matrices of a tile, then each of its right-hand
 * sides, tile after tile. The matrices are eliminated once, to multipliers in registers; each
 * right-hand side is solved in place and stored from its slot: 2 + 3 / k words of memory traffic per
 * unknown of k right-hand sides. The slot of a system that is left to the solver with row exchanges
 * keeps the right-hand side, which is stored to x: there the other solver reads it if x is rhs, and
 * writes its solution. From sm_90 on.
 */
#ifndef PS_CUDA_LINES_SIDES_LOADER_CUH
#define PS_CUDA_LINES_SIDES_LOADER_CUH

#include "device/cluster.cuh"
#include "device/operand.cuh"
#include "device/pivot.cuh"
#include "device/tile_copy.cuh"
#include "device/work_queue.cuh"
#include "lines/shared/shared_levels.cuh"
#include "lines/sides/loader.h"
#include "runtime/launch.cuh"

namespace pysolvers::sides {

using namespace device;
using namespace join;

/* copies_done_but() for a number of groups that is known at run time only, at most MOST. */
template <int MOST>
__device__ __forceinline__ void
copies_done_but_some(int count)
{
    if constexpr (MOST > 0) {
        if (count < MOST) {
            copies_done_but_some<MOST - 1>(count);
            return;
        }
    }
    copies_done_but<MOST>();
}

/* What the threads of a block share. */
struct RingState {
    static constexpr int most_slots = 16;
    Arrivals full[most_slots]; /* of the slots: their copies */
    Arrivals
        done[most_slots]; /* and of the warps that no longer use them, if they arrive */
    Arrivals others[4];   /* messages of the blocks of a cluster */
    Arrivals drawn[4];    /* tickets of a cluster */
    uint32_t tickets[4];
    int64_t
        tiles[4]; /* of the block, in turns; after the last one, one that is not there */

    /* Called by one thread, before a barrier of the block: `warps` warps use a slot. */
    __device__ __forceinline__ void init(int warps)
    {
        for (Arrivals &of_slot : full) {
            of_slot.init(1);
        }
        for (Arrivals &of_slot : done) {
            of_slot.init(warps);
        }
        for (Arrivals &of_ticket : drawn) {
            of_ticket.init(1);
        }
        for (Arrivals &of_blocks : others) {
            of_blocks.init(1);
        }
    }
};

/* Row i of a matrix at slots of its diagonals, `step` numbers apart: row `row` of its system, or a
 * pad; `ends` if it is the last row of a system that is not periodic. */
template <typename Number>
__device__ __forceinline__ Row<Number>
row_of_matrix(const Number *lower, const Number *diag, const Number *upper, int32_t at,
              int32_t row, bool ends, bool periodic)
{
    Row<Number> found = copy_row<Number>();

    if (row >= 0) {
        found = {lower[at], diag[at], upper[at], Number(0)};
    }
    if (!periodic && row == 0) {
        found.lower = Number(0);
    }
    if (ends) {
        found.upper = Number(0);
    }
    return found;
}

/* The matrix of a chunk, eliminated with fast reciprocals if they are exact. */
template <typename Number, int ROWS, typename Rows>
__device__ __forceinline__ Frame<Number>
eliminate_chunk(shared::ChunkFactor<Number, ROWS> &factor, const Rows &rows,
                int32_t start, BadPivot &bad_pivot)
{
    FastReciprocal<Number> fast_inverter;
    Frame<Number> frame = factor.make(factor.read(rows), start, fast_inverter);

    if (!fast_inverter.in_safe_range()) {
        SafeReciprocal<Number> safe_inverter = {bad_pivot};

        frame = factor.make(factor.read(rows), start, safe_inverter);
    }
    return frame;
}

/* Loads the ring; called by all lanes of a warp. `Copies` has load(to, q, side, tile, full) of input
 * q, and end(full), which ends the wait for a slot that is not loaded. */
template <bool IS_CLUSTER, typename Job, typename Copies> struct RingLoader {
    using Number = typename Job::Number;
    const Job &job;
    RingState &state;
    const Copies &copies;
    Number *slots;
    int32_t rank;
    int64_t tile = 0;              /* that is being loaded */
    int32_t turn = 0;              /* how many tiles were begun */
    int32_t item = 0;              /* of the tile, the next one to be loaded */
    int64_t loaded = 0, freed = 0; /* items */
    uint32_t ticket = 0;
    RingPlace place = {0, 0};

    static __device__ __forceinline__ bool leads()
    {
        return threadIdx.x % 32 == 0;
    }

    /* Load as many items as there are free slots. */
    __device__ __forceinline__ void load()
    {
        __syncwarp(); /* all lanes have stored what they wait for */
        bulk_fence();
        while (loaded < freed + job.shape.slots) {
            if (item == 3 + job.sides || turn == 0) {
                begin_tile();
            }
            if (tile >= job.tiles) {
                return;
            }
            copies.load(slots + place.slot * job.shape.numbers, min(item, 3),
                        max(item - 3, 0), tile, state.full[place.slot]);
            place.advance(job.shape.slots);
            item++;
            loaded++;
        }
    }

    /* So many items more are no longer used. */
    __device__ __forceinline__ void release(int32_t count)
    {
        freed += count;
        load();
    }

  private:
    __device__ __forceinline__ void begin_tile()
    {
        const bool draws = job.work_queue != nullptr;
        const int64_t step = gridDim.x / job.shape.blocks;

        if (turn < 2 || !draws) {
            tile = (IS_CLUSTER ? cluster_of_grid() : blockIdx.x) + turn * step;
        }
        else if (IS_CLUSTER) {
            const int32_t q = turn - 2;

            if (leads()) {
                state.drawn[q & 3].expect(sizeof ticket);
            }
            state.drawn[q & 3].wait(q >> 2 & 1);
            tile = 2 * step + *static_cast<volatile uint32_t *>(state.tickets + (q & 3));
        }
        else {
            tile = 2 * step + __shfl_sync(all_lanes, ticket, 0);
        }
        if (leads()) {
            state.tiles[turn & 3] = tile;
        }
        turn++;
        item = 0;
        if (draws && turn >= 2 && tile < job.tiles && rank == 0 && leads()) {
            ticket = atomicAdd(job.work_queue, 1u);
            if (IS_CLUSTER) {
                const int32_t q = turn - 2;

                for (int to = 0; to < job.shape.blocks; to++) {
                    send_word(address_in_block(state.tickets + (q & 3), to), ticket,
                              address_in_block(state.drawn + (q & 3), to));
                }
            }
        }
        __syncwarp();
        if (tile >= job.tiles) {
            copies.end(state.full[place.slot]); /* the warps find that there is no tile */
        }
    }
};

/* The warp that copies. A slot is free when its store has read it. */
template <bool IS_CLUSTER, typename Job, typename Copies>
__device__ __forceinline__ void
copy_tiles(const Job &job, RingState &state, const Copies &copies,
           typename Job::Number *slots, int32_t rank)
{
    RingLoader<IS_CLUSTER, Job, Copies> loader = {job, state, copies, slots, rank};
    RingPlace now = {0, 0};
    const auto wait = [&] { return now.wait(state.done, job.shape.slots); };

    loader.load();
#pragma unroll 1
    for (int32_t turn = 0; state.tiles[turn & 3] < job.tiles; turn++) {
        const int64_t tile = state.tiles[turn & 3];

        for (int q = 0; q < 3; q++) {
            wait();
        }
        loader.release(3);
#pragma unroll 1
        for (int32_t side = 0; side < job.sides; side++) {
            copies.store(slots + wait() * job.shape.numbers, side, tile);
            commit_stores();
            stores_read();
            loader.release(1);
        }
    }
}

/* The ring of threads that copy for themselves, as far ahead as there are slots; other threads use
 * neither the parts of the slots nor the copies. `Copies` has tile(turn), and load(slot, q, side,
 * tile) of input q. */
template <typename Job, typename Copies> struct OwnRing {
    using Number = typename Job::Number;
    const Job &job;
    const Copies &copies;
    Number *const slots;
    int32_t turn = 0, item = 0;       /* the next one to be copied, of which tile */
    int32_t copied = 0, now = 0;      /* the slots of that item and of the next one */
    int32_t free = 0, unfinished = 0; /* slots; copies that were not awaited */

    /* So many items more are no longer used. */
    __device__ __forceinline__ void release(int32_t count)
    {
        free += count;
        while (free > 0) {
            if (item == 3 + job.sides) {
                item = 0;
                turn++;
            }
            const int64_t tile = copies.tile(turn);

            if (tile >= job.tiles) {
                return;
            }
            copies.load(slots + copied * job.shape.numbers, min(item, 3),
                        max(item - 3, 0), tile);
            copies_committed();
            copied = following(copied);
            item++;
            free--;
            unfinished++;
        }
    }

    /* The slot of the next item, whose copies by this thread are complete. */
    __device__ __forceinline__ Number *wait()
    {
        Number *const slot = slots + now * job.shape.numbers;

        unfinished--;
        copies_done_but_some<most_slots - 1>(unfinished);
        now = following(now);
        return slot;
    }

  private:
    __device__ __forceinline__ int32_t following(int32_t slot) const
    {
        return slot + 1 < job.shape.slots ? slot + 1 : 0;
    }
};

template <typename Job>
__device__ __forceinline__ const Input<typename Job::Number> &
input_of_item(const Job &job, int q)
{
    return q == 0 ? job.t.lower : q == 1 ? job.t.diag : q == 2 ? job.t.upper : job.t.rhs;
}

/* Write what is known of the matrix of system `system`, the part of it that `lane` of `lanes`
 * threads writes. */
template <typename Job>
__device__ __forceinline__ void
report_of(const Job &job, int64_t system, const Note &note, bool skips, int32_t lane,
          int32_t lanes)
{
    for (int32_t side = lane; side < job.sides; side += lanes) {
        const int64_t of_batch = side * job.t.inner + system;

        if (job.t.info != nullptr) {
            job.t.info[of_batch] =
                note.bad_pivot == BadPivot::none ? 0 : note.bad_pivot + 1;
        }
        if (job.marks != nullptr) {
            job.marks[of_batch] = skips;
        }
    }
}

/* Enqueue a kernel that has any number of clusters, whose shared memory has the slots, then
 * `others` bytes. */
template <typename Job>
inline ps_status
launch_tiles(void (*kernel)(const Job), const Job &job, size_t others,
             cudaStream_t stream)
{
    const auto &s = job.shape;
    const size_t bytes =
        others + static_cast<size_t>(s.slots) * s.numbers * sizeof(typename Job::Number);
    int fit = 0;
    ps_status status = resident(kernel, s.threads(), bytes, s.blocks, &fit);

    if (status != PS_OK) {
        return status;
    }
    const int64_t rounds = divided_up(job.tiles, fit);
    Launch launch(divided_up(job.tiles, rounds) * s.blocks, s.threads(), bytes, stream);

    if (s.blocks > 1) {
        launch.in_clusters(s.blocks);
    }
    if (job.work_queue != nullptr) {
        status = clear_work_queue(job.work_queue, 1, stream);
        if (status != PS_OK) {
            return status;
        }
        launch.closely();
    }
    return launch.run(kernel, job);
}

} // namespace pysolvers::sides

#endif
