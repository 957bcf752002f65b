/* gceidd_strips_kernels.cuh - the kernels of sweeps with one strip per thread
 * (gceidd_strips.cuh).
 */
#ifndef PS_CUDA_TRANSPORT_GCEIDD_STRIPS_KERNELS_CUH
#define PS_CUDA_TRANSPORT_GCEIDD_STRIPS_KERNELS_CUH

#include "runtime/elements.cuh"
#include "transport/gceidd_strips.cuh"

namespace pysolvers::transport {

/* The division into tiles: `own` strips of 32 lines for each block. */
struct StripTiles {
    int32_t groups, parts; /* groups of 32 lines, and parts of `own` strips */
    uint64_t per_row;      /* 2^64 divided by the count that changes faster, rounded up */
    int32_t own;
    int32_t pitch; /* of a line in shared memory; odd */

    /* The place of tile `number` if a row has `count` tiles. */
    __device__ __forceinline__ void place(int32_t number, int32_t count, int32_t &row,
                                          int32_t &at) const
    {
        const uint64_t whole = static_cast<uint64_t>(number);

        row = count == 1 ? number : static_cast<int32_t>(__umul64hi(whole, per_row));
        at = number - row * count;
    }
};

/* Neighbouring lines are contiguous in memory: loads go directly to registers. Blocks
 * begin at the end, where the sweep along x has ended, because the cache may still
 * contain it. */
template <typename Real, int MOST, bool STEADY, bool FEET>
__global__ void
__launch_bounds__(strip_warps *warp_lanes, strip_blocks(MOST, STEADY))
    strips_across_kernel(const __grid_constant__ Sweep<Real> s,
                         const __grid_constant__ StripTiles t, const Real *table)
{
    extern __shared__ __align__(16) unsigned char shared[];
    int32_t group, part;
    t.place(static_cast<int32_t>(gridDim.x - 1 - blockIdx.x), t.groups, part, group);
    const StripArrays<Real> exchange(shared, static_cast<int32_t>(blockDim.x) / 32);
    const StripThreadPlace self(s, part * t.own, t.own);
    const int32_t place = group * warp_lanes + self.lane;
    const int32_t l = min(place, s.lines - 1);
    const Field<Real> values = {s, l};
    Strip<Real, MOST, STEADY, FEET> strip;

    wait_for_last_kernel();
    const bool is_late = *s.grown < s.step;

    strip.load(s, values, self, l);
    if (STEADY) {
        fetch_table<Real, MOST>(table, s.table_pitch, l, exchange.line);
    }
    const LineNumbers<Real> line = {table + l, s.table_pitch};
    strip.predict(s, values, self, l, line, exchange);
    copies_done();
    __syncthreads();
    strip.eliminate(s, self, l, exchange);

    const Real front = solve_strip(strip, s, self, l, values, exchange);

    __syncthreads();
    let_next_kernel_in();
    if (is_late || !self.is_owner || place >= s.lines) {
        return;
    }
    if (!s.is_swept(l)) {
        for (int32_t p = self.strip == 0 ? 0 : self.begin + 1; p <= self.end; p++) {
            s.v[s.node(p, l)] = s.unswept(p, l);
        }
        return;
    }
    const Real behind = strip.close(self, exchange);
    Real *const to = s.v + s.node(self.end, l);
    bool grown = !s.has(behind);

    *to = behind;
    each_row<MOST>(self.rows, [&](int k) {
        grown |= !s.has(strip.d[k]);
        to[static_cast<int64_t>(s.along) * -(k + 1)] = strip.d[k];
    });
    if (self.strip == 0) {
        s.v[s.node(0, l)] = front;
        grown |= !s.has(front);
    }
    report_growth(s, grown);
}

/* U of a line in shared memory, own[p - low] for node p; outside of the tile in global
 * memory. */
template <typename Real> struct TileLine {
    const Sweep<Real> &s;
    Real *own;
    int32_t l, low, high;

    template <int COUNT>
    __device__ __forceinline__ void get(int32_t p, Real (&u)[COUNT]) const
    {
        if (p < low || p + COUNT - 1 > high) {
            Field<Real>{s, l}.get(p, u);
            return;
        }
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            u[k] = own[p - low + k];
        }
    }
    __device__ __forceinline__ const Real *row(int32_t p) const
    {
        return own + (p - low);
    }
    static __device__ __forceinline__ int32_t step()
    {
        return 1;
    }
    static __device__ __forceinline__ Real load_once(const Real *from)
    {
        return *from;
    }
};

/* A tile of lines along the contiguous axis: it begins after the interface before its
 * first strip and ends with the interface after its last strip. */
struct StripTileRange {
    int32_t first_line, lines, first_strip;
    int32_t low, high, last; /* nodes; `last` is the last one that is stored */

    template <typename Real>
    __device__ __forceinline__ StripTileRange(const Sweep<Real> &s, const StripTiles &t,
                                              int32_t number)
    {
        const int32_t warps = static_cast<int32_t>(blockDim.x) / warp_lanes;
        int32_t group, part;

        t.place(number, t.parts, group, part);
        first_line = group * warp_lanes;
        lines = min(warp_lanes, s.lines - first_line);
        first_strip = part * t.own;
        low = part == 0 ? 0 : s.interface(first_strip) + 1;
        high = s.interface(min(first_strip + warps, s.strips));
        last = s.interface(min(first_strip + t.own, s.strips));
    }

    /* move(inside, outside) for all elements from `low` to `end` of all lines, in a
     * tile and in a field; neighbouring lanes have neighbouring nodes. */
    template <typename Real, typename Outside, typename Move>
    __device__ __forceinline__ void each(const Sweep<Real> &s, const StripTiles &t,
                                         int32_t end, Real *tile, Outside *field,
                                         const Move &move) const
    {
        constexpr int32_t batch = 4;
        const int32_t warp = static_cast<int32_t>(threadIdx.x) / warp_lanes;
        const int32_t lane = static_cast<int32_t>(threadIdx.x) % warp_lanes;
        const int32_t warps = static_cast<int32_t>(blockDim.x) / warp_lanes;
        const int32_t left = end - low - lane;
        const int64_t across = warps * static_cast<int64_t>(s.across);
        Real *inside = tile + warp * t.pitch + lane;
        Outside *outside = field + s.node(low + lane, first_line + warp);

#pragma unroll 1
        for (int32_t i = warp; i < lines;
             i += warps, inside += warps * t.pitch, outside += across) {
            Real *in = inside;
            Outside *out = outside;

#pragma unroll 1
            for (int32_t rest = left; rest >= 0; rest -= batch * warp_lanes) {
#pragma unroll
                for (int32_t k = 0; k < batch; k++) {
                    if (k * warp_lanes <= rest) {
                        move(in + k * warp_lanes, out + k * warp_lanes);
                    }
                }
                in += batch * warp_lanes;
                out += batch * warp_lanes;
            }
        }
    }
};

/* Start the copies of a tile, and of the table of its lines, which precedes it, to
 * `to`. */
template <typename Real, int MOST, bool STEADY>
__device__ __forceinline__ void
fetch_tile(const Sweep<Real> &s, const StripTiles &t, const Real *table,
           const StripTileRange &range, Lanes32<Real> *to)
{
    Real *const tile = to[STEADY ? LINE_INVERSE + MOST : 0];

    if (STEADY) {
        const int32_t lane = static_cast<int32_t>(threadIdx.x) % warp_lanes;

        fetch_table<Real, MOST>(table, s.table_pitch,
                                min(range.first_line + lane, s.lines - 1), to);
    }
    range.each(s, t, range.high, tile, s.u, [](Real *inside, const Real *outside) {
        copy_async<sizeof(Real)>(inside, outside);
    });
}

/* Solve the strips of a tile in place. fetch() starts the copies that need not begin
 * before the warps have finished their exchange. */
template <typename Real, int MOST, bool STEADY, bool FEET, typename Fetch>
__device__ __forceinline__ void
solve_tile(const Sweep<Real> &s, const StripTiles &t, const StripTileRange &range,
           const StripArrays<Real> &exchange, Real *tile, const Fetch &fetch)
{
    const StripThreadPlace self(s, range.first_strip, t.own);
    const int32_t l = min(range.first_line + self.lane, s.lines - 1);
    Real *const own = tile + min(self.lane, range.lines - 1) * t.pitch;
    const TileLine<Real> values = {s, own, l, range.low, range.high};
    Strip<Real, MOST, STEADY, FEET> strip;

    strip.load(s, values, self, l);
    const LineNumbers<Real> line = {&exchange.line[0][self.lane], warp_lanes};

    strip.predict(s, values, self, l, line, exchange);
    strip.eliminate(s, self, l, exchange);
    __syncthreads();

    const Real front = solve_strip(strip, s, self, l, values, exchange);

    __syncthreads();
    fetch();
    if (self.is_owner && s.is_swept(l) && self.lane < range.lines) {
        Real *const to = own + (self.end - range.low);

        *to = strip.close(self, exchange);
        each_row<MOST>(self.rows, [&](int k) { to[-(k + 1)] = strip.d[k]; });
        if (self.strip == 0) {
            own[0] = front;
        }
    }
}

/* Lines are contiguous in memory: tiles are transposed in shared memory. A block solves
 * every gridDim.x-th tile and loads the next one at the same time. */
template <typename Real, int MOST, bool STEADY, bool FEET>
__global__ void
__launch_bounds__(strip_warps *warp_lanes, strip_blocks(MOST, STEADY))
    strips_along_kernel(const __grid_constant__ Sweep<Real> s,
                        const __grid_constant__ StripTiles t, const Real *table)
{
    extern __shared__ __align__(16) unsigned char shared[];
    constexpr int table_rows = STEADY ? LINE_INVERSE + MOST : 0;
    const int32_t tiles = t.groups * t.parts, step = static_cast<int32_t>(gridDim.x);
    const int32_t warps = static_cast<int32_t>(blockDim.x) / warp_lanes;
    StripArrays<Real> exchange(shared, warps);
    Lanes32<Real> *now = exchange.line, *later = now + table_rows + t.pitch;
    int32_t number = static_cast<int32_t>(blockIdx.x);
    StripTileRange range(s, t, number);

    wait_for_last_kernel();
    fetch_tile<Real, MOST, STEADY>(s, t, table, range, now);
    if (*s.grown < s.step) {
        copies_done();
        return;
    }
    for (; number < tiles; number += step) {
        StripTileRange next = range;
        const auto fetch_next = [&] {
            if (number + step < tiles) {
                next = StripTileRange(s, t, number + step);
                fetch_tile<Real, MOST, STEADY>(s, t, table, next, later);
            }
            else {
                let_next_kernel_in();
            }
        };
        Real *const tile = now[table_rows];

        copies_done();
        __syncthreads();
        exchange.line = now;
        solve_tile<Real, MOST, STEADY, FEET>(s, t, range, exchange, tile, fetch_next);
        __syncthreads();
        range.each(s, t, range.last, tile, s.v,
                   [](const Real *inside, Real *outside) { *outside = *inside; });

        Lanes32<Real> *const free = now;

        now = later;
        later = free;
        range = next;
    }
}

/* The table of a steady sweep: row k has the numbers of all lines. */
template <typename Real> struct StripTable {
    Sweep<Real> s;
    int32_t most;
    Real *table;

    __device__ __forceinline__ void put(int32_t row, int64_t l, Real value) const
    {
        table[static_cast<int64_t>(row) * s.table_pitch + l] = value;
    }

    __device__ __forceinline__ void operator()(int64_t line) const
    {
        const int32_t l = static_cast<int32_t>(line);
        const Flow<Real> f = flow_at(s, 0, l);
        const Real distance = -s.dt_h * s.velocity.at(0, l);
        Real share = 1;

        put(LINE_RIGHT, l, f.right);
        put(LINE_LEFT, l, f.left);
        put(LINE_DIFFUSION, l, s.dt_hh * s.diffusion.at(0, l));
        put(LINE_SHIFT, l, fmin(fmax(floor(distance), Real(-s.cells)), Real(s.cells)));
        put(LINE_PART, l, distance - floor(distance));
        for (int32_t k = 0; k < most; k++) {
            const Real sigma = fma(f.left, share, Real(1));
            const Real r = fast_reciprocal(sigma + f.right);

            put(LINE_INVERSE + k, l, r);
            share = sigma * r;
        }
    }
};

} // namespace pysolvers::transport

#endif
