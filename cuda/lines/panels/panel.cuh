/* panel.cuh - solves with one matrix for panels of neighbouring columns: 2 words per
 * unknown.
 *
 * A panel is at least 256 bytes wide. Each block of a team has a group of rows, a warp
 * a chunk of them, a lane some columns. While the chunks of one panel are reduced to
 * two sums each, the previous panel is substituted and the next two are copied, so that
 * no warp waits for sums that have just been sent. All blocks of a team are resident
 * together. The multipliers of the matrix are those of panel_table.cuh.
 */
#ifndef PS_CUDA_LINES_PANELS_PANEL_CUH
#define PS_CUDA_LINES_PANELS_PANEL_CUH

#include "lines/panels/panel_factor_io.cuh"

namespace pysolvers::panels {

/* Neighbouring columns of a lane. */
template <typename Number> struct alignas(panel_pack<Number> * sizeof(Number)) PanelPack {
    static constexpr int count = panel_pack<Number>;
    Number at[count];
};

/* The chunk of a warp; each lane has a pack of every place. */
template <typename Number> struct PanelWorker {
    using Pack = PanelPack<Number>;
    static constexpr int places = panel_places<Number>;
    const PanelGroup<Number> &group;
    int chunk;

    /* Read the right-hand sides of a panel, row(i), and compute their two sums. */
    template <typename Row>
    __device__ __forceinline__ void reduce(const Row &row, Pack (&rhs)[places],
                                           Pack &first, Pack &d) const
    {
        Pack s = {}, t = {};

#pragma unroll
        for (int i = 0; i < places; i++) {
            const PanelSums<Number> count = group.count[chunk][i];

            rhs[i] = row(i);
#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                s.at[k] = s.at[k] + count.first * rhs[i].at[k];
                t.at[k] = t.at[k] + count.d * rhs[i].at[k];
            }
        }
        first = s;
        d = t;
    }

    /* Write x to every place. The chunk is eliminated a second time with y_left known, so that
     * the backward error is that of the Thomas algorithm. */
    __device__ __forceinline__ void substitute(Pack (&g)[places], Pack *place, int pads,
                                               Pack y_left, Pack y) const
    {
#pragma unroll
        for (int i = 0; i < places - 1; i++) {
            const PanelRow<Number> r = group.row[chunk][i];

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                y_left.at[k] = r.p * g[i].at[k] - r.m * y_left.at[k];
            }
            g[i] = y_left;
        }
        place[(places - 1) * 32] = y;
#pragma unroll
        for (int i = places - 2; i >= 0; i--) {
            const Number u = group.u[chunk][i];

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

/* Right-hand sides that are those in memory. A source that makes_rows replaces those of a stage;
 * others have a reader, row(i) of a reduction. */
struct PanelRows {
    static constexpr bool makes_rows = false;

    template <typename Number>
    __device__ __forceinline__ auto
    reader(const SharedPanels<Number> &, const PanelTeams<Number> &,
           const PanelChunk<Number> &, const TeamPlace &, int32_t, int64_t,
           const PanelPack<Number> *place) const
    {
        return [place](int i) { return place[i * 32]; };
    }
};

/* The rows of the group of a block, for the columns of a lane: in a stage or in memory. The
 * neighbouring rows of a chunk are in the stage too. Those of the group come from memory, behind
 * the copies of the panels, and are requested a panel before. */
template <typename Number> struct PanelSurroundings {
    static constexpr int places = panel_places<Number>;
    using Pack = PanelPack<Number>;
    const SharedPanels<Number> &batch;
    const PanelChunk<Number> &chunk;
    int32_t rows;
    bool is_ring;
    int32_t begin, stop, group_begin, group_stop; /* of the chunk, and of the group */
    int column;
    bool is_first, is_last; /* of the chunks with rows */

    __device__ __forceinline__ PanelSurroundings(const SharedPanels<Number> &panels,
                                                 const PanelChunk<Number> &own,
                                                 const TeamPlace &at, int32_t group_start,
                                                 int32_t count, bool wraps)
        : batch(panels), chunk(own), rows(count), is_ring(wraps),
          begin(own.start + own.pads), stop(own.start + places), group_begin(group_start),
          group_stop(own.start + (PANEL_CHUNKS - at.warp) * places),
          column(at.lane * Pack::count), is_first(begin == group_begin && own.has_rows()),
          is_last(at.warp == PANEL_CHUNKS - 1)
    {
    }

    /* A row of a ring, or the nearest one: those beyond an end do not count. */
    __device__ __forceinline__ int32_t wrapped(int32_t row) const
    {
        if (is_ring) {
            return row < 0 ? row + rows : row < rows ? row : row - rows;
        }
        return min(max(row, 0), rows - 1);
    }

    __device__ __forceinline__ Pack from_memory(const PanelRange &range,
                                                int32_t row) const
    {
        const Number *const line =
            batch.rhs + range.line * batch.rhs_line + wrapped(row) * batch.rhs_row;
        Pack p;

#pragma unroll
        for (int k = 0; k < Pack::count; k++) {
            const int safe = min(column + k, range.columns - 1);

            p.at[k] = line[(range.first + safe) * batch.rhs_lane];
        }
        return p;
    }

    __device__ __forceinline__ Pack at(const PanelRange &range, const Pack *place,
                                       int32_t row) const
    {
        return row >= group_begin && row < group_stop ? place[(row - chunk.start) * 32]
                                                      : from_memory(range, row);
    }
};

/* Two neighbouring rows of the group: before it for the chunk with its first row, otherwise after it for
 * the last chunk. */
template <typename Number> struct PanelAhead {
    using Pack = PanelPack<Number>;
    Pack row[2];

    __device__ __forceinline__ void request(const PanelSurroundings<Number> &around,
                                            int64_t panel)
    {
        const PanelRange range = around.batch.range_of(panel);
        const int32_t first = around.is_first ? around.begin - 2 : around.stop;

        if (around.is_first || around.is_last) {
#pragma unroll
            for (int k = 0; k < 2; k++) {
                row[k] = around.from_memory(range, first + k);
            }
        }
    }

    /* Rows begin - 2 and begin - 1 of a chunk, and the first two rows after it. */
    __device__ __forceinline__ Pack before(const PanelSurroundings<Number> &around,
                                           const PanelRange &range, const Pack *place,
                                           int k) const
    {
        return around.is_first ? row[k] : around.at(range, place, around.begin - 2 + k);
    }
    __device__ __forceinline__ Pack behind(const PanelSurroundings<Number> &around,
                                           const PanelRange &range, const Pack *place,
                                           int k) const
    {
        return around.is_last && !around.is_first
                   ? row[k]
                   : around.at(range, place, around.stop + k);
    }
};

/* Right-hand sides that are made of the differences of neighbouring rows y in memory: with
 * D[i] = y[i+1] - y[i],
 *
 *   rhs[i] = weight[i].first D[i-1] + weight[i].d D[i],
 *
 * where D[-1] stands for D[1], and D[rows-1] for D[rows-3]. y is copied, in the layout of x,
 * and *not_finite set to 1 if y has other numbers than finite ones. They are made while a chunk is
 * reduced: 0.62 of the time of rows that replace those of a stage (float64; float32 1.05; H200). */
template <typename Number> struct PanelDifferences {
    static constexpr bool makes_rows = false;
    const PanelSums<Number> *weight;
    Number *copy;
    int32_t *not_finite;

    struct Reader {
        using Pack = PanelPack<Number>;
        const Pack *place;
        const PanelSums<Number> *weight;
        Pack *copy; /* of place 0 */
        int64_t copy_step;
        int32_t *not_finite;
        int32_t first, pads, last; /* rows: of place 0; none before; the last one */
        Pack change;               /* of the row before */
        Pack halo;                 /* y of the row after the group */
        bool has_halo, is_there;

        __device__ __forceinline__ Pack operator()(int i)
        {
            constexpr int places = panel_places<Number>;
            const int32_t row = first + i;
            Pack rhs = {};

            if (i < pads) {
                return rhs;
            }
            const Pack y = place[i * 32];
            Pack after = i == places - 1 && has_halo ? halo : place[(i + 1) * 32];
            Pack next;

            if (row == 0) {
                change = difference(place[(i + 2) * 32], place[(i + 1) * 32]);
            }
            next = row == last ? difference(place[(i - 1) * 32], place[(i - 2) * 32])
                               : difference(after, y);

            const PanelSums<Number> by = weight[row];
            bool is_finite = true;

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                rhs.at[k] = by.first * change.at[k] + by.d * next.at[k];
                is_finite = is_finite && y.at[k] - y.at[k] == Number(0);
            }
            if (is_there) {
                copy[i * copy_step] = y;
                if (!is_finite) {
                    *not_finite = 1;
                }
            }
            change = next;
            return rhs;
        }

        static __device__ __forceinline__ Pack difference(const Pack &a, const Pack &b)
        {
            Pack d;

#pragma unroll
            for (int k = 0; k < Pack::count; k++) {
                d.at[k] = a.at[k] - b.at[k];
            }
            return d;
        }
    };

    __device__ __forceinline__ Reader reader(const SharedPanels<Number> &batch,
                                             const PanelTeams<Number> &t,
                                             const PanelChunk<Number> &chunk,
                                             const TeamPlace &at, int32_t group_start,
                                             int64_t panel,
                                             const PanelPack<Number> *place) const
    {
        using Pack = PanelPack<Number>;
        constexpr int places = panel_places<Number>;
        const PanelRange range = batch.range_of(panel);
        const int column = at.lane * Pack::count;
        const int64_t safe = range.first + min(column, range.columns - Pack::count);
        const auto y_at = [&](int32_t row) {
            return *reinterpret_cast<const Pack *>(
                batch.rhs + range.line * batch.rhs_line + row * batch.rhs_row + safe);
        };
        const int32_t begin = chunk.start + chunk.pads;
        Reader r = {place,
                    weight,
                    reinterpret_cast<Pack *>(copy + range.line * batch.x_line +
                                             chunk.start * batch.x_row + safe),
                    batch.x_row / Pack::count,
                    not_finite,
                    chunk.start,
                    chunk.pads,
                    t.rows - 1,
                    {},
                    {},
                    false,
                    column < range.columns};
        r.has_halo = at.warp == PANEL_CHUNKS - 1 && at.group < t.groups - 1;
        if (r.has_halo) {
            r.halo = y_at(chunk.start + places);
        }
        if (begin > 0) {
            r.change = Reader::difference(
                place[chunk.pads * 32],
                begin == group_start ? y_at(begin - 1) : place[(chunk.pads - 1) * 32]);
        }
        return r;
    }
};

/* Lets a source replace the rows of a stage. */
template <typename Number, typename Source, bool MAKES = Source::makes_rows>
struct PanelMaker {
    __device__ __forceinline__ PanelMaker(const Source &, PanelGroup<Number> &,
                                          const SharedPanels<Number> &,
                                          const PanelChunk<Number> &, const TeamPlace &,
                                          int32_t, int32_t)
    {
    }
    __device__ __forceinline__ void begin(int64_t)
    {
    }
    __device__ __forceinline__ void make(int64_t, int64_t, PanelPack<Number> *)
    {
    }
};

template <typename Number, typename Source> struct PanelMaker<Number, Source, true> {
    const Source &source;
    PanelGroup<Number> &group;
    PanelSurroundings<Number> around;
    PanelAhead<Number> ahead;

    __device__ __forceinline__ PanelMaker(const Source &own, PanelGroup<Number> &room,
                                          const SharedPanels<Number> &batch,
                                          const PanelChunk<Number> &chunk,
                                          const TeamPlace &at, int32_t group_start,
                                          int32_t rows)
        : source(own), group(room),
          around(batch, chunk, at, group_start, rows, own.is_ring), ahead()
    {
    }
    /* By all threads, before the first panel, which is requested. */
    __device__ __forceinline__ void begin(int64_t panel)
    {
        source.begin(group);
        ahead.request(around, panel);
        __syncthreads();
    }
    /* By all threads; `next` is the panel to request, or negative. */
    __device__ __forceinline__ void make(int64_t panel, int64_t next,
                                         PanelPack<Number> *place)
    {
        source.make(around, group, panel, place, ahead, [&] {
            if (next >= 0) {
                ahead.request(around, next);
            }
        });
    }
};

/* The panels of a block, one after the other. A panel is copied to a stage and reduced;
 * its right-hand sides then stay in registers until the sums of the other blocks have
 * arrived. x is stored through the stage that was read last. */
template <typename Number, typename Exchange, typename Source> struct PanelBlock {
    using Worker = PanelWorker<Number>;
    using Pack = PanelPack<Number>;
    static constexpr int places = panel_places<Number>;
    static constexpr int stages = panel_stages;
    static constexpr int stage_words = PANEL_CHUNKS * panel_chunk_words<Number>;
    const PanelTeams<Number> &t;
    const PanelBulk<Number> &bulk;
    const PanelChunk<Number> &chunk;
    PanelShared<Number> &shared;
    Number *stage_of_all; /* the first stage */
    Arrivals *arrivals;   /* of the stages */
    Arrivals &received;
    const TeamPlace &at;
    int rounds;
    const Source &source;

    /* Start the copies of a round to a stage. */
    __device__ __forceinline__ void load(int round, int stage) const
    {
        if (!bulk.batch.in_bulk) {
            if (round < rounds) {
                chunk.load(panel_of(round), own(stage));
            }
            copies_committed();
        }
        else if (is_copier() && round < rounds) {
            bulk.load(panel_of(round), whole(stage), arrivals[stage]);
        }
    }

    __device__ __forceinline__ void clear_pads() const
    {
        for (int k = 0; k < stages; k++) {
            chunk.clear(own(k));
        }
    }

    __device__ __forceinline__ void solve() const
    {
        const Exchange exchange = {t, shared, at, received};
        const PanelReducer<Number, Exchange> reducer = {exchange, shared};
        Pack previous[places] = {}; /* right-hand sides of the previous round */
        int stage = 0, before = stages - 1, parity = 0;
        PanelMaker<Number, Source> maker(source, shared.group, bulk.batch, chunk, at,
                                         bulk.start, t.rows);

        maker.begin(panel_of(0));
        for (int round = 0; round <= rounds; round++) {
            const bool is_last = round == rounds;
            PanelSums<Number> sums = {};
            Pack rhs[places] = {};

            if (!is_last) {
                wait(stage, parity);
                maker.make(panel_of(round), round + 1 < rounds ? panel_of(round + 1) : -1,
                           place_of(stage));
                reduce(round, stage, rhs);
            }
            if (round > 0) {
                reducer.poll(static_cast<uint32_t>(round - 1));
            }
            __syncthreads();
            if (round > 0) {
                refill(round - 1 + stages, before);
            }
            if (!is_last) {
                exchange.release_buffer();
                sums = reducer.sum_up(static_cast<uint32_t>(round));
                exchange.post_to_memory(static_cast<uint32_t>(round), sums);
            }
            if (round > 0) {
                substitute(round - 1, stage, previous);
            }
            if (!is_last) {
                exchange.post_to_cluster(sums);
            }
            __syncthreads();
            if (round > 0) {
                store(round - 1, stage);
            }
            if (!is_last) {
                reducer.join(static_cast<uint32_t>(round));
            }
#pragma unroll
            for (int i = 0; i < places; i++) {
                previous[i] = rhs[i];
            }
            before = stage;
            stage = stage + 1 < stages ? stage + 1 : 0;
            parity ^= stage == 0;
        }
        stores_read();
    }

    /* If nothing is solved: wait for the copies in flight. */
    __device__ __forceinline__ void wait_for_copies() const
    {
        for (int k = 0; k < min(rounds, +stages); k++) {
            wait(k, 0);
        }
    }

  private:
    /* The thread that starts bulk copies. */
    static __device__ __forceinline__ bool is_copier()
    {
        return threadIdx.x == PANEL_THREADS - 32;
    }

    __device__ __forceinline__ int64_t panel_of(int round) const
    {
        return at.team + round * t.teams;
    }

    __device__ __forceinline__ Number *whole(int stage) const
    {
        return stage_of_all + stage * stage_words;
    }

    /* The places of the warp. */
    __device__ __forceinline__ Number *own(int stage) const
    {
        return whole(stage) + at.warp * panel_chunk_words<Number>;
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
            copies_done_but<stages - 2>();
            if constexpr (Source::makes_rows) { /* it reads rows of other warps */
                __syncthreads();
            }
            else {
                __syncwarp();
            }
        }
    }

    __device__ __forceinline__ auto reader_of(int round, const Pack *place) const
    {
        if constexpr (Source::makes_rows) {
            return [place](int i) { return place[i * 32]; };
        }
        else {
            return source.reader(bulk.batch, t, chunk, at, bulk.start, panel_of(round),
                                 place);
        }
    }

    __device__ __forceinline__ void reduce(int round, int stage,
                                           Pack (&rhs)[places]) const
    {
        Pack &first = pack(shared.first[at.warp]);
        Pack &d = pack(shared.y[round & 1][at.warp + 1]);

        first = d = Pack();
        if (chunk.has_rows()) {
            auto reader = reader_of(round, place_of(stage));

            Worker{shared.group, at.warp}.reduce([&](int i) { return reader(i); }, rhs,
                                                 first, d);
        }
    }

    __device__ __forceinline__ void substitute(int round, int stage,
                                               Pack (&rhs)[places]) const
    {
        if (chunk.has_rows()) {
            Worker{shared.group, at.warp}.substitute(rhs, place_of(stage), chunk.pads,
                                                     end_of(at.warp, round & 1),
                                                     end_of(at.warp + 1, round & 1));
        }
        if (bulk.batch.in_bulk) {
            bulk_fence();
        }
    }

    /* Store x of a round from a stage. */
    __device__ __forceinline__ void store(int round, int stage) const
    {
        if (!bulk.batch.in_bulk) {
            chunk.store(panel_of(round), own(stage));
        }
        else if (is_copier()) {
            bulk.store(panel_of(round), whole(stage));
        }
    }

    /* load(), after the stores from the stage have read it. */
    __device__ __forceinline__ void refill(int round, int stage) const
    {
        if (is_copier()) {
            stores_read();
        }
        __syncwarp();
        load(round, stage);
    }

    /* y at the end of chunk i - 1; for i = 0, before the group. */
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

template <typename Number, typename Exchange, typename Source>
__global__ void
__launch_bounds__(PANEL_THREADS, 1)
    panel_kernel(const __grid_constant__ PanelTeams<Number> t,
                 const __grid_constant__ SharedPanels<Number> batch,
                 const __grid_constant__ SharedMatrix<Number> matrix,
                 const __grid_constant__ Source source)
{
    using Shared = PanelShared<Number>;
    using Block = PanelBlock<Number, Exchange, Source>;
    constexpr int places = panel_places<Number>;
    extern __shared__ __align__(128) char memory[];
    __shared__ Arrivals arrivals[Block::stages], received, parts_received;
    const TeamPlace at(t.groups);
    const int32_t pads = panel_pads<Number>(at.group, t.groups, t.rows);
    const int32_t rows = panel_group_rows<Number> - pads;
    const int32_t end = panel_end<Number>(at.group, t.groups, t.rows);
    const PanelBulk<Number> bulk = {batch, end - rows, rows, at.group};
    const PanelChunk<Number> chunk = {batch, end - (PANEL_CHUNKS - at.warp) * places,
                                      min(max(pads - at.warp * places, 0), places),
                                      at.lane};
    Number *const stages = reinterpret_cast<Number *>(memory);
    Shared &shared =
        *reinterpret_cast<Shared *>(stages + Block::stages * Block::stage_words);
    const Block block = {
        t,
        bulk,
        chunk,
        shared,
        stages,
        arrivals,
        received,
        at,
        static_cast<int>((batch.panels - at.team + t.teams - 1) / t.teams),
        source};
    PanelFactorLoader<Number, Exchange::is_cluster> table = {
        t, matrix, at, shared, parts_received, {}, {}, true};

    if (threadIdx.x == PANEL_THREADS - 32) {
        for (int k = 0; k < Block::stages; k++) {
            arrivals[k].init(1);
        }
        received.init(1);
        parts_received.init(1);
    }
    __syncwarp();
    if (Exchange::is_cluster) {
        cluster_arrive();
    }
    wait_for_last_kernel();
    if (batch.needs.are_met()) {
        if (Exchange::is_cluster) {
            cluster_wait();
        }
        return;
    }
    table.request();
    block.load(0, 0);
    block.clear_pads();
    table.wait();
    for (int k = 1; k < Block::stages; k++) {
        block.load(k, k);
    }
    const StoredNote note = table.finish();

    batch.report(note, at, t.teams);
    if (batch.is_solved(note)) {
        block.solve();
    }
    else {
        block.wait_for_copies();
    }
}

} // namespace pysolvers::panels

#endif
