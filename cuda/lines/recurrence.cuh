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
 * second one the states before them, which adds 2 or 3 words per row. One pass with decoupled
 * look-back (Merrill and Garland 2016) was half as fast: a block holds 12 KiB, and the states
 * of tiles so small arrive more slowly than their rows.
 *
 * A chunk is 32 bytes of each operand, a sector of memory: where rows are neighbours in
 * memory and aligned, a thread loads and stores its chunk as two vectors. Other operands
 * are loaded row by row and go through shared memory.
 *
 * Why not the Line algebra of join/segment.cuh with diag = 1 and upper = 0: its unit has 7
 * numbers and its elimination 17 operations and a reciprocal per row, it has no second
 * order, it cannot compute growing lines in order, and the matrix takes 5 words of
 * shared memory. csrc/cpu/lines/recurrence.inc has the same units.
 */
#ifndef PS_CUDA_LINES_RECURRENCE_CUH
#define PS_CUDA_LINES_RECURRENCE_CUH

#include "lines/join/exchange.cuh"
#include "lines/recurrence.h"
#include "runtime/elements.cuh"
#include "runtime/math.cuh"

namespace pysolvers::lines {

/* Threads of a block; rows of a chunk, 32 bytes of each operand. */
static constexpr int recurrence_threads = 128;
template <typename Number>
static constexpr int recurrence_rows = 32 / static_cast<int>(sizeof(Number));

/* Magnitudes are compared by the first 32 bits of their numbers, which are ordered as they
 * are; NaN comes last. A maximum of doubles takes several instructions. */
__device__ __forceinline__ int32_t
magnitude_of(float x)
{
    return __float_as_int(fabsf(x));
}
__device__ __forceinline__ int32_t
magnitude_of(double x)
{
    return __double2hiint(fabs(x));
}

/* Whether such a magnitude exceeds the largest entries of maps that are used. */
template <typename Number, int ORDER>
__device__ __forceinline__ bool
is_growth(int32_t magnitude)
{
    return magnitude > magnitude_of(real_of<Number>(ORDER == 1 ? 2 : 16));
}

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
    /* The magnitude of the largest entry of M. */
    __device__ __forceinline__ int32_t largest() const
    {
        int32_t most = 0;

#pragma unroll
        for (int q = 0; q < ORDER; q++) {
#pragma unroll
            for (int k = 0; k < ORDER; k++) {
                most = max(most, magnitude_of(size_of(m[q].v[k])));
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

/* The exchange of the warps of a block, if a line has several: units, and whether they are large,
 * [warp][line]. */
template <typename Number, int ORDER>
using RecurrenceUnits =
    join::BlockExchange<RecurrenceUnit<Number, ORDER>, recurrence_threads, uint8_t>;

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

/* Combine the units of each lane `apart` lanes before with the own one; growth: the largest
 * entry of the maps. */
template <typename Number, int ORDER>
__device__ __forceinline__ void
scan(RecurrenceUnit<Number, ORDER> &u, int32_t chunk, int32_t chunks, int32_t apart,
     int32_t &growth)
{
#pragma unroll 1
    for (int32_t d = 1; d < chunks; d *= 2) {
        const RecurrenceUnit<Number, ORDER> before = u.up(d * apart);

        if (chunk >= d) {
            u = u.behind(before);
            growth = max(growth, u.largest());
        }
    }
}

/* How lanes find the rows of their chunks: neighbouring lanes have neighbouring lines; or
 * neighbouring chunks, whose rows they exchange; or they load whole chunks, aligned to 16
 * bytes. */
enum class RecurrenceAccess { COLUMN, ROW, CHUNK };

/* The computation of one block. UNITS: the maps of the parts of lines instead of x. */
template <typename Number, int ORDER, RecurrenceAccess ACCESS, bool UNITS>
struct RecurrenceWorker {
    static constexpr int ROWS = recurrence_rows<Number>;
    static constexpr int COLUMNS = UNITS ? 1 + ORDER : 1; /* of the carried state */
    static constexpr bool IS_TURNED = ACCESS == RecurrenceAccess::ROW;
    static constexpr bool IS_WHOLE = ACCESS == RecurrenceAccess::CHUNK;
    using State = RecurrenceState<Number, ORDER>;
    using Unit = RecurrenceUnit<Number, ORDER>;
    struct Chunk {
        int4 half[2];
    };
    const RecurrenceJob<Number> &job;
    const RecurrenceShape &shape;
    const RecurrencePlace &self;
    RecurrenceUnits<Number, ORDER> &units; /* of the warps */
    State *const states;                   /* before the warps, [group][line] */
    const RecurrenceTurn<Number> turn;
    const int64_t lines;
    const bool is_there;  /* the line */
    const bool is_joined; /* several chunks of a line at the same time */
    const int32_t own;    /* the first row of a tile that this lane loads and stores */
    const Number *first_of, *second_of, *b_of; /* that row of the next tile */
    Number *x_of;                              /* of this tile */
    int32_t left;                              /* rows from that row of the next tile */
    Number a[ROWS], c[ROWS], b[ROWS];
    Number next_a[ROWS], next_c[ROWS], next_b[ROWS];
    State carry[COLUMNS];  /* before the tile */
    bool is_large = false; /* M v + s of the line may lose digits, or is not finite */
    int32_t growth;        /* magnitude of the largest entry of the maps of this lane */

    __device__ __forceinline__ RecurrenceWorker(const RecurrenceJob<Number> &j,
                                                const RecurrencePlace &place,
                                                RecurrenceUnits<Number, ORDER> &of_warps,
                                                State *before, Number *memory,
                                                int32_t row)
        : job(j), shape(j.shape), self(place), units(of_warps), states(before),
          turn{memory, place.column * j.shape.chunks() * ROWS + place.chunk,
               j.shape.chunks()},
          lines(j.outer * j.inner), is_there(place.line < lines),
          is_joined(UNITS || j.shape.warps > 1 || j.shape.width < 5),
          own(IS_TURNED ? place.warp * j.shape.chunks() * ROWS + place.chunk
                        : (place.warp * j.shape.chunks() + place.chunk) * ROWS),
          left(is_there ? j.rows - row - own : 0)
    {
        const int64_t line = is_there ? place.line : 0, at = int64_t(row) + own;
        const int64_t outer = quotient(line, j.inner), inner = line - outer * j.inner;

        first_of = j.first.system(outer, inner) + at * j.first.row;
        second_of =
            ORDER == 2 ? j.second.system(outer, inner) + at * j.second.row : nullptr;
        b_of = j.b.system(outer, inner) + at * j.b.row;
        x_of = j.x.system(outer, inner) + at * j.x.row;
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

    /* Load the next tile; `is_first`: of the line. */
    __device__ __forceinline__ void load(bool is_first)
    {
        const int32_t lead = is_first && job.is_transposed ? 1 : 0;

        load(first_of, job.first.row, lead, next_a);
        if constexpr (ORDER == 2) {
            load(second_of, job.second.row, 2 * lead, next_c);
        }
        load(b_of, job.b.row, 0, next_b);
        left -= shape.tile_rows();
    }

    /* Compute the rows of the loaded tile and, if `stores`, store them. Load the next tile
     * if there is one. */
    __device__ __forceinline__ void compute(bool stores, bool has_next)
    {
        const int32_t high = left + shape.tile_rows();

        take(next_a, job.first.row, a);
        if constexpr (ORDER == 2) {
            take(next_c, job.second.row, c);
        }
        take(next_b, job.b.row, b);
        if (has_next) {
            load(false);
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
            store(stores ? high : 0);
        }
    }

  private:
    /* Load a chunk, in the order of memory if it is whole, and go on to the next tile. Rows
     * below `lead` and beyond the line are 0. */
    __device__ __forceinline__ void load(const Number *&from, int64_t stride,
                                         int32_t lead, Number (&to)[ROWS]) const
    {
        if constexpr (IS_WHOLE) {
            const int4 *const of =
                reinterpret_cast<const int4 *>(stride < 0 ? from - (ROWS - 1) : from);
            Chunk both = {};

            if (left > 0) {
                both.half[0] = of[0];
                both.half[1] = of[1];
            }
            memcpy(to, &both, sizeof both);
        }
        else {
            const int32_t apart = IS_TURNED ? shape.chunks() : 1;
            const int64_t step = apart * stride;
            const Number *at = from;

#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                const bool is_read = k * apart >= lead - own && k * apart < left;

                to[k] = is_read ? *at : Number(0);
                at += step;
            }
        }
        from += shape.tile_rows() * stride;
    }

    __device__ __forceinline__ void take(const Number (&from)[ROWS], int64_t stride,
                                         Number (&to)[ROWS]) const
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            to[k] = IS_WHOLE && stride < 0 ? from[ROWS - 1 - k] : from[k];
        }
        if constexpr (IS_TURNED) {
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
                    growth = max(growth, magnitude_of(size_of(u.m[q].v[0])));
                }
            }
        }
        growth = max(growth, u.largest());
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
                           is_growth<Number, ORDER>(magnitude_of(size_of(carry[q].v[k])));
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

        scan(u, self.chunk, shape.chunks(), self.lanes, growth);
        Unit before = u.up(self.lanes);
        State mine = start;

        is_large = is_large || is_growth<Number, ORDER>(growth);
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
            units.unit[base + self.warp * columns] = u;
            units.note[base + self.warp * columns] = is_large;
        }
        __syncthreads();
#pragma unroll 1
        for (int32_t w = 0; w < shape.warps; w++) {
            if (w == self.warp) {
                mine = carry[0];
            }
            is_large = is_large || units.note[base + w * columns] != 0;
            carry_over(units.unit[base + w * columns]);
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
                State v = w == 0 ? start : states[at];

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
                    states[at] = v;
                }
            }
            if (shape.warps > 1) {
                __syncthreads();
            }
        }
        if (is_large) {
            carry[0] = shape.warps > 1 ? states[at] : start;
        }
        if (shape.warps > 1) {
            __syncthreads();
        }
        return mine;
    }

    /* Store the rows below `high` of a chunk. */
    __device__ __forceinline__ void store(int32_t high)
    {
        const int64_t stride = job.x.row;

        if constexpr (IS_WHOLE) {
            store_chunk(stride < 0, high > 0);
        }
        else {
            const int32_t apart = IS_TURNED ? shape.chunks() : 1;
            const int64_t step = apart * stride;
            Number *at = x_of;

            if constexpr (IS_TURNED) {
                turn.to_lines(b);
            }
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                if (k * apart < high) {
                    *at = b[k];
                }
                at += step;
            }
        }
        x_of += shape.tile_rows() * stride;
    }

    /* Two neighbours store their chunks one after the other, each of them a half, so that
     * sectors of memory are written at once; or each its own one. */
    __device__ __forceinline__ void store_chunk(bool is_back, bool is_stored) const
    {
        int4 *const to = reinterpret_cast<int4 *>(is_back ? x_of - (ROWS - 1) : x_of);
        Number v[ROWS];
        Chunk both;

#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            v[k] = is_back ? b[ROWS - 1 - k] : b[k];
        }
        memcpy(&both, v, sizeof both);
        if (shape.width < 5 && __all_sync(all_lanes, is_stored)) {
            const bool is_odd = self.chunk % 2 != 0;
            const int step = is_back ? -2 : 2;
            const int4 give = is_odd ? both.half[0] : both.half[1];
            const int4 got = {__shfl_xor_sync(all_lanes, give.x, 1),
                              __shfl_xor_sync(all_lanes, give.y, 1),
                              __shfl_xor_sync(all_lanes, give.z, 1),
                              __shfl_xor_sync(all_lanes, give.w, 1)};
            int4 *const even = to + (is_odd ? 1 - step : 0);

            even[0] = is_odd ? got : both.half[0];
            even[step] = is_odd ? both.half[1] : got;
        }
        else if (is_stored) {
            to[0] = both.half[0];
            to[1] = both.half[1];
        }
    }
};

/* Grid: blocks for all lines, times the parts. */
template <typename Number, int ORDER, RecurrenceAccess ACCESS, bool UNITS>
struct RecurrencePart {
    RecurrenceJob<Number> job;

    __device__ __forceinline__ void operator()() const
    {
        using Worker = RecurrenceWorker<Number, ORDER, ACCESS, UNITS>;
        using Turn = RecurrenceTurn<Number>;
        constexpr bool IS_TURNED = ACCESS == RecurrenceAccess::ROW;
        __shared__ RecurrenceUnits<Number, ORDER> units;
        __shared__ RecurrenceState<Number, ORDER>
            states[recurrence_threads / 2]; /* of two warps a line at least */
        __shared__ Number memory[IS_TURNED ? recurrence_threads / 32 * Turn::words : 1];
        const RecurrenceShape &shape = job.shape;
        const int32_t part = blockIdx.x % shape.parts;
        const RecurrencePlace self(shape, blockIdx.x / shape.parts);
        const int64_t tile_rows = shape.tile_rows(), lines = job.outer * job.inner;
        const int64_t part_rows = shape.part_tiles * tile_rows, begin = part * part_rows;
        const int64_t own = min(begin + part_rows, int64_t(job.rows));
        int64_t end = own;
        bool is_in_order = false;

        wait_for_last_kernel();
        if (!UNITS && shape.parts > 1) { /* lines in order belong to the first part */
            is_in_order = self.line < lines && job.in_order[self.line] != 0;
            end = __syncthreads_or(is_in_order) && part == 0 ? job.rows : own;
        }
        if (begin >= end) {
            return;
        }
        Worker worker(job, self, units, states,
                      memory + (IS_TURNED ? threadIdx.x / 32 * Turn::words : 0),
                      static_cast<int32_t>(begin));

        worker.begin(part);
        worker.load(begin == 0);
#pragma unroll 1
        for (int64_t row = begin; row < end; row += tile_rows) {
            worker.compute(is_in_order ? part == 0 : row < own, row + tile_rows < end);
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
};

/* Replace s of the units of the parts by the states before the parts, a warp for each line. */
template <typename Number, int ORDER> struct RecurrenceJoin {
    RecurrenceJob<Number> job;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        using Unit = RecurrenceUnit<Number, ORDER>;
        using State = RecurrenceState<Number, ORDER>;
        const int64_t lines = job.outer * job.inner, parts = job.shape.parts;
        const int64_t line = index / 32;
        const int32_t lane = threadIdx.x % 32;
        State v = Unit::identity().s;

        if (job.initial.data != nullptr) {
            const int64_t j = quotient(line, job.inner);
            const Number *const from = job.initial.system(j, line - j * job.inner);

#pragma unroll
            for (int k = 0; k < ORDER; k++) {
                v.v[k] = from[k * job.initial.row];
            }
        }
        const auto word_of = [&](int word, int64_t part) -> Number & {
            return job.units[(word * parts + part) * lines + line];
        };
        const auto load = [&](int64_t part) {
            Unit u = Unit::identity();

#pragma unroll
            for (int k = 0; k < ORDER && part < parts; k++) {
                u.s.v[k] = word_of(k, part);
#pragma unroll
                for (int q = 0; q < ORDER; q++) {
                    u.m[q].v[k] = word_of((q + 1) * ORDER + k, part);
                }
            }
            return u;
        };
        Unit next = load(lane);

#pragma unroll 1
        for (int64_t part = lane; part - lane < parts; part += 32) {
            const Unit own = next;
            Unit u = own;
            int32_t growth = 0;
            State mine = v;

            next = load(part + 32);
            scan(u, lane, 32, 1, growth);
            const Unit before = u.up(1);

            if (__any_sync(all_lanes, is_growth<Number, ORDER>(growth))) {
#pragma unroll 1
                for (int k = 0; k < 32; k++) {
                    mine = k == lane ? v : mine;
                    v = own.from_lane(k).at(v);
                }
            }
            else {
                mine = lane > 0 ? before.at(v) : v;
                v = u.from_lane(31).at(v);
            }
            if (part < parts) {
#pragma unroll
                for (int k = 0; k < ORDER; k++) {
                    word_of(k, part) = mine.v[k];
                }
                if (!mine.is_finite()) {
                    job.in_order[line] = 1;
                }
            }
        }
    }
};

template <typename Number, int ORDER, RecurrenceAccess ACCESS>
inline ps_status
launch_access(const RecurrenceJob<Number> &job, cudaStream_t stream)
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
            status = for_threads<recurrence_threads>(
                blocks, stream, RecurrencePart<Number, ORDER, ACCESS, true>{job});
        }
        if (status == PS_OK) {
            status = for_elements<recurrence_threads>(32 * lines, stream,
                                                      RecurrenceJoin<Number, ORDER>{job});
        }
    }
    return status == PS_OK
               ? for_threads<recurrence_threads>(
                     blocks, stream, RecurrencePart<Number, ORDER, ACCESS, false>{job})
               : status;
}

template <typename Number, int ORDER>
inline ps_status
launch_order(const RecurrenceJob<Number> &job, cudaStream_t stream)
{
    using Access = RecurrenceAccess;

    return !job.shape.by_row ? launch_access<Number, ORDER, Access::COLUMN>(job, stream)
           : job.shape.is_whole ? launch_access<Number, ORDER, Access::CHUNK>(job, stream)
                                : launch_access<Number, ORDER, Access::ROW>(job, stream);
}

template <typename Number>
ps_status
launch_recurrence(const RecurrenceJob<Number> &job, cudaStream_t stream)
{
    return job.second.data != nullptr ? launch_order<Number, 2>(job, stream)
                                      : launch_order<Number, 1>(job, stream);
}

} // namespace pysolvers::lines

#endif
