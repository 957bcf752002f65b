/* heat_panels.cuh - a sweep along y or z by teams of blocks.
 *
 * A panel is a set of neighbouring columns, 256 bytes wide. Each block of a team has a
 * group of rows, and processes one panel after the other. The copy warp loads and
 * stores whole tiles by bulk copies, so that memory accesses of the other warps are not
 * queued behind them. A solver warp has a chunk of the rows, a lane 8 bytes of each
 * row. While the solvers reduce the chunks of one panel to two sums each, the reducer
 * warps compute the boundary values of the chunks of the previous panel from the sums
 * that the other blocks have posted to global memory. All blocks are resident together.
 */
#ifndef PS_CUDA_HEAT_HEAT_PANELS_CUH
#define PS_CUDA_HEAT_HEAT_PANELS_CUH

#include "heat/heat_chunk_solver.cuh"
#include "runtime/math.cuh"

namespace pysolvers::heat {

/* The columns of a lane in a panel. */
template <typename Real> struct HeatPanel {
    static constexpr int count = HeatLane<Real>::count;
    int64_t from, node; /* first column: its index in a row, and its node on the sides */
    bool is_there[count], is_inside[count];

    __device__ __forceinline__ HeatPanel(const HeatTeams<Real> &t,
                                         const HeatColumns<Real> &s, int64_t panel,
                                         int lane)
    {
        const int64_t plane = quotient(panel, t.plane_panels);
        const int64_t column =
            s.c0 + ((panel - plane * t.plane_panels) * 32 + lane) * count;
        const int64_t across = column - quotient(column, s.width) * s.width;

        from = plane * s.plane + column;
        node = plane * s.side + column;
#pragma unroll
        for (int k = 0; k < count; k++) {
            const int64_t here = across + k < s.width ? across + k : across + k - s.width;

            is_there[k] = column + k < s.c1;
            is_inside[k] = is_there[k] && here >= s.inner[0] && here < s.inner[1];
        }
    }

    __device__ __forceinline__ HeatLane<Real> end(const HeatValues<Real> &value) const
    {
        HeatLane<Real> lane = {};

#pragma unroll
        for (int k = 0; k < count; k++) {
            lane.of[k] = is_there[k] ? value.at(node + k) : Real(0);
        }
        return lane;
    }
};

/* The panels of a block, one after the other. A stage contains the rows of the group. */
template <typename Real, int SINK, int PLACES> struct HeatBlock {
    using Lane = HeatLane<Real>;
    using Shared = HeatTeamShared<Real>;
    using Solver = HeatChunkSolver<Real, PLACES>;
    /* lanes of a tile */
    static constexpr int tile = PLACES * HEAT_TEAM_CHUNKS * 32;
    const HeatTeams<Real> &t;
    const HeatColumns<Real> &s;
    Shared &shared;
    Lane *stages;
    TeamPlace at;
    int rounds;

    static __device__ __forceinline__ int stage_of(int round)
    {
        return round % HEAT_TEAM_STAGES;
    }

    static __device__ __forceinline__ int phase_of(int round)
    {
        return round / HEAT_TEAM_STAGES & 1;
    }

    /* By the copy warp: start the copies of the first rounds. */
    __device__ __forceinline__ void begin(const CUtensorMap &map) const
    {
        for (int round = 0; round < HEAT_TEAM_STAGES; round++) {
            load(map, round, 0);
            load(map, round, 1);
        }
    }

    /* By the copy warp: all rounds. */
    __device__ __forceinline__ void copy_rounds(const CUtensorMap &map) const
    {
        for (int round = 0; round < rounds; round++) {
            store(map, round, 0);
            store(map, round, 1);
            stores_read_but<1>();
            load(map, round + HEAT_TEAM_STAGES, 0);
            stores_read();
            load(map, round + HEAT_TEAM_STAGES, 1);
        }
        stores_written();
    }

    /* By a solver: all rounds. */
    __device__ __forceinline__ void solve_rounds() const
    {
        const HeatCut group(t.rows, t.chunk_rows, at.group);
        const int first = group.chunk(at.warp), next = group.chunk(at.warp + 1);
        const Solver solver = {t, PLACES - (next - first), first == 0,
                               next == t.rows && next > first};
        const int start = next - PLACES; /* row of the first place */

        if (solver.is_plain()) {
            solve_chunk<true>(solver, start, group.first);
        }
        else {
            solve_chunk<false>(solver, start, group.first);
        }
    }

  private:
    __device__ __forceinline__ HeatPanel<Real> panel_of(int round) const
    {
        return {t, s, at.team + round * t.teams, at.lane};
    }

    __device__ __forceinline__ Lane *stage(int round) const
    {
        return stages + stage_of(round) * tile;
    }

    __device__ __forceinline__ HeatLanePairs<Real> &sums(int round) const
    {
        return *reinterpret_cast<HeatLanePairs<Real> *>(
            &shared.sums[Shared::turn(round)][at.warp][at.lane * Lane::count]);
    }

    /* call(i, j, k) with the origin of half a tile. */
    template <typename Call>
    __device__ __forceinline__ void with_half(int round, int half, const Call &call) const
    {
        const int64_t panel = at.team + round * t.teams;
        const int64_t plane = quotient(panel, t.plane_panels);

        call(static_cast<int>(panel - plane * t.plane_panels) * 32 * Lane::count,
             (at.group * 2 + half) * half_rows(), static_cast<int>(plane));
    }

    __device__ __forceinline__ int half_rows() const
    {
        return t.chunk_rows * HEAT_TEAM_CHUNKS / 2;
    }

    __device__ __forceinline__ void load(const CUtensorMap &map, int round,
                                         int half) const
    {
        if (round >= rounds) {
            return;
        }
        Arrivals &rows = shared.rows[stage_of(round)][half];

        rows.expect(half_rows() * 32 * static_cast<uint32_t>(sizeof(Lane)));
        with_half(round, half, [&](int i, int j, int k) {
            copy_tile(stage(round) + half * half_rows() * 32, map, i, j, k, rows,
                      evict_first_policy());
        });
    }

    __device__ __forceinline__ void store(const CUtensorMap &map, int round,
                                          int half) const
    {
        /* The next sweep along x finds the last columns in the L2 cache. */
        const bool keeps_in_cache = SINK == HEAT_EXTRAPOLATE && round >= rounds - t.kept;

        shared.done[stage_of(round)][half].wait(phase_of(round));
        if (SINK == HEAT_EXTRAPOLATE_BOTH && s.out != nullptr) {
            return;
        }
        with_half(round, half, [&](int i, int j, int k) {
            store_tile(map, i, j, k, stage(round) + half * half_rows() * 32,
                       keeps_in_cache ? evict_last_policy() : evict_first_policy());
        });
        commit_stores();
    }

    __device__ __forceinline__ void find_ends(int round, Lane end[2]) const
    {
        const HeatPanel<Real> panel = panel_of(round);

        end[0] = panel.end(s.end[0]);
        end[1] = panel.end(s.end[1]);
    }

    template <bool PLAIN>
    __device__ __forceinline__ void solve_chunk(const Solver &solver, int start,
                                                int first) const
    {
        const int place = (start - first) * 32 + at.lane;
        const int half = at.warp / (HEAT_TEAM_CHUNKS / 2);

        for (int round = 0; round <= rounds; round++) {
            const int before = round - 1;

            if (round < rounds) {
                shared.rows[stage_of(round)][half].wait(phase_of(round));
                reduce<PLAIN>(solver, round, place);
            }
            if (before >= 0) {
                shared.joined[Shared::turn(before)].wait(Shared::phase(before));
                substitute<PLAIN>(solver, before, start, place);
                shared.done[stage_of(before)][half].arrive();
            }
        }
    }

    template <bool PLAIN>
    __device__ __forceinline__ void reduce(const Solver &solver, int round,
                                           int place) const
    {
        Lane end[2] = {};

        if (!PLAIN) {
            find_ends(round, end);
        }
        sums(round) = solver.template reduce<PLAIN>(stage(round) + place, end);
        shared.reduced[Shared::turn(round)].arrive();
    }

    /* Store x in the stage; `start` is the row of the first place. */
    template <bool PLAIN>
    __device__ __forceinline__ void substitute(const Solver &solver, int round, int start,
                                               int place) const
    {
        Lane *const w = stage(round) + place;
        const HeatPanel<Real> panel = panel_of(round);
        const int64_t from = panel.from + start * s.t_pitch;
        Lane end[2] = {};

        if (!PLAIN) {
            find_ends(round, end);
        }
        solver.template substitute<PLAIN>(w, end, sums(round), [&](int i, const Lane &x) {
            Lane y = w[i * 32];

#pragma unroll
            for (int k = 0; k < Lane::count; k++) {
                const Real turned =
                    SINK == HEAT_PLAIN ? x.of[k] : fma(Real(2), x.of[k], -y.of[k]);

                y.of[k] = panel.is_inside[k] ? turned : y.of[k];
                if (SINK == HEAT_EXTRAPOLATE_BOTH && panel.is_inside[k]) {
                    s.t[from + i * s.t_pitch + k] = x.of[k];
                    if (s.out != nullptr) {
                        s.out[from + i * s.t_pitch + k] = turned;
                    }
                }
            }
            w[i * 32] = y;
        });
        bulk_fence();
    }
};

template <typename Real, int SINK, int PLACES>
__global__ void
__launch_bounds__(HEAT_TEAM_THREADS, 1)
    heat_panels_kernel(const __grid_constant__ HeatTeams<Real> t,
                       const __grid_constant__ HeatColumns<Real> s,
                       const __grid_constant__ CUtensorMap map)
{
    using Shared = HeatTeamShared<Real>;
    extern __shared__ __align__(16) char memory[];
    char *const tiles = memory + (-shared_address(memory) & (alignof(Shared) - 1));
    Shared &shared = *reinterpret_cast<Shared *>(tiles);
    const TeamPlace at(t.groups);
    const int rounds = static_cast<int>(divided_up(t.panels - at.team, t.teams));
    const HeatBlock<Real, SINK, PLACES> block = {
        t,  s,     shared, reinterpret_cast<HeatLane<Real> *>(tiles + sizeof(Shared)),
        at, rounds};
    const bool is_copier = at.warp == HEAT_COPY_WARP && at.lane == 0;

    if (is_copier) {
        shared.init();
    }
    wait_for_last_kernel();
    if (is_copier) {
        block.begin(map);
    }
    shared.load_table(*t.table, at.group, t.groups);
    __syncthreads();
    let_next_kernel_in();
    if (at.warp < HEAT_TEAM_CHUNKS) {
        block.solve_rounds();
    }
    else if (at.warp < HEAT_COPY_WARP) {
        const HeatReducer<Real> reducer = {t, s, shared, at};

        reducer.run(rounds);
    }
    else if (is_copier) {
        block.copy_rounds(map);
    }
}

} // namespace pysolvers::heat

#endif
