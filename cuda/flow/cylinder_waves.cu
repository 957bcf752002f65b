/* cylinder_waves.cu - the lines along x of all waves of psi: wave k solves
 *
 *   -x[i-1] + (r + 1/r) x[i] - x[i+1] = f[i],   i = 1 .. N,   x[0] = x[N+1] = 0,
 *
 * or x[N+1] = x[N-1] at a free outlet, where r + 1/r - 2 is the eigenvalue of wave k and
 * r < 1 its decay from column to column (table PS_TABLE_DECAYS).
 *
 * The operator is (1 - r E^-1) (1 - r E) / r with the shift E to the next column, so that
 * two recurrences of first order give a solution p for other values at the ends,
 *
 *   y[i] = f[i] + r y[i-1],   p[i] = r (y[i] + p[i+1]),   y[0] = p[M+1] = 0,
 *
 * and x = p + a r^i + b r^(N+1-i). Both recurrences are scans: a thread has some
 * neighbouring rows, lanes are joined by shuffles, and warps by shared memory; M >= N is
 * the last row of the last thread. Operations per unknown: 12 and no division; words: one
 * read, and one written in the second of both passes of a step. Stable because r < 1;
 * errors grow as 1/(1 - r), as the inverse of the matrix does. Powers of r are computed
 * before the kernel waits for the last one. Source: Malcolm and Palmer 1974.
 */
#include "device/number.cuh"
#include "flow/cylinder_grid.cuh"
#include "lines/join/pair.cuh"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::flow {

using namespace device;
using namespace runtime;

namespace {

constexpr int largest_block = 512;
/* Rows of a thread: many for large grids, and few for those that would occupy less than a
 * quarter of the threads of the device with `many`. */
constexpr int many = 8, few = 4;

/* The right sides. Block b has wave b + 1. */
template <typename Real> struct WaveLines {
    CylinderGrid<Real> grid;
    const double *decays;
    const Real *waves; /* at the inlet and at the outlet those of psi, if it is known */
    Real over_x;       /* 1/hx^2 */

    /* What is added at the few columns that have more than `waves`. */
    __device__ __forceinline__ Real more(int p, int, int column) const
    {
        Real sum = 0;

        if (column == 1) {
            sum += over_x * waves[p - 1];
        }
        if (column == grid.nx - 2 && column == grid.last) {
            sum += over_x * waves[p + 1];
        }
        return sum;
    }
};

/* Only the columns of the body are kept. */
template <typename Real> struct WavesAtBody : WaveLines<Real> {
    static constexpr bool keeps_all = false;
    double *lines;

    __device__ __forceinline__ void keep(int wave, int column, Real x) const
    {
        const CylinderGrid<Real> &grid = this->grid;

        if (column >= grid.column_0 && column <= grid.column_1) {
            lines[(column - grid.column_0) * grid.ny + wave] = x;
        }
    }
};

/* With the charges on the surface of the body. */
template <typename Real> struct WavesOfPsi : WaveLines<Real> {
    static constexpr bool keeps_all = true;
    const double *body_sines, *charged;
    Real *solution;

    __device__ __forceinline__ Real more(int p, int wave, int column) const
    {
        const CylinderGrid<Real> &grid = this->grid;
        const int width = grid.column_1 - grid.column_0 + 1;
        const int at = column - grid.column_0, ny = grid.ny;

        if (at == 0 || at == width - 1) {
            return static_cast<Real>(charged[(at == 0 ? 0 : ny) + wave]);
        }
        if (at > 0 && at < width - 1) {
            /* The table of sines is scaled for the transform back. */
            const double *const sines = body_sines + wave;
            const double scale = 0.5 * (ny - 1);
            const double low = sines[0];
            const double high = sines[(grid.row_1 - grid.row_0) * ny];

            return static_cast<Real>(scale * (low * charged[2 * ny + at] +
                                              high * charged[2 * ny + width + at]));
        }
        return WaveLines<Real>::more(p, wave, column);
    }
};

/* x^n */
template <typename Real>
__device__ __forceinline__ Real
power(Real x, int n)
{
    Real found = 1;

    for (; n > 0; n /= 2) {
        found *= n % 2 != 0 ? x : Real(1);
        x *= x;
    }
    return found;
}

/* A recurrence from thread to thread, in ascending order or in descending order. */
template <typename Real, int ROWS, bool ASCENDS> struct Recurrence {
    const join::LaneScan<ASCENDS> lanes;
    Real chunk;  /* decay over the rows of a thread */
    Real before; /* over the lanes of the warp before this one */
    Real warp;

    __device__ __forceinline__ explicit Recurrence(Real decay)
        : lanes{static_cast<int>(threadIdx.x) % 32}, chunk(power(decay, ROWS)),
          before(power(chunk, lanes.rank())), warp(power(chunk, 32))
    {
    }

    /* What enters the rows of the thread; `own` leaves them if nothing enters. */
    __device__ __forceinline__ Real entering(Real own, Real *totals) const
    {
        const int warps = static_cast<int>(blockDim.x) / 32;
        const int self = static_cast<int>(threadIdx.x) / 32;
        const int count = ASCENDS ? self : warps - 1 - self; /* of warps before */
        Real factor = chunk, carried = 0;

        own = lanes.leaving(own, [&](int) {
            const Real decay = factor;

            factor *= factor;
            return decay;
        });
        if (lanes.rank() == 31) {
            totals[self] = own;
        }
        __syncthreads(); /* the totals of the warps are written */
        for (int k = 0; k < count; k++) {
            const Real total = totals[ASCENDS ? k : warps - 1 - k];

            carried = join::Pair<Real>{total, warp}.leaving(carried);
        }
        return lanes.entering(own) + before * carried;
    }
};

/* p at the ends, in shared memory. */
template <typename Real> struct Ends {
    Real first, before_last, behind; /* p[1], p[N-1], p[N+1] */
};

/* The factors a and b of the homogeneous solutions. */
template <typename Real> struct Factors {
    Real r, whole, jump, ratio, scale; /* whole = r^(N+1) */
    bool free_outlet;

    __device__ __forceinline__ Factors(Real r, int rows, bool free_outlet)
        : r(r), whole(power(r, rows + 1)), jump(1 / (1 - r * r)), ratio(whole / (r * r)),
          scale(1 / (free_outlet ? 1 + whole * ratio : 1 - whole * whole)),
          free_outlet(free_outlet)
    {
    }

    __device__ __forceinline__ void solve(const Ends<Real> &p, Real &a, Real &b) const
    {
        const Real p_0 = r * p.first;

        if (free_outlet) {
            const Real change = (p.before_last - p.behind) * jump;

            a = -(p_0 + whole * change) * scale;
            b = change + ratio * a;
        }
        else {
            a = (whole * p.behind - p_0) * scale;
            b = (whole * p_0 - p.behind) * scale;
        }
    }
};

/* Chunks have an odd pitch, which avoids bank conflicts. */
template <int ROWS>
__device__ __forceinline__ int
slot_of(int row)
{
    return row + row / ROWS;
}

/* Grid: a block for each wave; row i of the line, from 0 on, is that of column i + 1. */
template <typename Real, int ROWS, typename Lines>
__global__ void
__launch_bounds__(largest_block, 2) wave_lines_kernel(const __grid_constant__ Lines lines)
{
    extern __shared__ __align__(16) char memory[];
    __shared__ Real totals[2][largest_block / 32];
    __shared__ Ends<Real> ends;
    auto *const shared = reinterpret_cast<Real *>(memory);
    const CylinderGrid<Real> &grid = lines.grid;
    const int thread = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    const int wave = static_cast<int>(blockIdx.x) + 1, rows = grid.last;
    const int first = thread * ROWS;
    const int begin = wave * grid.nx + 1;

    let_next_kernel_in();
    const Real r = static_cast<Real>(lines.decays[wave]), inverse = 1 / r;
    const Recurrence<Real, ROWS, true> up(r);
    const Recurrence<Real, ROWS, false> down(r);
    const Factors<Real> factors(r, rows, grid.free_outlet);
    const Real from_left = r * up.before * power(up.warp, thread / 32);
    const Real from_right = power(r, rows - first);
    Real f[ROWS], x[ROWS];

    wait_for_last_kernel();
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int row = thread + k * threads;

        f[k] = row < rows ? lines.waves[begin + row] : Real(0);
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int row = thread + k * threads;

        if (row < rows) {
            f[k] += lines.more(begin + row, wave, row + 1);
        }
        shared[slot_of<ROWS>(row)] = f[k];
    }
    __syncthreads(); /* the right sides are written */

    Real *const own = shared + thread * (ROWS + 1);
    Real last = 0;

#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        f[k] = own[k];
        last = f[k] + r * last;
    }
    last = up.entering(last, totals[0]);
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        last = f[k] + r * last;
        x[k] = last;
    }
    last = 0;
#pragma unroll
    for (int k = ROWS - 1; k >= 0; k--) {
        last = r * (x[k] + last);
    }
    last = down.entering(last, totals[1]);
#pragma unroll
    for (int k = ROWS - 1; k >= 0; k--) {
        last = r * (x[k] + last);
        x[k] = last;
    }

    if (thread == 0) {
        ends.first = x[0];
        if (rows == threads * ROWS) {
            ends.behind = 0; /* no thread has this row */
        }
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        if (first + k == rows - 2) {
            ends.before_last = x[k];
        }
        if (first + k == rows) {
            ends.behind = x[k];
        }
    }
    __syncthreads(); /* the values at the ends are written */

    Real a, b;

    factors.solve(ends, a, b);
    a *= from_left;
    b *= from_right;
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        x[k] += a + b;
        a *= r;
        b *= inverse;
        if constexpr (Lines::keeps_all) {
            own[k] = x[k];
        }
        else if (first + k < rows) {
            lines.keep(wave, first + k + 1, x[k]);
        }
    }
    if constexpr (Lines::keeps_all) {
        __syncthreads(); /* the solution is written */
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = thread + k * threads;

            if (row < rows) {
                lines.solution[begin + row] = shared[slot_of<ROWS>(row)];
            }
        }
    }
}

inline int
threads_for(int rows, int of_thread)
{
    return divided_up(rows, 32 * of_thread) * 32;
}

template <typename Real, int ROWS, typename Lines>
ps_status
launch(const CylinderRun &r, const Lines &lines)
{
    const int threads = threads_for(lines.grid.last, ROWS);

    return launch_closely(wave_lines_kernel<Real, ROWS, Lines>, r.c->ny - 2, threads,
                          threads * (ROWS + 1) * sizeof(Real), r.stream, lines);
}

template <typename Real, typename Lines>
ps_status
launch(const CylinderRun &r, const Lines &lines)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    const int rows = lines.grid.last;

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const bool is_small =
        threads_for(rows, few) <= largest_block &&
        r.c->ny * threads_for(rows, many) <= int64_t(device->processors) * 512;

    return is_small ? launch<Real, few>(r, lines) : launch<Real, many>(r, lines);
}

template <typename Real>
ps_status
solve(const CylinderRun &r, bool with_charges)
{
    const WaveLines<Real> lines = {
        grid_of<Real>(r), static_cast<const double *>(r.c->tables[PS_TABLE_DECAYS]),
        static_cast<const Real *>(r.waves), static_cast<Real>(1 / (r.c->hx * r.c->hx))};

    if (!with_charges) {
        return launch<Real>(r, WavesAtBody<Real>{lines, r.lines});
    }
    return launch<Real>(
        r, WavesOfPsi<Real>{lines,
                            static_cast<const double *>(r.c->tables[PS_TABLE_BODY_SINES]),
                            r.charged, static_cast<Real *>(r.half)});
}

template <typename Real, typename Lines>
cudaError_t
prepare_lines()
{
    const cudaError_t error = share_cache(wave_lines_kernel<Real, many, Lines>);

    return error == cudaSuccess ? share_cache(wave_lines_kernel<Real, few, Lines>)
                                : error;
}

} // namespace

ps_status
ps_cuda_cylinder_prepare_waves(const ps_cylinder *c)
{
    return with_real(c->dtype, [](auto real) {
        using Real = decltype(real);
        const cudaError_t error = prepare_lines<Real, WavesAtBody<Real>>();

        return ps_cuda_status(
            error == cudaSuccess ? prepare_lines<Real, WavesOfPsi<Real>>() : error);
    });
}

ps_status
ps_cuda_cylinder_lines(const CylinderRun &r, bool with_charges)
{
    return with_real(r,
                     [&](auto real) { return solve<decltype(real)>(r, with_charges); });
}

} // namespace pysolvers::flow
