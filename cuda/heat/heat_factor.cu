/* heat_factor.cu - sweeps of Peaceman and Rachford with a variable conductivity, one word of
 * factors per node.
 *
 * A line has the unknowns i = 0 .. n-1, faces with k_i = r/2 between i and i + 1, and row sums s_i
 * that are 1 but for its ends: 1 + k next to a node with a value, with k of the face between
 * them, and 1/2 + exchange/4 at a side with a flux, whose node is half a cell. Elimination in row-sum
 * form (lines/join/row_sums.cuh) is
 *
 *   sigma_i = s_i + v_i,   v_i = u_(i-1) sigma_(i-1),   u_i = k_i / (sigma_i + k_i).
 *
 * Nothing is subtracted in it. The unknowns differ from w, the right-hand side, by d, and with the
 * differences D_i = w_i - w_(i-1) a sweep is two recurrences of first order,
 *
 *   e_i = (1 - 1/sigma_i) (e_(i-1) - D_i),   c_i = D_(i+1) + (1 - u_i) (e_i - D_(i+1)),
 *   d_i = c_i + u_i d_(i+1),
 *
 * of differences alone: rounding errors are relative to the differences along a line, as with the
 * CPU (lines/increment.h), and a constant keeps its bits. Neither needs a matrix in the joins: a chunk
 * of rows adds a sum to what enters it, times the product of its u, if v_(i+1) (e_i - D_(i+1)) and
 * d_i are joined (join/pair.cuh).
 *
 * The word of a node, q, is u if u <= 1/2, and -(1 - u) otherwise. Both have relative errors of eps
 * with it, which both need: u, of which sigma of the next row is made, where sigma is
 * large and k is small (next to a large exchange, or between a good and a bad conductor), and 1 - u
 * where k is large. With t = 1/(sigma + k) as the word, of which 1 - u = sigma t, no row would have
 * a reciprocal, and the first of the two would lose all digits of float32; with a level of each line
 * in place of the differences errors are 5 to 100 times as large in smooth fields.
 *
 * What enters v of each chunk is kept, one word per chunk and line. s of the first row is contained
 * in it; of the last row, which has no row after it, two numbers are kept. q = -0 in rows after the
 * last one, whose D and d are 0.
 *
 * 3 words and 22 operations per node. Along x a block holds a line; along y a cluster holds
 * neighbouring lines, 128 bytes of each row, and its blocks send each other their sums twice. Factors
 * are made from the maps v -> v of the chunks, along x by one kernel, along y by three, and kept
 * from call to call (ps_heat, kept).
 *
 * Why an elimination other than those of lines/: the partition method of lines/ in row-sum form has 20
 * operations and a reciprocal per row, seven numbers of each chunk to join and 168 registers per
 * thread: a step of 2048^2 nodes takes 61 and 118 us with it in float32 and float64, 36 and 65 us
 * here, of 1500 x 3333 nodes 78 and 171 us, and 41 and 83 us (H200). Lines of 64 or 256 bytes in place
 * of 128, and two blocks of a multiprocessor in place of three, take 1.02 to 1.2 of the time; where
 * only those of 64 bytes have three blocks (4096 rows), these take 0.88 to 0.94.
 */
#include "device/number.cuh"
#include "device/run_copy.cuh"
#include "device/tile_copy.cuh"
#include "heat/heat_factor.h"
#include "lines/join/pair.cuh"
#include "runtime/copy.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::heat {

using namespace device;
using namespace join;
using namespace runtime;

namespace {

/* Of the clusters that are resident first two thirds begin one and two delays later, so that some
 * load while others compute: in float64 0.94 to 0.95 of the time of a step of more clusters than
 * these, in float32 1.0 to 1.03. */
constexpr long long delay_cycles = 4000;
constexpr int usual_threads = 256, most_threads = 512, most_blocks = 8;

/* Rows of a chunk, and neighbouring lines of a block. The rows are odd in number where chunks of
 * one line, or of few lines, lie side by side in a warp: they then lie in different banks. */
template <typename Real, int AXIS, bool IS_LONG> struct Shape {
    static constexpr int rows =
        AXIS == 0 ? (IS_LONG ? 33 : 17) : (sizeof(Real) == 4 ? 32 : 16) + (IS_LONG);
    static constexpr int lines =
        AXIS == 0 ? 1 : (IS_LONG ? 64 : 128) / static_cast<int>(sizeof(Real));
    /* of a block, so that three of them are resident */
    static constexpr int usual_chunks = usual_threads / lines;

    static int64_t chunks(int64_t n)
    {
        return divided_up(n, rows);
    }
    static int blocks(int64_t n)
    {
        int blocks = 1;

        while (AXIS == 1 && blocks < most_blocks && chunks(n) > blocks * usual_chunks) {
            blocks *= 2;
        }
        return blocks;
    }
    static int threads(int64_t n)
    {
        return static_cast<int>(divided_up(divided_up(chunks(n), blocks(n)) * lines, 32) *
                                32);
    }
};

/* The numbers of an end of the lines. */
template <typename Real> struct LineEnd {
    HeatValues<Real> given; /* the values, or what enters */
    Real exchange;          /* exchange / 4 */
    bool is_flux;
};

/* The lines along an axis. */
template <typename Real> struct Lines {
    const Real *k;
    Real *factor;          /* q, by node */
    Real *starts;          /* [chunk][line]: sigma of its first row less 1 */
    Real *outer;           /* [2][line]: k of the faces before and after the unknowns */
    Real *last;            /* [2][line]: (1 + v) t and t of the last row */
    Real *maps;            /* [3][chunk][line]: a, b, c of (a v + b) / (c v + 1) */
    Real *w, *t;           /* t may be null */
    int64_t pitch, across; /* between rows and between lines, of k and t */
    int64_t wide_pitch, wide_across; /* the same of w and of the factors */
    int64_t first;                   /* node of row 0 */
    int64_t from, to;                /* lines that are solved */
    int64_t lines;
    int32_t rows, chunks;
    int32_t blocks;    /* of a line */
    int32_t staggered; /* groups that begin one after the other, see delay_cycles */
    Real half_ratio;
    LineEnd<Real> end[2];

    __device__ __forceinline__ int64_t node(int64_t row, int64_t line) const
    {
        return (first + row) * pitch + line * across;
    }
    /* The same in w and in the factors. */
    __device__ __forceinline__ int64_t place(int64_t row, int64_t line) const
    {
        return (first + row) * wide_pitch + line * wide_across;
    }
    /* k of the face after a row */
    __device__ __forceinline__ Real face(int64_t row, int64_t line) const
    {
        const Real a = k[node(row, line)], b = k[node(row + 1, line)];

        return half_ratio * (2 * a * b * reciprocal(a + b));
    }
    /* k of the face beyond an end */
    __device__ __forceinline__ Real outer_face(int e, int64_t line) const
    {
        return end[e].is_flux ? end[e].exchange : face(e == 0 ? -1 : rows - 1, line);
    }
    __device__ __forceinline__ Real thickness(int e) const
    {
        return end[e].is_flux ? Real(0.5) : Real(1);
    }
    /* What enters through an end whose node has the value w. */
    __device__ __forceinline__ Real load(int e, int64_t line, Real value) const
    {
        const Real given = end[e].given.at(line), k_outer = outer[e * lines + line];

        return end[e].is_flux ? fma(-k_outer, value, Real(0.5) * given)
                              : k_outer * (given - value);
    }
    /* q of a row with sigma = 1 + v and k of the face after it; v becomes that of the next row. */
    __device__ __forceinline__ Real factor_of(Real k_after, Real &v) const
    {
        const Real sigma = v + 1, inverse = reciprocal(sigma + k_after);
        const Real u = k_after * inverse;

        v = sigma * u;
        return k_after <= sigma ? u : -(sigma * inverse);
    }
    /* The same of the last row: its q, and its numbers. */
    __device__ __forceinline__ Real factor_of_last(Real k_after, Real v,
                                                   int64_t line) const
    {
        const Real inverse = reciprocal(v + thickness(1) + k_after);

        last[line] = (v + 1) * inverse;
        last[lines + line] = inverse;
        return Real(0);
    }
};

/* The map of each chunk from sigma - 1 of its first row to that of the next chunk, a fraction
 * of two linear functions. */
template <typename Real, int ROWS> struct MapChunks {
    Lines<Real> of;

    __device__ __forceinline__ void operator()(int64_t i) const
    {
        const int64_t chunk = of.pitch == 1 ? i % of.chunks : i / of.lines;
        const int64_t line = of.pitch == 1 ? i / of.chunks : i % of.lines;
        const int64_t begin = chunk * ROWS, at = chunk * of.lines + line;
        const int64_t all = static_cast<int64_t>(of.chunks) * of.lines;
        Real a = 1, b = 0, c = 0; /* (a v + b) / (c v + 1) */

#pragma unroll 1
        for (int64_t row = begin; row < min(begin + ROWS, int64_t(of.rows) - 1); row++) {
            const Real k = of.face(row, line);
            const Real p = a + c, q = b + 1;
            const Real scale = reciprocal(q + k);

            a = k * p * scale;
            b = k * q * scale;
            c = fma(k, c, p) * scale;
        }
        of.maps[at] = a;
        of.maps[all + at] = b;
        of.maps[2 * all + at] = c;
    }
};

/* The starts of the chunks of a line. */
template <typename Real> struct StartChunks {
    Lines<Real> of;

    __device__ __forceinline__ void operator()(int64_t line) const
    {
        const int64_t all = static_cast<int64_t>(of.chunks) * of.lines;
        const Real first = of.outer_face(0, line);
        Real v = of.thickness(0) + first - 1;

        of.outer[line] = first;
        of.outer[of.lines + line] = of.outer_face(1, line);
#pragma unroll 8
        for (int32_t chunk = 0; chunk < of.chunks; chunk++) {
            const int64_t at = static_cast<int64_t>(chunk) * of.lines + line;
            const Real a = __ldg(of.maps + at), b = __ldg(of.maps + all + at);
            const Real c = __ldg(of.maps + 2 * all + at);

            of.starts[at] = v;
            v = fma(a, v, b) * reciprocal(fma(c, v, Real(1)));
        }
    }
};

/* The factors of the chunks. */
template <typename Real, int ROWS> struct FactorChunks {
    Lines<Real> of;

    __device__ __forceinline__ void operator()(int64_t i) const
    {
        const int64_t chunk = of.pitch == 1 ? i % of.chunks : i / of.lines;
        const int64_t line = of.pitch == 1 ? i / of.chunks : i % of.lines;
        const int64_t begin = chunk * ROWS;
        Real v = of.starts[chunk * of.lines + line];

#pragma unroll 1
        for (int64_t row = begin; row < min(begin + ROWS, int64_t(of.rows)); row++) {
            of.factor[of.place(row, line)] =
                row == of.rows - 1 ? of.factor_of_last(of.outer[of.lines + line], v, line)
                                   : of.factor_of(of.face(row, line), v);
        }
    }
};

/* The same for a line along x by a block, a chunk of each thread. Shared memory: k, later the
 * factors, then [4][thread]: the maps and the starts. */
template <typename Real, int ROWS>
__global__ void
__launch_bounds__(most_threads) factor_line_kernel(const __grid_constant__ Lines<Real> s)
{
    extern __shared__ __align__(128) unsigned char shared[];
    const int32_t thread = static_cast<int32_t>(threadIdx.x);
    const int32_t threads = static_cast<int32_t>(blockDim.x);
    const int32_t nodes = static_cast<int32_t>(s.across), words = nodes;
    const int64_t line = blockIdx.x;
    Real *const k = reinterpret_cast<Real *>(shared), *const map = k + words;
    const int32_t begin = thread * ROWS, first = static_cast<int32_t>(s.first);
    const int32_t end = min(begin + ROWS, s.rows);
    const auto face = [&](int32_t row) {
        const Real a = k[first + row], b = k[first + row + 1];

        return s.half_ratio * (2 * a * b * reciprocal(a + b));
    };
    Real a = 1, b = 0, c = 0, of_face[ROWS]; /* (a v + b) / (c v + 1) */

    wait_for_last_kernel();
    for (int32_t i = thread; i < nodes; i += threads) {
        copy_async<sizeof(Real)>(k + i, s.k + line * s.across + i);
    }
    copies_done();
    __syncthreads();

    const Real outer[2] = {s.end[0].is_flux ? s.end[0].exchange : face(-1),
                           s.end[1].is_flux ? s.end[1].exchange : face(s.rows - 1)};

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        of_face[i] = 0;
        if (begin + i < s.rows - 1) {
            const Real at = face(begin + i), p = a + c, q = b + 1;
            const Real scale = reciprocal(q + at);

            of_face[i] = at;
            a = at * p * scale;
            b = at * q * scale;
            c = fma(at, c, p) * scale;
        }
    }
    map[thread] = a;
    map[threads + thread] = b;
    map[2 * threads + thread] = c;
    __syncthreads();
    if (thread == 0) {
        Real v = s.thickness(0) + outer[0] - 1;

        for (int32_t chunk = 0; chunk < s.chunks; chunk++) {
            map[3 * threads + chunk] = v;
            v = fma(map[chunk], v, map[threads + chunk]) *
                reciprocal(fma(map[2 * threads + chunk], v, Real(1)));
        }
        s.outer[line] = outer[0];
        s.outer[s.lines + line] = outer[1];
    }
    __syncthreads();
    if (thread < s.chunks) {
        Real v = map[3 * threads + thread];

        s.starts[static_cast<int64_t>(thread) * s.lines + line] = v;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (begin + i < end) {
                k[first + begin + i] = begin + i == s.rows - 1
                                           ? s.factor_of_last(outer[1], v, line)
                                           : s.factor_of(of_face[i], v);
            }
        }
    }
    __syncthreads();
    for (int32_t i = thread; i < nodes; i += threads) {
        s.factor[line * s.wide_across + i] = k[i];
    }
}

/* The rows of a chunk. `w` and `factor` are those of row 0 of the chunk in shared memory, with
 * PITCH between rows; `ahead` is the difference from its last row to the next one. */
template <typename Real, int ROWS, int PITCH> struct FactoredChunk {
    Real *const w;
    Real *const factor; /* q, later 1 - u */
    const Real ahead;
    Real c[ROWS]; /* first 1/sigma in row 0, and 1 - 1/sigma in the others */

    /* What the rows add to v e that enters the next chunk. */
    __device__ __forceinline__ Pair<Real> reduce(Real start)
    {
        Real sigma = 1 + start, v = 0, e = 0, before = w[0];
        Pair<Real> all = Pair<Real>::identity();

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const Real q = factor[i * PITCH], inverse = fast_reciprocal(sigma);
            const Real size = fabs(q), other = 1 - size;
            const Real u = signbit(q) ? other : size;

            factor[i * PITCH] = signbit(q) ? size : other;
            c[i] = i > 0 ? 1 - inverse : inverse;
            if (i > 0) {
                const Real value = w[i * PITCH];

                e = fma(c[i], e, c[i] * (before - value));
                before = value;
            }
            all.decay *= u;
            v = u * sigma;
            sigma = fma(u, sigma, Real(1));
        }
        all.sum = v * (e - ahead);
        return all;
    }

    /* What the rows add to d of the first one, from what enters. ENDS: row `last` may be the last
     * one of the line, which has another thickness and a load. */
    template <bool ENDS>
    __device__ __forceinline__ Real eliminate(Real entering, int32_t last, Real scale,
                                              Real load)
    {
        Real z = entering, value = w[0], sum = 0, decay = 1;

#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const Real next = i < ROWS - 1 ? w[(i + 1) * PITCH] : Real(0);
            const Real step = i < ROWS - 1 ? next - value : ahead;
            const Real rest = factor[i * PITCH];
            Real e = c[i] * z;

            if (ENDS && i == last) {
                e = fma(scale, e, load);
            }
            z = e - step;
            c[i] = fma(rest, z, step);
            sum = fma(decay, c[i], sum);
            decay = fma(-rest, decay, decay);
            value = next;
        }
        return sum;
    }

    /* put(i, d) for all rows in descending order, from d of the row after the chunk. */
    template <typename Put>
    __device__ __forceinline__ void substitute(Real after, const Put &put) const
    {
        Real d = after;

#pragma unroll
        for (int i = ROWS - 1; i >= 0; i--) {
            d += fma(-factor[i * PITCH], d, c[i]);
            put(i, d);
        }
    }
};

/* Copy w and q of a block to shared memory; q leaves the second-level cache first. */
template <typename Real, int AXIS, bool IS_LONG>
__device__ __forceinline__ void
fetch(const Lines<Real> &s, int64_t first_line, int32_t first_row, int32_t rows, Real *w,
      Real *factor, bool by_vectors, Arrivals &arrivals)
{
    constexpr int lines = Shape<Real, AXIS, IS_LONG>::lines;
    constexpr int vector = 16 / static_cast<int>(sizeof(Real));
    const int32_t thread = static_cast<int32_t>(threadIdx.x);
    const int32_t threads = static_cast<int32_t>(blockDim.x);
    const uint64_t policy = evict_first_policy();

    if constexpr (AXIS == 0) {
        const int64_t from = first_line * s.wide_across;
        const int32_t nodes = static_cast<int32_t>(s.across);

        if (by_vectors) {
            const Run<Real> run(skew_of(s.w + from), nodes);

            if (thread == 0) {
                arrivals.expect(2 * run.bytes());
                if (run.vectors > 0) {
                    copy_bulk(factor + run.head, s.factor + from + run.head, run.bytes(),
                              arrivals, policy);
                }
                run.load(w, s.w + from, arrivals);
                run.for_rest([&](int k) {
                    copy_async<sizeof(Real)>(factor + k, s.factor + from + k);
                    copy_async<sizeof(Real)>(w + k, s.w + from + k);
                });
                copies_done();
            }
            __syncthreads();
            arrivals.wait(0);
            return;
        }
#pragma unroll 4
        for (int32_t k = thread; k < nodes; k += threads) {
            copy_async_of_line_or_clear<sizeof(Real)>(factor + k, s.factor + from + k,
                                                      true, policy);
            copy_async<sizeof(Real)>(w + k, s.w + from + k);
        }
    }
    else {
        const int32_t width = by_vectors ? lines / vector : lines;
        const int32_t lane = thread % width * (by_vectors ? vector : 1);
        const bool is_there = first_line + lane < s.lines;
        const int32_t step = threads / width;
        int32_t row = thread / width;
        int64_t from = s.place(first_row + row, first_line + lane);
        int32_t to = row * lines + lane;

#pragma unroll 4
        for (; row < rows; row += step) {
            const bool has = is_there && first_row + row < s.rows;

            if (by_vectors) {
                copy_async_of_line_or_clear<16>(factor + to, s.factor + from, has,
                                                policy);
                copy_async_or_clear<16>(w + to, s.w + from, has);
            }
            else {
                copy_async_of_line_or_clear<sizeof(Real)>(factor + to, s.factor + from,
                                                          has, policy);
                copy_async_or_clear<sizeof(Real)>(w + to, s.w + from, has);
            }
            from += step * s.wide_pitch;
            to += step * lines;
        }
    }
    copies_done();
    __syncthreads();
}

/* Words of shared memory for w of a block, and as many for q. */
template <typename Real, int AXIS, bool IS_LONG>
__host__ __device__ __forceinline__ int32_t
words_of_block(int32_t threads, int64_t nodes)
{
    using S = Shape<Real, AXIS, IS_LONG>;
    const int32_t words =
        AXIS == 0 ? static_cast<int32_t>(nodes) + S::rows : threads * S::rows;
    const int32_t least = threads * S::rows + 1;

    return ((AXIS == 0 && words < least ? least : words) + 3 + 3) / 4 * 4;
}

template <typename Real, int AXIS, bool IS_LONG, bool BY_VECTORS, int THREADS, int BLOCKS>
__global__ void
__launch_bounds__(THREADS, BLOCKS) factor_kernel(const __grid_constant__ Lines<Real> s)
{
    using S = Shape<Real, AXIS, IS_LONG>;
    constexpr int rows = S::rows, lines = S::lines;
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ Arrivals arrivals[3];
    const int32_t thread = static_cast<int32_t>(threadIdx.x);
    const int32_t threads = static_cast<int32_t>(blockDim.x);
    const int32_t words = words_of_block<Real, AXIS, IS_LONG>(threads, s.across);
    const int32_t blocks = AXIS == 0 ? 1 : s.blocks;
    const int32_t rank = AXIS == 0 ? 0 : static_cast<int32_t>(rank_in_cluster());
    const int64_t group = AXIS == 0 ? blockIdx.x : blockIdx.x / blocks;
    const int32_t chunks = threads / lines; /* of the block */
    const int32_t lane = thread % lines, chunk = thread / lines;
    const int64_t first_line = AXIS == 0 ? s.from + group : group * lines;
    /* in bulk, a line has the distance from 16 bytes that it has in memory */
    const int32_t skew =
        AXIS == 0 && BY_VECTORS ? skew_of(s.w + first_line * s.wide_across) : 0;
    Real *const memory = reinterpret_cast<Real *>(shared);
    Real *const w = memory + skew, *const factor = memory + words + skew;
    Pair<Real> *const sums = reinterpret_cast<Pair<Real> *>(memory + 2 * words);
    Pair<Real> *const of_blocks = sums + (AXIS == 0 ? threads / 16 : threads);
    Real *const back = reinterpret_cast<Real *>(of_blocks + 2 * lines * blocks);
    const auto exchange = [&]() {
        if constexpr (AXIS == 0) {
            return LinePairs<Real>{sums};
        }
        else {
            return ColumnPairs<Real, lines>{sums,   back, of_blocks, arrivals, chunk,
                                            chunks, lane, rank,      blocks};
        }
    }();
    const int64_t line = min(first_line + lane, s.lines - 1);
    const int32_t first_row = rank * chunks * rows;
    const int32_t row = first_row + chunk * rows; /* of this chunk */
    const int32_t last = s.rows - 1 - row;        /* the last row, if it is here */
    const bool has_last = last >= 0 && last < rows;

    if (thread == 0) {
        arrivals[0].init(1);
        arrivals[1].init(1);
        arrivals[2].init(1);
        if constexpr (AXIS == 1) {
            exchange.expect();
        }
    }
    __syncthreads();
    if (AXIS == 1 && blocks > 1) {
        cluster_arrive();
    }
    wait_for_last_kernel();
    if (AXIS == 1 && group < s.staggered) {
        const long long until = clock64() + delay_cycles * (group % 3);

        while (clock64() < until) {
            __nanosleep(100);
        }
    }

    const int32_t global_chunk = rank * chunks + chunk;
    const Real start = global_chunk < s.chunks
                           ? s.starts[static_cast<int64_t>(global_chunk) * s.lines + line]
                           : Real(0);
    const bool has_next = row + rows < s.rows;
    Real beyond = 0,
         of_last[2] = {0, 0}; /* w of the next block, and numbers of the last row */

    if (AXIS == 1 && has_next && chunk == chunks - 1) {
        beyond = s.w[s.place(row + rows, line)];
    }
    if (has_last) {
        of_last[0] = s.last[line];
        of_last[1] = s.last[s.lines + line];
    }
    fetch<Real, AXIS, IS_LONG>(s, first_line, first_row, chunks * rows, w, factor,
                               BY_VECTORS, arrivals[2]);

    const int32_t place = AXIS == 0 ? static_cast<int32_t>(s.first) + chunk * rows
                                    : chunk * rows * lines + lane;

    if (last < rows - 1) {
        const Real value = has_last ? w[place + last * lines] : Real(0);

#pragma unroll 1
        for (int32_t i = max(last + 1, 0); i < rows; i++) {
            w[place + i * lines] = value;
            factor[place + i * lines] = Real(-0.0);
        }
    }
    if (has_next && (AXIS == 0 || chunk < chunks - 1)) {
        beyond = w[place + rows * lines];
    }
    FactoredChunk<Real, rows, lines> own = {
        w + place,
        factor + place,
        has_next ? beyond - w[place + (rows - 1) * lines] : Real(0),
        {}};
    const Pair<Real> ahead = own.reduce(start);
    const Real load = row == 0 ? s.load(0, line, own.w[0]) : Real(0);

    if (AXIS == 1 && blocks > 1) {
        cluster_wait();
    }
    const Real joined =
        exchange.template entering<true>(row == 0 ? ahead.with(load) : ahead);

    const Real entering = row == 0 ? load : joined;
    const Real sum =
        __any_sync(all_lanes, has_last)
            ? own.template eliminate<true>(
                  entering, last, of_last[0],
                  has_last ? of_last[1] * s.load(1, line, own.w[last * lines]) : Real(0))
            : own.template eliminate<false>(entering, last, Real(0), Real(0));
    const Real after = exchange.template entering<false>({sum, ahead.decay});

    if constexpr (AXIS == 0) {
        own.substitute(after,
                       [&](int i, Real d) { own.w[i] = fma(Real(2), d, own.w[i]); });

        const int64_t to = first_line * s.wide_across;
        const int32_t nodes = static_cast<int32_t>(s.across);

        if (BY_VECTORS) {
            bulk_fence();
            __syncthreads();
            if (thread == 0) {
                const Run<Real> run(skew, nodes);

                run.store(s.w + to, w);
                commit_stores();
                run.for_rest([&](int k) { s.w[to + k] = w[k]; });
                stores_read();
            }
            return;
        }
        __syncthreads();
#pragma unroll 4
        for (int32_t k = thread; k < nodes; k += threads) {
            s.w[to + k] = w[k];
        }
    }
    else {
        const int64_t at = s.node(row, line);
        Real *to = s.w + s.place(row, line) + (rows - 1) * s.wide_pitch;
        const bool is_there = first_line + lane < s.lines;

        own.substitute(after, [&](int i, Real d) {
            if (is_there && i <= last) {
                const Real value = own.w[i * lines];

                *to = fma(Real(2), d, value);
                if (s.t != nullptr) {
                    s.t[at + i * s.pitch] = value + d;
                }
            }
            to -= s.wide_pitch;
        });
    }
}

template <typename Real, int AXIS, bool IS_LONG>
size_t
shared_bytes(const ps_heat *h)
{
    using S = Shape<Real, AXIS, IS_LONG>;
    const int64_t rows = heat_unknowns(h, AXIS).count();
    const int32_t threads = S::threads(rows);
    const int32_t words =
        words_of_block<Real, AXIS, IS_LONG>(threads, heat_pitch(h, 1 - AXIS));
    const int32_t sums =
        AXIS == 0 ? threads / 16 : threads + 2 * S::lines * S::blocks(rows);

    return 2 * words * sizeof(Real) + sums * sizeof(Pair<Real>) +
           (AXIS == 0 ? 0 : threads * sizeof(Real));
}

template <typename Real, int AXIS, bool IS_LONG>
bool
fits(const ps_heat *h, const ps_cuda_device *device)
{
    using S = Shape<Real, AXIS, IS_LONG>;
    const int64_t rows = heat_unknowns(h, AXIS).count();

    return S::threads(rows) <= most_threads &&
           S::blocks(rows) <= device->cluster_blocks &&
           shared_bytes<Real, AXIS, IS_LONG>(h) + 1024 <=
               static_cast<size_t>(device->shared_bytes);
}

/* call(axis, is_long) of the shape for the lines along an axis, whether it fits or not. */
template <typename Real, typename Call>
auto
with_shape(const ps_heat *h, int axis, const Call &call)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const std::integral_constant<int, 0> x;
    const std::integral_constant<int, 1> y;

    if (axis == 0) {
        return device == nullptr || fits<Real, 0, false>(h, device)
                   ? call(x, std::false_type())
                   : call(x, std::true_type());
    }
    const int64_t rows = heat_unknowns(h, axis).count();
    const bool has_more_blocks = Shape<Real, 1, false>::threads(rows) > usual_threads &&
                                 Shape<Real, 1, true>::threads(rows) <= usual_threads;
    const bool is_long = device != nullptr && fits<Real, 1, true>(h, device) &&
                         (has_more_blocks || !fits<Real, 1, false>(h, device));

    return is_long ? call(y, std::true_type()) : call(y, std::false_type());
}

/* Bytes of q. */
size_t
factor_bytes(const ps_heat *h, int64_t pitch)
{
    return ps_cuda_padded(
        static_cast<size_t>(pitch * h->nodes[1] * ps_dtype_size(h->dtype)));
}

/* The lines along an axis, without the parts of the factors. */
template <typename Real>
Lines<Real>
lines_of(const ps_heat *h, int64_t pitch, int axis, int64_t step, void *factors)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const HeatRange along = heat_unknowns(h, axis), over = heat_unknowns(h, 1 - axis);
    Lines<Real> s = {};

    s.k = static_cast<const Real *>(h->k);
    s.w = static_cast<Real *>(h->w);
    s.pitch = heat_pitch(h, axis);
    s.across = heat_pitch(h, 1 - axis);
    s.wide_pitch = axis == 0 ? 1 : pitch;
    s.wide_across = axis == 0 ? pitch : 1;
    s.first = along.begin;
    s.from = over.begin;
    s.to = over.end;
    s.lines = h->nodes[1 - axis];
    s.rows = static_cast<int32_t>(along.count());
    with_shape<Real>(h, axis, [&](auto which, auto is_long) {
        using S = Shape<Real, which.value, is_long.value>;

        s.chunks = static_cast<int32_t>(S::chunks(s.rows));
        s.blocks = S::blocks(s.rows);
        return PS_OK;
    });
    const int64_t clusters = device != nullptr ? 3 * device->processors / s.blocks : 0;

    s.staggered = axis == 1 && sizeof(Real) == 8 &&
                          s.lines > clusters * Shape<Real, 1, false>::lines
                      ? static_cast<int32_t>(clusters)
                      : 0;
    s.half_ratio = static_cast<Real>(h->ratio[axis] / 2);
    for (int e = 0; e < 2; e++) {
        const ps_heat_side &side = h->side[axis][e];

        s.end[e] = {heat_values<Real>(side.sweep, step, 0),
                    static_cast<Real>(side.exchange / 4), side.kind == PS_HEAT_FLUX};
    }
    const int64_t of_chunks = s.chunks * s.lines;

    s.factor = static_cast<Real *>(factors);
    s.starts = s.factor + factor_bytes(h, pitch) / sizeof(Real);
    s.outer = s.starts + of_chunks;
    s.last = s.outer + 2 * s.lines;
    s.maps = s.last + 2 * s.lines;
    return s;
}

/* Whether rows are copied by 16 bytes, along x in bulk. */
bool
has_vectors(const ps_heat *h, int64_t pitch, int axis)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    return reinterpret_cast<uintptr_t>(h->w) % 16 == 0 &&
           (axis == 1 ? pitch * ps_dtype_size(h->dtype) % 16 == 0
                      : device != nullptr && device->capability >= 90);
}

template <typename Real> using FactorKernel = void (*)(const Lines<Real>);

template <typename Real, int AXIS, bool IS_LONG, bool BY_VECTORS>
FactorKernel<Real>
kernel_of(int threads)
{
    if (threads > usual_threads) {
        return factor_kernel<Real, AXIS, IS_LONG, BY_VECTORS, most_threads, 1>;
    }
    return factor_kernel<Real, AXIS, IS_LONG, BY_VECTORS, usual_threads, 3>;
}

template <typename Real, int AXIS, bool IS_LONG>
ps_status
launch_sweep(const ps_heat *h, const Lines<Real> &s, cudaStream_t stream)
{
    using S = Shape<Real, AXIS, IS_LONG>;
    const int threads = S::threads(s.rows);
    const FactorKernel<Real> kernel =
        has_vectors(h, AXIS == 0 ? s.wide_across : s.wide_pitch, AXIS)
            ? kernel_of<Real, AXIS, IS_LONG, true>(threads)
            : kernel_of<Real, AXIS, IS_LONG, false>(threads);
    const int64_t groups =
        AXIS == 0 ? s.to - s.from : divided_up(s.lines, int64_t(S::lines));
    const cudaError_t error = allow_shared(kernel);
    Launch launch(groups * s.blocks, threads, shared_bytes<Real, AXIS, IS_LONG>(h),
                  stream);

    if (error != cudaSuccess) {
        return ps_cuda_status(error);
    }
    if (AXIS == 1) {
        launch.in_clusters(s.blocks);
    }
    return launch.closely().run(kernel, s);
}

} // namespace

bool
heat_factor_fits(const ps_heat *h, int axis)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr || h->k == nullptr || h->axes != 2 || h->scheme != PS_HEAT_PR ||
        h->side[axis][0].kind == PS_HEAT_PERIODIC ||
        (axis == 0 && h->source.data != nullptr)) {
        return false;
    }
    return with_real(h->dtype, [&](auto zero) {
        using Real = decltype(zero);

        return with_shape<Real>(h, axis, [&](auto which, auto is_long) {
            return fits<Real, which.value, is_long.value>(h, device);
        });
    });
}

size_t
heat_factor_bytes(const ps_heat *h, int64_t pitch, int axis)
{
    size_t bytes = 0;

    (void)with_real(h->dtype, [&](auto zero) {
        using Real = decltype(zero);
        const Lines<Real> s = lines_of<Real>(h, pitch, axis, 0, nullptr);
        const size_t words = static_cast<size_t>(4 * (int64_t(s.chunks) + 1) * s.lines);

        bytes = factor_bytes(h, pitch) + ps_cuda_padded(words * sizeof(Real));
        return true;
    });
    return bytes;
}

template <typename Real>
ps_status
heat_factor_begin(const ps_heat *h, int64_t pitch, int axis, void *factors,
                  cudaStream_t stream)
{
    const Lines<Real> s = lines_of<Real>(h, pitch, axis, 0, factors);
    const int64_t chunks = s.chunks * s.lines;

    if (axis == 0) {
        return with_shape<Real>(h, axis, [&](auto which, auto is_long) {
            using S = Shape<Real, which.value, is_long.value>;
            const auto kernel = factor_line_kernel<Real, S::rows>;
            const int threads = S::threads(s.rows);
            const cudaError_t error = allow_shared(kernel);

            return error != cudaSuccess
                       ? ps_cuda_status(error)
                       : launch_closely(kernel, s.lines, threads,
                                        (s.across + 4 * threads) * sizeof(Real), stream,
                                        s);
        });
    }
    return with_shape<Real>(h, axis, [&](auto which, auto is_long) {
        constexpr int rows = Shape<Real, which.value, is_long.value>::rows;
        ps_status status = for_elements<128>(chunks, stream, MapChunks<Real, rows>{s});

        if (status == PS_OK) {
            status = for_elements<32>(s.lines, stream, StartChunks<Real>{s});
        }
        return status == PS_OK
                   ? for_elements<128>(chunks, stream, FactorChunks<Real, rows>{s})
                   : status;
    });
}

template <typename Real>
ps_status
heat_factor_sweep(const ps_heat *h, int64_t pitch, int axis, int64_t step,
                  ps_cuda_heat_sink sink, const void *factors, cudaStream_t stream)
{
    Lines<Real> s = lines_of<Real>(h, pitch, axis, step, const_cast<void *>(factors));

    s.t = sink == HEAT_EXTRAPOLATE_BOTH ? static_cast<Real *>(h->t) : nullptr;
    return with_shape<Real>(h, axis, [&](auto which, auto is_long) {
        return launch_sweep<Real, which.value, is_long.value>(h, s, stream);
    });
}

template ps_status heat_factor_begin<float>(const ps_heat *, int64_t, int, void *,
                                            cudaStream_t);
template ps_status heat_factor_begin<double>(const ps_heat *, int64_t, int, void *,
                                             cudaStream_t);
template ps_status heat_factor_sweep<float>(const ps_heat *, int64_t, int, int64_t,
                                            ps_cuda_heat_sink, const void *,
                                            cudaStream_t);
template ps_status heat_factor_sweep<double>(const ps_heat *, int64_t, int, int64_t,
                                             ps_cuda_heat_sink, const void *,
                                             cudaStream_t);

} // namespace pysolvers::heat
