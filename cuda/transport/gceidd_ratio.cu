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
 * A block has one strip of `width` neighbouring lines, a thread a piece of 16 rows in
 * registers. Pieces are joined by the sums that they publish in shared memory, with the
 * multipliers alpha^16 and beta^16 of the line. Of the two blocks at an interface the one
 * that ends last corrects it. 2 words and 8 operations per node, no division. A constant
 * keeps its bits. Rounding errors grow by 1/(1 - alpha), which is below 10 in the steps
 * that predictions allow; MU has no such limit and uses gceidd_lines.cu.
 *
 * The partition method (gceidd_lines.cu) takes three numbers of each row in registers and a
 * reciprocal: a step of 8 strips of 1024^2, 2048^2 and 3000^2 nodes takes 65, 263 and 700 us
 * with it, and 27, 73 and 169 us here (float64, H200).
 */
#include "device/number.cuh"
#include "runtime/math.cuh"
#include "transport/gceidd_strips_kernels.cuh"

namespace pysolvers::transport {

using namespace runtime;

namespace {

constexpr int piece_rows = 16, most_pieces = 48, most_threads = 384;

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
static_assert(RATIO_END <= PS_CUDA_GCEIDD_TABLE_ROWS, "a table has room for the ratios");

/* The division into blocks: strips of 2^shift lines, `groups` of these. */
struct RatioTiles {
    int32_t groups, pieces, shift;
    int32_t pitch;     /* of a line in shared memory; odd */
    int32_t *arrivals; /* [interface - 1][group]: blocks that have stored their strip */

    __host__ __device__ __forceinline__ int32_t width() const
    {
        return 1 << shift;
    }
};

/* The exchange of the pieces, [piece][line], in shared memory. */
template <typename Real> struct RatioExchange {
    Real *known;     /* [2]: the values before and after the strip */
    Real *down, *up; /* the sums of the pieces for W and for Z */
    Real *tile;      /* of lines along the contiguous axis */

    static __host__ __device__ __forceinline__ int32_t rows(int32_t pieces)
    {
        return 2 + 2 * pieces;
    }
    __device__ __forceinline__ RatioExchange(unsigned char *shared, const RatioTiles &t)
    {
        known = reinterpret_cast<Real *>(shared);
        down = known + 2 * t.width();
        up = down + t.pieces * t.width();
        tile = up + t.pieces * t.width();
    }
};

/* The piece of a thread: rows k = pads .. piece_rows - 1 are nodes first + k, between the
 * nodes begin and end of the strip; only piece 0 has pads. */
struct PiecePlace {
    int32_t strip, group, piece, line;
    int32_t begin, end, first, pads;

    template <typename Real>
    __device__ __forceinline__ PiecePlace(const Sweep<Real> &s, const RatioTiles &t,
                                          int32_t block)
    {
        strip = block / t.groups;
        group = block - strip * t.groups;
        piece = static_cast<int32_t>(threadIdx.x) >> t.shift;
        line = static_cast<int32_t>(threadIdx.x) & (t.width() - 1);
        begin = s.interface(strip);
        end = s.interface(strip + 1);
        first = end - (t.pieces - piece) * piece_rows;
        pads = max(begin + 1 - first, 0);
    }
};

/* make(k) for the rows of a piece, with BACK in reverse order. */
template <bool BACK = false, typename Make>
__device__ __forceinline__ void
each_of_piece(int32_t pads, const Make &make)
{
#pragma unroll
    for (int j = 0; j < piece_rows; j++) {
        const int k = BACK ? piece_rows - 1 - j : j;

        if (k >= pads) {
            make(k);
        }
    }
}

/* The rows of a thread: the right-hand sides less the level, then W, then V. Numbers of the
 * line are loaded where they are used: registers are for the rows. */
template <typename Real> struct Piece {
    Real x[piece_rows];

    /* From the right-hand sides to V. store_known() stores the known values. */
    template <typename Known>
    __device__ __forceinline__ void solve(const PiecePlace &self, const RatioTiles &t,
                                          const RatioExchange<Real> &exchange,
                                          const LineNumbers<Real> &line,
                                          const Real *level, const Known &store_known)
    {
        const int32_t width = t.width();
        const Real alpha = line.at(RATIO_ALPHA), beta = line.at(RATIO_BETA);
        Real power = 1; /* alpha^(16 (piece - 1)) */

        {
            Real sum = 0;

            each_of_piece(self.pads, [&](int k) { sum = fma(alpha, sum, x[k]); });
            exchange.down[self.piece * width + self.line] = sum;
        }
        store_known();
        __syncthreads();
        {
            const Real by = line.at(RATIO_ALPHA_PIECE);
            const Real *down = exchange.down + self.line;
            Real w = 0;

            for (int32_t k = 0; k < self.piece; k++, down += width) {
                w = fma(by, w, *down);
                power *= k > 0 ? by : Real(1);
            }
            each_of_piece(self.pads, [&](int k) {
                w = fma(alpha, w, x[k]);
                x[k] = w;
            });
        }
        {
            Real sum = 0;

            each_of_piece<true>(self.pads, [&](int k) { sum = fma(beta, sum, x[k]); });
            exchange.up[self.piece * width + self.line] = sum;
        }
        __syncthreads();

        Real z = behind(self, t, exchange, line, *level, alpha, beta, power);

        each_of_piece(self.pads, [&](int k) {
            x[k] += power;
            power *= alpha;
        });
        const Real scale = line.at(RATIO_SCALE), base = *level;

        each_of_piece<true>(self.pads, [&](int k) {
            z = fma(beta, z, x[k]);
            x[k] = fma(scale, z, base);
        });
    }

  private:
    /* Z of the row after the piece; `power` becomes what is to be added to W of its first
     * row. */
    __device__ __forceinline__ Real behind(const PiecePlace &self, const RatioTiles &t,
                                           const RatioExchange<Real> &exchange,
                                           const LineNumbers<Real> &line, Real level,
                                           Real alpha, Real beta, Real &power) const
    {
        const Real gamma = line.at(RATIO_GAMMA);
        const Real alpha_piece = line.at(RATIO_ALPHA_PIECE);
        const Real beta_piece = line.at(RATIO_BETA_PIECE);
        const int32_t width = t.width(), last = t.pieces - 1;
        /* from the known value before the strip to the first row of piece 1 */
        const int32_t front = self.end - last * piece_rows - self.begin;
        const Real *up = exchange.up + last * width + self.line;
        Real z = gamma * (exchange.known[width + self.line] - level);
        Real own = z, product = 1, reach = 1; /* (alpha beta)^(rows behind) */

        for (int32_t k = last; k > 0; k--, up -= width) {
            if (k == self.piece) {
                own = z;
                reach = product;
            }
            z = fma(beta_piece, z, *up);
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
        z = fma(beta_front, z, beta * *up);
        product *= alpha_front * beta_front;

        const Real before = gamma * (exchange.known[self.line] - level);
        const Real missing = (before - z) * fast_reciprocal(1 - product);
        /* alpha^t of the first row of the piece, and of the row after it */
        const Real here = self.piece == 0 ? alpha : alpha_front * power;
        const Real next = self.piece == 0 ? alpha_front : here * alpha_piece;

        power = missing * (1 - alpha * beta) * here;
        return fma(missing * next, 1 - reach, own);
    }
};

/* The sources times dt/2. */
template <typename Real>
__device__ __forceinline__ void
add_sources(const Sweep<Real> &s, const PiecePlace &self, int32_t l,
            Real (&x)[piece_rows])
{
#pragma unroll 1
    for (int q = 0; q < s.terms; q++) {
        each_of_piece(self.pads, [&](int k) {
            x[k] = fma(s.factor[q], s.source[q].at(self.first + k, l), x[k]);
        });
    }
}

/* The known value at an interface or an end of a line. */
template <typename Real>
__device__ __forceinline__ Real
known_value(const Sweep<Real> &s, int32_t p, int32_t l, const LineNumbers<Real> &line)
{
    if (p == 0 || p == s.cells) {
        return p == 0 ? s.low.at(l) : s.high.at(l);
    }
    const Field<Real> values = {s, l};
    Real u[3];

    values.get(p - 1, u);
    return steady_prediction(s, values, p, l, u, line_step(line));
}

/* Load the right-hand sides and solve; `values` provides U. */
template <typename Real, bool FEET, typename Values>
__device__ __forceinline__ void
solve_piece(const Sweep<Real> &s, const RatioTiles &t, const PiecePlace &self, int32_t l,
            const Values &values, const Real *table, const RatioExchange<Real> &exchange,
            Piece<Real> &piece)
{
    const LineNumbers<Real> line = {table + l, s.table_pitch};
    const Real *const from = FEET ? nullptr : values.row(self.first);
    const int64_t step = values.step();
    const Real *const level = s.u + s.node(self.begin, l);

    each_of_piece(self.pads, [&](int k) {
        piece.x[k] = FEET ? foot_value(s, values, self.first + k, l)
                          : values.load_once(from + step * k);
    });
    add_sources(s, self, l, piece.x);
    {
        const Real base = *level;

        each_of_piece(self.pads, [&](int k) { piece.x[k] -= base; });
    }
    piece.solve(self, t, exchange, line, level, [&] {
        if (self.piece == 0) {
            exchange.known[self.line] = known_value(s, self.begin, l, line);
        }
        else if (self.piece == t.pieces - 1) {
            exchange.known[t.width() + self.line] = known_value(s, self.end, l, line);
        }
    });
}

/* Store the known values at the ends of a line. */
template <typename Real>
__device__ __forceinline__ bool
store_ends(const Sweep<Real> &s, const RatioTiles &t, const PiecePlace &self, int32_t l,
           const RatioExchange<Real> &exchange)
{
    const bool is_first = self.piece == 0 && self.begin == 0;
    const bool is_last = self.piece == t.pieces - 1 && self.end == s.cells;

    if (!is_first && !is_last) {
        return false;
    }
    const int32_t p = is_first ? 0 : s.cells;
    const Real value = !s.is_swept(l)
                           ? s.unswept(p, l)
                           : exchange.known[(is_first ? 0 : t.width()) + self.line];

    s.v[s.node(p, l)] = value;
    return s.is_swept(l) && !s.has(value);
}

/* When V of the strip is stored: correct the interfaces whose other strip is stored, too.
 * Returns whether a value is out of range. */
template <typename Real>
__device__ __forceinline__ bool
correct_interfaces(const Sweep<Real> &s, const RatioTiles &t, const PiecePlace &self)
{
    __shared__ bool is_due[2]; /* before and after the strip */
    const int32_t thread = static_cast<int32_t>(threadIdx.x);
    bool grown = false;

    __threadfence();
    __syncthreads();
    if (thread < 2) {
        const int32_t interface = self.strip + thread;

        is_due[thread] = false;
        if (interface > 0 && interface < s.strips) {
            int32_t *const arrived = t.arrivals + (interface - 1) * t.groups + self.group;

            is_due[thread] = atomicAdd(arrived, 1) == 1;
            if (is_due[thread]) {
                *arrived = 0;
                __threadfence();
            }
        }
    }
    __syncthreads();

    const int32_t side = self.piece, l = self.group * t.width() + self.line;

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

/* Neighbouring lines are contiguous in memory: loads go directly to registers. */
template <typename Real, bool FEET>
__device__ __forceinline__ void
sweep_across(const Sweep<Real> &s, const RatioTiles &t, const PiecePlace &self,
             const Real *table, const RatioExchange<Real> &exchange)
{
    const int32_t place = self.group * t.width() + self.line;
    const int32_t l = min(place, s.lines - 1);
    const Field<Real> values = {s, l};
    Piece<Real> piece;
    bool grown = false;

    solve_piece<Real, FEET>(s, t, self, l, values, table, exchange, piece);
    let_next_kernel_in();
    if (place < s.lines) {
        Real *to = s.v + s.node(self.first, l);

        if (s.is_swept(l)) {
            each_of_piece(self.pads, [&](int k) {
                grown |= !s.has(piece.x[k]);
                to[static_cast<int64_t>(s.along) * k] = piece.x[k];
            });
        }
        else {
#pragma unroll 1
            for (int32_t k = self.pads; k < piece_rows; k++) {
                to[static_cast<int64_t>(s.along) * k] = s.unswept(self.first + k, l);
            }
        }
        grown |= store_ends(s, t, self, l, exchange);
    }
    grown |= correct_interfaces(s, t, self);
    report_growth(s, grown);
}

/* move(inside, node, line) for the nodes of a strip in the tile; neighbouring threads have
 * neighbouring nodes. */
template <typename Real, typename Move>
__device__ __forceinline__ void
each_of_tile(const Sweep<Real> &s, const RatioTiles &t, const PiecePlace &self,
             Real *tile, const Move &move)
{
    const int32_t lane = static_cast<int32_t>(threadIdx.x) % warp_lanes;
    const int32_t warps = static_cast<int32_t>(blockDim.x) / warp_lanes;
    const int32_t first = self.group * t.width();
    const int32_t lines = min(t.width(), s.lines - first);
    const int32_t rows = self.end - self.begin - 1;

#pragma unroll 1
    for (int32_t i = static_cast<int32_t>(threadIdx.x) / warp_lanes; i < lines;
         i += warps) {
#pragma unroll 4
        for (int32_t k = lane; k < rows; k += warp_lanes) {
            move(tile + i * t.pitch + k, self.begin + 1 + k, first + i);
        }
    }
}

/* Lines are contiguous in memory: strips are transposed in shared memory. */
template <typename Real, bool FEET>
__device__ __forceinline__ void
sweep_along(const Sweep<Real> &s, const RatioTiles &t, const PiecePlace &self,
            const Real *table, const RatioExchange<Real> &exchange)
{
    const int32_t place = self.group * t.width() + self.line;
    const int32_t l = min(place, s.lines - 1);
    Real *const own = exchange.tile + (l - self.group * t.width()) * t.pitch;
    const TileLine<Real> values = {s, own, l, self.begin + 1, self.end - 1};
    Piece<Real> piece;

    each_of_tile(s, t, self, exchange.tile, [&](Real *inside, int32_t p, int32_t line) {
        copy_async<sizeof(Real)>(inside, s.u + s.node(p, line));
    });
    copies_done();
    __syncthreads();
    solve_piece<Real, FEET>(s, t, self, l, values, table, exchange, piece);
    let_next_kernel_in();
    if (place < s.lines) {
        Real *const to = own + (self.first - self.begin - 1);

        each_of_piece(self.pads, [&](int k) { to[k] = piece.x[k]; });
        (void)store_ends(s, t, self, l, exchange);
    }
    __syncthreads();
    each_of_tile(
        s, t, self, exchange.tile, [&](const Real *inside, int32_t p, int32_t line) {
            s.v[s.node(p, line)] = s.is_swept(line) ? *inside : s.unswept(p, line);
        });
    (void)correct_interfaces(s, t, self);
}

template <typename Real, int AXIS, bool FEET>
__global__ void
__launch_bounds__(most_threads, 2)
    ratio_kernel(const __grid_constant__ Sweep<Real> s,
                 const __grid_constant__ RatioTiles t, const Real *table)
{
    extern __shared__ __align__(16) unsigned char shared[];
    const RatioExchange<Real> exchange(shared, t);
    const PiecePlace self(s, t, static_cast<int32_t>(blockIdx.x));

    wait_for_last_kernel();
    if (*s.grown < s.step) {
        return;
    }
    if (AXIS == PS_GCEIDD_X) {
        sweep_along<Real, FEET>(s, t, self, table, exchange);
    }
    else {
        sweep_across<Real, FEET>(s, t, self, table, exchange);
    }
}

/* The table of a line, from that of its predictions. */
template <typename Real> struct RatioTable {
    StripTable<Real> common;

    __device__ __forceinline__ void operator()(int64_t line) const
    {
        const Flow<Real> f = flow_at(common.s, 0, static_cast<int32_t>(line));
        const Real both = f.right + f.left, apart = f.right - f.left;
        const Real root = sqrt(fma(apart, apart, fma(Real(2), both, Real(1))));
        const Real gamma = Real(0.5) * (1 + both + root), scale = 1 / gamma;
        Real alpha = f.right * scale, beta = f.left * scale;

        common(line);
        common.put(RATIO_GAMMA, line, gamma);
        common.put(RATIO_SCALE, line, scale);
        common.put(RATIO_ALPHA, line, alpha);
        common.put(RATIO_BETA, line, beta);
        for (int reach = 1; reach < piece_rows; reach *= 2) {
            alpha *= alpha;
            beta *= beta;
        }
        common.put(RATIO_ALPHA_PIECE, line, alpha);
        common.put(RATIO_BETA_PIECE, line, beta);
    }
};

int32_t
pieces_of(const ps_gceidd *g, int axis)
{
    return static_cast<int32_t>(
        divided_up(ps_cuda_gceidd_longest(g, axis) - 1, piece_rows));
}

RatioTiles
ratio_tiles(const ps_gceidd *g, int axis, int32_t *arrivals)
{
    RatioTiles t = {};

    t.pieces = pieces_of(g, axis);
    for (t.shift = 5; t.pieces << t.shift > most_threads; t.shift--) {
    }
    t.groups =
        static_cast<int32_t>(divided_up(g->cells[1 - axis] + 1, int64_t(t.width())));
    t.pitch = static_cast<int32_t>(ps_cuda_gceidd_longest(g, axis)) | 1;
    t.arrivals = arrivals;
    return t;
}

template <typename Real>
size_t
ratio_shared_bytes(const RatioTiles &t, int axis)
{
    const int32_t rows = RatioExchange<Real>::rows(t.pieces);

    return static_cast<size_t>(t.width()) * (rows + (axis == PS_GCEIDD_X ? t.pitch : 0)) *
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
           ps_cuda_gceidd_longest(g, axis) <= piece_rows * most_pieces + 1 &&
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
            RatioTable<Real>{StripTable<Real>{s, 0, static_cast<Real *>(table)}});
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

        return launch_closely(ratio_kernel_of<Real>(g, axis), t.groups * g->strips[axis],
                              t.pieces * t.width(), ratio_shared_bytes<Real>(t, axis),
                              stream, sweep_of<Real>(sweep), t,
                              static_cast<const Real *>(table));
    });
}

} // namespace pysolvers::transport
