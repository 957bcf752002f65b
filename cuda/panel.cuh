/* panel.cuh - columns through one matrix, a panel of 32 side by side at a time: 2 words
 * an unknown.
 *
 * The blocks of a team have a group of rows each. A lane has a column, a warp a chunk of
 * the group's rows, which waits in shared memory, each lane's in words of its own. While
 * the workers reduce the chunks of one panel to two sums each, the carriers join those of
 * the panel before with what the other blocks tell through memory, and the rows of the
 * next are on their way: nobody waits for what has just been asked for. All blocks are
 * resident together.
 */
#ifndef PS_CUDA_PANEL_CUH
#define PS_CUDA_PANEL_CUH

#include "panel_carrier.cuh"
#include "shared_tile.cuh"

/* The rows of a worker: `pads` places without one, then its chunk. */
template <typename Number, int PLACES> struct PanelWorker {
    const PanelShared<Number, PLACES> &shared;
    int warp, lane, pads;

    __device__ __forceinline__ PanelSums<Number> reduce(const Number *place) const
    {
        PanelSums<Number> s = {Number(0), Number(0)};

#pragma unroll
        for (int i = 0; i < PLACES; i++) {
            const PanelSums<Number> count = shared.count[warp][i];
            const Number rhs = place[i * PANEL_WORKERS];

            s.first = s.first + count.first * rhs;
            s.d = s.d + count.d * rhs;
        }
        return s;
    }

    /* put(i, x), the last first: anew, with y_left known, so that the backward error is
     * that of Thomas. */
    template <typename Put>
    __device__ __forceinline__ void substitute(const Number *place, Number y_left,
                                               Number y, const Put &put) const
    {
        Number g[PLACES - 1];

#pragma unroll
        for (int i = 0; i < PLACES - 1; i++) {
            const PanelRow<Number> r = shared.row[warp][i];

            y_left = r.p * place[i * PANEL_WORKERS] - r.m * y_left;
            g[i] = y_left;
        }
        asm volatile("" ::: "memory"); /* all places are read */
        put(PLACES - 1, y);
#pragma unroll
        for (int i = PLACES - 2; i >= 0; i--) {
            y = g[i] - shared.u[warp][i] * y;
            put(i, y);
        }
    }
};

/* Where a lane finds its column. */
template <typename Number> struct PanelColumn {
    const Number *rhs; /* row 0 */
    Number *x;
    bool is_there;
};

/* The panels of a block, one after the other. A Field has
 *
 *   panels                the number of them
 *   rhs_pitch, x_pitch    bytes from row to row
 *   column(panel, lane)   a PanelColumn */
template <typename Number, int PLACES, int STAGES, typename Field> struct PanelBlock {
    static constexpr int words = PLACES * PANEL_WORKERS; /* of a stage */
    /* stores and copies: with wider numbers no gain */
    static constexpr bool by_turns = sizeof(Number) == 4;
    const PanelTeams<Number> &t;
    const Field &field;
    PanelShared<Number, PLACES> &shared;
    Number *places; /* of this thread: [stage][place], PANEL_WORKERS apart */
    PanelPlace at;
    int32_t start; /* of the thread's chunk */
    int rounds, pads;

    /* Start the copies of a round. */
    __device__ __forceinline__ void load(int round, int stage) const
    {
        if (at.warp < PANEL_CHUNKS) {
            loading(round, stage).load_all(pads, field.rhs_pitch);
        }
        end_group();
    }

    /* Substitute a round and start the copies of another in its places. */
    __device__ __forceinline__ void store(int round, int stage, int loaded) const
    {
        const PanelWorker<Number, PLACES> worker = {shared, at.warp, at.lane, pads};
        const PanelColumn<Number> column = column_of(round);
        const Number(*const y)[PANEL_LANES] = shared.y[round & 1];
        Loading next = loading(loaded, stage);
        char *to = reinterpret_cast<char *>(column.x) +
                   static_cast<int64_t>(start - pads + PLACES - 1) * field.x_pitch;

        worker.substitute(places + stage * words, y[at.warp][at.lane],
                          y[at.warp + 1][at.lane], [&](int i, Number x) {
                              if (i >= pads && column.is_there) {
                                  *reinterpret_cast<Number *>(to) = x;
                              }
                              to -= field.x_pitch;
                              if (by_turns) {
                                  next.load(i, pads, field.rhs_pitch);
                              }
                          });
        if (!by_turns) {
            next.load_all(pads, field.rhs_pitch);
        }
        end_group();
    }

    /* What pads read, and nobody writes. */
    __device__ __forceinline__ void clear_pads() const
    {
        for (int k = 0; at.warp < PANEL_CHUNKS && k < STAGES; k++) {
            for (int i = 0; i < pads; i++) {
                places[k * words + i * PANEL_WORKERS] = Number(0);
            }
        }
    }

    /* Carriers tell before the workers' copies, behind which the memory would let them
     * wait, and hear while these are under way. */
    __device__ __forceinline__ void solve() const
    {
        const PanelCarrier<Number, PLACES> carrier = {t, shared, at};
        const PanelWorker<Number, PLACES> worker = {shared, at.warp, at.lane, pads};
        const bool carries = at.warp >= PANEL_CHUNKS;
        PanelSums<Number> own = {Number(0), Number(0)};
        int stage = 0, before = STAGES - 1;

        for (int round = 0; round <= rounds; round++) {
            if (carries && round > 0) {
                carrier.hand_down(static_cast<uint32_t>(round - 1), own);
            }
            if (!carries && round < rounds) {
                wait_for_group(STAGES - 2);
                shared.sums[round & 1][at.warp][at.lane] =
                    worker.reduce(places + stage * words);
            }
            __syncthreads();
            if (carries && round < rounds) {
                own = carrier.gather(static_cast<uint32_t>(round));
            }
            if (t.groups > 1) {
                __syncthreads();
            }
            if (!carries && round > 0) {
                store(round - 1, before, round + STAGES - 1);
            }
            else {
                load(round + STAGES - 1, before);
            }
            before = stage;
            stage = stage + 1 < STAGES ? stage + 1 : 0;
        }
    }

  private:
    /* The copies of a chunk, from its last row to the first. */
    struct Loading {
        const char *from;
        Number *to;
        bool is_there;

        __device__ __forceinline__ void load(int i, int pads, int32_t pitch)
        {
            if (i >= pads && is_there) {
                copy_async_of_line<sizeof(Number)>(to + i * PANEL_WORKERS, from);
            }
            from -= pitch;
        }

        __device__ __forceinline__ void load_all(int pads, int32_t pitch)
        {
#pragma unroll
            for (int i = PLACES - 1; i >= 0; i--) {
                load(i, pads, pitch);
            }
        }
    };

    __device__ __forceinline__ Loading loading(int round, int stage) const
    {
        const PanelColumn<Number> column = column_of(round);

        return {reinterpret_cast<const char *>(column.rhs) +
                    static_cast<int64_t>(start - pads + PLACES - 1) * field.rhs_pitch,
                places + stage * words, column.is_there && round < rounds};
    }

    __device__ __forceinline__ PanelColumn<Number> column_of(int round) const
    {
        return field.column(at.team + round * t.teams, at.lane);
    }
};

template <typename Number, int PLACES, int STAGES, typename Field>
__global__ void
__launch_bounds__(PANEL_THREADS, 1)
    panel_kernel(const __grid_constant__ PanelTeams<Number> t,
                 const __grid_constant__ Field field)
{
    using Shared = PanelShared<Number, PLACES>;
    extern __shared__ __align__(16) char memory[];
    const PanelPlace at(t.groups);
    const int32_t chunks = t.groups * PANEL_CHUNKS;
    const int32_t chunk = at.group * PANEL_CHUNKS + at.warp;
    const int32_t start = panel_start(chunk, chunks, t.rows);
    const PanelBlock<Number, PLACES, STAGES, Field> block = {
        t,
        field,
        *reinterpret_cast<Shared *>(memory),
        reinterpret_cast<Number *>(memory + sizeof(Shared)) + threadIdx.x,
        at,
        start,
        static_cast<int>((field.panels - at.team + t.teams - 1) / t.teams),
        PLACES - (panel_start(chunk + 1, chunks, t.rows) - start)};

    wait_for_last_kernel();
    if (!field.begin(*t.table.note, at, t.teams)) {
        return;
    }
#pragma unroll
    for (int k = 0; k < STAGES - 1; k++) {
        block.load(k, k);
    }
    load_panel_table(t, at.group, block.shared);
    block.clear_pads();
    __syncthreads();
    let_next_kernel_in();
    block.solve();
}

#endif
