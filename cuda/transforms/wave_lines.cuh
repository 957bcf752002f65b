/* wave_lines.cuh - the kernel of the tridiagonal systems of packed waves: struct
 * ps_wave_lines.
 *
 * Resident blocks, or clusters, process one tile of waves after the other. A
 * thread has a chunk of rows of one system in registers. The rows differ in the
 * right-hand side only, but for the first and the last one, so that the inner rows of a
 * chunk need no pivots (wave_chunk.cuh); the chunks are joined as in column.cuh, in the
 * form of row_sums.cuh, because the shifts may be small compared with the other entries. The
 * waves are combined (waves.cuh) after they are read and before they are written, by
 * exchanges within a warp; a tile is read before any of it is written.
 *
 * Launches that stream have one block on a multiprocessor, and copy the next tile to
 * shared memory while they solve one (WaveStream). Waves that fit into the second-level
 * cache are solved with two blocks or more on a multiprocessor.
 *
 * Planes of a part of the systems are read twice: to eliminate them (WaveEnds writes the
 * segments, and no wave is written), and to solve between unknowns that are known then.
 *
 * Two words moved per unknown, three of a part; 9 operations, and 3 for each of two or
 * six rotations. No pivoting: the row sums and the off-diagonal entries have opposite signs.
 */
#ifndef PS_CUDA_TRANSFORMS_WAVE_LINES_CUH
#define PS_CUDA_TRANSFORMS_WAVE_LINES_CUH

#include "lines/columns/column_grid.cuh"
#include "runtime/elements.cuh"
#include "transforms/wave_chunk.cuh"
#include "transforms/wave_lines.h"

namespace pysolvers::transforms {

extern __shared__ __align__(128) int4 wave_memory[];

/* What a thread has of a tile. IS_PAIRED: the tile has two rows of the plane. */
template <typename Real, bool IS_PAIRED> struct WaveSystem {
    using Turn = typename WaveTurns<Real>::Turn;
    WavePlace place;
    WaveTurns<Real> turns;
    Real shift;
    int reach;

    __device__ __forceinline__ WaveSystem(const WaveJob<Real> &job, int64_t tile,
                                          int slot)
        : place(job.tiles, tile, slot),
          turns(place, job.turns[place.real / 2],
                job.row_turns[min(place.row, place.mirror)]),
          shift(job.shifts[int64_t(place.row) * job.tiles.reals() + place.real]),
          reach(job.tiles.reach())
    {
    }

    /* The rotation that combined() applies last. */
    __device__ __forceinline__ Turn last_turn() const
    {
        return IS_PAIRED ? turns.rows : turns.values;
    }

    /* The wave of a system; `last` is last_turn(), or a multiple of it. All lanes of the
     * warp take part. */
    __device__ __forceinline__ Real combined(Real x, const Turn &last) const
    {
        if constexpr (IS_PAIRED) {
            x = turns.values.apply(x, __shfl_xor_sync(all_lanes, x, 1));
            x = turns.both.apply(x, __shfl_xor_sync(all_lanes, x, reach));
        }
        return last.apply(x, __shfl_xor_sync(all_lanes, x, 1));
    }
    __device__ __forceinline__ Real separated(Real x) const
    {
        if constexpr (IS_PAIRED) {
            x = turns.rows.undo(x, __shfl_xor_sync(all_lanes, x, 1));
            x = turns.both.undo(x, __shfl_xor_sync(all_lanes, x, reach));
        }
        return turns.values.undo(x, __shfl_xor_sync(all_lanes, x, 1));
    }
};

/* What a thread of a launch that streams has in shared memory: the waves of its chunk in
 * the next tile. Row i has index 32 i. */
template <typename Real, int ROWS> struct WaveStream {
    static constexpr int words = ROWS * 32; /* of a warp */
    Real *const next;

    __device__ __forceinline__ explicit WaveStream(Real *memory)
        : next(memory + threadIdx.x / 32 * words + threadIdx.x % 32)
    {
    }
    static size_t bytes_of(const ColumnShape &shape)
    {
        return shape.warps * words * sizeof(Real);
    }
};

/* -row sum/upper of the inner rows of a wave. */
template <typename Real>
__device__ __forceinline__ Real
excess_of(const WaveJob<Real> &job, Real shift)
{
    return max(job.excess - shift * job.over_inner, Real(0));
}

/* The left end of the first row. */
template <typename Real>
__device__ __forceinline__ LeftEnd<Real>
left_end_of(const WaveJob<Real> &job, Real shift)
{
    return {job.first.lower * job.over_first,
            (shift == Real(0) ? job.null_gap : job.gap) +
                excess_of(job, shift) * (job.first_factor - 1)};
}

/* The last row, with the signs of BySums. */
template <typename Real>
__device__ __forceinline__ Row<BySums<Real>>
last_row_of(const WaveJob<Real> &job, Real shift, Real rhs)
{
    return {-job.last.lower, -(job.last.diag + shift), -job.last.upper, -rhs};
}

/* Write what struct ps_wave_lines says of `ends` and `couplings`. */
template <typename Real>
__device__ __forceinline__ void
write_ends(const WaveJob<Real> &job, int64_t system, const Segment<BySums<Real>> &s)
{
    const int64_t systems = int64_t(job.tiles.rows) * job.tiles.reals();

    job.ends[system] = s.first.g;
    job.ends[systems + system] = s.d;
    if (job.couplings != nullptr) {
        Real *const to = job.couplings + system;

        to[0] = s.first.s;
        to[systems] = s.first.u;
        to[2 * systems] = s.a;
        to[3 * systems] = s.sigma;
        to[4 * systems] = s.c;
    }
}

/* The rows of a thread: the waves that it read, then -r f_i of the inner rows, then the
 * first sweep of wave_chunk.cuh. The first inner row is row `pads`. Warps without row 0
 * and without pads have HAS_START = false. */
template <typename Real, int ROWS, bool IS_PAIRED> struct WaveRows {
    static constexpr int inner = ROWS - 1; /* rows but the last one */
    using System = WaveSystem<Real, IS_PAIRED>;
    const WaveJob<Real> &job;
    const ColumnThreadPlace<ROWS> &self;
    Real x[ROWS];
    Real sum, head; /* A and -f_0 of wave_chunk.cuh */

    template <bool HAS_START> __device__ __forceinline__ void load(const WavePlace &place)
    {
        const Real *from = waves(place);

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            x[i] = !HAS_START || i >= self.pads ? __ldcg(from) : Real(0);
            from += job.plane;
        }
    }

    /* Start the copies of the chunk in another tile. */
    template <bool HAS_START>
    __device__ __forceinline__ void copy(const WavePlace &place, Real *to) const
    {
        const Real *from = waves(place);

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (!HAS_START || i >= self.pads) {
                copy_async_of_line<sizeof(Real)>(to + 32 * i, from);
            }
            from += job.plane;
        }
        copies_committed();
    }

    /* Read the chunk of the tile whose copies this thread started last. */
    template <bool HAS_START> __device__ __forceinline__ void receive(const Real *from)
    {
        copies_done();
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            x[i] = !HAS_START || i >= self.pads ? from[32 * i] : Real(0);
        }
    }

    /* The coefficients of the inner rows. */
    __device__ __forceinline__ WaveChunk<Real> chunk(Real shift) const
    {
        return {excess_of(job, shift), max(inner - self.pads, 0)};
    }

    /* The segment of the chunk. */
    template <bool HAS_START>
    __device__ __forceinline__ Segment<BySums<Real>> reduce(const System &system,
                                                            const WaveChunk<Real> &chunk)
    {
        const auto turn = system.last_turn();
        const typename System::Turn unscaled = {-job.over_inner * turn.c,
                                                -job.over_inner * turn.s};
        const typename System::Turn scaled = {chunk.r * unscaled.c, chunk.r * unscaled.s};
        Real z = 0, power = 1;

        sum = head = 0;
#pragma unroll
        for (int i = 0; i < inner; i++) {
            const bool begins = is_first<HAS_START>(i);
            const Real f = system.combined(x[i], begins ? unscaled : scaled);

            head = begins ? f : head;
            x[i] = begins ? Real(0) : f;
            z = chunk.r * z + x[i];
            sum += power * z;
            power = HAS_START && i < self.pads ? Real(1) : power * chunk.r;
        }
        if (HAS_START && has_first_row()) {
            head *= job.first_factor;
        }
        return chunk.segment(sum, z, head, left_end<HAS_START>(system.shift),
                             last_row(system.shift, system.combined(x[inner], turn)));
    }

    /* Solve between y_left and y: x are the waves. */
    template <bool HAS_START>
    __device__ __forceinline__ void
    substitute(const System &system, const WaveChunk<Real> &chunk, Real y_left, Real y)
    {
        const Real r = chunk.r;
        Real z = 0;

        if (HAS_START) {
            const LeftEnd<Real> end = left_end<HAS_START>(system.shift);

            y_left = end.at(chunk.first(sum, head, end).at(y_left, y), y_left);
        }
        const Real z_first = chunk.z_first(sum, head, y_left, y);

#pragma unroll
        for (int i = 0; i < inner; i++) {
            z = is_first<HAS_START>(i) ? z_first : r * z + x[i];
            x[i] = z;
        }
        x[inner] = y;
#pragma unroll
        for (int i = inner - 1; i >= 0; i--) {
            x[i] += r * x[i + 1];
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            x[i] = system.separated(x[i]);
        }
    }

    template <bool HAS_START>
    __device__ __forceinline__ void store(const WavePlace &place) const
    {
        Real *to = waves(place);

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (place.exists && (!HAS_START || i >= self.pads)) {
                *to = x[i];
            }
            to += job.plane;
        }
    }

  private:
    template <bool HAS_START> __device__ __forceinline__ bool is_first(int i) const
    {
        return HAS_START ? i == self.pads : i == 0;
    }

    /* The left end of the inner rows. */
    template <bool HAS_START>
    __device__ __forceinline__ LeftEnd<Real> left_end(Real shift) const
    {
        if (!HAS_START || !has_first_row()) {
            return {Real(1), Real(0)};
        }
        return left_end_of(job, shift);
    }

    /* The waves of the chunk, from its row 0 on. */
    __device__ __forceinline__ Real *waves(const WavePlace &place) const
    {
        return job.waves + int64_t(self.start) * job.plane +
               int64_t(place.row) * job.pitch + place.column;
    }

    /* Whether row 0 of the system is an inner row of the chunk. */
    __device__ __forceinline__ bool has_first_row() const
    {
        return self.start <= 0 && self.pads < inner;
    }
    __device__ __forceinline__ Row<Real> first_row(Real shift) const
    {
        return {job.first.lower, shift == Real(0) ? job.null_sum : job.first.diag + shift,
                job.first.upper, Real(0)};
    }
    /* The last row of the chunk, with the signs of BySums. */
    __device__ __forceinline__ Row<BySums<Real>> last_row(Real shift, Real rhs) const
    {
        Row<Real> row = {job.inner.lower, job.inner.diag + shift, job.inner.upper, rhs};

        if (self.pads == ROWS) {
            return copy_row<BySums<Real>>();
        }
        if (self.start == -inner) {
            row = first_row(shift);
        }
        if (self.start == job.shape.rows - ROWS) {
            row = {job.last.lower, job.last.diag + shift, job.last.upper, rhs};
        }
        return {-row.lower, -row.diag, -row.upper, -rhs};
    }
};

/* Dynamic shared memory of a block. */
template <typename Real, int ROWS, bool STREAMS>
static size_t
wave_bytes(const ColumnShape &shape)
{
    return bytes_of_arrays<ColumnArrays<BySums<Real>>>(shape) +
           (STREAMS ? WaveStream<Real, ROWS>::bytes_of(shape) : 0);
}

/* Waves of fewer bytes remain in the second-level cache between two kernels. */
static constexpr int64_t cached_bytes = 48 << 20;

/* Whether a launch streams: if its waves do not remain in the second-level cache. The
 * longest chunks only, because others would double the number of kernels. */
template <typename Real>
static bool
streams(const WaveJob<Real> &job)
{
    constexpr size_t statics_bytes = 1024;
    const ps_cuda_device *const device = ps_cuda_device_get();
    const size_t bytes =
        wave_bytes<Real, ColumnTuning<Real>::rows, true>(job.shape) + statics_bytes;

    return job.shape.rows * job.plane * int64_t(sizeof(Real)) > cached_bytes &&
           device != nullptr && bytes <= static_cast<size_t>(device->shared_bytes);
}

/* The Top of a Column of a part of the systems: it writes the segment, or has the
 * unknowns around it. */
template <typename Real> struct WaveEnds {
    const WaveJob<Real> &job;
    int64_t system = 0;
    bool exists = false;
    Real before = 0, last = 0;

    /* Called for each tile, with the column that the thread closes. */
    __device__ __forceinline__ void begin(int64_t tile, int column)
    {
        const WavePlace place(job.tiles, tile, column);

        system = int64_t(place.row) * job.tiles.reals() + place.real;
        exists = place.exists;
        if (job.ends == nullptr) {
            before = job.y_left[system];
            last = job.y[system];
        }
    }

    __device__ __forceinline__ Ends<BySums<Real>>
    close(const Segment<BySums<Real>> &s, bool, int32_t, bool writes, BadPivot &) const
    {
        if (job.ends != nullptr && writes && exists) {
            write_ends(job, system, s);
        }
        return {before, last};
    }
};

/* Grid: any number of clusters of shape.blocks blocks, at most one per tile. Shared
 * memory: the ColumnArrays; before it, if the launch STREAMS, the WaveStream. */
template <typename Real, int ROWS, bool IS_CLUSTER, bool IS_PAIRED, bool STREAMS,
          bool IS_PART>
__global__ void
__launch_bounds__(ColumnTuning<Real>::threads, STREAMS ? 1 : 2)
    wave_lines_kernel(const __grid_constant__ WaveJob<Real> job)
{
    using Stream = WaveStream<Real, ROWS>;
    constexpr std::bool_constant<true> with_start;
    constexpr std::bool_constant<false> without_start;
    __shared__ Arrivals arrivals[2];
    const int32_t rank = IS_CLUSTER ? static_cast<int32_t>(rank_in_cluster()) : 0;
    const ColumnThreadPlace<ROWS> self(job.shape, rank);
    const bool has_start = __any_sync(all_lanes, self.start <= 0);
    const int64_t which = IS_CLUSTER ? cluster_of_grid() : blockIdx.x;
    const int64_t tiles = job.tiles.count(), step = gridDim.x / job.shape.blocks;
    Real *const memory = reinterpret_cast<Real *>(wave_memory);
    const Stream stream(memory);
    WaveRows<Real, ROWS, IS_PAIRED> rows = {job, self, {}, 0, 0};
    using Top = std::conditional_t<IS_PART, WaveEnds<Real>, WholeSystem>;
    const auto top = [&] {
        if constexpr (IS_PART) {
            return Top{job};
        }
        else {
            return Top{};
        }
    };
    Column<BySums<Real>, ROWS, IS_CLUSTER, Top> column(
        job.shape, self, job.periodic,
        memory + (STREAMS ? blockDim.x / 32 * Stream::words : 0), nullptr, arrivals,
        top());
    /* A warp takes one of two paths through the code of its rows. */
    const auto choose = [&](const auto &call) {
        if (has_start) {
            call(with_start);
        }
        else {
            call(without_start);
        }
    };
    const auto copy = [&](const WavePlace &place) {
        choose([&](auto start) { rows.template copy<start.value>(place, stream.next); });
    };

    column.begin();
    if constexpr (STREAMS) {
        copy(WavePlace(job.tiles, which, self.column));
    }
    column.started();
    for (int64_t tile = which; tile < tiles; tile += step) {
        const WaveSystem<Real, IS_PAIRED> system(job, tile, self.column);

        if constexpr (IS_PART) {
            column.top.begin(tile, column.closed_column());
        }
        if constexpr (!STREAMS) {
            choose([&](auto start) { rows.template load<start.value>(system.place); });
        }
        const WaveChunk<Real> chunk = rows.chunk(system.shift);

        choose([&](auto start) {
            if constexpr (STREAMS) {
                rows.template receive<start.value>(stream.next);
            }
            column.own = rows.template reduce<start.value>(system, chunk);
        });
        if constexpr (STREAMS) {
            if (tile + step < tiles) {
                copy(WavePlace(job.tiles, tile + step, self.column));
            }
        }

        column.note = {BadPivot::none, 0};
        column.join_chunks(0, [](int32_t, const Note &) {});
        if constexpr (IS_PART) {
            if (job.ends != nullptr) {
                continue;
            }
        }

        choose([&](auto start) {
            rows.template substitute<start.value>(system, chunk, column.ends.y_left,
                                                  column.ends.y);
            rows.template store<start.value>(system.place);
        });
    }
}

template <typename Real, int ROWS, bool IS_CLUSTER, bool STREAMS, bool IS_PART>
inline ps_status
launch_chunks(const WaveJob<Real> &job, cudaStream_t stream)
{
    void (*const kernel)(const WaveJob<Real>) =
        job.tiles.are_paired()
            ? wave_lines_kernel<Real, ROWS, IS_CLUSTER, true, STREAMS, IS_PART>
            : wave_lines_kernel<Real, ROWS, IS_CLUSTER, false, STREAMS, IS_PART>;

    return with_column_grid<IS_CLUSTER>(
        kernel, job.shape, job.tiles.count(), wave_bytes<Real, ROWS, STREAMS>(job.shape),
        stream, [&](Launch &launch) { return launch.run(kernel, job); });
}

/* The first step of many systems of a part: a thread has a whole one, as one chunk, and
 * reads its rows one after the other. Those that change neither end, because the ratio of
 * all systems of the warp decays, are not read.
 *
 * Why not the kernel above: it takes 451 us for 512 x 514 systems of 256 rows in float64
 * (H200), this one 130 us. Fewer systems do not fill the device with a thread each.
 *
 * Grid: a warp for each tile of 32 reals. */
template <typename Real, bool IS_PAIRED> struct WaveEndsOfLine {
    WaveJob<Real> job;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        using System = WaveSystem<Real, IS_PAIRED>;
        constexpr int batch = 8; /* rows that are requested together */
        constexpr Real least = (sizeof(Real) == 4 ? Real(1.2e-7) : Real(2.2e-16)) / 2048;
        const int slot = threadIdx.x % 32, inner = job.shape.rows - 1;
        const System system(job, index / 32, slot);
        const WaveChunk<Real, 20> chunk(excess_of(job, system.shift), inner);
        const auto turn = system.last_turn();
        const typename System::Turn unscaled = {-job.over_inner * turn.c,
                                                -job.over_inner * turn.s};
        const typename System::Turn scaled = {chunk.r * unscaled.c, chunk.r * unscaled.s};
        const Real *const from =
            job.waves + int64_t(system.place.row) * job.pitch + system.place.column;
        const Real head = system.combined(__ldcg(from), unscaled) * job.first_factor;
        Real z = 0, sum = 0, power = chunk.r;
        const auto add = [&](Real x) {
            z = chunk.r * z + system.combined(x, scaled);
            sum += power * z;
            power *= chunk.r;
        };
        int i = 1;

        while (i + batch <= inner) {
            Real x[batch];

#pragma unroll
            for (int k = 0; k < batch; k++) {
                x[k] = __ldcg(from + (i + k) * job.plane);
            }
#pragma unroll
            for (int k = 0; k < batch; k++) {
                add(x[k]);
            }
            i += batch;
            if (2 * i < inner && __all_sync(all_lanes, power < least)) {
                i = inner - i;
                z = power = 0;
            }
        }
        for (; i < inner; i++) {
            add(__ldcg(from + i * job.plane));
        }
        const Real last = system.combined(__ldcg(from + inner * job.plane), turn);
        const Segment<BySums<Real>> s =
            chunk.segment(sum, z, head, left_end_of(job, system.shift),
                          last_row_of(job, system.shift, last));

        if (system.place.exists) {
            write_ends(job,
                       int64_t(system.place.row) * job.tiles.reals() + system.place.real,
                       s);
        }
    }
};

template <typename Real>
ps_status
launch_wave_ends(const WaveJob<Real> &given, cudaStream_t stream)
{
    WaveJob<Real> job = given;

    job.tiles.slots = 32;
    return job.tiles.are_paired() ? for_elements(32 * job.tiles.count(), stream,
                                                 WaveEndsOfLine<Real, true>{job})
                                  : for_elements(32 * job.tiles.count(), stream,
                                                 WaveEndsOfLine<Real, false>{job});
}

template <typename Real, bool IS_PART>
ps_status
launch_wave_lines(const WaveJob<Real> &job, cudaStream_t stream)
{
    return with_chunks<ColumnTuning<Real>>(job.shape, [&](auto rows, auto is_cluster) {
        if constexpr (rows.value == ColumnTuning<Real>::rows) {
            if (streams<Real>(job)) {
                return launch_chunks<Real, rows.value, is_cluster.value, true, IS_PART>(
                    job, stream);
            }
        }
        return launch_chunks<Real, rows.value, is_cluster.value, false, IS_PART>(job,
                                                                                 stream);
    });
}

} // namespace pysolvers::transforms

#endif
