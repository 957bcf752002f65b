/* thomas.cu - the Thomas algorithm, one thread per system.
 *
 *   p_i = diag_i - lower_i c_{i-1},    c_i = upper_i / p_i
 *   y_i = (rhs_i - lower_i y_{i-1}) / p_i,    x_i = y_i - c_i x_{i+1}
 *
 * 8 operations and one reciprocal per row. 9 words per row, because c and y are stored
 * in memory: c in the workspace, y in x. Neighbouring threads solve neighbouring
 * systems on the batch axis of smaller stride; accesses are coalesced if that stride is
 * 1 (Souri et al. 2020). The variant is the number of threads of a block, as in that
 * paper; 0 for so many that all multiprocessors are used. No pivoting: stable for
 * diagonally dominant and for symmetric positive definite matrices.
 *
 * Periodic: the last unknown is condensed. Row i stores z_i, its entry in the column of
 * that unknown, and the last row is eliminated together with the others. That adds
 * multiples of all rows to the last one, whose residual contains the residuals of all
 * others: up to 0.5 n eps of its terms, if they have one sign. From 64 rows on the
 * residual rho of the last row is therefore computed. If it exceeds 16 eps of the
 * magnitudes of its terms, a multiple of v is subtracted from x, where A v is zero in all
 * rows but the last:
 *
 *   v_{n-1} = -1,    v_i = z_i - c_i v_{i+1}
 *   x_i -= v_i rho / (diag_{n-1} - lower_{n-1} v_{n-2} - upper_{n-1} v_0)
 *
 * The correction is 6 operations and 6 words per row. csrc/cpu/lines/last_row.inc derives
 * it.
 *
 * With bounds, x_i is the larger one of y_i - c_i x_{i+1} and of its bound (Brennan and
 * Schwartz 1977). The bound of a row acts on the rows before it only after x of this row
 * is known, so that no parallel elimination applies. The reason for this kernel is the
 * result, not speed: no time was measured.
 */
#include <cstdlib>
#include <utility>

#include "device/operand.cuh"
#include "lines/methods.h"
#include "lines/thomas.cuh"
#include "runtime/elements.cuh"
#include "runtime/math.cuh"

namespace pysolvers::lines {

using namespace device;
using namespace runtime;

static constexpr int max_threads = 256, least_threads = 32;

/* Periodic systems of fewer rows are not corrected. The threshold of the others, in eps.
 */
static constexpr int64_t least_corrected_rows = 64;
static constexpr int largest_last_residual = 16;

/* Rows that are loaded while as many rows are processed. */
template <typename Number>
static constexpr int rows_ahead = 64 / static_cast<int>(sizeof(Number));

namespace {

/* The workspace, each [row][system]. */
template <typename Number> struct Kept {
    Number *c, *z; /* z: periodic only */
    bool swapped;  /* Systems has its batch axes exchanged */
};

/* A system, and its index in the workspace. */
template <typename Number> struct Line {
    const Number *lower, *diag, *upper, *rhs;
    Number *x;
    int64_t index;

    __device__ Line(const Systems<Number> &s, int64_t system) : index(system)
    {
        const int64_t j = system / s.inner, k = system % s.inner;

        lower = s.lower.system(j, k);
        diag = s.diag.system(j, k);
        upper = s.upper.system(j, k);
        rhs = s.rhs.system(j, k);
        x = s.x.system(j, k);
    }

    /* Row i; the couplings beyond the ends are not read unless periodic. */
    __device__ __forceinline__ ThomasRow<Number> load(const Systems<Number> &s, int64_t i,
                                                      bool periodic) const
    {
        return {i > 0 || periodic ? lower[i * s.lower.row] : Number(0),
                diag[i * s.diag.row],
                i < s.rows - 1 || periodic ? upper[i * s.upper.row] : Number(0),
                rhs[i * s.rhs.row]};
    }
};

/* What becomes of x of a row: x. */
struct NoBounds {
    __device__ __forceinline__ auto of_system(int64_t, int64_t) const
    {
        return [](int64_t, auto x) { return x; };
    }
};

/* Its bound, if x is smaller, in rows inside of a mask; null data: no bounds, no mask. */
template <typename Number> struct Bounds {
    Input<Number> least;
    Input<uint8_t> where;

    __device__ __forceinline__ auto of_system(int64_t j, int64_t k) const
    {
        const Number *const bounds = least.system(j, k);
        const uint8_t *const mask = where.data != nullptr ? where.system(j, k) : nullptr;

        return [this, bounds, mask](int64_t i, Number x) {
            const Number bound = bounds[i * least.row];
            const bool is_inside = mask == nullptr || mask[i * where.row] != 0;

            return is_inside && x < bound ? bound : x;
        };
    }
};

} // namespace

/* Eliminate rows 0 .. end-1: c and z are stored in the workspace, y in x. */
template <typename Number, bool periodic>
__device__ __forceinline__ Sweep<Number>
sweep_down(const Systems<Number> &s, const Kept<Number> &kept, const Line<Number> &line)
{
    constexpr int depth = rows_ahead<Number>;
    const int64_t end = s.rows - periodic, systems = s.outer * s.inner;
    Sweep<Number> sweep = {0, 0, 0, 0, 0, 0, 0};
    ThomasRow<Number> rows[depth], next[depth], last = {0, 0, 0, 0};
    const auto fetch = [&](ThomasRow<Number>(&to)[depth], int64_t first) {
#pragma unroll
        for (int k = 0; k < depth; k++) { /* beyond the end: the last row again */
            to[k] = line.load(s, first + k < end ? first + k : end - 1, periodic);
        }
    };

    if (periodic) {
        last = line.load(s, end, true);
        sweep.left = last.upper;
        sweep.diag = end > 0 ? last.diag : last.diag + (last.lower + last.upper);
        sweep.rhs = last.rhs;
    }
    if (end > 0) {
        fetch(rows, 0);
    }
    for (int64_t first = 0; first < end; first += depth) {
        fetch(next, first + depth);
#pragma unroll
        for (int k = 0; k < depth && first + k < end; k++) {
            const int64_t i = first + k;
            ThomasRow<Number> row = rows[k];
            Number far = 0;

            if (periodic && i == 0) {
                far = row.lower;
                row.lower = 0;
            }
            if (periodic && i == end - 1) {
                far = far + row.upper;
                row.upper = 0;
                sweep.left = sweep.left + last.lower;
            }
            sweep.template eliminate<periodic>(row, far, i);
            line.x[i * s.x.row] = sweep.y;
            kept.c[i * systems + line.index] = sweep.c;
            if (periodic) {
                kept.z[i * systems + line.index] = sweep.z;
            }
        }
#pragma unroll
        for (int k = 0; k < depth; k++) {
            rows[k] = next[k];
        }
    }
    return sweep;
}

/* x_i = y_i - c_i x_{i+1} - z_i far, for decreasing i from end-1 on; x_i =
 * bounded(i, x_i). */
template <typename Number, bool periodic, typename Bounded>
__device__ __forceinline__ void
sweep_up(const Systems<Number> &s, const Kept<Number> &kept, const Line<Number> &line,
         Number far, const Bounded &bounded)
{
    constexpr int depth = rows_ahead<Number>;
    const int64_t end = s.rows - periodic, systems = s.outer * s.inner;
    Eliminated<Number> rows[depth], next[depth];
    Number x = 0;
    const auto fetch = [&](Eliminated<Number>(&to)[depth], int64_t first) {
#pragma unroll
        for (int k = 0; k < depth; k++) { /* beyond the first row: the first row again */
            const int64_t i = first > k ? first - k : 0;

            to[k].c = kept.c[i * systems + line.index];
            to[k].y = line.x[i * s.x.row];
            to[k].z = periodic ? kept.z[i * systems + line.index] : Number(0);
        }
    };

    if (end > 0) {
        fetch(rows, end - 1);
    }
    for (int64_t first = end - 1; first >= 0; first -= depth) {
        fetch(next, first - depth);
#pragma unroll
        for (int k = 0; k < depth && k <= first; k++) {
            x = rows[k].y - rows[k].c * x;
            if (periodic) {
                x = x - rows[k].z * far;
            }
            x = bounded(first - k, x);
            line.x[(first - k) * s.x.row] = x;
        }
#pragma unroll
        for (int k = 0; k < depth; k++) {
            rows[k] = next[k];
        }
    }
}

/* Subtract the multiple of v from x that makes the residual of the last row zero, if that
 * residual is large. rhs: of the last row. */
template <typename Number>
__device__ __forceinline__ void
correct_last_row(const Systems<Number> &s, const Kept<Number> &kept,
                 const Line<Number> &line, Number rhs)
{
    using Real = real_of<Number>;
    const int64_t n = s.rows, systems = s.outer * s.inner;
    const Number lower = line.lower[(n - 1) * s.lower.row],
                 diag = line.diag[(n - 1) * s.diag.row],
                 upper = line.upper[(n - 1) * s.upper.row];
    /* v_i, from v_{i+1} */
    const auto v_above = [&](int64_t i, Number v) {
        const int64_t at = i * systems + line.index;

        return i == n - 2 ? kept.z[at] : kept.z[at] - kept.c[at] * v;
    };
    const Number a = lower * line.x[(n - 2) * s.x.row],
                 b = diag * line.x[(n - 1) * s.x.row], c = upper * line.x[0];
    const Number rho = rhs - b - a - c;
    const Real terms = size_of(a) + size_of(b) + size_of(c) + size_of(rhs);

    if (!(size_of(rho) > largest_last_residual * eps_of<Number> * terms)) {
        return;
    }
    Number v = v_above(n - 2, Number(0)), pivot = diag - lower * v;

    for (int64_t i = n - 3; i >= 0; i--) {
        v = v_above(i, v);
    }
    pivot = pivot - upper * v;
    const Number scale = rho * reciprocal(pivot);

    if (!(size_of(pivot) - size_of(pivot) == 0 && size_of(scale) - size_of(scale) == 0)) {
        return; /* not finite */
    }
    line.x[(n - 1) * s.x.row] = line.x[(n - 1) * s.x.row] + scale;
    for (int64_t i = n - 2; i >= 0; i--) {
        v = v_above(i, v);
        line.x[i * s.x.row] = line.x[i * s.x.row] - scale * v;
    }
}

namespace {

/* The system of a thread. With bounds it is not periodic. */
template <typename Number, bool periodic, typename Limit> struct SolveSystem {
    Systems<Number> s;
    Kept<Number> kept;
    Limit limit;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        const Line<Number> line(s, index);
        const int64_t j = index / s.inner, k = index % s.inner;
        Sweep<Number> sweep = sweep_down<Number, periodic>(s, kept, line);
        Number far = 0, last_rhs = 0;

        if (periodic) {
            const int64_t last = s.rows - 1;

            last_rhs = line.rhs[last * s.rhs.row]; /* before x, which may replace it */
            far = sweep.rhs * sweep.invert(sweep.diag, last);
            line.x[last * s.x.row] = far;
        }
        sweep_up<Number, periodic>(s, kept, line, far, limit.of_system(j, k));
        if (periodic && s.rows >= least_corrected_rows) {
            correct_last_row(s, kept, line, last_rhs);
        }
        if (s.info != nullptr) {
            s.info[kept.swapped ? k * s.outer + j : index] = sweep.info;
        }
    }
};

} // namespace

/* Exchange the batch axes if the outer one has the smaller stride. */
template <typename Number>
static bool
swap_to_fastest(Systems<Number> &s, Bounds<Number> &bounds)
{
    if (s.outer == 1 || (s.inner > 1 && std::abs(s.x.inner) <= std::abs(s.x.outer))) {
        return false;
    }
    for (Input<Number> *in : {&s.lower, &s.diag, &s.upper, &s.rhs, &bounds.least}) {
        std::swap(in->inner, in->outer);
    }
    std::swap(bounds.where.inner, bounds.where.outer);
    std::swap(s.x.inner, s.x.outer);
    std::swap(s.inner, s.outer);
    return true;
}

static bool
variant_is_legal(int32_t threads)
{
    return threads == 0 || (threads >= least_threads && threads <= max_threads &&
                            (threads & (threads - 1)) == 0);
}

/* Small blocks if there are few systems, so that all multiprocessors are used. */
static int
threads_for(int64_t systems, int processors)
{
    int threads = max_threads;

    while (threads > least_threads &&
           systems < static_cast<int64_t>(threads) * processors) {
        threads /= 2;
    }
    return threads;
}

/* `bounds` with null data: none. */
template <typename Number>
static ps_status
launch(const ps_tridiag *t, Bounds<Number> bounds, int32_t variant, const ps_exec *exec,
       int processors, ps_report *report)
{
    Systems<Number> s = systems_of<Number>(*t);
    const int64_t systems = s.outer * s.inner;
    const int threads = variant > 0 ? variant : threads_for(systems, processors);
    const cudaStream_t stream = ps_cuda_stream(exec);
    Kept<Number> kept;

    kept.swapped = swap_to_fastest(s, bounds);
    kept.c = static_cast<Number *>(exec->work);
    kept.z = kept.c + (s.rows - 1) * systems;
    if constexpr (!number_traits<Number>::is_complex) {
        if (bounds.least.data != nullptr) {
            report->kernel = "thomas bounded";
            return for_elements<max_threads>(
                systems, stream,
                SolveSystem<Number, false, Bounds<Number>>{s, kept, bounds}, threads);
        }
    }
    report->kernel = s.rows == 1 || std::abs(s.x.inner) <= std::abs(s.x.row)
                         ? "thomas coalesced"
                         : "thomas uncoalesced";
    return s.periodic ? for_elements<max_threads>(
                            systems, stream,
                            SolveSystem<Number, true, NoBounds>{s, kept, {}}, threads)
                      : for_elements<max_threads>(
                            systems, stream,
                            SolveSystem<Number, false, NoBounds>{s, kept, {}}, threads);
}

static ps_status
thomas_work(const ps_tridiag *t, const ps_options *options, size_t *bytes)
{
    const bool periodic = (t->flags & PS_PERIODIC) != 0;
    const int64_t kept = periodic ? 2 * (t->rows - 1) : t->rows;

    *bytes = static_cast<size_t>(kept * t->outer * t->inner * ps_dtype_size(t->dtype));
    return variant_is_legal(options->variant) ? PS_OK : PS_BAD_ARGUMENT;
}

static ps_status
thomas_solve(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
             ps_report *report)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    if (!variant_is_legal(options->variant)) {
        return PS_BAD_ARGUMENT;
    }
    return with_number(t->dtype, [&](auto number) {
        return launch<decltype(number)>(t, {}, options->variant, exec, device->processors,
                                        report);
    });
}

ps_status
ps_cuda_thomas_bounded_work(const ps_tridiag *t, size_t *bytes)
{
    const ps_options options = {PS_THOMAS, PS_PIVOT_NEVER, 0};

    return thomas_work(t, &options, bytes);
}

ps_status
ps_cuda_thomas_bounded(const ps_tridiag *t, const ps_input &least, const ps_mask &where,
                       const ps_exec *exec, ps_report *report)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    *report = {PS_THOMAS, 0, 0, nullptr, 0, nullptr, nullptr};
    return with_real(t->dtype, [&](auto number) {
        using Real = decltype(number);
        const Bounds<Real> bounds = {input_of<Real>(least),
                                     input_of<uint8_t>({where.data, where.stride})};

        return launch<Real>(t, bounds, 0, exec, device->processors, report);
    });
}

const ps_cuda_method ps_cuda_thomas = {thomas_work, thomas_solve};

} // namespace pysolvers::lines
