/* differences.cu - differences alone, 2 words per value: neighbouring threads have
 * neighbouring values, and find those of other rows in the cache. For five diagonals, which have
 * few rows here, and for layouts and matrices whose solve takes no source: with this kernel a
 * compact derivative of accuracy 6 of lines of 256 values in float64 has 0.29 of the speed of a copy,
 * by array operations 0.09 (H200).
 */
#include "lines/differences.cuh"

#include "device/operand.cuh"
#include "lines/differences.h"
#include "lines/row_walk.h"
#include "runtime/backend.h"
#include "runtime/elements.cuh"

namespace pysolvers::lines {

using namespace device;
using namespace runtime;

/* The difference number e, in the order of the axes along, step and other of a walk. */
template <typename Real> struct EachDifference {
    Differences<Real> by;
    Walked<const Real> f;
    Walked<Real> x;
    int64_t near, far; /* lengths of the axes along and step */
    bool by_row;

    __device__ __forceinline__ void operator()(int64_t e) const
    {
        const int64_t line = quotient(e, near), k = quotient(line, far);
        const int64_t i = e - line * near, j = line - k * far;
        const int64_t row_step = by_row ? f.along : f.step;
        const int32_t row = static_cast<int32_t>(by_row ? i : j);
        const Real *const own = f.at(i, j, k);
        const auto value = [=](int32_t at) { return own[(at - row) * row_step]; };

        *x.at(i, j, k) = by.is_end(row) ? by.at_end(by.end_of(row), value)
                         : by.is_even() ? inner<true>(row, value)
                                        : inner<false>(row, value);
    }

  private:
    template <bool IS_EVEN, typename Value>
    __device__ __forceinline__ Real inner(int32_t row, const Value &value) const
    {
        return by.template inner<IS_EVEN>(value(row - 2), value(row - 1), value(row),
                                          value(row + 1), value(row + 2));
    }
};

ps_status
ps_cuda_differences(const ps_differences *d, const ps_exec *exec)
{
    ps_status status = ps_differences_check(d, {nullptr, nullptr});

    if (status == PS_OK && !ps_is_real(d->dtype)) {
        status = PS_UNSUPPORTED;
    }
    if (status != PS_OK || d->outer * d->inner == 0) {
        return status;
    }
    return with_real(d->dtype, [&](auto zero) {
        using Real = decltype(zero);
        const WalkAxes axes = walk_axes_of(batch_of(*d, d->f, d->x));
        const int64_t lines = axes.swaps ? d->outer : d->inner;
        const EachDifference<Real> each = {
            Differences<Real>(*d),
            axes.walked(static_cast<const Real *>(d->f.data), d->f.stride),
            axes.walked(static_cast<Real *>(d->x.data), d->x.stride),
            axes.by_row ? d->rows : lines,
            axes.by_row ? lines : d->rows,
            axes.by_row};

        return for_elements(d->outer * d->inner * d->rows, ps_cuda_stream(exec), each);
    });
}

} // namespace pysolvers::lines
