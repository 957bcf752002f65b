/* gceidd_ratio.cu - a sweep of GCEIDD in one kernel for long strips of lines with constant
 * coefficients.
 *
 * With the flows R to the right and L to the left, the matrix of a strip is, but for its
 * ends, the product of two recurrences of first order,
 *
 *   -R V[p-1] + (1 + R + L) V[p] - L V[p+1] = gamma (1 - alpha S-) (1 - beta S+) V,
 *   gamma = (1 + R + L + sqrt((1 + R + L)^2 - 4 R L))/2,   alpha = R/gamma,   beta = L/gamma,
 *
 * where S- and S+ take the value of the node before and after. For z = gamma (V - level),
 * with m rows, row t = 1 .. m, from W[0] = 0,
 *
 *   W[t] = alpha W[t-1] + rhs[t] - level      Z[t] = beta Z[t+1] + W[t]
 *
 * from the value after the strip down. The value before the strip is then Z[0] = beta Z[1]
 * instead of the known one. The homogeneous solution
 *
 *   (alpha^t - alpha^t (alpha beta)^(m+1-t)) / (1 - (alpha beta)^(m+1))
 *
 * times the difference is added, to W and at the ends of the pieces, before the last pass.
 *
 * A thread has a piece of 16 or 17 rows in registers. Pieces are pairs (join/pair.cuh) of the sums
 * that they publish in shared memory and the powers of alpha and beta of the line, joined in order. Along x a block has
 * whole lines in shared memory and corrects their interfaces. Along y it has one strip of
 * neighbouring lines: the strips of a line are a cluster, whose blocks send V of the first two rows
 * of a strip to that of the strip before it, which corrects the interface; of more than 8 strips
 * the block at an interface that ends last corrects it. 2 words and 8 operations per node, no
 * division. A constant keeps its bits. Rounding errors grow by 1/(1 - alpha), which is below 10 in
 * the steps that predictions allow; MU has no such limit and uses gceidd_lines.cu. gamma is
 * 1/((1 - alpha) (1 - beta)) of the rounded alpha and beta: the sum of a row is 1 up to one rounding
 * error. With gamma of the formula above it differed by some, the same ones in each step: in float32
 * 1538 x 71 nodes were within 1e-5 of float64 after 40 steps, and now within 2e-6.
 *
 * The partition method (gceidd_lines.cu) takes three numbers of each row in registers and a
 * reciprocal: a step of 8 strips of 1024^2, 2048^2 and 3000^2 nodes takes 65, 263 and 700 us
 * with it, and 22, 63 and 147 us here (float64, H200); 27, 73 and 169 us if blocks have strips of
 * lines along x too and count their arrivals at interfaces in global memory. Rows in shared memory,
 * with 48 registers in place of 80, take 29, 79 and 158 us, with 64 registers 24, 69 and 152.
 */
#include <algorithm>

#include "device/cluster.cuh"
#include "device/number.cuh"
#include "lines/join/pair.cuh"
#include "runtime/math.cuh"
#include "transport/gceidd_strips_kernels.cuh"

namespace pysolvers::transport {

using namespace join;
using namespace runtime;

namespace {

constexpr int usual_threads = 384, usual_threads_x = 256, most_pieces = 48,
              most_threads = 768, most_cluster = 8;

/* Rows of a piece. Along x they are odd in number: those of neighbouring threads lie in different
 * banks. */
__host__ __device__ constexpr int
rows_of_piece(int axis)
{
    return axis == PS_GCEIDD_X ? 17 : 16;
}

/* The rows of the table after those of a strip's predictions: gamma and its inverse, alpha
 * and beta, and their 16th powers. */
enum {
    RATIO_GAMMA = LINE_INVERSE,
    RATIO_SCALE,
    RATIO_ALPHA,
    RATIO_BETA,
    RATIO_ALPHA_PIECE,
    RATIO_BETA_PIECE,
    RATIO_END
};
static_assert(int{RATIO_END} <= int{PS_CUDA_GCEIDD_TABLE_ROWS},
              "a table has room for the ratios");

/* The division into blocks: along y strips of 2^shift lines, along x all strips of `lines`
 * lines. */
struct RatioTiles {
    int32_t groups, pieces, shift, lines, strips;
    int32_t pitch;     /* of a line in shared memory */
    bool is_cluster;   /* the strips of a line */
    int32_t *arrivals; /* [interface - 1][group]: blocks that have stored their strip */

    /* strips of a block */
    template <int AXIS> __host__ __device__ __forceinline__ int32_t width() const
    {
        return AXIS == PS_GCEIDD_X ? lines * strips : 1 << shift;
    }
};

/* What the pieces exchange, [piece][line], in shared memory. */
template <typename Real> struct RatioArrays {
    Real *known;     /* [2]: the values before and after the strip */
    Real *down, *up; /* the sums of the pieces for W and for Z */
    Real *numbers;   /* [RATIO_END]: the table of the lines */
    Real *tile;      /* of lines along the contiguous axis */

    Real *edge; /* [2]: V of the first rows of the next strip, from another block */
    int32_t width;

    static __host__ __device__ __forceinline__ int32_t rows(int32_t pieces)
    {
        return 2 + 2 * pieces + RATIO_END + 2;
    }
    __device__ __forceinline__ RatioArrays(unsigned char *shared, int32_t pieces,
                                           int32_t strips)
    {
        width = strips;
        known = reinterpret_cast<Real *>(shared);
        down = known + 2 * width;
        up = down + pieces * width;
        numbers = up + pieces * width;
        edge = numbers + RATIO_END * width;
        tile = edge + 2 * width;
    }
};

/* The piece of a thread: rows k = pads .. ROWS - 1 are nodes first + k, between the nodes begin
 * and end of the strip; only piece 0 has pads. `slot`: the strip in the block. */
template <int AXIS> struct PiecePlace {
    static constexpr int rows = rows_of_piece(AXIS);
    int32_t strip, group, piece, slot, line, lines;
    int32_t begin, end, first, pads;
    bool is_whole; /* no piece of the warp has pads */

    template <typename Real>
    __device__ __forceinline__ PiecePlace(const Sweep<Real> &s, const RatioTiles &t,
                                          int32_t block)
    {
        const int32_t thread = static_cast<int32_t>(threadIdx.x);

        if (AXIS == PS_GCEIDD_X) {
            slot = thread / t.pieces;
            piece = thread - slot * t.pieces;
            line = slot / t.strips;
            strip = slot - line * t.strips;
            group = block;
            lines = t.lines;
        }
        else {
            if (t.is_cluster) {
                group = block / t.strips;
                strip = block - group * t.strips;
            }
            else {
                strip = block / t.groups;
                group = block - strip * t.groups;
            }
            piece = thread >> t.shift;
            lines = 1 << t.shift;
            slot = line = thread & (lines - 1);
        }
        begin = s.interface(strip);
        end = s.interface(strip + 1);
        first = end - (t.pieces - piece) * rows;
        pads = max(begin + 1 - first, 0);
        is_whole = __any_sync(__activemask(), pads > 0) == 0;
    }
};

/* make(k) for the rows of a piece, with BACK in reverse order. All pieces of a warp have the same code:
 * along x most warps have pieces with pads and pieces without. */
template <bool BACK = false, int AXIS, typename Make>
__device__ __forceinline__ void
each_of_piece(const PiecePlace<AXIS> &self, const Make &make)
{
    constexpr int rows = PiecePlace<AXIS>::rows;

    if (self.is_whole) {
#pragma unroll
        for (int j = 0; j < rows; j++) {
            make(BACK ? rows - 1 - j : j);
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < rows; j++) {
        const int k = BACK ? rows - 1 - j : j;

        if (k >= self.pads) {
            make(k);
        }
    }
}

/* The rows of a thread: the right-hand sides less the level, then W, then V. */
template <typename Real, int AXIS> struct Piece {
    static constexpr int rows = rows_of_piece(AXIS);
    Real x[rows];

    /* From the right-hand sides to V. */
    __device__ __forceinline__ void solve(const PiecePlace<AXIS> &self,
                                          const RatioTiles &t,
                                          const RatioArrays<Real> &exchange, Real level)
    {
        const LineNumbers<Real> line = {exchange.numbers + self.line, self.lines};
        const int32_t width = exchange.width;
        const Real alpha = line.at(RATIO_ALPHA), beta = line.at(RATIO_BETA);
        Real power = 1; /* alpha^(rows (piece - 1)) */

        {
            Real sum = 0;

            each_of_piece(self, [&](int k) { sum = fma(alpha, sum, x[k]); });
            exchange.down[self.piece * width + self.slot] = sum;
        }
        __syncthreads();
        {
            const Real by = line.at(RATIO_ALPHA_PIECE);
            const Real *down = exchange.down + self.slot;
            Real w = 0;

            for (int32_t k = 0; k < self.piece; k++, down += width) {
                w = Pair<Real>{*down, by}.leaving(w);
                power *= k > 0 ? by : Real(1);
            }
            each_of_piece(self, [&](int k) {
                w = fma(alpha, w, x[k]);
                x[k] = w;
            });
        }
        {
            Real sum = 0;

            each_of_piece<true>(self, [&](int k) { sum = fma(beta, sum, x[k]); });
            exchange.up[self.piece * width + self.slot] = sum;
        }
        __syncthreads();

        Real z = behind(self, t, exchange, line, level, alpha, beta, power);

        each_of_piece(self, [&](int k) {
            x[k] += power;
            power *= alpha;
        });
        const Real scale = line.at(RATIO_SCALE);

        each_of_piece<true>(self, [&](int k) {
            z = fma(beta, z, x[k]);
            x[k] = fma(scale, z, level);
        });
    }

  private:
    /* Z of the row after the piece; `power` becomes what is to be added to W of its first
     * row. */
    __device__ __forceinline__ Real behind(const PiecePlace<AXIS> &self,
                                           const RatioTiles &t,
                                           const RatioArrays<Real> &exchange,
                                           const LineNumbers<Real> &line, Real level,
                                           Real alpha, Real beta, Real &power) const
    {
        const Real gamma = line.at(RATIO_GAMMA);
        const Real alpha_piece = line.at(RATIO_ALPHA_PIECE);
        const Real beta_piece = line.at(RATIO_BETA_PIECE);
        const int32_t width = exchange.width, last = t.pieces - 1;
        /* from the known value before the strip to the first row of piece 1 */
        const int32_t front = self.end - last * rows - self.begin;
        const Real *up = exchange.up + last * width + self.slot;
        Real z = gamma * (exchange.known[width + self.slot] - level);
        Real own = z, product = 1, reach = 1; /* (alpha beta)^(rows behind) */

        for (int32_t k = last; k > 0; k--, up -= width) {
            if (k == self.piece) {
                own = z;
                reach = product;
            }
            z = Pair<Real>{*up, beta_piece}.leaving(z);
            product *= alpha_piece * beta_piece;
        }
        if (self.piece == 0) {
            own = z;
            reach = product;
        }
        Real alpha_front = 1, beta_front = 1;

        for (int32_t k = 0; k < front; k++) {
            alpha_front *= alpha;
            beta_front *= beta;
        }
        z = Pair<Real>{beta * *up, beta_front}.leaving(z);
        product *= alpha_front * beta_front;

        const Real before = gamma * (exchange.known[self.slot] - level);
        const Real missing = (before - z) * fast_reciprocal(1 - product);
        /* alpha^t of the first row of the piece, and of the row after it */
        const Real here = self.piece == 0 ? alpha : alpha_front * power;
        const Real next = self.piece == 0 ? alpha_front : here * alpha_piece;

        power = missing * (1 - alpha * beta) * here;
        return fma(missing * next, 1 - reach, own);
    }
};

/* The sources times dt/2. */
template <typename Real, int AXIS>
__device__ __forceinline__ void
add_sources(const Sweep<Real> &s, const PiecePlace<AXIS> &self, int32_t l,
            Piece<Real, AXIS> &piece)
{
#pragma unroll 1
    for (int q = 0; q < s.terms; q++) {
        each_of_piece(self, [&](int k) {
            piece.x[k] = fma(s.factor[q], s.source[q].at(self.first + k, l), piece.x[k]);
        });
    }
}

/* The known value at an interface or an end of a line. */
template <typename Real, typename Values>
__device__ __forceinline__ Real
known_value(const Sweep<Real> &s, const Values &values, int32_t p, int32_t l,
            const LineNumbers<Real> &line)
{
    if (p == 0 || p == s.cells) {
        return p == 0 ? s.low.at(l) : s.high.at(l);
    }
    Real u[3];

    values.get(p - 1, u);
    return steady_prediction(s, values, p, l, u, line_step(line));
}

/* Start the copies of the numbers of the lines. */
template <typename Real, int AXIS>
__device__ __forceinline__ void
fetch_numbers(const Sweep<Real> &s, const PiecePlace<AXIS> &self, const Real *table,
              const RatioArrays<Real> &exchange)
{
    int32_t row = static_cast<int32_t>(threadIdx.x) / self.lines;
    const int32_t line = static_cast<int32_t>(threadIdx.x) - row * self.lines;
    const int32_t step = static_cast<int32_t>(blockDim.x) / self.lines;
    const int32_t l = min(self.group * self.lines + line, s.lines - 1);

#pragma unroll 1
    for (; row < RATIO_END; row += step) {
        if (static_cast<int32_t>(threadIdx.x) < step * self.lines) {
            copy_async<sizeof(Real)>(exchange.numbers + row * self.lines + line,
                                     table + static_cast<int64_t>(row) * s.table_pitch +
                                         l);
        }
    }
}

/* Load the right-hand sides and solve; `values` provides U, `line` the numbers of the line.
 * Returns false if an earlier step has grown. */
template <typename Real, int AXIS, bool FEET, typename Values>
__device__ __forceinline__ bool
solve_piece(const Sweep<Real> &s, const RatioTiles &t, const PiecePlace<AXIS> &self,
            int32_t l, const Values &values, const LineNumbers<Real> &line, Real level,
            const RatioArrays<Real> &exchange, Piece<Real, AXIS> &piece)
{
    const Real *const from = FEET ? nullptr : values.row(self.first);
    const int64_t step = values.step();

    each_of_piece(self, [&](int k) {
        piece.x[k] = FEET ? foot_value(s, values, self.first + k, l)
                          : values.load_once(from + step * k);
    });
    if (self.piece == 0) {
        exchange.known[self.slot] = known_value(s, values, self.begin, l, line);
    }
    else if (self.piece == t.pieces - 1) {
        exchange.known[exchange.width + self.slot] =
            known_value(s, values, self.end, l, line);
    }
    add_sources(s, self, l, piece);
    each_of_piece(self, [&](int k) { piece.x[k] -= level; });
    copies_done();
    if (*s.grown < s.step) {
        return false;
    }
    __syncthreads();
    piece.solve(self, t, exchange, level);
    return true;
}

/* Store V of the two rows at each end of the strip, before the others, and note it. Contains
 * a barrier of the block. Returns, in two threads, the number of strips at their interface
 * that have been stored so before. */
template <typename Real>
__device__ __forceinline__ int32_t
store_edges(const Sweep<Real> &s, const RatioTiles &t,
            const PiecePlace<PS_GCEIDD_Y> &self, const Piece<Real, PS_GCEIDD_Y> &piece)
{
    const int32_t l = self.group * self.lines + self.line;
    const int32_t thread = static_cast<int32_t>(threadIdx.x);
    const int32_t ahead = self.first - self.begin, left = self.end - self.first;

    if (l < s.lines && s.is_swept(l) && (ahead <= 2 || left <= self.rows)) {
        each_of_piece(self, [&](int k) {
            if (ahead + k <= 2 || left - k <= 2) {
                s.v[s.node(self.first + k, l)] = piece.x[k];
            }
        });
        __threadfence();
    }
    __syncthreads();

    const int32_t interface = self.strip + thread;

    if (thread >= 2 || interface <= 0 || interface >= s.strips) {
        return 0;
    }
    __threadfence();
    return atomicAdd(t.arrivals + (interface - 1) * t.groups + self.group, 1);
}

/* Correct the interfaces whose other strip has stored its edge, too. Contains a barrier of
 * the block. Returns whether a value is out of range. */
template <typename Real>
__device__ __forceinline__ bool
correct_interfaces(const Sweep<Real> &s, const RatioTiles &t,
                   const PiecePlace<PS_GCEIDD_Y> &self, int32_t arrived)
{
    __shared__ bool is_due[2]; /* before and after the strip */
    const int32_t thread = static_cast<int32_t>(threadIdx.x);
    const int32_t side = self.piece, l = self.group * self.lines + self.line;
    bool grown = false;

    if (thread < 2) {
        is_due[thread] = arrived == 1;
        if (arrived == 1) {
            t.arrivals[(self.strip + thread - 1) * t.groups + self.group] = 0;
            __threadfence();
        }
    }
    __syncthreads();
    if (side < 2 && is_due[side] && l < s.lines) {
        const int32_t p = side == 0 ? self.begin : self.end;
        const auto v = [&](int32_t away) { return __ldcg(s.v + s.node(p + away, l)); };
        const Real value =
            s.is_swept(l) ? correction(v(-1), v(-2), v(1), v(2)) : s.unswept(p, l);

        s.v[s.node(p, l)] = value;
        grown = s.is_swept(l) && !s.has(value);
    }
    return grown;
}

__device__ __forceinline__ uint32_t
bits_of(float value)
{
    return __float_as_uint(value);
}
__device__ __forceinline__ uint64_t
bits_of(double value)
{
    return static_cast<uint64_t>(__double_as_longlong(value));
}

/* Send V of the first two rows of a strip to the block of the strip before it. */
template <typename Real>
__device__ __forceinline__ void
send_edge(const PiecePlace<PS_GCEIDD_Y> &self, const Piece<Real, PS_GCEIDD_Y> &piece,
          const RatioArrays<Real> &exchange, const Arrivals &arrivals)
{
    const int32_t ahead = self.first - self.begin;

    if (self.strip > 0 && ahead <= 2) {
        const unsigned to = static_cast<unsigned>(self.strip - 1);
        const unsigned counter = address_in_block(&arrivals, to);

        each_of_piece(self, [&](int k) {
            if (ahead + k <= 2) {
                send_word(
                    address_in_block(
                        exchange.edge + (ahead + k - 1) * exchange.width + self.slot, to),
                    bits_of(piece.x[k]), counter);
            }
        });
    }
}

/* Correct the interface after the strip when V of the next one has arrived. Returns whether a
 * value is out of range. */
template <typename Real>
__device__ __forceinline__ bool
correct_after(const Sweep<Real> &s, const RatioTiles &t,
              const PiecePlace<PS_GCEIDD_Y> &self, int32_t l,
              const Piece<Real, PS_GCEIDD_Y> &piece, const RatioArrays<Real> &exchange,
              Arrivals &arrivals)
{
    if (self.piece < t.pieces - 1 || self.strip == s.strips - 1) {
        return false;
    }
    arrivals.wait(0);

    const Real value = s.is_swept(l)
                           ? correction(piece.x[self.rows - 1], piece.x[self.rows - 2],
                                        exchange.edge[self.slot],
                                        exchange.edge[exchange.width + self.slot])
                           : s.unswept(self.end, l);

    if (self.group * self.lines + self.line < s.lines) {
        s.v[s.node(self.end, l)] = value;
        return s.is_swept(l) && !s.has(value);
    }
    return false;
}

/* Neighbouring lines are contiguous in memory: loads go directly to registers. */
template <typename Real, bool FEET>
__device__ __forceinline__ void
sweep_across(const Sweep<Real> &s, const RatioTiles &t, const Real *table,
             unsigned char *shared)
{
    __shared__ Arrivals arrivals;
    const PiecePlace<PS_GCEIDD_Y> self(s, t, static_cast<int32_t>(blockIdx.x));
    const RatioArrays<Real> exchange(shared, t.pieces, self.lines);
    const int32_t place = self.group * self.lines + self.line;
    const int32_t l = min(place, s.lines - 1);
    const Field<Real> values = {s, l};
    Piece<Real, PS_GCEIDD_Y> piece;
    bool grown = false;

    if (t.is_cluster) {
        if (threadIdx.x == 0) {
            arrivals.init(1);
            arrivals.expect(self.strip + 1 < s.strips
                                ? static_cast<uint32_t>(2 * self.lines * sizeof(Real))
                                : 0);
        }
        __syncthreads();
        cluster_arrive();
    }
    wait_for_last_kernel();
    fetch_numbers(s, self, table, exchange);
    const bool is_current = solve_piece<Real, PS_GCEIDD_Y, FEET>(
        s, t, self, l, values, {table + l, s.table_pitch}, s.u[s.node(self.begin, l)],
        exchange, piece);

    if (t.is_cluster) {
        cluster_wait();
    }
    if (!is_current) {
        return;
    }
    let_next_kernel_in();

    int32_t arrived = 0;

    if (t.is_cluster) {
        send_edge(self, piece, exchange, arrivals);
    }
    else {
        arrived = store_edges(s, t, self, piece);
    }
    if (place < s.lines) {
        Real *to = s.v + s.node(self.first, l);

        if (s.is_swept(l)) {
            each_of_piece(self, [&](int k) {
                grown |= !s.has(piece.x[k]);
                to[static_cast<int64_t>(s.along) * k] = piece.x[k];
            });
        }
        else {
#pragma unroll 1
            for (int32_t k = self.pads; k < self.rows; k++) {
                to[static_cast<int64_t>(s.along) * k] = s.unswept(self.first + k, l);
            }
        }

        const bool is_first = self.piece == 0 && self.begin == 0;
        const bool is_last = self.piece == t.pieces - 1 && self.end == s.cells;

        if (is_first || is_last) {
            const int32_t p = is_first ? 0 : s.cells;
            const Real value =
                !s.is_swept(l)
                    ? s.unswept(p, l)
                    : exchange.known[(is_first ? 0 : exchange.width) + self.slot];

            s.v[s.node(p, l)] = value;
            grown |= s.is_swept(l) && !s.has(value);
        }
    }
    grown |= t.is_cluster ? correct_after(s, t, self, l, piece, exchange, arrivals)
                          : correct_interfaces(s, t, self, arrived);
    report_growth(s, grown);
}

/* Lines are contiguous in memory: a block has whole lines in shared memory. */
template <typename Real, bool FEET>
__device__ __forceinline__ void
sweep_along(const Sweep<Real> &s, const RatioTiles &t, const Real *table,
            unsigned char *shared)
{
    const PiecePlace<PS_GCEIDD_X> self(s, t, static_cast<int32_t>(blockIdx.x));
    const RatioArrays<Real> exchange(shared, t.pieces, t.width<PS_GCEIDD_X>());
    const int32_t thread = static_cast<int32_t>(threadIdx.x);
    const int32_t threads = static_cast<int32_t>(blockDim.x);
    const int32_t first = self.group * t.lines, lines = min(t.lines, s.lines - first);
    const int32_t l = min(first + self.line, s.lines - 1);
    Real *const own = exchange.tile + min(self.line, lines - 1) * t.pitch;
    const TileLine<Real> values = {s, own, l, 0, s.cells};
    Piece<Real, PS_GCEIDD_X> piece;

    wait_for_last_kernel();
    for (int32_t i = 0; i < lines; i++) {
        const Real *const from = s.u + s.node(0, first + i);
        Real *const to = exchange.tile + i * t.pitch;

#pragma unroll 4
        for (int32_t p = thread; p <= s.cells; p += threads) {
            copy_async<sizeof(Real)>(to + p, from + p);
        }
    }
    fetch_numbers(s, self, table, exchange);
    copies_done();
    __syncthreads();
    if (!solve_piece<Real, PS_GCEIDD_X, FEET>(s, t, self, l, values,
                                              {exchange.numbers + self.line, t.lines},
                                              own[self.begin], exchange, piece)) {
        return;
    }
    let_next_kernel_in();
    if (self.line < lines) {
        Real *const to = own + self.first;

        each_of_piece(self, [&](int k) { to[k] = piece.x[k]; });
        if (self.piece == 0 && self.begin == 0) {
            own[0] = exchange.known[self.slot];
        }
        if (self.piece == t.pieces - 1 && self.end == s.cells) {
            own[s.cells] = exchange.known[exchange.width + self.slot];
        }
    }
    __syncthreads();
    if (self.piece == 0 && self.strip > 0 && self.line < lines) {
        const Real *const v = own + self.begin;

        own[self.begin] = correction(v[-1], v[-2], v[1], v[2]);
    }
    __syncthreads();
    for (int32_t i = 0; i < lines; i++) {
        const Real *const from = exchange.tile + i * t.pitch;
        Real *const to = s.v + s.node(0, first + i);
        const bool is_swept = s.is_swept(first + i);

#pragma unroll 4
        for (int32_t p = thread; p <= s.cells; p += threads) {
            to[p] = is_swept ? from[p] : s.unswept(p, first + i);
        }
    }
}

template <typename Real, int AXIS, bool FEET>
__global__ void
__launch_bounds__(most_threads, 1)
    ratio_kernel(const __grid_constant__ Sweep<Real> s,
                 const __grid_constant__ RatioTiles t, const Real *table)
{
    extern __shared__ __align__(16) unsigned char shared[];

    if (AXIS == PS_GCEIDD_X) {
        sweep_along<Real, FEET>(s, t, table, shared);
    }
    else {
        sweep_across<Real, FEET>(s, t, table, shared);
    }
}

/* The table of a line, from that of its predictions. */
template <typename Real> struct RatioTable {
    StripTable<Real> common;
    int rows; /* of a piece */

    __device__ __forceinline__ void operator()(int64_t line) const
    {
        const Flow<Real> f = flow_at(common.s, 0, static_cast<int32_t>(line));
        const double right = f.right, left = f.left;
        const double both = right + left, apart = right - left;
        const double root = sqrt(fma(apart, apart, fma(2.0, both, 1.0)));
        const double pivot = 0.5 * (1 + both + root);
        const Real alpha = static_cast<Real>(right / pivot);
        const Real beta = static_cast<Real>(left / pivot);
        /* 1/gamma of the rounded alpha and beta, with which the sum of a row is 1 */
        const double scale =
            (1 - static_cast<double>(alpha)) * (1 - static_cast<double>(beta));

        common(line);
        common.put(RATIO_GAMMA, line, static_cast<Real>(1 / scale));
        common.put(RATIO_SCALE, line, static_cast<Real>(scale));
        common.put(RATIO_ALPHA, line, alpha);
        common.put(RATIO_BETA, line, beta);
        Real of_piece[2] = {1, 1};

        for (int k = 0; k < rows; k++) {
            of_piece[0] *= alpha;
            of_piece[1] *= beta;
        }
        common.put(RATIO_ALPHA_PIECE, line, of_piece[0]);
        common.put(RATIO_BETA_PIECE, line, of_piece[1]);
    }
};

int32_t
pieces_of(const ps_gceidd *g, int axis)
{
    return static_cast<int32_t>(
        divided_up(ps_cuda_gceidd_longest(g, axis) - 1, int64_t(rows_of_piece(axis))));
}

RatioTiles
ratio_tiles(const ps_gceidd *g, int axis, int32_t *arrivals)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    RatioTiles t = {};

    t.pieces = pieces_of(g, axis);
    t.strips = static_cast<int32_t>(g->strips[axis]);
    t.lines = std::max(1, usual_threads_x / (t.pieces * t.strips));
    for (t.shift = 5; t.pieces << t.shift > usual_threads; t.shift--) {
    }
    t.groups = static_cast<int32_t>(divided_up(
        g->cells[1 - axis] + 1, int64_t(axis == PS_GCEIDD_X ? t.lines : 1 << t.shift)));
    t.pitch = static_cast<int32_t>(g->cells[axis] + 1);
    t.is_cluster = axis == PS_GCEIDD_Y && t.strips <= most_cluster && device != nullptr &&
                   device->cluster_blocks >= t.strips;
    t.arrivals = arrivals;
    return t;
}

template <typename Real>
size_t
ratio_shared_bytes(const RatioTiles &t, int axis)
{
    const int32_t rows = RatioArrays<Real>::rows(t.pieces);
    const int32_t width =
        axis == PS_GCEIDD_X ? t.width<PS_GCEIDD_X>() : t.width<PS_GCEIDD_Y>();

    return (static_cast<size_t>(width) * rows +
            (axis == PS_GCEIDD_X ? t.lines * t.pitch : 0)) *
           sizeof(Real);
}

template <typename Real>
using RatioKernel = void (*)(const Sweep<Real>, const RatioTiles, const Real *);

template <typename Real>
RatioKernel<Real>
ratio_kernel_of(const ps_gceidd *g, int axis)
{
    const bool feet = g->scheme == PS_GCEIDD_CFD;

    if (axis == PS_GCEIDD_X) {
        return feet ? ratio_kernel<Real, PS_GCEIDD_X, true>
                    : ratio_kernel<Real, PS_GCEIDD_X, false>;
    }
    return feet ? ratio_kernel<Real, PS_GCEIDD_Y, true>
                : ratio_kernel<Real, PS_GCEIDD_Y, false>;
}

} // namespace

bool
ps_cuda_gceidd_ratio_fits(const ps_gceidd *g, int axis)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    return device != nullptr && g->scheme != PS_GCEIDD_MU && g->strips[axis] > 1 &&
           ps_cuda_gceidd_is_steady(g, axis) && !ps_cuda_gceidd_strips_fit(g, axis) &&
           pieces_of(g, axis) <= most_pieces &&
           (axis == PS_GCEIDD_Y ||
            pieces_of(g, axis) * g->strips[axis] <= most_threads) &&
           with_real(g->dtype, [&](auto zero) {
               const size_t bytes = ratio_shared_bytes<decltype(zero)>(
                   ratio_tiles(g, axis, nullptr), axis);

               return bytes <= static_cast<size_t>(device->shared_bytes);
           });
}

size_t
ps_cuda_gceidd_arrivals_bytes(const ps_gceidd *g, int axis)
{
    return static_cast<size_t>(g->strips[axis] - 1) *
           static_cast<size_t>(ratio_tiles(g, axis, nullptr).groups) * sizeof(int32_t);
}

ps_status
ps_cuda_gceidd_prepare_ratio(const ps_gceidd *g, int axis)
{
    return with_real(g->dtype, [&](auto zero) {
        return ps_cuda_status(allow_shared(ratio_kernel_of<decltype(zero)>(g, axis)));
    });
}

ps_status
ps_cuda_gceidd_tabulate_ratio(const ps_cuda_gceidd_sweep *sweep, void *table,
                              cudaStream_t stream)
{
    return with_real(sweep->g->dtype, [&](auto zero) {
        using Real = decltype(zero);
        const Sweep<Real> s = sweep_of<Real>(sweep);

        return for_elements<4 * warp_lanes>(
            s.lines, stream,
            RatioTable<Real>{StripTable<Real>{s, 0, static_cast<Real *>(table)},
                             rows_of_piece(sweep->axis)});
    });
}

ps_status
ps_cuda_gceidd_ratio(const ps_cuda_gceidd_sweep *sweep, const void *table,
                     cudaStream_t stream)
{
    const ps_gceidd *const g = sweep->g;
    const int axis = sweep->axis;
    const RatioTiles t = ratio_tiles(g, axis, sweep->arrivals);

    return with_real(g->dtype, [&](auto zero) {
        using Real = decltype(zero);

        const bool is_x = axis == PS_GCEIDD_X;
        const int32_t width = is_x ? t.width<PS_GCEIDD_X>() : t.width<PS_GCEIDD_Y>();
        Launch launch(is_x ? t.groups : t.groups * t.strips, t.pieces * width,
                      ratio_shared_bytes<Real>(t, axis), stream);

        if (t.is_cluster) {
            launch.in_clusters(t.strips);
        }
        return launch.closely().run(ratio_kernel_of<Real>(g, axis), sweep_of<Real>(sweep),
                                    t, static_cast<const Real *>(table));
    });
}

} // namespace pysolvers::transport
