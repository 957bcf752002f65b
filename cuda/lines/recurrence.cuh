/* recurrence.cuh - linear recurrences of first and second order.
 *
 *   x_i = a_i x_{i-1} + c_i x_{i-2} + b_i
 *
 * A thread holds a chunk of consecutive rows in registers. A chunk maps the state before
 * it, (x_{i-1}, x_{i-2}), to M v + s: column q of M is the state after the rows without b
 * from unit vector q, and s the state from 0. The maps of a warp are combined by a scan of
 * shuffles, those of the warps of a block through shared memory (Blelloch 1990). A block
 * computes a line tile after tile and carries the state in registers. 3 words per row, 4
 * of second order; 4 operations for the map and 2 for the rows, 16 and 4 of second order.
 * No division.
 *
 * Where an entry of a map exceeds a limit, M v + s would lose digits: the states of the
 * chunks of this tile are computed in order, chunk after chunk, with the same registers, so
 * that x may be b. Thus each row is satisfied up to few roundings of its terms.
 *
 * A few long lines are divided into parts: a first kernel makes the maps of all parts, a
 * second one the states before them, which adds 2 or 3 words per row.
 *
 * Why not the Line algebra of join/segment.cuh with diag = 1 and upper = 0: its unit has 7
 * numbers and its elimination 17 operations and a reciprocal per row, it has no second
 * order, it cannot compute growing lines in order, and the matrix takes 5 words of
 * shared memory. csrc/cpu/lines/recurrence.inc has the same units.
 */
#ifndef PS_CUDA_LINES_RECURRENCE_CUH
#define PS_CUDA_LINES_RECURRENCE_CUH

#include "lines/recurrence.h"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::lines {

/* Threads of a block; rows of a chunk, 32 bytes of each operand. */
static constexpr int recurrence_threads = 128;
template <typename Number>
static constexpr int recurrence_rows = 32 / static_cast<int>(sizeof(Number));

/* The largest entries of maps that are used. */
template <typename Number, int ORDER>
static constexpr real_of<Number> recurrence_growth = ORDER == 1 ? 2 : 16;

/* The largest finite number. */
template <typename Number>
static constexpr real_of<Number> largest_of =
    sizeof(real_of<Number>) == 4 ? 3.40282347e+38 : 1.7976931348623157e+308;

/* The last ORDER values before a row, the last one first. */
template <typename Number, int ORDER> struct RecurrenceState {
    Number v[ORDER];

    /* Advance by a row. */
    __device__ __forceinline__ void advance(Number a, Number c, Number b)
    {
        Number x = a * v[0];

        if constexpr (ORDER == 2) {
            x = x + c * v[1];
            v[1] = v[0];
        }
        v[0] = x + b;
    }
    __device__ __forceinline__ void advance(Number a, Number c)
    {
        Number x = a * v[0];

        if constexpr (ORDER == 2) {
            x = x + c * v[1];
            v[1] = v[0];
        }
        v[0] = x;
    }
    __device__ __forceinline__ RecurrenceState from_lane(int lane) const
    {
        RecurrenceState s;

#pragma unroll
        for (int k = 0; k < ORDER; k++) {
            s.v[k] = shuffle(all_lanes, v[k], lane);
        }
        return s;
    }
    __device__ __forceinline__ bool is_finite() const
    {
        bool is = true;

#pragma unroll
        for (int k = 0; k < ORDER; k++) {
            is = is && size_of(v[k]) <= largest_of<Number>;
        }
        return is;
    }
};

/* The map of a chunk, v -> M v + s: column q of M is m[q]. */
template <typename Number, int ORDER> struct RecurrenceUnit {
    using State = RecurrenceState<Number, ORDER>;
    State s, m[ORDER];

    __device__ __forceinline__ static RecurrenceUnit identity()
    {
        RecurrenceUnit u;

#pragma unroll
        for (int k = 0; k < ORDER; k++) {
            u.s.v[k] = Number(0);
#pragma unroll
            for (int q = 0; q < ORDER; q++) {
                u.m[q].v[k] = Number(k == q ? 1 : 0);
            }
        }
        return u;
    }
    /* M v */
    __device__ __forceinline__ State times(const State &v) const
    {
        State r;

#pragma unroll
        for (int k = 0; k < ORDER; k++) {
            r.v[k] = m[0].v[k] * v.v[0];
            if constexpr (ORDER == 2) {
                r.v[k] = r.v[k] + m[1].v[k] * v.v[1];
            }
        }
        return r;
    }
    /* M v + s */
    __device__ __forceinline__ State at(const State &v) const
    {
        State r = times(v);

#pragma unroll
        for (int k = 0; k < ORDER; k++) {
            r.v[k] = r.v[k] + s.v[k];
        }
        return r;
    }
    /* The map of the rows of `before` and of those of this unit. */
    __device__ __forceinline__ RecurrenceUnit behind(const RecurrenceUnit &before) const
    {
        RecurrenceUnit u;

        u.s = at(before.s);
#pragma unroll
        for (int q = 0; q < ORDER; q++) {
            u.m[q] = times(before.m[q]);
        }
        return u;
    }
    /* The largest entry of M, not NaN. */
    __device__ __forceinline__ real_of<Number> largest() const
    {
        real_of<Number> most = 0;

#pragma unroll
        for (int q = 0; q < ORDER; q++) {
#pragma unroll
            for (int k = 0; k < ORDER; k++) {
                most = fmax(most, size_of(m[q].v[k]));
            }
        }
        return most;
    }
    __device__ __forceinline__ RecurrenceUnit up(int lanes) const
    {
        RecurrenceUnit u;

#pragma unroll
        for (int k = 0; k < ORDER; k++) {
            u.s.v[k] = shuffle_up(s.v[k], lanes, 32);
#pragma unroll
            for (int q = 0; q < ORDER; q++) {
                u.m[q].v[k] = shuffle_up(m[q].v[k], lanes, 32);
            }
        }
        return u;
    }
    __device__ __forceinline__ RecurrenceUnit from_lane(int lane) const
    {
        RecurrenceUnit u;

        u.s = s.from_lane(lane);
#pragma unroll
        for (int q = 0; q < ORDER; q++) {
            u.m[q] = m[q].from_lane(lane);
        }
        return u;
    }
};

/* The place of a thread: chunk `chunk` of the warp, of the line `column` of the warp. */
struct RecurrencePlace {
    int32_t column, chunk, lanes; /* lanes: from a chunk to the next one */
    int32_t warp, group;          /* among the warps of a line, and of the block */
    int64_t line;
    uint32_t mask; /* of the lanes of the line */

    __device__ __forceinline__ RecurrencePlace(const RecurrenceShape &shape,
                                               int64_t block)
    {
        const int32_t lane = threadIdx.x % 32, all = threadIdx.x / 32;
        const int32_t columns = 1 << shape.width, chunks = shape.chunks();

        column = shape.by_row ? lane / chunks : lane % columns;
        chunk = shape.by_row ? lane % chunks : lane / columns;
        lanes = shape.by_row ? 1 : columns;
        warp = all % shape.warps;
        group = all / shape.warps;
        line =
            (block * (recurrence_threads / 32 / shape.warps) + group) * columns + column;
        mask = 0;
        for (int32_t k = 0; k < chunks; k++) {
            mask |= 1u << lane_of(shape, k);
        }
    }
    __device__ __forceinline__ int32_t lane_of(const RecurrenceShape &shape,
                                               int32_t k) const
    {
        return shape.by_row ? column * shape.chunks() + k : column + (k << shape.width);
    }
};

/* The exchange of the warps of a block, if a line has several. */
template <typename Number, int ORDER> struct RecurrenceExchange {
    RecurrenceUnit<Number, ORDER> unit[recurrence_threads];       /* [warp][line] */
    RecurrenceState<Number, ORDER> state[recurrence_threads / 2]; /* [group][line] */
    uint8_t is_large[recurrence_threads];
};

/* Numbers of a chunk between those of other lanes of the warp, without bank conflicts. */
template <typename Number> struct RecurrenceTurn {
    static constexpr int ROWS = recurrence_rows<Number>;
    static constexpr int words = 32 * ROWS + ROWS;
    Number *const memory; /* of the warp */

    const int32_t first, step; /* the numbers first + k * step of the warp are loaded */

    static __device__ __forceinline__ int at(int i)
    {
        return i + i / 32;
    }
    /* From the numbers that the lane loads to those of its chunk, or back. */
    __device__ __forceinline__ void to_chunks(Number (&of)[ROWS]) const
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            memory[at(first + k * step)] = of[k];
        }
        __syncwarp();
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            of[k] = memory[at(threadIdx.x % 32 * ROWS + k)];
        }
        __syncwarp();
    }
    __device__ __forceinline__ void to_lines(Number (&of)[ROWS]) const
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            memory[at(threadIdx.x % 32 * ROWS + k)] = of[k];
        }
        __syncwarp();
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            of[k] = memory[at(first + k * step)];
        }
        __syncwarp();
    }
};

/* The computation of one block. UNITS: the maps of the parts of lines instead of x. */
template <typename Number, int ORDER, bool BY_ROW, bool UNITS> struct RecurrenceWorker {
    static constexpr int ROWS = recurrence_rows<Number>;
    static constexpr int COLUMNS = UNITS ? 1 + ORDER : 1; /* of the carried state */
    using State = RecurrenceState<Number, ORDER>;
    using Unit = RecurrenceUnit<Number, ORDER>;
    const RecurrenceJob<Number> &job;
    const RecurrenceShape &shape;
    const RecurrencePlace &self;
    RecurrenceExchange<Number, ORDER> &exchange;
    const RecurrenceTurn<Number> turn;
    const int64_t lines;
    const bool is_there;  /* the line */
    const bool is_joined; /* several chunks of a line at the same time */
    const Number *first_of, *second_of, *b_of; /* the operands of the line */
    Number *x_of;
    Number a[ROWS], c[ROWS], b[ROWS];
    State carry[COLUMNS];   /* before the tile */
    bool is_large = false;  /* M v + s of the line may lose digits, or is not finite */
    real_of<Number> growth; /* largest entry of the maps of this lane */
    Number next_a[ROWS], next_c[ROWS], next_b[ROWS];

    __device__ __forceinline__ RecurrenceWorker(const RecurrenceJob<Number> &j,
                                                const RecurrencePlace &place,
                                                RecurrenceExchange<Number, ORDER> &others,
                                                Number *memory)
        : job(j), shape(j.shape), self(place), exchange(others),
          turn{memory, place.column * j.shape.chunks() * ROWS + place.chunk,
               j.shape.chunks()},
          lines(j.outer * j.inner), is_there(place.line < lines),
          is_joined(UNITS || j.shape.warps > 1 || j.shape.width < 5)
    {
        const int64_t line = is_there ? place.line : 0;
        const int64_t outer = quotient(line, j.inner), inner = line - outer * j.inner;

        first_of = j.first.system(outer, inner);
        second_of = ORDER == 2 ? j.second.system(outer, inner) : nullptr;
        b_of = j.b.system(outer, inner);
        x_of = j.x.system(outer, inner);
    }

    /* Begin with the state before part `part`. */
    __device__ __forceinline__ void begin(int32_t part)
    {
        const Unit unit = Unit::identity();

        carry[0] = unit.s;
#pragma unroll
        for (int q = 1; q < COLUMNS; q++) {
            carry[q] = unit.m[q - 1];
        }
        if (UNITS || !is_there) {
            return;
        }
        if (part > 0) {
#pragma unroll
            for (int k = 0; k < ORDER; k++) {
                carry[0].v[k] =
                    job.units[(k * int64_t(shape.parts) + part) * lines + self.line];
            }
        }
        else if (job.initial.data != nullptr) {
            const int64_t j = quotient(self.line, job.inner);
            const Number *const from = job.initial.system(j, self.line - j * job.inner);

#pragma unroll
            for (int k = 0; k < ORDER; k++) {
                carry[0].v[k] = from[k * job.initial.row];
            }
        }
    }

    /* The k-th row that this lane loads, from the first one of the tile. */
    __device__ __forceinline__ int32_t row_of(int k) const
    {
        const int32_t chunk = self.warp * shape.chunks();

        return BY_ROW ? chunk * ROWS + k * shape.chunks() + self.chunk
                      : (chunk + self.chunk) * ROWS + k;
    }

    /* Rows beyond the line are 0. */
    __device__ __forceinline__ void load(const Number *from, int64_t stride,
                                         int32_t first, Number (&to)[ROWS]) const
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int32_t row = first + row_of(k);

            to[k] = is_there && row < job.rows ? from[row * stride] : Number(0);
        }
    }

    /* Load the tile that begins at row `first`. */
    __device__ __forceinline__ void load(int32_t first)
    {
        load(first_of, job.first.row, first, next_a);
        if constexpr (ORDER == 2) {
            load(second_of, job.second.row, first, next_c);
        }
        load(b_of, job.b.row, first, next_b);
    }

    /* Compute the rows of the loaded tile, which begins at row `first`, and load the next
     * one unless it begins at row `end` or beyond. If `stores`, x is stored. */
    __device__ __forceinline__ void compute(int32_t first, bool stores, int64_t end)
    {
        take(next_a, a);
        if constexpr (ORDER == 2) {
            take(next_c, c);
        }
        take(next_b, b);
        if (ORDER == 1 && first + int64_t(shape.tile_rows()) < end) {
            load(first + shape.tile_rows());
        }
        State v = carry[0];

        if (is_joined) {
            v = join();
        }
        if constexpr (!UNITS) {
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                v.advance(a[i], c_of(i), b[i]);
                b[i] = v.v[0];
            }
            if (!is_joined) {
                carry[0] = v;
            }
            store(first, stores);
        }
        if (ORDER == 2 && first + int64_t(shape.tile_rows()) < end) {
            load(first + shape.tile_rows());
        }
    }

  private:
    __device__ __forceinline__ void take(const Number (&from)[ROWS],
                                         Number (&to)[ROWS]) const
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            to[k] = from[k];
        }
        if constexpr (BY_ROW) {
            turn.to_chunks(to);
        }
    }

    __device__ __forceinline__ Number c_of(int i) const
    {
        return ORDER == 2 ? c[i] : Number(0);
    }

    __device__ __forceinline__ Unit unit_of_chunk()
    {
        Unit u = Unit::identity();

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            u.s.advance(a[i], c_of(i), b[i]);
#pragma unroll
            for (int q = 0; q < ORDER; q++) {
                u.m[q].advance(a[i], c_of(i));
                if (ORDER == 2) {
                    growth = fmax(growth, size_of(u.m[q].v[0]));
                }
            }
        }
        growth = fmax(growth, u.largest());
        return u;
    }

    /* Advance the carried states by the rows of a unit. */
    __device__ __forceinline__ void carry_over(const Unit &u)
    {
        carry[0] = u.at(carry[0]);
#pragma unroll
        for (int q = 1; q < COLUMNS; q++) {
            carry[q] = u.times(carry[q]);
#pragma unroll
            for (int k = 0; k < ORDER; k++) {
                is_large = is_large ||
                           !(size_of(carry[q].v[k]) <= recurrence_growth<Number, ORDER>);
            }
        }
        is_large = is_large || !carry[0].is_finite();
    }

    /* Join the chunks of the tile; returns the state before the own chunk. */
    __device__ __forceinline__ State join()
    {
        const State start = carry[0];

        is_large = UNITS && is_large;
        growth = 0;
        Unit u = unit_of_chunk();

#pragma unroll 1
        for (int32_t d = 1; d < shape.chunks(); d *= 2) {
            const Unit before = u.up(d * self.lanes);

            if (self.chunk >= d) {
                u = u.behind(before);
                growth = fmax(growth, u.largest());
            }
        }
        Unit before = u.up(self.lanes);
        State mine = start;

        is_large = is_large || growth > recurrence_growth<Number, ORDER>;
        is_large = (__ballot_sync(all_lanes, is_large) & self.mask) != 0;
        if (self.chunk == 0) {
            before = Unit::identity();
        }
        if (shape.warps == 1) {
            carry_over(u.from_lane(self.lane_of(shape, shape.chunks() - 1)));
        }
        else {
            mine = join_warps(u);
        }
        State v = before.at(mine);

        if constexpr (!UNITS) {
            if (shape.warps == 1 ? __any_sync(all_lanes, is_large)
                                 : __syncthreads_or(is_large)) {
                const State exact = in_order(start);

                v = is_large ? exact : v;
            }
        }
        return v;
    }

    /* Returns the state before the first chunk of the warp. */
    __device__ __forceinline__ State join_warps(const Unit &u)
    {
        const int32_t columns = 1 << shape.width;
        const int32_t base = self.group * shape.warps * columns + self.column;
        State mine = carry[0];

        if (self.chunk == shape.chunks() - 1) {
            exchange.unit[base + self.warp * columns] = u;
            exchange.is_large[base + self.warp * columns] = is_large;
        }
        __syncthreads();
#pragma unroll 1
        for (int32_t w = 0; w < shape.warps; w++) {
            if (w == self.warp) {
                mine = carry[0];
            }
            is_large = is_large || exchange.is_large[base + w * columns] != 0;
            carry_over(exchange.unit[base + w * columns]);
        }
        if (UNITS) { /* otherwise join() has a barrier */
            __syncthreads();
        }
        return mine;
    }

    /* The state before the own chunk, computed row after row from the state before the
     * tile; also the carried state of lines whose maps are large. */
    __device__ __forceinline__ State in_order(State start)
    {
        const int32_t at = (self.group << shape.width) + self.column;
        State mine = start;

#pragma unroll 1
        for (int32_t w = 0; w < shape.warps; w++) {
            if (w == self.warp) {
                State v = w == 0 ? start : exchange.state[at];

#pragma unroll 1
                for (int32_t k = 0; k < shape.chunks(); k++) {
                    State end = v;

                    if (k == self.chunk) {
                        mine = v;
                    }
#pragma unroll
                    for (int i = 0; i < ROWS; i++) {
                        end.advance(a[i], c_of(i), b[i]);
                    }
                    v = end.from_lane(self.lane_of(shape, k));
                }
                start = v;
                if (shape.warps > 1 && self.chunk == 0) {
                    exchange.state[at] = v;
                }
            }
            if (shape.warps > 1) {
                __syncthreads();
            }
        }
        if (is_large) {
            carry[0] = shape.warps > 1 ? exchange.state[at] : start;
        }
        if (shape.warps > 1) {
            __syncthreads();
        }
        return mine;
    }

    __device__ __forceinline__ void store(int32_t first, bool stores)
    {
        if constexpr (BY_ROW) {
            turn.to_lines(b);
        }
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int32_t row = first + row_of(k);

            if (is_there && stores && row < job.rows) {
                x_of[row * job.x.row] = b[k];
            }
        }
    }
};

/* Grid: blocks for all lines, times the parts. */
template <typename Number, int ORDER, bool BY_ROW, bool UNITS>
__global__ void
__launch_bounds__(recurrence_threads)
    recurrence_kernel(const __grid_constant__ RecurrenceJob<Number> job)
{
    using Worker = RecurrenceWorker<Number, ORDER, BY_ROW, UNITS>;
    using Turn = RecurrenceTurn<Number>;
    __shared__ RecurrenceExchange<Number, ORDER> exchange;
    __shared__ Number memory[BY_ROW ? recurrence_threads / 32 * Turn::words : 1];
    const RecurrenceShape &shape = job.shape;
    const int32_t part = blockIdx.x % shape.parts;
    const RecurrencePlace self(shape, blockIdx.x / shape.parts);
    const int32_t tile_rows = shape.tile_rows();
    const int64_t lines = job.outer * job.inner;
    const int64_t part_rows = int64_t(shape.part_tiles) * tile_rows;
    const int64_t begin = part * part_rows,
                  own = min(begin + part_rows, int64_t(job.rows));
    Worker worker(job, self, exchange,
                  memory + (BY_ROW ? threadIdx.x / 32 * Turn::words : 0));
    int64_t end = own;
    bool is_in_order = false;

    if (!UNITS && shape.parts > 1) { /* lines in order belong to the first part */
        is_in_order = self.line < lines && job.in_order[self.line] != 0;
        end = __syncthreads_or(is_in_order) && part == 0 ? job.rows : own;
    }
    worker.begin(part);
    if (begin < end) {
        worker.load(static_cast<int32_t>(begin));
    }
    for (int64_t row = begin; row < end; row += tile_rows) {
        worker.compute(static_cast<int32_t>(row), is_in_order ? part == 0 : row < own,
                       end);
    }
    if constexpr (UNITS) {
        if (self.line < lines && self.chunk == 0 && self.warp == 0) {
            const int64_t at = part * lines + self.line, pitch = shape.parts * lines;

#pragma unroll
            for (int q = 0; q < 1 + ORDER; q++) {
#pragma unroll
                for (int k = 0; k < ORDER; k++) {
                    job.units[(q * ORDER + k) * pitch + at] = worker.carry[q].v[k];
                }
            }
            if (worker.is_large) {
                job.in_order[self.line] = 1;
            }
        }
    }
}

/* Replace s of the units of the parts by the states before the parts. Grid: a thread for
 * each line. */
template <typename Number, int ORDER>
__global__ void
__launch_bounds__(recurrence_threads)
    recurrence_join_kernel(const __grid_constant__ RecurrenceJob<Number> job)
{
    const int64_t lines = job.outer * job.inner, parts = job.shape.parts;
    const int64_t line = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    RecurrenceState<Number, ORDER> v;

    if (line >= lines) {
        return;
    }
    const int64_t j = quotient(line, job.inner);
    const Number *const from = job.initial.data != nullptr
                                   ? job.initial.system(j, line - j * job.inner)
                                   : nullptr;

#pragma unroll
    for (int k = 0; k < ORDER; k++) {
        v.v[k] = from != nullptr ? from[k * job.initial.row] : Number(0);
    }
#pragma unroll 8
    for (int64_t part = 0; part < parts; part++) {
        RecurrenceUnit<Number, ORDER> u;

#pragma unroll
        for (int k = 0; k < ORDER; k++) {
            Number &s = job.units[(k * parts + part) * lines + line];

            u.s.v[k] = s;
#pragma unroll
            for (int q = 0; q < ORDER; q++) {
                u.m[q].v[k] =
                    job.units[(((q + 1) * ORDER + k) * parts + part) * lines + line];
            }
            s = v.v[k];
        }
        v = u.at(v);
        if (part < parts - 1 && !v.is_finite()) {
            job.in_order[line] = 1;
        }
    }
}

template <typename Number, int ORDER, bool BY_ROW>
inline ps_status
launch_order(const RecurrenceJob<Number> &job, cudaStream_t stream)
{
    const int64_t lines = job.outer * job.inner;
    const int64_t of_block = int64_t(recurrence_threads / 32 / job.shape.warps)
                             << job.shape.width;
    const int64_t blocks = divided_up(lines, of_block) * job.shape.parts;
    ps_status status = PS_OK;

    if (blocks > INT32_MAX) {
        return PS_UNSUPPORTED;
    }
    if (job.shape.parts > 1) {
        status = ps_cuda_status(
            cudaMemsetAsync(job.in_order, 0, static_cast<size_t>(lines), stream));
        if (status == PS_OK) {
            status = Launch(blocks, recurrence_threads, 0, stream)
                         .run(recurrence_kernel<Number, ORDER, BY_ROW, true>, job);
        }
        if (status == PS_OK) {
            status = Launch(divided_up(lines, recurrence_threads), recurrence_threads, 0,
                            stream)
                         .run(recurrence_join_kernel<Number, ORDER>, job);
        }
    }
    return status == PS_OK
               ? Launch(blocks, recurrence_threads, 0, stream)
                     .run(recurrence_kernel<Number, ORDER, BY_ROW, false>, job)
               : status;
}

template <typename Number>
ps_status
launch_recurrence(const RecurrenceJob<Number> &job, cudaStream_t stream)
{
    if (job.second.data != nullptr) {
        return job.shape.by_row ? launch_order<Number, 2, true>(job, stream)
                                : launch_order<Number, 2, false>(job, stream);
    }
    return job.shape.by_row ? launch_order<Number, 1, true>(job, stream)
                            : launch_order<Number, 1, false>(job, stream);
}

} // namespace pysolvers::lines

#endif
