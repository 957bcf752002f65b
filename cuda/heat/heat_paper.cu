/* heat_paper.cu - alternating directions in unfused kernels, as in Wei et al. (2013).
 *
 * A substep writes the right-hand sides d, solves the lines by PCR and writes T. The
 * matrices are arrays a, b, c of all nodes, one set for each axis: 7 words per node along
 * x; along y the traffic depends on the access to columns. Along y the lines are read with
 * their stride (baseline), or d is transposed, solved along x, and T transposed back. As
 * textures, a, b, c, d and T are read through the texture cache by the kernels of both
 * axes.
 */
#include "heat/heat_paper.h"
#include "lines/methods.h"
#include "lines/reduction/reduction.h"
#include "runtime/elements.cuh"

namespace pysolvers::heat {

using namespace reduction;

namespace {

constexpr int block_threads = 256, tile = 32, tile_rows = 8;

/* to[j, i] = from[i, j]; a row of `from` has `across` nodes. */
template <typename Real> struct Transpose {
    const Real *from;
    Real *to;
    int64_t across;
    int64_t along;

    __device__ __forceinline__ void operator()() const
    {
        __shared__ Real part[tile][tile + 1];
        const int64_t tiles = divided_up(across, tile), j = blockIdx.x / tiles * tile;
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
};

template <typename Real>
ps_status
transpose(const Real *from, Real *to, int64_t across, int64_t along, cudaStream_t stream)
{
    const int64_t tiles = divided_up(across, tile) * divided_up(along, tile);

    return for_threads<tile * tile_rows>(tiles, stream,
                                         Transpose<Real>{from, to, across, along});
}

template <typename Real> struct Matrix {
    Real *lower, *diag, *upper;
};

/* The same row -a, 1 + 2 a, -a at every node. */
template <typename Real> struct SameRows {
    Matrix<Real> matrix;
    Real a;

    __device__ __forceinline__ void operator()(int64_t p) const
    {
        matrix.lower[p] = matrix.upper[p] = -a;
        matrix.diag[p] = 1 + 2 * a;
    }
};

/* The parts of the workspace: the matrices by axis, d, and two transposed fields. */
template <typename Real> struct Fields {
    Matrix<Real> matrix[2];
    Real *d, *turned[2];
    ps_exec rest;
};

size_t
fields_bytes(const ps_heat *h)
{
    return (h->memory == PS_HEAT_TRANSPOSE ? 9 : 7) * heat_field_bytes(h);
}

template <typename Real>
Fields<Real>
fields_of(const ps_heat *h, const ps_exec &exec)
{
    char *const base = static_cast<char *>(exec.work);
    const size_t used = fields_bytes(h);
    const auto field = [&](size_t k) {
        return reinterpret_cast<Real *>(base + k * heat_field_bytes(h));
    };
    Fields<Real> f = {{{field(0), field(1), field(2)}, {field(3), field(4), field(5)}},
                      field(6),
                      {field(7), field(8)},
                      exec};

    f.rest.work = base + used;
    f.rest.work_bytes = exec.work_bytes - used;
    return f;
}

/* The lines along an axis, or along x of transposed fields. */
template <typename Real>
ps_tridiag
lines_of(const ps_heat *h, int axis, bool is_turned, const Matrix<Real> &matrix,
         const Real *d, Real *t)
{
    const int64_t nx = h->nodes[0];
    const int64_t row = axis == 0 || is_turned ? 1 : nx;
    const int64_t inner = axis == 0 ? nx : is_turned ? h->nodes[1] : 1;
    const int64_t first = row + inner;
    const ps_stride stride = {row, 0, inner};
    ps_tridiag lines = {};

    lines.dtype = h->dtype;
    lines.rows = h->nodes[axis] - 2;
    lines.outer = 1;
    lines.inner = h->nodes[1 - axis] - 2;
    lines.lower = {matrix.lower + first, stride};
    lines.diag = {matrix.diag + first, stride};
    lines.upper = {matrix.upper + first, stride};
    lines.rhs = {d + first, stride};
    lines.x = {t + first, stride};
    return lines;
}

/* d = T + weight (T_before - 2 T + T_after) with the neighbours on the other axis, plus a
 * times the known T next to the end rows of a line. */
template <typename Real, bool IS_TEXTURED> struct RightSides {
    const Real *t;
    runtime::Texels texels; /* of t */
    Real *d;
    int64_t nx, ny;
    int axis;
    Real ratio, factor, a;

    __device__ __forceinline__ Real read(int64_t node) const
    {
        if constexpr (IS_TEXTURED) {
            return runtime::fetch(texels, t + node);
        }
        else {
            return t[node];
        }
    }

    /* Inner node `column` of inner row `row`. */
    __device__ __forceinline__ void operator()(unsigned row, int64_t column) const
    {
        const int64_t i = column + 1, j = int64_t(row) + 1, p = j * nx + i;
        const int64_t along = axis == 0 ? 1 : nx, across = axis == 0 ? nx : 1;
        const int64_t at = axis == 0 ? i : j, last = (axis == 0 ? nx : ny) - 2;
        const Real here = read(p), before = read(p - across), after = read(p + across);
        Real value = here + factor * (ratio * (before - here) + ratio * (after - here));

        if (at == 1) {
            value += a * read(p - along);
        }
        if (at == last) {
            value += a * read(p + along);
        }
        d[p] = value;
    }
};

ps_options
options_of(const ps_heat *h)
{
    const int32_t warps = (h->block + 31) / 32;

    return {PS_PCR, PS_PIVOT_NEVER, h->mapping + PS_CUDA_PCR_WARPS * warps};
}

/* a of the rows -a, 1 + 2 a, -a. */
double
coupling(const ps_heat *h, int axis)
{
    return h->scheme == PS_HEAT_WEI2013 ? h->ratio[axis] / (1 + 2 * h->ratio[1 - axis])
                                        : h->ratio[axis] / 2;
}

/* The textures of a call: T, d, and the matrices by axis. */
enum { TEXELS_T, TEXELS_D, TEXELS_MATRIX };

template <typename Real>
ps_status
bind(HeatRun<Real> &run, const Fields<Real> &f)
{
    const int64_t nodes = heat_nodes(run.h);
    const Real *const arrays[HEAT_TEXTURES] = {static_cast<const Real *>(run.h->t),
                                               f.d,
                                               f.matrix[0].lower,
                                               f.matrix[0].diag,
                                               f.matrix[0].upper,
                                               f.matrix[1].lower,
                                               f.matrix[1].diag,
                                               f.matrix[1].upper};
    ps_status status = PS_OK;

    for (int k = 0; status == PS_OK && k < HEAT_TEXTURES; k++) {
        status = run.textures.bind(arrays[k], nodes, run.stream);
    }
    return status;
}

template <bool IS_TEXTURED, typename Real>
RightSides<Real, IS_TEXTURED>
right_sides_of(const HeatRun<Real> &run, const Fields<Real> &f, int axis)
{
    const ps_heat *const h = run.h;
    const double ratio = h->ratio[1 - axis];
    const bool is_wei = h->scheme == PS_HEAT_WEI2013;

    return {
        static_cast<const Real *>(h->t),
        run.textures[TEXELS_T],
        f.d,
        h->nodes[0],
        h->nodes[1],
        axis,
        static_cast<Real>(ratio),
        static_cast<Real>(is_wei ? 1 / (1 + 2 * ratio) : 0.5),
        static_cast<Real>(coupling(h, axis)),
    };
}

/* The cache of textures has the values of before a launch, so that a kernel that reads
 * them is not launched with programmatic dependent launch. */
template <typename Real>
ps_status
make_right_sides(const HeatRun<Real> &run, const Fields<Real> &f, int axis)
{
    const int64_t rows = run.h->nodes[1] - 2, count = run.h->nodes[0] - 2;
    const int64_t tiles = divided_up(count, block_threads);

    return run.h->memory == PS_HEAT_TEXTURE
               ? Launch(rows * tiles, block_threads, 0, run.stream)
                     .run(rows_of_elements_kernel<block_threads, RightSides<Real, true>>,
                          right_sides_of<true>(run, f, axis), count,
                          static_cast<unsigned>(tiles))
               : for_rows_of_elements(rows, count, run.stream,
                                      right_sides_of<false>(run, f, axis));
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
        is_turned ? lines_of(h, axis, true, f.matrix[1], f.turned[0], f.turned[1])
                  : lines_of(h, axis, false, f.matrix[axis], f.d, t);
    const ps_options options = options_of(h);
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
    if (status == PS_OK && h->memory == PS_HEAT_TEXTURE) {
        const int own = TEXELS_MATRIX + 3 * axis;
        const OperandTexels texels = {{run.textures[own], run.textures[own + 1],
                                       run.textures[own + 2], run.textures[TEXELS_D]}};

        status = reduction_solve_texels(&lines, &options, &f.rest, &texels);
    }
    else if (status == PS_OK) {
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
        double *const none = nullptr;
        const Matrix<double> matrix = {none, none, none};
        const ps_tridiag t = lines_of(h, axis, is_turned, matrix, none, none);
        const ps_options options = options_of(h);
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
    ps_status status = run.h->memory == PS_HEAT_TEXTURE ? bind(run, f) : PS_OK;

    for (int axis = 0; status == PS_OK && axis < 2; axis++) {
        status = for_elements(
            heat_nodes(run.h), run.stream,
            SameRows<Real>{f.matrix[axis], static_cast<Real>(coupling(run.h, axis))});
    }
    return status;
}

template <typename Real>
ps_status
heat_paper_step(HeatRun<Real> &run, bool last)
{
    const Fields<Real> f = fields_of<Real>(run.h, run.exec);
    ps_status status = PS_OK;

    for (int axis = 0; status == PS_OK && axis < 2; axis++) {
        status = make_right_sides(run, f, axis);
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
