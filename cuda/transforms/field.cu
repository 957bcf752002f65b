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

static constexpr int threads_a_block = 256;

/* to += from, or, if SCALED, to += factor * from. */
template <typename Real, bool SCALED> struct Addition {
    ps_relayout r;

    __device__ __forceinline__ void operator()(int64_t index) const
    {
        int64_t to = 0, from = 0, factor = 0;

        for (int k = r.axes - 1; k >= 0; k--) {
            const int64_t rest = quotient(index, r.shape[k]);
            const int64_t i = index - rest * r.shape[k];

            index = rest;
            to += i * r.to_stride[k];
            from += i * r.from_stride[k];
            factor += SCALED ? i * r.factor_stride[k] : 0;
        }
        const Real value = static_cast<const Real *>(r.from)[from];

        static_cast<Real *>(r.to)[to] +=
            SCALED ? static_cast<const Real *>(r.factor)[factor] * value : value;
    }
};

template <typename Real>
static ps_status
add(const ps_relayout &r, int64_t elements, cudaStream_t stream)
{
    return r.factor == nullptr ? for_elements(elements, stream, Addition<Real, false>{r})
                               : for_elements(elements, stream, Addition<Real, true>{r});
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
    return r->element == 4 ? add<float>(*r, elements, stream)
                           : add<double>(*r, elements, stream);
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
