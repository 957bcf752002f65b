/* gceidd_lines.cu - a sweep of GCEIDD in one kernel for strips of any length.
 *
 * A block loads a tile of lines (line_tiles.cuh), computes right-hand sides and
 * predictions in shared memory, and solves each line as one system by the partition
 * method, in which the row of an interface is V = prediction. It then corrects the
 * interfaces and stores. The coefficients of a row are computed when it is eliminated.
 * The rows, with sums 1 + q, are in row-sum form (row_sums.cuh): no digits are lost for
 * any dt a/h^2 unless q < -1. A level of the line is taken out, that is, they are solved
 * for V - level, so that a constant keeps its bits.
 */
#include "lines/join/line_tiles.cuh"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"
#include "transport/gceidd_rows.cuh"

namespace pysolvers::transport {

using namespace join;
using namespace runtime;

namespace {

constexpr int batch = 4;

/* Of U at the ends and in the middle of a line the value that is nearest to 0; 0 if the
 * signs differ. */
template <typename Real>
__device__ __forceinline__ Real
level_of(const Sweep<Real> &s, int32_t l)
{
    const Real *const u = s.u;
    const Real a = u[s.node(0, l)], b = u[s.node(s.cells / 2, l)];
    const Real c = u[s.node(s.cells, l)];

    return fmax(fmin(a, fmin(b, c)), Real(0)) + fmin(fmax(a, fmax(b, c)), Real(0));
}

/* Right-hand sides of all nodes between the ends and of those on Neumann sides. */
template <typename Real, int AXIS>
__device__ __forceinline__ void
gather(const Sweep<Real> &s, const LineTiles &t, int32_t first, Real *plane)
{
    const Walk<AXIS> walk(t);
    const int32_t end = t.begin + t.shape.rows;

    for (int line = walk.line; line < walk.end; line++) {
        const int32_t l = first + line;

        for (int p = walk.node; s.is_swept(l) && p < end; p += batch * walk.step) {
            Real right[batch];

#pragma unroll
            for (int k = 0; k < batch; k++) {
                const int at = p + k * walk.step;

                if (at >= t.begin && at < end) {
                    right[k] = right_side(s, Field<Real>{s, l}, at, l);
                }
            }
#pragma unroll
            for (int k = 0; k < batch; k++) {
                const int at = p + k * walk.step;

                if (at >= t.begin && at < end) {
                    plane[slot_of(t, line, at)] = right[k];
                }
            }
        }
    }
}

/* One thread per line and interface, including the ends: the known value there; at the
 * ends less the level. */
template <typename Real>
__device__ __forceinline__ void
store_known(const Sweep<Real> &s, const LineTiles &t, int32_t first, Real *plane)
{
    const int32_t units = t.lines * (s.strips + 1), n = s.cells;

    for (int32_t unit = threadIdx.x; unit < units; unit += t.threads) {
        const int32_t k = unit / t.lines, line = unit - k * t.lines, l = first + line;
        const int32_t p = s.interface(k);
        const int32_t row = p == 0 ? t.begin : p == n ? t.begin + t.shape.rows - 1 : p;

        if (!s.is_swept(l)) {
            continue;
        }
        Real &right = plane[slot_of(t, line, row)];

        if (p == 0) {
            const Real right_flow = flow_at(s, row - 1, l).right;
            const Real given = s.low.at(l);

            right = fma(right_flow,
                        s.low.neumann ? 2 * s.h * given : given - level_of(s, l), right);
        }
        else if (p == n) {
            const Real left_flow = flow_at(s, row, l).left;
            const Real given = s.high.at(l);

            right = fma(left_flow,
                        s.high.neumann ? 2 * s.h * given : given - level_of(s, l), right);
        }
        else {
            right = prediction(s, Field<Real>{s, l}, p, l);
        }
    }
}

/* Rows of a chunk from node `first` on, of line l, in this order, in row-sum form. At an
 * interface the row is V = right-hand side. */
template <typename Real> struct ChunkRows {
    const Sweep<Real> &s;
    const LineTiles &t;
    int32_t first, l;
    const Real *right;
    Real level;
    Flow<Real> before;
    int32_t k, interface; /* the next interface, which may be the end */

    __device__ __forceinline__ void begin()
    {
        const uint32_t cells = static_cast<uint32_t>(s.cells);
        const uint32_t over =
            static_cast<uint32_t>(max(first, 0)) * static_cast<uint32_t>(s.strips);

        k = static_cast<int32_t>(max(divided_up(over, cells), 1u));
        interface = s.interface(k);
        before = flow_at(s, max(first, 0) - 1, l);
    }

    __device__ __forceinline__ Row<BySums<Real>> make(int i)
    {
        const int32_t p = first + i;

        if (i == 0) {
            begin();
        }
        if (p < t.begin) {
            return copy_row<BySums<Real>>();
        }
        if (p == t.begin && i > 0) {
            before = flow_at(s, p - 1, l);
        }
        const Flow<Real> behind = flow_at(s, p, l);
        const Real side = right[i] - level;
        const Row<BySums<Real>> row =
            p == interface && k < s.strips
                ? Row<BySums<Real>>{Real(0), Real(1), Real(0), side}
                : inner(p, behind, side);

        if (p == interface) {
            interface = s.interface(++k);
        }
        before = behind;
        return row;
    }

  private:
    /* The flow from a known value at an end adds to the row sum. */
    __device__ __forceinline__ Row<BySums<Real>>
    inner(int32_t p, const Flow<Real> &behind, Real side) const
    {
        const int32_t last = t.begin + t.shape.rows - 1;
        const Real q = divergence(s, p, l);
        const Real both = before.right + behind.left;
        const Real from_low = p == t.begin && p > 0 ? before.right : Real(0);
        const Real from_high = p == last && p < s.cells ? behind.left : Real(0);
        const Real lower = p == s.cells ? both : p == t.begin ? Real(0) : before.right;
        const Real upper = p == 0 ? both : p == last ? Real(0) : behind.left;

        return {-lower, 1 + q + from_low + from_high, -upper, fma(-q, level, side)};
    }
};

template <typename Real>
__device__ __forceinline__ void
solve(const Sweep<Real> &s, const LineTiles &t, int32_t first, Real *plane)
{
    __shared__ WarpExchange<BySums<Real>> exchange;
    ThreadPlace<chunk_rows> self(t.shape, 0);
    Levels<BySums<Real>, chunk_rows> levels;
    const int chunk = self.warp * t.shape.lanes + self.lane;
    const int32_t l = min(first + self.slot, s.lines - 1);
    const bool idle = self.lane >= t.shape.lanes || !s.is_swept(first + self.slot);
    Real *const word = idle ? plane : plane + self.slot * t.pitch + chunk * chunk_pitch;

    if (idle) {
        self.clear();
    }
    const Real level = level_of(s, l);
    ChunkRows<Real> rows = {s, t, self.start + t.begin, l, word, level, {}, 0, 0};

    levels.eliminate(self, [&](int i) { return rows.make(i); });
    const Ends<BySums<Real>> ends = levels.join_system(t.shape, self, false, exchange);

    levels.chunk.substitute(ends.y_left, ends.y, [&](int i, Real value) {
        if (self.start + i >= 0) {
            word[i] = value + level;
        }
    });
}

template <typename Real>
__device__ __forceinline__ void
correct(const Sweep<Real> &s, const LineTiles &t, int32_t first, Real *plane)
{
    const int32_t units = t.lines * (s.strips - 1);

    for (int32_t unit = threadIdx.x; unit < units; unit += t.threads) {
        const int32_t k = unit / t.lines, line = unit - k * t.lines;
        const int32_t p = s.interface(k + 1);
        const auto v = [&](int32_t away) { return plane[slot_of(t, line, p + away)]; };

        if (s.is_swept(first + line)) {
            plane[slot_of(t, line, p)] = correction(v(-1), v(-2), v(1), v(2));
        }
    }
}

template <typename Real, int AXIS>
__device__ __forceinline__ void
scatter(const Sweep<Real> &s, const LineTiles &t, int32_t first, const Real *plane)
{
    const Walk<AXIS> walk(t);
    bool grown = false;

    for (int line = walk.line; line < walk.end; line++) {
        const int32_t l = first + line;
        const int end = l < s.lines ? t.nodes : 0;

#pragma unroll 4
        for (int p = walk.node; p < end; p += walk.step) {
            const bool is_swept = s.is_swept(l);
            const Real v = !is_swept                     ? s.unswept(p, l)
                           : p < t.begin                 ? s.low.at(l)
                           : p >= t.begin + t.shape.rows ? s.high.at(l)
                                                         : plane[slot_of(t, line, p)];

            s.v[s.node(p, l)] = v;
            grown |= is_swept && !s.has(v);
        }
    }
    report_growth(s, grown);
}

template <typename Real, int AXIS>
__global__ void
__launch_bounds__(largest_block, 1) lines_kernel(const __grid_constant__ Sweep<Real> s,
                                                 const __grid_constant__ LineTiles t)
{
    extern __shared__ __align__(16) unsigned char shared[];
    Real *const plane = reinterpret_cast<Real *>(shared);
    const int32_t first = static_cast<int32_t>(blockIdx.x) * t.lines;

    wait_for_last_kernel();
    if (*s.grown < s.step) {
        return;
    }
    gather<Real, AXIS>(s, t, first, plane);
    __syncthreads();
    store_known(s, t, first, plane);
    __syncthreads();
    let_next_kernel_in();
    solve(s, t, first, plane);
    __syncthreads();
    correct(s, t, first, plane);
    __syncthreads();
    scatter<Real, AXIS>(s, t, first, plane);
}

int
first_row(const ps_gceidd *g, int axis)
{
    const int low = axis == PS_GCEIDD_X ? PS_GCEIDD_WEST : PS_GCEIDD_SOUTH;

    return g->edge[low].kind == PS_GCEIDD_NEUMANN ? 0 : 1;
}

int64_t
rows_of(const ps_gceidd *g, int axis)
{
    const int high = axis == PS_GCEIDD_X ? PS_GCEIDD_EAST : PS_GCEIDD_NORTH;

    return g->cells[axis] - first_row(g, axis) +
           (g->edge[high].kind == PS_GCEIDD_NEUMANN ? 1 : 0);
}

template <typename Real>
LineTiles
tiles_of(const ps_gceidd *g, int axis, const ps_cuda_device *device)
{
    const int lines = static_cast<int>(g->cells[1 - axis] + 1);
    LineTiles t =
        line_tiles(static_cast<int>(rows_of(g, axis)), lines, axis, 1,
                   static_cast<int>(sizeof(Real)), line_tile_bytes<BySums<Real>>(device));

    t.nodes = static_cast<int>(g->cells[axis] + 1);
    t.begin = first_row(g, axis);
    return t;
}

template <typename Real>
const void *
kernel_along(int axis)
{
    return axis == PS_GCEIDD_X
               ? reinterpret_cast<const void *>(&lines_kernel<Real, PS_GCEIDD_X>)
               : reinterpret_cast<const void *>(&lines_kernel<Real, PS_GCEIDD_Y>);
}

template <typename Real>
ps_status
launch_lines(const ps_cuda_gceidd_sweep *sweep, const ps_cuda_device *device,
             cudaStream_t stream)
{
    const LineTiles t = tiles_of<Real>(sweep->g, sweep->axis, device);

    return launch_closely(sweep->axis == PS_GCEIDD_X ? lines_kernel<Real, PS_GCEIDD_X>
                                                     : lines_kernel<Real, PS_GCEIDD_Y>,
                          t.blocks, t.threads, t.shared, stream, sweep_of<Real>(sweep),
                          t);
}

} // namespace

bool
ps_cuda_gceidd_lines_fit(const ps_gceidd *g, int axis)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr || rows_of(g, axis) > largest_block * chunk_rows) {
        return false;
    }
    return with_real(g->dtype, [&](auto zero) {
        using Real = decltype(zero);

        return tiles_of<Real>(g, axis, device).shared <=
               line_tile_bytes<BySums<Real>>(device);
    });
}

ps_status
ps_cuda_gceidd_prepare_lines(const ps_gceidd *g, int axis)
{
    return with_real(g->dtype, [&](auto zero) {
        return ps_cuda_status(allow_shared(kernel_along<decltype(zero)>(axis)));
    });
}

ps_status
ps_cuda_gceidd_lines(const ps_cuda_gceidd_sweep *sweep, cudaStream_t stream)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    return with_real(sweep->g->dtype, [&](auto zero) {
        return launch_lines<decltype(zero)>(sweep, device, stream);
    });
}

} // namespace pysolvers::transport
