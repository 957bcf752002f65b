/* field.cu - values or products added to a part of a field, and a line without its mean.
 *
 * Most calls move one layer of a field or less: the kernels are written for latency.
 */
#include "device/operand.cuh"
#include "runtime/backend.h"
#include "runtime/elements.cuh"

namespace pysolvers::transforms {

using namespace device;
using namespace runtime;

static constexpr int threads_a_block = 256, at_once = 4;

/* to += from, or, if SCALED, to += factor * from; several elements of a thread in flight. */
template <typename Real, bool SCALED> struct Addition {
    ps_relayout r; /* merged() */
    int64_t elements;

    __device__ __forceinline__ void operator()() const
    {
        const int64_t first =
            int64_t(blockIdx.x) * threads_a_block * at_once + threadIdx.x;
        Real *place[at_once];
        Real sum[at_once];

        wait_for_last_kernel();
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            if (first + k * threads_a_block < elements) {
                sum[k] = sum_of(first + k * threads_a_block, &place[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            if (first + k * threads_a_block < elements) {
                *place[k] = sum[k];
            }
        }
    }

  private:
    __device__ __forceinline__ Real sum_of(int64_t index, Real **place) const
    {
        int64_t to = 0, from = 0, factor = 0;

        for (int k = r.axes - 1; k >= 0; k--) {
            const int64_t rest = k > 0 ? quotient(index, r.shape[k]) : 0;
            const int64_t i = index - rest * r.shape[k];

            index = rest;
            to += i * r.to_stride[k];
            from += i * r.from_stride[k];
            factor += SCALED ? i * r.factor_stride[k] : 0;
        }
        const Real value = static_cast<const Real *>(r.from)[from];

        *place = static_cast<Real *>(r.to) + to;
        return **place +
               (SCALED ? static_cast<const Real *>(r.factor)[factor] * value : value);
    }
};

/* The same arrays with as few axes as possible, so that a thread divides seldom. */
static ps_relayout
merged(const ps_relayout &r)
{
    ps_relayout m = r;

    m.axes = 0;
    for (int k = 0; k < r.axes; k++) {
        const int last = m.axes - 1;
        const auto follows = [&](const int64_t *of, const int64_t *given) {
            return of[last] == given[k] * r.shape[k];
        };

        if (r.shape[k] == 1) {
            continue;
        }
        const bool joins =
            m.axes > 0 && follows(m.to_stride, r.to_stride) &&
            follows(m.from_stride, r.from_stride) &&
            (r.factor == nullptr || follows(m.factor_stride, r.factor_stride));
        const int at = joins ? last : m.axes++;

        m.shape[at] = (joins ? m.shape[at] : 1) * r.shape[k];
        m.to_stride[at] = r.to_stride[k];
        m.from_stride[at] = r.from_stride[k];
        m.factor_stride[at] = r.factor_stride[k];
    }
    return m;
}

template <typename Real>
static ps_status
add(const ps_relayout &r, int64_t elements, cudaStream_t stream)
{
    const int64_t blocks = divided_up(elements, threads_a_block * at_once);

    return r.factor == nullptr
               ? for_threads<threads_a_block>(blocks, stream,
                                              Addition<Real, false>{r, elements})
               : for_threads<threads_a_block>(blocks, stream,
                                              Addition<Real, true>{r, elements});
}

ps_status
ps_cuda_accumulate(const ps_relayout *r, const ps_exec *exec)
{
    cudaStream_t const stream = ps_cuda_stream(exec);
    int64_t elements = 1;

    if (r->axes < 0 || r->axes > PS_MAX_AXES || (r->element != 4 && r->element != 8)) {
        return PS_BAD_ARGUMENT;
    }
    for (int k = 0; k < r->axes; k++) {
        elements *= r->shape[k];
    }
    if (elements == 0) {
        return PS_OK;
    }
    return r->element == 4 ? add<float>(merged(*r), elements, stream)
                           : add<double>(merged(*r), elements, stream);
}

/* Sum over a block of threads_a_block threads; every thread receives it. */
static __device__ double
block_sum(double value)
{
    __shared__ double sums[threads_a_block];
    const int x = threadIdx.x;

    sums[x] = value;
    __syncthreads();
    for (int reach = threads_a_block / 2; reach > 0; reach /= 2) {
        if (x < reach) {
            sums[x] += sums[x + reach];
        }
        __syncthreads();
    }
    const double total = sums[0];
    __syncthreads(); /* `sums` can be written again */
    return total;
}

/* Grid: one block of threads_a_block threads. */
template <typename Real> struct Centre {
    ps_centre c;

    __device__ __forceinline__ void operator()() const
    {
        Real *const data = static_cast<Real *>(c.data);
        double moment = 0, weight = 0;

        wait_for_last_kernel();
        for (int64_t i = threadIdx.x; i < c.size; i += threads_a_block) {
            moment += c.weights[i] * static_cast<double>(data[i * c.stride]);
            weight += c.weights[i];
        }
        const double mean = block_sum(moment) / block_sum(weight);

        for (int64_t i = threadIdx.x; i < c.size; i += threads_a_block) {
            data[i * c.stride] -= static_cast<Real>(mean);
        }
    }
};

ps_status
ps_cuda_centre(const ps_centre *c, const ps_exec *exec)
{
    const ps_status status = ps_centre_check(c);

    if (status != PS_OK || c->size == 0) {
        return status;
    }
    return with_real(c->dtype, [&](auto zero) {
        return for_threads<threads_a_block>(1, ps_cuda_stream(exec),
                                            Centre<decltype(zero)>{*c});
    });
}

} // namespace pysolvers::transforms
