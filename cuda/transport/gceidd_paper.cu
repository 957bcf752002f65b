/* gceidd_paper.cu - a sweep in the four kernels of the paper.
 *
 * The predictions are written to v. The coefficients and right-hand sides a, b, c, d of
 * all other rows are written to arrays, with the sum of a row in place of its diagonal.
 * One thread per strip solves them by the Thomas algorithm, between the values of v
 * before and after the strip. Then the interfaces are corrected. Neighbouring threads
 * have neighbouring lines along y, where accesses are coalesced, and neighbouring strips
 * along x, where they are not. For that case the strategy 3S has three stages, whose
 * limits are those of the call: up to a number of strips that the caches can serve,
 * nothing is changed; with more strips, unused shared memory is allocated to limit the
 * number of resident blocks and thereby the demand for cache; short strips exchange
 * right-hand sides and solutions through shared memory. The usual limits were measured
 * on an H200 over grids of 128^2 to 2048^2 cells and 1 to 512 strips, where 3S is then
 * never slower than naive. 14 words per node and sweep.
 *
 * Foadaddini et al. 2022, where the elimination has diagonals. Its rounding errors grow
 * in proportion to dt a/h^2: in float32 a step of 1538 x 71 nodes was within 7e-6 to
 * 2e-5 of float64 after 40 steps. With sums, for differences from the right-hand sides
 * (eliminated_row()), it is within 2e-7 to 4e-7, with as many words and reciprocals.
 */
#include "runtime/elements.cuh"
#include "transport/gceidd_rows.cuh"

namespace pysolvers::transport {

using namespace runtime;

namespace {

constexpr int block_threads = 128;

enum Stage { NAIVE, STAGE_1, STAGE_2, STAGE_3 };

template <typename Real> struct Arrays {
    Real *a, *b, *c, *d; /* fields */
};

/* Unit number `index` of `count` units per line, and its line. */
struct UnitPlace {
    int32_t unit, line;

    template <typename Real>
    __device__ __forceinline__ UnitPlace(const Sweep<Real> &s, int32_t count,
                                         int64_t index)
    {
        const bool lines_first = s.along != 1;
        const int32_t inner = lines_first ? s.lines : count;
        const int64_t behind = index / inner;
        const int32_t fast = static_cast<int32_t>(index - behind * inner);

        unit = lines_first ? static_cast<int32_t>(behind) : fast;
        line = lines_first ? fast : static_cast<int32_t>(behind);
    }

    /* Whether the line of the unit is swept, in a step before which no value has grown. */
    template <typename Real>
    __device__ __forceinline__ bool is_solved(const Sweep<Real> &s) const
    {
        return s.is_swept(line) && *s.grown >= s.step;
    }
};

template <typename Real> struct Predict {
    Sweep<Real> s;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        const UnitPlace place(s, s.strips - 1, index);

        if (!place.is_solved(s)) {
            return;
        }
        const int32_t p = s.interface(place.unit + 1), l = place.line;

        s.v[s.node(p, l)] = prediction(s, Field<Real>{s, l}, p, l);
    }
};

/* The first interface at or after node p; the end counts as one. */
template <typename Real>
__device__ __forceinline__ int32_t
next_interface(const Sweep<Real> &s, int32_t p)
{
    const uint64_t over = static_cast<uint64_t>(p) * static_cast<uint64_t>(s.strips);
    const uint32_t cells = static_cast<uint32_t>(s.cells);
    const uint64_t k = over + cells < UINT32_MAX
                           ? divided_up(static_cast<uint32_t>(over), cells)
                           : divided_up(over, cells);

    return s.interface(static_cast<int32_t>(k));
}

/* Row p, which is (a + b + c) V[p] - a V[p-1] - c V[p+1] = d: b is its sum. */
template <typename Real>
__device__ __forceinline__ void
make_row(const Sweep<Real> &s, const Arrays<Real> &to, int32_t p, int32_t l)
{
    const int32_t n = s.cells;
    const int64_t at = s.node(p, l);
    const Flow<Real> before = flow_at(s, p - 1, l), behind = flow_at(s, p, l);
    Real a = before.right, c = behind.left;
    Real d = right_side(s, Field<Real>{s, l}, p, l);

    if (p == 0) {
        d = fma(before.right, 2 * s.h * s.low.at(l), d);
        c += a;
        a = 0;
    }
    else if (p == n) {
        d = fma(behind.left, 2 * s.h * s.high.at(l), d);
        a += c;
        c = 0;
    }
    to.a[at] = a;
    to.b[at] = 1 + divergence(s, p, l);
    to.c[at] = c;
    to.d[at] = d;
}

template <typename Real> struct MakeRows {
    Sweep<Real> s;
    Arrays<Real> to;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        const UnitPlace place(s, s.cells + 1, index);
        const int32_t p = place.unit, l = place.line, n = s.cells;

        if (*s.grown < s.step) {
            return;
        }
        if (!s.is_swept(l)) {
            s.v[s.node(p, l)] = s.unswept(p, l);
        }
        else if ((p == 0 && !s.low.neumann) || (p == n && !s.high.neumann)) {
            const Real v = p == 0 ? s.low.at(l) : s.high.at(l);

            s.v[s.node(p, l)] = v;
            report_growth(s, !s.has(v));
        }
        else if (p == 0 || p == n || next_interface(s, p) != p) {
            make_row(s, to, p, l);
        }
    }
};

/* Rows first to last of a line. */
template <typename Real> struct Rows {
    int32_t first, last;

    __device__ __forceinline__ Rows(const Sweep<Real> &s, int32_t strip)
    {
        first = strip == 0 && s.low.neumann ? 0 : s.interface(strip) + 1;
        last = strip == s.strips - 1 && s.high.neumann ? s.cells
                                                       : s.interface(strip + 1) - 1;
    }
};

/* V of the nodes before and after a strip; at an end of a line with a given derivative
 * there is none, and the flow of the row to it is 0. */
template <typename Real> struct KnownValues {
    Eliminated<Real> before;
    Real after;

    __device__ __forceinline__ KnownValues(const Sweep<Real> &s, const Rows<Real> &strip,
                                           int32_t l)
    {
        before = {};
        if (strip.first > 0) {
            before = {s.v[s.node(strip.first - 1, l)], Real(0), Real(1)};
        }
        after = strip.last < s.cells ? s.v[s.node(strip.last + 1, l)] : Real(0);
    }
};

/* Solve the strip with a, b, c from row 0 on and d at d, in place; distances are
 * `step`. Returns true if some V is out of range. */
template <typename Real>
__device__ __forceinline__ bool
solve_rows(const Sweep<Real> &s, const Arrays<Real> &rows, int32_t count,
           const KnownValues<Real> &known, Real *d, Real *v, int64_t d_step)
{
    const int64_t step = s.along;
    Eliminated<Real> last = known.before;

    for (int32_t k = 0; k < count; k++) {
        const Real sum = rows.b[k * step], z = d[k * d_step];
        const Link<Real> link = eliminated_row(last, rows.a[k * step], rows.c[k * step],
                                               sum, z, fma(-sum, z, z));

        rows.c[k * step] = link.c;
        d[k * d_step] = link.d;
    }
    Real value = known.after;
    bool grown = false;

    for (int32_t k = count - 1; k >= 0; k--) {
        value = fma(rows.c[k * step], value, d[k * d_step]);
        v[k * d_step] = value;
        grown |= !s.has(value);
    }
    return grown;
}

template <typename Real>
__device__ __forceinline__ Arrays<Real>
from_node(const Arrays<Real> &rows, int64_t at)
{
    return {rows.a + at, rows.b + at, rows.c + at, rows.d + at};
}

template <typename Real> struct Thomas {
    Sweep<Real> s;
    Arrays<Real> all;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        const UnitPlace place(s, s.strips, index);

        if (!place.is_solved(s)) {
            return;
        }
        const Rows<Real> strip(s, place.unit);
        const int64_t at = s.node(strip.first, place.line);
        const Arrays<Real> rows = from_node(all, at);

        const bool grown = solve_rows(s, rows, strip.last - strip.first + 1,
                                      KnownValues<Real>(s, strip, place.line), rows.d,
                                      s.v + at, s.along);

        report_growth(s, grown);
    }
};

/* Along x: d and V of the strips of a block in shared memory, at most `longest` cells
 * each, with pitch `pitch`. */
template <typename Real>
__global__ void
__launch_bounds__(block_threads)
    thomas_shared_kernel(const __grid_constant__ Sweep<Real> s,
                         const __grid_constant__ Arrays<Real> all, int32_t longest,
                         int32_t pitch)
{
    extern __shared__ __align__(16) unsigned char shared[];
    Real *const tile = reinterpret_cast<Real *>(shared);
    const int32_t own = static_cast<int32_t>(threadIdx.x);
    const int64_t first = static_cast<int64_t>(blockIdx.x) * block_threads;
    const int32_t line = static_cast<int32_t>(first / s.strips);
    const int32_t skipped =
        static_cast<int32_t>(first - static_cast<int64_t>(line) * s.strips);

    /* move(at, inside): neighbouring threads move neighbouring rows */
    const auto each = [&](const auto &move) {
        for (int32_t k = own; k < block_threads * longest; k += block_threads) {
            const int32_t number = k / longest, i = k - number * longest;
            const int32_t over = (skipped + number) / s.strips, l = line + over;
            const Rows<Real> strip(s, skipped + number - over * s.strips);

            if (l < s.lines && s.is_swept(l) && i <= strip.last - strip.first) {
                move(s.node(strip.first + i, l), number * pitch + i);
            }
        }
    };
    const bool is_there = first + own < static_cast<int64_t>(s.strips) * s.lines;
    const UnitPlace place(s, s.strips, first + own);

    wait_for_last_kernel();
    if (*s.grown < s.step) {
        return;
    }
    each([&](int64_t at, int32_t inside) { tile[inside] = all.d[at]; });
    __syncthreads();
    if (is_there && s.is_swept(place.line)) {
        const Rows<Real> strip(s, place.unit);
        Real *const d = tile + own * pitch;

        solve_rows(s, from_node(all, s.node(strip.first, place.line)),
                   strip.last - strip.first + 1, KnownValues<Real>(s, strip, place.line),
                   d, d, 1);
    }
    __syncthreads();
    each([&](int64_t at, int32_t inside) { s.v[at] = tile[inside]; });
}

template <typename Real> struct Correct {
    Sweep<Real> s;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        const UnitPlace place(s, s.strips - 1, index);

        if (!place.is_solved(s)) {
            return;
        }
        const int64_t step = s.along;
        Real *const v = s.v + s.node(s.interface(place.unit + 1), place.line);

        *v = correction(v[-step], v[-2 * step], v[step], v[2 * step]);
        report_growth(s, !s.has(*v));
    }
};

template <typename Operation>
constexpr auto units_kernel = elements_kernel<block_threads, Operation>;

/* operation(index) for `units` units per line. */
template <typename Real, typename Operation>
ps_status
for_units(const Sweep<Real> &s, int64_t units, cudaStream_t stream,
          const Operation &operation)
{
    return for_elements<block_threads>(units * s.lines, stream, operation);
}

/* Cells of the longest strip along an axis. */
int32_t
longest_strip(const ps_gceidd *g, int axis)
{
    return static_cast<int32_t>(divided_up(g->cells[axis], g->strips[axis]));
}

Stage
stage_of(const ps_gceidd *g, int axis, const ps_cuda_device *device)
{
    const int64_t strips = g->strips[axis] * (g->cells[1 - axis] + 1);

    if (axis == PS_GCEIDD_Y || g->strategy == PS_GCEIDD_STRATEGY_NAIVE) {
        return NAIVE;
    }
    if (strips <= static_cast<int64_t>(g->few_strips) * device->processors) {
        return STAGE_1;
    }
    return longest_strip(g, axis) < g->short_strip ? STAGE_3 : STAGE_2;
}

/* Distance of the strips of a block in shared memory: odd, against bank conflicts. */
int32_t
tile_pitch(const ps_gceidd *g, int axis)
{
    return (longest_strip(g, axis) + 1) | 1;
}

/* Dynamic shared memory of the solves along an axis. */
size_t
solve_bytes(const ps_gceidd *g, int axis, Stage stage)
{
    const size_t real = static_cast<size_t>(ps_dtype_size(g->dtype));

    return stage == STAGE_2 ? static_cast<size_t>(g->throttle)
           : stage == STAGE_3
               ? static_cast<size_t>(block_threads * tile_pitch(g, axis)) * real
               : 0;
}

template <typename Real>
ps_status
solve_strips(const Sweep<Real> &s, const ps_cuda_gceidd_sweep *sweep,
             const Arrays<Real> &rows, cudaStream_t stream)
{
    const ps_gceidd *const g = sweep->g;
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const Stage stage = stage_of(g, sweep->axis, device);
    const size_t bytes = solve_bytes(g, sweep->axis, stage);
    const int32_t longest = longest_strip(g, sweep->axis);

    if (bytes > 0 && (allow_shared(units_kernel<Thomas<Real>>) != cudaSuccess ||
                      allow_shared(thomas_shared_kernel<Real>) != cudaSuccess)) {
        return PS_DEVICE_FAILURE;
    }
    const int64_t count = static_cast<int64_t>(s.strips) * s.lines;
    const int64_t blocks = divided_up(count, block_threads);

    return stage == STAGE_3
               ? launch_closely(thomas_shared_kernel<Real>, blocks, block_threads, bytes,
                                stream, s, rows, s.strips > 1 ? longest : longest + 1,
                                tile_pitch(g, sweep->axis))
               : launch_closely(units_kernel<Thomas<Real>>, blocks, block_threads, bytes,
                                stream, Thomas<Real>{s, rows}, count);
}

/* Resident threads of a multiprocessor over their largest number. */
template <typename Kernel>
double
occupancy_of(Kernel kernel, size_t shared)
{
    int blocks = 0, device = 0, most = 0;
    cudaError_t error = allow_shared(kernel);

    if (error == cudaSuccess) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel,
                                                              block_threads, shared);
    }
    if (error == cudaSuccess) {
        error = cudaGetDevice(&device);
    }
    if (error == cudaSuccess) {
        error =
            cudaDeviceGetAttribute(&most, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    }
    return error == cudaSuccess && most > 0
               ? static_cast<double>(blocks) * block_threads / most
               : 0;
}

template <typename Real>
ps_status
find_occupancy(const ps_gceidd *g, int axis, double *part)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const Stage stage = stage_of(g, axis, device);
    const size_t bytes = solve_bytes(g, axis, stage);

    part[PS_GCEIDD_PREDICT] = occupancy_of(units_kernel<Predict<Real>>, 0);
    part[PS_GCEIDD_ROWS] = occupancy_of(units_kernel<MakeRows<Real>>, 0);
    part[PS_GCEIDD_SOLVE] = stage == STAGE_3
                                ? occupancy_of(thomas_shared_kernel<Real>, bytes)
                                : occupancy_of(units_kernel<Thomas<Real>>, bytes);
    part[PS_GCEIDD_CORRECT] = occupancy_of(units_kernel<Correct<Real>>, 0);
    return PS_OK;
}

template <typename Real>
ps_status
make_part(const ps_cuda_gceidd_sweep *sweep, int part, void *arrays, cudaStream_t stream)
{
    const Sweep<Real> s = sweep_of<Real>(sweep);
    const size_t field = ps_cuda_gceidd_arrays_bytes(sweep->g) / 4;
    char *const base = static_cast<char *>(arrays);
    const Arrays<Real> rows = {reinterpret_cast<Real *>(base),
                               reinterpret_cast<Real *>(base + field),
                               reinterpret_cast<Real *>(base + 2 * field),
                               reinterpret_cast<Real *>(base + 3 * field)};

    switch (part) {
    case PS_GCEIDD_PREDICT:
        return for_units(s, s.strips - 1, stream, Predict<Real>{s});
    case PS_GCEIDD_ROWS:
        return for_units(s, s.cells + 1, stream, MakeRows<Real>{s, rows});
    case PS_GCEIDD_SOLVE:
        return solve_strips(s, sweep, rows, stream);
    default:
        return for_units(s, s.strips - 1, stream, Correct<Real>{s});
    }
}

} // namespace

size_t
ps_cuda_gceidd_arrays_bytes(const ps_gceidd *g)
{
    const int64_t nodes = (g->cells[PS_GCEIDD_X] + 1) * (g->cells[PS_GCEIDD_Y] + 1);

    return 4 * ps_cuda_padded(static_cast<size_t>(nodes * ps_dtype_size(g->dtype)));
}

bool
ps_cuda_gceidd_stages_fit(const ps_gceidd *g)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    return device != nullptr &&
           solve_bytes(g, PS_GCEIDD_X, stage_of(g, PS_GCEIDD_X, device)) <=
               static_cast<size_t>(device->shared_bytes);
}

const char *
ps_cuda_gceidd_stage_name(const ps_gceidd *g)
{
    static const char *const names[] = {"paper, naive", "paper, 3S stage 1",
                                        "paper, 3S stage 2", "paper, 3S stage 3"};
    const ps_cuda_device *const device = ps_cuda_device_get();

    return names[device != nullptr ? stage_of(g, PS_GCEIDD_X, device) : NAIVE];
}

ps_status
ps_cuda_gceidd_occupancy(const ps_gceidd *g, int axis, double *part)
{
    return with_real(g->dtype, [&](auto zero) {
        return find_occupancy<decltype(zero)>(g, axis, part);
    });
}

ps_status
ps_cuda_gceidd_part(const ps_cuda_gceidd_sweep *sweep, ps_gceidd_part part, void *arrays,
                    cudaStream_t stream)
{
    return with_real(sweep->g->dtype, [&](auto zero) {
        return make_part<decltype(zero)>(sweep, part, arrays, stream);
    });
}

} // namespace pysolvers::transport
