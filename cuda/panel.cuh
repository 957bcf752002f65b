/* panel.cuh - columns through one matrix, a panel of 256 bytes or more side by side at a
 * time: 2 words an unknown.
 *
 * The blocks of a team have a group of rows each, a warp a chunk of them, a lane some
 * columns. While the chunks of one panel are reduced to two sums each, x of the panel
 * before takes the place of its right-hand side, from where it is stored, and the rows of
 * the next are on their way: nobody waits for what has just been told. All blocks are
 * resident together.
 */
#ifndef PS_CUDA_PANEL_CUH
#define PS_CUDA_PANEL_CUH

#include "panel_join.cuh"

/* Columns side by side. */
template <typename Number> struct alignas(panel_pack<Number> * sizeof(Number)) PanelPack {
    static constexpr int count = panel_pack<Number>;
    Number at[count];
};

/* The chunk of a warp, of which a lane has a pack of every place. */
template <typename Number> struct PanelWorker {
    using Pack = PanelPack<Number>;
    static constexpr int places = panel_places<Number>;
    const PanelShared<Number> &shared;
    int chunk;

    __device__ __forceinline__ void reduce(const Pack *place, Pack &first, Pack &d) const
    {
        Pack s = {}, t = {};

#pragma unroll
        for (int i = 0; i < places; i++) {
            const PanelSums<Number> count = shared.count[chunk][i];
            const Pack rhs = place[i * 32];

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                s.at[k] = s.at[k] + count.first * rhs.at[k];
                t.at[k] = t.at[k] + count.d * rhs.at[k];
            }
        }
        first = s;
        d = t;
    }

    /* x in every place: anew, with y_left known, so that the backward error is that of
     * Thomas. */
    __device__ __forceinline__ void substitute(Pack *place, int pads, Pack y_left,
                                               Pack y) const
    {
        Pack g[places - 1];

#pragma unroll
        for (int i = 0; i < places - 1; i++) {
            const PanelRow<Number> r = shared.row[chunk][i];
            const Pack rhs = place[i * 32];

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                y_left.at[k] = r.p * rhs.at[k] - r.m * y_left.at[k];
            }
            g[i] = y_left;
        }
        asm volatile("" ::: "memory"); /* all places are read */
        place[(places - 1) * 32] = y;
#pragma unroll
        for (int i = places - 2; i >= 0; i--) {
            const Number u = shared.u[chunk][i];

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                y.at[k] = g[i].at[k] - u * y.at[k];
            }
            if (i >= pads) {
                place[i * 32] = y;
            }
        }
    }
};

/* The panels of a block, one after the other. */
template <typename Number> struct PanelBlock {
    using Pack = PanelPack<Number>;
    static constexpr int stages = 3;
    static constexpr int stage_words = PANEL_CHUNKS * panel_chunk_words<Number>;
    const PanelTeams<Number> &t;
    const PanelBulk<Number> &bulk;
    const PanelChunk<Number> &chunk;
    PanelShared<Number> &shared;
    Number *places;     /* of the first stage */
    Arrivals *arrivals; /* of the stages */
    const PanelPlace &at;
    int rounds;

    /* Start the copies of a round, by who calls. */
    __device__ __forceinline__ void load(int round, int stage) const
    {
        if (round >= rounds) {
            return;
        }
        if (!bulk.batch.in_bulk) {
            if (at.warp < PANEL_CHUNKS) {
                chunk.load(panel_of(round), own(stage));
            }
        }
        else if (threadIdx.x == PANEL_WORKERS) {
            bulk.load(panel_of(round), places + stage * stage_words, arrivals[stage]);
        }
    }

    __device__ __forceinline__ void clear_pads() const
    {
        for (int k = 0; k < stages && at.warp < PANEL_CHUNKS; k++) {
            chunk.clear(own(k));
        }
    }

    __device__ __forceinline__ void solve() const
    {
        if (at.warp < PANEL_CHUNKS) {
            work();
        }
        else {
            carry();
        }
    }

  private:
    __device__ __forceinline__ void work() const
    {
        const PanelJoiner<Number> joiner = {t, shared, at};
        int stage = 0, before = stages - 1, parity = 0;

        for (int round = 0; round <= rounds; round++) {
            if (round < rounds) {
                wait(stage, parity);
                reduce(round & 1, stage);
            }
            if (round > 0) {
                joiner.hear(static_cast<uint32_t>(round - 1));
            }
            meet_workers();
            if (round < rounds) {
                joiner.tell(static_cast<uint32_t>(round));
            }
            if (round > 0) {
                substitute(round - 1, before);
            }
            __syncthreads();
            if (round < rounds) {
                joiner.join(static_cast<uint32_t>(round));
            }
            before = stage;
            stage = stage + 1 < stages ? stage + 1 : 0;
            parity ^= stage == 0;
        }
    }

    /* Bring and take away in bulk what the workers have done with. */
    __device__ __forceinline__ void carry() const
    {
        int before = stages - 1;

        for (int round = 0; round <= rounds; round++) {
            __syncthreads();
            if (round > 0 && bulk.batch.in_bulk && at.lane == 0) {
                bulk.store(panel_of(round - 1), places + before * stage_words);
                load(round + stages - 1, before);
            }
            before = before + 1 < stages ? before + 1 : 0;
        }
    }

    static __device__ __forceinline__ void meet_workers()
    {
        asm volatile("bar.sync 1, %0;" ::"r"(int(PANEL_WORKERS)) : "memory");
    }

    __device__ __forceinline__ int64_t panel_of(int round) const
    {
        return at.team + round * t.teams;
    }

    /* The places of the warp. */
    __device__ __forceinline__ Number *own(int stage) const
    {
        return places + stage * stage_words + at.warp * panel_chunk_words<Number>;
    }

    __device__ __forceinline__ Pack *place_of(int stage) const
    {
        return reinterpret_cast<Pack *>(own(stage)) + at.lane;
    }

    __device__ __forceinline__ Pack &pack(Number *row) const
    {
        return reinterpret_cast<Pack *>(row)[at.lane];
    }

    __device__ __forceinline__ void wait(int stage, int parity) const
    {
        if (bulk.batch.in_bulk) {
            arrivals[stage].wait(parity);
        }
        else {
            copies_done();
            __syncwarp();
        }
    }

    __device__ __forceinline__ void reduce(int turn, int stage) const
    {
        Pack &first = pack(shared.first[at.warp]), &d = pack(shared.y[turn][at.warp + 1]);

        first = d = Pack();
        if (chunk.has_rows()) {
            PanelWorker<Number>{shared, at.warp}.reduce(place_of(stage), first, d);
        }
    }

    __device__ __forceinline__ void substitute(int round, int stage) const
    {
        if (chunk.has_rows()) {
            PanelWorker<Number>{shared, at.warp}.substitute(
                place_of(stage), chunk.pads, end_of(at.warp, round & 1),
                end_of(at.warp + 1, round & 1));
        }
        if (bulk.batch.in_bulk) {
            bulk_fence();
        }
        else {
            chunk.store(panel_of(round), own(stage));
            load(round + stages, stage);
        }
    }

    /* y at the end of chunk i - 1, for i = 0 before the group. */
    __device__ __forceinline__ Pack end_of(int i, int turn) const
    {
        const PanelSpike<Number> s = shared.spike[i];
        const Pack left = pack(shared.ends[0]), own = pack(shared.ends[1]);
        Pack y = pack(shared.y[turn][i]);

#pragma unroll
        for (int k = 0; k < Pack::count; k++) {
            y.at[k] = y.at[k] - s.l * left.at[k] - s.u * own.at[k];
        }
        return y;
    }
};

template <typename Number>
__global__ void
__launch_bounds__(PANEL_THREADS, 1)
    panel_kernel(const __grid_constant__ PanelTeams<Number> t,
                 const __grid_constant__ SharedPanels<Number> batch)
{
    using Shared = PanelShared<Number>;
    using Block = PanelBlock<Number>;
    constexpr int places = panel_places<Number>;
    extern __shared__ __align__(128) char memory[];
    __shared__ Arrivals arrivals[Block::stages];
    const PanelPlace at(t.groups);
    const int32_t pads = panel_pads<Number>(at.group, t.groups, t.rows);
    const int32_t rows = panel_group_rows<Number> - pads;
    const int32_t end = panel_end<Number>(at.group, t.groups, t.rows);
    const PanelBulk<Number> bulk = {batch, end - rows, rows, at.group};
    const PanelChunk<Number> chunk = {batch, end - (PANEL_CHUNKS - at.warp) * places,
                                      min(max(pads - at.warp * places, 0), places),
                                      at.lane};
    Number *const stages = reinterpret_cast<Number *>(memory);
    const Block block = {
        t,      bulk,
        chunk,  *reinterpret_cast<Shared *>(stages + Block::stages * Block::stage_words),
        stages, arrivals,
        at,     static_cast<int>((batch.panels - at.team + t.teams - 1) / t.teams)};
    bool solved = batch.marks == nullptr;

    if (threadIdx.x == PANEL_WORKERS) {
        for (int k = 0; k < Block::stages; k++) {
            arrivals[k].init(1);
        }
    }
    __syncwarp();
    if (!solved) {
        wait_for_last_kernel();
        solved = batch.is_solved(*t.table.note);
    }
    for (int k = 0; k < Block::stages && solved; k++) {
        block.load(k, k);
    }
    wait_for_last_kernel();
    batch.tell(*t.table.note, at, t.teams);
    if (!solved) {
        return;
    }
    block.clear_pads();
    load_panel_table(t, at.group, block.shared);
    block.solve();
}

#endif
