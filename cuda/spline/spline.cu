/* spline.cu - rows, pieces and points of splines on a device.
 *
 * ps_spline.h contains the formulas and their source, ps_spline_math.h computes them.
 *
 * Threads follow each other as the elements of an array (outer, rows, inner) in C order,
 * the order in which splines are stored. A thread of pieces computes one element.
 *
 * A thread of rows or points computes the weights of a row, or locates a point, once for
 * several splines, if these share knots (and points): for splines of the inner axis, whose
 * values in one row or at one point are neighbours, or, if that axis is short, for splines
 * of the outer axis. Rows of the inner axis: once for a block.
 *
 * Words moved per value of a cubic at a point: 1 written, 4 read, which neighbouring
 * points share in the cache: 3 for one point per knot.
 */
#include "ps_spline_math.h"

#include "device/operand.cuh"
#include "lines/methods.h"
#include "lines/panels/shared_panels.h"
#include "runtime/backend.h"
#include "runtime/elements.cuh"

namespace pysolvers::spline {

using namespace device;
using namespace panels;
using namespace runtime;
using namespace shared;

static constexpr int threads = 128;
static constexpr int splines_a_thread = 8, rows_a_thread = 4, rows_a_block = 8;

template <typename Real> constexpr bool is_single = sizeof(Real) == sizeof(float);

/* Row i of spline (j, k). */
struct Place {
    int64_t i, j, k;
};

static __device__ __forceinline__ Place
place_of(int64_t element, int64_t rows, int64_t inner)
{
    const int64_t line = quotient(element, inner), j = quotient(line, rows);

    return {line - j * rows, j, element - line * inner};
}

static __device__ __forceinline__ int64_t
offset(const ps_stride &stride, const Place &at)
{
    return at.i * stride.row + at.j * stride.outer + at.k * stride.inner;
}

static __device__ __forceinline__ int64_t
offset(const ps_stride &stride, int64_t j, int64_t k)
{
    return j * stride.outer + k * stride.inner;
}

template <typename Real>
static __device__ __forceinline__ const Real *
line_of(const ps_input &in, int64_t j, int64_t k)
{
    return static_cast<const Real *>(in.data) + offset(in.stride, j, k);
}

template <typename Real>
static __device__ __forceinline__ void
put(const ps_output &out, const Place &at, double value)
{
    static_cast<Real *>(out.data)[offset(out.stride, at)] = static_cast<Real>(value);
}

template <typename Real>
static __device__ __forceinline__ ps_spline_line
knots_of(const ps_input &x, int64_t knots, int64_t j, int64_t k)
{
    return ps_spline_line_of(line_of<Real>(x, j, k), is_single<Real>, knots,
                             x.stride.row);
}

static bool
is_shared(const ps_input &in)
{
    return in.stride.outer == 0 && in.stride.inner == 0;
}

/* Matrix of one row, and a copy and a check of its knot. */
template <typename Real>
static __device__ void
write_matrix(const ps_spline_rows &r, const ps_spline_row &row, const Place &at)
{
    const Real *const x = line_of<Real>(r.x, at.j, at.k) + at.i * r.x.stride.row;

    if (!isfinite(x[0])) {
        r.faults[PS_FAULT_KNOTS] = 1;
    }
    if (at.i > 0 && x[0] <= x[-r.x.stride.row]) {
        r.faults[PS_FAULT_ORDER] = 1;
    }
    put<Real>(r.lower, at, row.lower);
    put<Real>(r.diag, at, row.diag);
    put<Real>(r.upper, at, row.upper);
    if (r.knots_copy.data != nullptr) {
        put<Real>(r.knots_copy, at, x[0]);
    }
}

/* What a row reads of the values of a spline: its own one, and the part of its rhs that
 * the differences of the values give. */
template <typename Real> struct RowValues {
    Real own, side;
};

template <typename Real>
static __device__ __forceinline__ RowValues<Real>
read_values(const ps_spline_rows &r, const ps_spline_row &row, const Place &at)
{
    const Real *const y = line_of<Real>(r.y, at.j, at.k);
    const int64_t step = r.y.stride.row;
    RowValues<Real> read = {y[at.i * step], 0};

    for (int m = 0; m < 2; m++) {
        const Real *const piece = y + row.piece[m] * step;

        read.side += static_cast<Real>(row.weight[m]) * (piece[step] - piece[0]);
    }
    return read;
}

/* Store the right-hand side of a row, and copy and check its value. */
template <typename Real>
static __device__ __forceinline__ void
put_side(const ps_spline_rows &r, const RowValues<Real> &read, const Place &at)
{
    if (!isfinite(read.own)) {
        r.faults[PS_FAULT_VALUES] = 1;
    }
    put<Real>(r.rhs, at, read.side);
    put<Real>(r.values, at, read.own);
}

/* The same for any row: at an end with what is given there. */
template <typename Real>
static __device__ __forceinline__ void
write_side(const ps_spline_rows &r, RowValues<Real> read, double rate, const Place &at)
{
    const int at_end = at.i > 0;

    if ((at.i == 0 || at.i == r.knots - 1) && r.given[at_end].data != nullptr) {
        read.side += static_cast<Real>(
            ps_spline_given(&r, line_of<Real>(r.x, at.j, at.k), is_single<Real>, rate,
                            at_end, *line_of<Real>(r.given[at_end], at.j, at.k)));
    }
    if (at.i == 0 && r.end[0] == PS_SPLINE_PERIODIC &&
        ps_spline_is_open(&r, line_of<Real>(r.y, at.j, at.k), is_single<Real>, at.k)) {
        r.faults[PS_FAULT_PERIOD] = 1;
    }
    put_side(r, read, at);
}

/* A row of one spline. */
template <typename Real>
static __device__ __forceinline__ void
write_row(const ps_spline_rows &r, const Place &at)
{
    const double rate = knots_of<Real>(r.x, r.knots, at.j, at.k).rate;
    const ps_spline_row row =
        ps_spline_row_of(&r, line_of<Real>(r.x, at.j, at.k), is_single<Real>, rate, at.i);

    if (r.diag.data != nullptr) {
        write_matrix<Real>(r, row, at);
    }
    if (r.y.data != nullptr) {
        write_side<Real>(r, read_values<Real>(r, row, at), rate, at);
    }
}

/* Row at.i of splines (at.j + m, at.k) that share their knots, as long as they exist, at
 * most rows_a_thread: the row, with its divisions, is computed once, and all values are
 * read before the first is written. */
template <typename Real>
static __device__ __forceinline__ void
write_sides(const ps_spline_rows &r, const Place &at)
{
    const double rate = knots_of<Real>(r.x, r.knots, 0, 0).rate;
    const ps_spline_row row =
        ps_spline_row_of(&r, line_of<Real>(r.x, 0, 0), is_single<Real>, rate, at.i);
    RowValues<Real> read[rows_a_thread];

    if (r.diag.data != nullptr && at.j == 0 && at.k == 0) {
        write_matrix<Real>(r, row, at);
    }
#pragma unroll
    for (int m = 0; m < rows_a_thread; m++) {
        if (at.j + m < r.outer) {
            read[m] = read_values<Real>(r, row, {at.i, at.j + m, at.k});
        }
    }
#pragma unroll
    for (int m = 0; m < rows_a_thread; m++) {
        if (at.j + m < r.outer) {
            write_side<Real>(r, read[m], rate, {at.i, at.j + m, at.k});
        }
    }
}

/* Row number e, with its matrix if that is asked for. */
template <typename Real> struct OwnRows {
    ps_spline_rows r;

    __device__ __forceinline__ void operator()(int64_t e) const
    {
        write_row<Real>(r, place_of(e, r.knots, r.inner));
    }
};

/* Sides of some rows of splines of the inner axis, which share their knots: the first
 * threads of a block compute the rows, with their divisions, and each thread has a spline,
 * whose values it reads once, though three rows need each. The first and the last row need
 * others. Blocks follow parts of the inner axis, then rows. */
template <typename Real> struct InnerSides {
    ps_spline_rows r;
    int64_t parts, tiles;

    __device__ __forceinline__ void operator()() const
    {
        __shared__ ps_spline_row row[rows_a_block];
        const Place block = place_of(blockIdx.x, tiles, parts);
        const int64_t first = block.i * rows_a_block, last = r.knots - 1;
        const int64_t j = block.j, k = block.k * threads + threadIdx.x;
        const int64_t own = first + threadIdx.x;

        wait_for_last_kernel();
        const Real *const x = line_of<Real>(r.x, 0, 0);
        const double rate = knots_of<Real>(r.x, r.knots, 0, 0).rate;

        if (threadIdx.x < rows_a_block && own <= last) {
            row[threadIdx.x] = ps_spline_row_of(&r, x, is_single<Real>, rate, own);
            if (r.diag.data != nullptr && block.j == 0 && block.k == 0) {
                write_matrix<Real>(r, row[threadIdx.x], {own, 0, 0});
            }
        }
        __syncthreads();
        if (k >= r.inner) {
            return;
        }
        const Real *const y = line_of<Real>(r.y, j, k);
        Real value[rows_a_block + 2]; /* from the row before the first one on */

#pragma unroll
        for (int m = 0; m < rows_a_block + 2; m++) {
            const int64_t i = min(max(first + m - 1, int64_t{0}), last);

            value[m] = y[i * r.y.stride.row];
        }
#pragma unroll
        for (int m = 0; m < rows_a_block; m++) {
            const int64_t i = first + m;

            if (i > 0 && i < last) {
                const Real side =
                    static_cast<Real>(row[m].weight[0]) * (value[m + 1] - value[m]) +
                    static_cast<Real>(row[m].weight[1]) * (value[m + 2] - value[m + 1]);

                put_side<Real>(r, {value[m + 1], side}, {i, j, k});
            }
        }
#pragma unroll 1
        for (int end = 0; end < 2; end++) {
            const int64_t i = end == 0 ? 0 : last, m = i - first;

            if (m >= 0 && m < rows_a_block) {
                const Place at = {i, j, k};

                write_side<Real>(r, read_values<Real>(r, row[m], at), rate, at);
            }
        }
    }
};

/* Sides of several splines of the outer axis. */
template <typename Real> struct OuterSides {
    ps_spline_rows r;

    __device__ __forceinline__ void operator()(int64_t e) const
    {
        Place at = place_of(e, r.knots, r.inner);

        at.j *= rows_a_thread;
        write_sides<Real>(r, at);
    }
};

template <typename Real>
static ps_status
launch_rows(const ps_spline_rows &r, cudaStream_t stream)
{
    const bool has_own = r.diag.data != nullptr && !r.has_one_matrix;

    if (!is_shared(r.x) || has_own || r.y.data == nullptr) {
        return for_elements<threads>(r.outer * r.knots * r.inner, stream,
                                     OwnRows<Real>{r});
    }
    if (r.inner >= threads) {
        const int64_t parts = divided_up(r.inner, threads);
        const int64_t tiles = divided_up(r.knots, rows_a_block);

        return for_threads<threads>(r.outer * tiles * parts, stream,
                                    InnerSides<Real>{r, parts, tiles});
    }
    return for_elements<threads>(divided_up(r.outer, rows_a_thread) * r.knots * r.inner,
                                 stream, OuterSides<Real>{r});
}

/* Row i of the matrix that all splines share, and its weights for PanelDifferences. */
template <typename Real> struct WeightRows {
    ps_spline_rows r;
    Real *weight;

    __device__ __forceinline__ void operator()(int64_t i) const
    {
        const double rate = knots_of<Real>(r.x, r.knots, 0, 0).rate;
        const ps_spline_row row =
            ps_spline_row_of(&r, line_of<Real>(r.x, 0, 0), is_single<Real>, rate, i);
        const int at_end = i == 0 || i == r.knots - 1;

        write_matrix<Real>(r, row, {i, 0, 0});
        weight[2 * i] = static_cast<Real>(row.weight[at_end]);
        weight[2 * i + 1] = static_cast<Real>(row.weight[!at_end]);
    }
};

/* The coefficients of piece number e. */
template <typename Real> struct SplinePieces {
    ps_spline_pieces p;
    int32_t count;

    __device__ __forceinline__ void operator()(int64_t e) const
    {
        const ps_polynomials &from = p.from;
        const Place at = place_of(e, from.knots - 1, from.inner);
        const Real *const x =
            line_of<Real>(from.x, at.j, at.k) + at.i * from.x.stride.row;
        const double rate = knots_of<Real>(from.x, from.knots, at.j, at.k).rate;
        const double h = double(x[from.x.stride.row]) - double(x[0]);
        const int64_t first = offset(from.stride, at), to = offset(p.stride, at);
        const auto in = [&](int32_t q, int64_t step) {
            return double(static_cast<const Real *>(from.coefficient[q])[first + step]);
        };
        const auto out = [&](int32_t q) -> Real * {
            return static_cast<Real *>(p.coefficient[q]) + to;
        };
        double a[PS_SPLINE_ORDERS];

        for (int32_t q = 0; q < from.order; q++) {
            a[q] = in(q, 0);
        }
        if (from.order == 0) {
            const double y[2] = {in(0, 0), in(0, from.stride.row)};
            const double s[2] = {in(1, 0), in(1, from.stride.row)};

            ps_spline_cubic(y, s, rate * h, a);
        }
        const double integral = ps_spline_differentiate(
            &from, a, from.order == 0 ? 4 : from.order, p.nu, rate * h);

        for (int32_t q = p.nu < 0; q < count; q++) {
            *out(q) = static_cast<Real>(
                p.is_absolute
                    ? ps_spline_absolute(&from, a[q], q, h, rate, is_single<Real>)
                    : a[q]);
        }
        if (p.nu < 0 && at.i == 0) {
            *out(0) = 0;
        }
        if (p.nu < 0 && at.i + 2 < from.knots) {
            out(0)[p.stride.row] = static_cast<Real>(integral);
        }
    }
};

/* The value at a located point of the spline that begins at `first` in the arrays, not
 * yet multiplied by powers of the unit. */
template <typename Real, bool is_cubic>
static __device__ __forceinline__ Real
value_at(const ps_spline_points &p, const ps_spline_point &point, int64_t first)
{
    const ps_polynomials &from = p.from;
    const int64_t step = from.stride.row, at = first + point.piece * step;

    if (is_cubic) {
        const Real *const y = static_cast<const Real *>(from.coefficient[0]) + at;
        const Real *const s = static_cast<const Real *>(from.coefficient[1]) + at;
        const Real change = static_cast<Real>(point.weight[0]) * (y[step] - y[0]) +
                            static_cast<Real>(point.weight[1]) * s[0] +
                            static_cast<Real>(point.weight[2]) * s[step];

        return p.nu == 0 ? y[0] + change : change;
    }
    const Real t = static_cast<Real>(point.weight[0]);
    const auto term = [&](int32_t q) {
        return static_cast<Real>(ps_spline_factor(q - p.nu, p.nu)) *
               static_cast<const Real *>(from.coefficient[q])[at];
    };
    Real value = 0;

    for (int32_t q = from.order - 1; q > p.nu; q--) {
        value = (value + term(q)) * t;
    }
    if (p.nu < from.order) {
        value = value * static_cast<Real>(point.weight[1]) + term(p.nu);
    }
    return value * static_cast<Real>(point.weight[2]);
}

template <typename Real>
static __device__ __forceinline__ ps_spline_point
locate(const ps_spline_points &p, int64_t i, int64_t j, int64_t k)
{
    const ps_spline_line line = knots_of<Real>(p.from.x, p.from.knots, j, k);

    return ps_spline_locate(&p, line_of<Real>(p.from.x, j, k), is_single<Real>, &line,
                            line_of<Real>(p.at, j, k)[i * p.at.stride.row], 0);
}

/* ps_spline_stepwise() for the few points with a power: a function of its own, because its
 * divisions are 20 KB of code wherever it is inlined. */
static __device__ __noinline__ double
stepwise(double value, double unit, int32_t power)
{
    return ps_spline_stepwise(value, unit, power);
}

/* Values of one spline after another at point i: splines (j, k) + m (dj, dk), as long as
 * they exist, at most splines_a_thread. */
template <typename Real, bool is_cubic, bool shares>
static __device__ __forceinline__ void
write_values(const ps_spline_points &p, int64_t i, int64_t j, int64_t k, int64_t dj,
             int64_t dk)
{
    const ps_stride &in = p.from.stride, &out = p.value.stride;
    const int64_t step = dj * in.outer + dk * in.inner;
    const int64_t out_step = dj * out.outer + dk * out.inner;
    int64_t first = offset(in, j, k);
    Real *value = static_cast<Real *>(p.value.data) + offset(out, {i, j, k});
    ps_spline_point point = {};

    if (shares) {
        point = locate<Real>(p, i, 0, 0);
    }
#pragma unroll(shares ? splines_a_thread : 1)
    for (int m = 0; m < splines_a_thread; m++) {
        if (j < p.from.outer && k < p.from.inner) {
            if (!shares) {
                point = locate<Real>(p, i, j, k);
            }
            const Real found = value_at<Real, is_cubic>(p, point, first);

            *value = point.power == 0
                         ? found
                         : static_cast<Real>(stepwise(found, point.unit, point.power));
        }
        j += dj;
        k += dk;
        first += step;
        value += out_step;
    }
}

/* Threads follow the inner axis: `threads` elements for each of `parts` parts of it. */
template <typename Real, bool is_cubic, bool shares> struct InnerPoints {
    ps_spline_points p;
    int64_t parts;

    __device__ __forceinline__ void operator()(int64_t e) const
    {
        const Place at = place_of(e / threads, p.points, parts);

        write_values<Real, is_cubic, shares>(
            p, at.i, at.j, at.k * threads * splines_a_thread + e % threads, 0, threads);
    }
};

/* Threads follow points and inner axis, each with several splines of the outer axis. */
template <typename Real, bool is_cubic, bool shares> struct OuterPoints {
    ps_spline_points p;

    __device__ __forceinline__ void operator()(int64_t e) const
    {
        const Place at = place_of(e, p.points, p.from.inner);

        write_values<Real, is_cubic, shares>(p, at.i, at.j * splines_a_thread, at.k, 1,
                                             0);
    }
};

template <typename Real, bool is_cubic, bool shares>
static ps_status
launch_points(const ps_spline_points &p, cudaStream_t stream)
{
    const int64_t outer = p.from.outer, inner = p.from.inner;

    if (inner >= threads) {
        const int64_t parts = divided_up(inner, threads * splines_a_thread);

        return for_elements<threads>(outer * p.points * parts * threads, stream,
                                     InnerPoints<Real, is_cubic, shares>{p, parts});
    }
    return for_elements<threads>(divided_up(outer, splines_a_thread) * p.points * inner,
                                 stream, OuterPoints<Real, is_cubic, shares>{p});
}

template <typename Real, bool is_cubic>
static ps_status
launch_points(const ps_spline_points &p, cudaStream_t stream)
{
    return is_shared(p.from.x) && is_shared(p.at)
               ? launch_points<Real, is_cubic, true>(p, stream)
               : launch_points<Real, is_cubic, false>(p, stream);
}

template <typename Real>
static ps_status
launch_points(const ps_spline_points &p, cudaStream_t stream)
{
    return p.from.order == 0 ? launch_points<Real, true>(p, stream)
                             : launch_points<Real, false>(p, stream);
}

ps_status
ps_cuda_spline_rows(const ps_spline_rows *r, const ps_exec *exec)
{
    const ps_status status = ps_spline_rows_check(r);
    cudaStream_t const stream = ps_cuda_stream(exec);

    if (status != PS_OK || r->outer * r->knots * r->inner == 0) {
        return status;
    }
    return with_real(r->dtype,
                     [&](auto zero) { return launch_rows<decltype(zero)>(*r, stream); });
}

/* The matrix, in workspace, its weights, and the workspace of the panels. */
static ps_tridiag
systems_of(const ps_spline_rows *r, char *work, char **weight, char **rest)
{
    const int64_t row = ps_dtype_size(r->dtype);
    const size_t bytes = ps_cuda_padded(static_cast<size_t>(r->knots * row));
    const ps_stride along = {1, 0, 0};
    const auto part = [&](int k) {
        return ps_input{work + static_cast<size_t>(k) * bytes, along};
    };

    *weight = work + 3 * bytes;
    *rest = work + 5 * bytes;
    ps_tridiag t = {};
    t.dtype = r->dtype;
    t.rows = r->knots;
    t.outer = r->outer;
    t.inner = r->inner;
    t.lower = part(0);
    t.diag = part(1);
    t.upper = part(2);
    t.rhs = r->y;
    t.x = r->rhs;
    return t;
}

static bool
is_same(const ps_stride &a, const ps_stride &b)
{
    return a.row == b.row && a.outer == b.outer && a.inner == b.inner;
}

/* Rows and solve in one kernel, 3 words per value, for splines along a strided axis. */
ps_status
ps_cuda_spline_slopes_work(const ps_spline_rows *r, const ps_exec *, size_t *bytes)
{
    const ps_status status = ps_spline_rows_check(r);
    char *weight, *rest;

    if (status != PS_OK) {
        return status;
    }
    if (!is_shared(r->x) || r->y.data == nullptr || r->outer * r->inner == 0 ||
        r->end[0] == PS_SPLINE_PERIODIC || r->given[0].data != nullptr ||
        r->given[1].data != nullptr || !is_same(r->rhs.stride, r->values.stride)) {
        return PS_UNSUPPORTED;
    }
    const ps_tridiag t = systems_of(r, nullptr, &weight, &rest);

    if (!ps_cuda_shared_accepts(&t) || !ps_cuda_panels_accept_differences(&t)) {
        return PS_UNSUPPORTED;
    }
    *bytes = reinterpret_cast<uintptr_t>(rest) + ps_cuda_panels_work(&t, false);
    return PS_OK;
}

ps_status
ps_cuda_spline_slopes(const ps_spline_rows *r, const ps_exec *exec)
{
    cudaStream_t const stream = ps_cuda_stream(exec);
    char *weight, *rest;
    size_t bytes;
    ps_status status = ps_cuda_spline_slopes_work(r, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    const ps_tridiag t = systems_of(r, static_cast<char *>(exec->work), &weight, &rest);
    ps_spline_rows rows = *r;

    rows.lower = {const_cast<void *>(t.lower.data), t.lower.stride};
    rows.diag = {const_cast<void *>(t.diag.data), t.diag.stride};
    rows.upper = {const_cast<void *>(t.upper.data), t.upper.stride};
    status = with_real(r->dtype, [&](auto zero) {
        using Real = decltype(zero);

        return for_elements<threads>(
            r->knots, stream, WeightRows<Real>{rows, reinterpret_cast<Real *>(weight)});
    });
    return status == PS_OK
               ? ps_cuda_panels_differences(&t, weight, r->values.data,
                                            r->faults + PS_FAULT_VALUES, rest, stream)
               : status;
}

ps_status
ps_cuda_spline_pieces(const ps_spline_pieces *p, const ps_exec *exec)
{
    const ps_status status = ps_spline_pieces_check(p);
    cudaStream_t const stream = ps_cuda_stream(exec);

    if (status != PS_OK || p->from.outer * p->from.inner == 0) {
        return status;
    }
    const int64_t elements = p->from.outer * (p->from.knots - 1) * p->from.inner;
    const int32_t count = ps_spline_order(p->from.order, p->nu);

    return with_real(p->from.dtype, [&](auto zero) {
        return for_elements<threads>(elements, stream,
                                     SplinePieces<decltype(zero)>{*p, count});
    });
}

ps_status
ps_cuda_spline_points(const ps_spline_points *p, const ps_exec *exec)
{
    const ps_status status = ps_spline_points_check(p);
    cudaStream_t const stream = ps_cuda_stream(exec);

    if (status != PS_OK || p->from.outer * p->from.inner * p->points == 0) {
        return status;
    }
    return with_real(p->from.dtype, [&](auto zero) {
        return launch_points<decltype(zero)>(*p, stream);
    });
}

} // namespace pysolvers::spline
