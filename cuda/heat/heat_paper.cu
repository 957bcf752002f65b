/* heat_paper.cu - alternating directions in unfused kernels, as in Wei et al. (2013).
 *
 * A substep writes the right-hand sides d, solves the lines by PCR and writes T: 4
 * words per node along x; along y the traffic depends on the access to columns. The
 * matrix is three numbers. Along y the lines are read with their stride (baseline),
 * through the read-only cache (texture), or d is transposed, solved along x, and T
 * transposed back.
 */
#include "heat/heat_paper.h"
#include "lines/methods.h"
#include "lines/reduction/reduction.h"
#include "runtime/launch.cuh"

namespace pysolvers::heat {

using namespace reduction;

namespace {

constexpr int tile = 32, tile_rows = 8;

/* to[j, i] = from[i, j]; a row of `from` has `across` nodes. */
template <typename Real>
__global__ void
__launch_bounds__(tile *tile_rows)
    transpose_kernel(const Real *from, Real *to, int64_t across, int64_t along)
{
    __shared__ Real part[tile][tile + 1];
    const int64_t tiles = (across + tile - 1) / tile, j = blockIdx.x / tiles * tile;
    const int64_t i = (blockIdx.x % tiles) * tile;
    const int x = static_cast<int>(threadIdx.x) % tile;
    const int y = static_cast<int>(threadIdx.x) / tile;

    wait_for_last_kernel();
    for (int k = y; k < tile; k += tile_rows) {
        if (i + x < across && j + k < along) {
            part[k][x] = from[(j + k) * across + i + x];
        }
    }
    __syncthreads();
    for (int k = y; k < tile; k += tile_rows) {
        if (j + x < along && i + k < across) {
            to[(i + k) * along + j + x] = part[x][k];
        }
    }
}

template <typename Real>
ps_status
transpose(const Real *from, Real *to, int64_t across, int64_t along, cudaStream_t stream)
{
    const int64_t tiles = (across + tile - 1) / tile * ((along + tile - 1) / tile);

    return launch_closely(transpose_kernel<Real>, tiles, tile * tile_rows, 0, stream,
                          from, to, across, along);
}

/* lower, diag and upper of the lines along either axis, and T at the boundary nodes of
 * d. */
template <typename Real>
__global__ void
matrix_kernel(Real *matrix, Real x, Real y)
{
    wait_for_last_kernel();
    matrix[0] = matrix[2] = -x;
    matrix[1] = 1 + 2 * x;
    matrix[3] = matrix[5] = -y;
    matrix[4] = 1 + 2 * y;
}

enum { MATRIX_BYTES = 256 };

/* The parts of the workspace: the matrices, d, and two transposed fields. */
template <typename Real> struct Fields {
    Real *matrix, *d, *turned[2];
    ps_exec rest;
};

size_t
fields_bytes(const ps_heat *h)
{
    return MATRIX_BYTES + (h->memory == PS_HEAT_TRANSPOSE ? 3 : 1) * heat_field_bytes(h);
}

template <typename Real>
Fields<Real>
fields_of(const ps_heat *h, const ps_exec &exec)
{
    char *const base = static_cast<char *>(exec.work), *const d = base + MATRIX_BYTES;
    const size_t used = fields_bytes(h);
    const auto field = [&](size_t k) {
        return reinterpret_cast<Real *>(d + k * heat_field_bytes(h));
    };
    Fields<Real> f = {
        reinterpret_cast<Real *>(base), field(0), {field(1), field(2)}, exec};

    f.rest.work = base + used;
    f.rest.work_bytes = exec.work_bytes - used;
    return f;
}

/* The lines along an axis, or along x of transposed fields. */
ps_tridiag
lines_of(const ps_heat *h, int axis, bool is_turned, const void *matrix, const void *d,
         void *x)
{
    const int64_t nx = h->nodes[0], element = ps_dtype_size(h->dtype);
    const int64_t row = axis == 0 || is_turned ? 1 : nx;
    const int64_t inner = axis == 0 ? nx : is_turned ? h->nodes[1] : 1;
    const int64_t first = row + inner;
    const ps_stride none = {0, 0, 0}, stride = {row, 0, inner};
    const char *const own = static_cast<const char *>(matrix) + axis * 3 * element;
    ps_tridiag t = {};

    t.dtype = h->dtype;
    t.rows = h->nodes[axis] - 2;
    t.outer = 1;
    t.inner = h->nodes[1 - axis] - 2;
    t.lower = {own, none};
    t.diag = {own + element, none};
    t.upper = {own + 2 * element, none};
    t.rhs = {static_cast<const char *>(d) + first * element, stride};
    t.x = {static_cast<char *>(x) + first * element, stride};
    return t;
}

/* The boundary nodes of a line are known: a times their value is added to the end rows.
 */
template <typename Real> struct Walls {
    const Real *t;
    Real *d;
    int64_t rows, pitch, lines, line_pitch;
    Real a;
};

template <typename Real>
__global__ void
walls_kernel(const __grid_constant__ Walls<Real> w)
{
    const int64_t line =
        static_cast<int64_t>(blockIdx.x) * blockDim.x + static_cast<int64_t>(threadIdx.x);

    wait_for_last_kernel();
    if (line < w.lines) {
        const int64_t first = (line + 1) * w.line_pitch;
        const int64_t last = first + (w.rows + 1) * w.pitch;

        w.d[first + w.pitch] += w.a * w.t[first];
        w.d[last - w.pitch] += w.a * w.t[last];
    }
}

template <typename Real>
ps_status
add_walls(const ps_heat *h, int axis, const Real *t, Real *d, double a,
          cudaStream_t stream)
{
    constexpr int threads = 128;
    const Walls<Real> w = {t,
                           d,
                           h->nodes[axis] - 2,
                           heat_pitch(h, axis),
                           h->nodes[1 - axis] - 2,
                           heat_pitch(h, 1 - axis),
                           static_cast<Real>(a)};

    return launch_closely(walls_kernel<Real>, (w.lines + threads - 1) / threads, threads,
                          0, stream, w);
}

ps_options
options_of(const ps_heat *h, int axis)
{
    const int32_t warps = (h->block + 31) / 32;
    const bool read_only = h->memory == PS_HEAT_TEXTURE && axis == 1;

    return {PS_PCR, PS_PIVOT_NEVER,
            h->mapping + PS_CUDA_PCR_WARPS * warps +
                (read_only ? PS_CUDA_PCR_READ_ONLY : 0)};
}

/* a of the rows -a, 1 + 2 a, -a. */
double
coupling(const ps_heat *h, int axis)
{
    return h->scheme == PS_HEAT_WEI2013 ? h->ratio[axis] / (1 + 2 * h->ratio[1 - axis])
                                        : h->ratio[axis] / 2;
}

/* Solve for T, from d to t, with the layout of the fields. */
template <typename Real>
ps_status
solve(HeatRun<Real> &run, const Fields<Real> &f, int axis, bool last)
{
    const ps_heat *const h = run.h;
    const bool is_turned = axis == 1 && h->memory == PS_HEAT_TRANSPOSE;
    Real *const t = static_cast<Real *>(h->t);
    const ps_tridiag lines =
        is_turned ? lines_of(h, axis, true, f.matrix, f.turned[0], f.turned[1])
                  : lines_of(h, axis, false, f.matrix, f.d, t);
    const ps_options options = options_of(h, axis);
    ps_report report = {};
    ps_status status = PS_OK;

    if (is_turned) {
        status = transpose(f.d, f.turned[0], h->nodes[0], h->nodes[1], run.stream);
        if (status == PS_OK) {
            status = transpose(t, f.turned[1], h->nodes[0], h->nodes[1], run.stream);
        }
        if (status == PS_OK) {
            status = run.clock.made(PS_HEAT_STAGE_MOVES, last);
        }
    }
    if (status == PS_OK) {
        status = ps_cuda_reduction.solve(&lines, &options, &f.rest, &report);
    }
    if (status == PS_OK) {
        status = run.clock.made(axis == 0 ? PS_HEAT_STAGE_X : PS_HEAT_STAGE_Y, last);
    }
    if (status == PS_OK && is_turned) {
        status = transpose(f.turned[1], t, h->nodes[1], h->nodes[0], run.stream);
        if (status == PS_OK) {
            status = run.clock.made(PS_HEAT_STAGE_MOVES, last);
        }
    }
    return status;
}

} // namespace

ps_status
heat_paper_work(const ps_heat *h, size_t *bytes)
{
    size_t most = 0;
    ps_status status = PS_OK;

    for (int axis = 0; status == PS_OK && axis < 2; axis++) {
        const bool is_turned = axis == 1 && h->memory == PS_HEAT_TRANSPOSE;
        const ps_tridiag t = lines_of(h, axis, is_turned, nullptr, nullptr, nullptr);
        const ps_options options = options_of(h, axis);
        size_t needed = 0;

        status = ps_cuda_reduction.work(&t, &options, &needed);
        most = needed > most ? needed : most;
    }
    *bytes = fields_bytes(h) + most;
    return status;
}

const char *
heat_paper_kernel(const ps_heat *h)
{
    static const char *const names[PS_HEAT_MEMORY_COUNT][4] = {
        {"wei2013 C1 baseline", "wei2013 C2 baseline", "wei2013 C3 baseline",
         "wei2013 C4 baseline"},
        {"wei2013 C1 texture", "wei2013 C2 texture", "wei2013 C3 texture",
         "wei2013 C4 texture"},
        {"wei2013 C1 transpose", "wei2013 C2 transpose", "wei2013 C3 transpose",
         "wei2013 C4 transpose"}};

    return names[h->memory][h->mapping - 1];
}

template <typename Real>
ps_status
heat_paper_prepare(HeatRun<Real> &run)
{
    const Fields<Real> f = fields_of<Real>(run.h, run.exec);

    return launch_closely(matrix_kernel<Real>, 1, 1, 0, run.stream, f.matrix,
                          static_cast<Real>(coupling(run.h, 0)),
                          static_cast<Real>(coupling(run.h, 1)));
}

template <typename Real>
ps_status
heat_paper_step(HeatRun<Real> &run, bool last)
{
    const ps_heat *const h = run.h;
    const Fields<Real> f = fields_of<Real>(h, run.exec);
    const Real *const t = static_cast<const Real *>(h->t);
    ps_status status = PS_OK;

    for (int axis = 0; status == PS_OK && axis < 2; axis++) {
        status = h->scheme == PS_HEAT_WEI2013
                     ? heat_make_neighbours(h, 1 - axis, t, f.d, run.stream)
                     : heat_make_half(h, 1 - axis, t, f.d, run.stream);
        if (status == PS_OK) {
            status = add_walls(h, axis, t, f.d, coupling(h, axis), run.stream);
        }
        if (status == PS_OK) {
            status = run.clock.made(PS_HEAT_STAGE_RHS, last);
        }
        if (status == PS_OK) {
            status = solve(run, f, axis, last);
        }
    }
    return status;
}

template ps_status heat_paper_prepare(HeatRun<float> &);
template ps_status heat_paper_prepare(HeatRun<double> &);
template ps_status heat_paper_step(HeatRun<float> &, bool);
template ps_status heat_paper_step(HeatRun<double> &, bool);

} // namespace pysolvers::heat
