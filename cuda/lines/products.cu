/* products.cu - the derivatives of a batch of solves with respect to the diagonals.
 *
 * With A x = b and g = A^{-T} (cotangent of x), the cotangents of the diagonals are
 *
 *   lower[i] = -g[i] x[i-1],  diag[i] = -g[i] x[i],  upper[i] = -g[i] x[i+1]
 *
 * (Giles 2008). One pass reads two arrays and writes three: 5 words and 3 operations per
 * unknown; the neighbours of x come from the cache.
 */
#include "device/operand.cuh"
#include "lines/products.h"
#include "runtime/engine.h"

namespace pysolvers::lines {

using namespace device;
using namespace runtime;

/* `at_once` independent elements of each thread keep the memory busy. */
static constexpr int threads_a_block = 256, at_once = 4;

/* The arrays have `count` elements, less than 2^31 if Index has 32 bits. Row i of a
 * system follows row i - 1 after `inner` elements. */
template <typename Number, typename Index>
static __global__ void
products_kernel(const Number *__restrict__ g, const Number *__restrict__ x,
                Number *__restrict__ lower, Number *__restrict__ diag,
                Number *__restrict__ upper, Index count, Index rows, Index inner,
                bool is_periodic)
{
    const Index first = Index(blockIdx.x) * (threads_a_block * at_once) + threadIdx.x;
    const Index around = (rows - 1) * inner;

#pragma unroll
    for (int k = 0; k < at_once; k++) {
        const Index e = first + k * threads_a_block;

        if (e < count) {
            const Index i = (inner == 1 ? e : e / inner) % rows;
            const bool has_below = i > 0 || is_periodic;
            const bool has_above = i < rows - 1 || is_periodic;
            const Number left = has_below ? x[i > 0 ? e - inner : e + around] : Number{};
            const Number right =
                has_above ? x[i < rows - 1 ? e + inner : e - around] : Number{};
            const Number factor = -g[e];

            lower[e] = has_below ? factor * left : Number{};
            diag[e] = factor * x[e];
            upper[e] = has_above ? factor * right : Number{};
        }
    }
}

namespace {

/* As many numbers as one load or store moves. */
template <typename Number> struct alignas(16) Pack {
    static constexpr int width = 16 / sizeof(Number);

    Number of[width];
};

} // namespace

/* The same for contiguous systems, whose rows are packs: `packs` of them in all. */
template <typename Number, typename Index>
static __global__ void
packs_kernel(const Number *__restrict__ g, const Number *__restrict__ x,
             Number *__restrict__ lower, Number *__restrict__ diag,
             Number *__restrict__ upper, Index packs, Index rows, bool is_periodic)
{
    using P = Pack<Number>;
    const Index first = Index(blockIdx.x) * (threads_a_block * at_once) + threadIdx.x;

#pragma unroll
    for (int k = 0; k < at_once; k++) {
        const Index p = first + k * threads_a_block;

        if (p < packs) {
            const Index e = p * P::width, i = e % rows, last = rows - P::width;
            const P a = reinterpret_cast<const P *>(g)[p];
            const P b = reinterpret_cast<const P *>(x)[p];
            const bool has_below = i > 0 || is_periodic;
            const bool has_above = i < last || is_periodic;
            Number left = has_below ? x[i > 0 ? e - 1 : e + rows - 1] : Number{};
            P below, middle, above;

#pragma unroll
            for (int j = 0; j < P::width; j++) {
                const Number factor = -a.of[j];

                below.of[j] = factor * left;
                middle.of[j] = factor * b.of[j];
                left = b.of[j];
                if (j + 1 < P::width) {
                    above.of[j] = factor * b.of[j + 1];
                }
            }
            if (!has_below) {
                below.of[0] = Number{};
            }
            above.of[P::width - 1] =
                has_above ? -a.of[P::width - 1] * x[i < last ? e + P::width : e - i]
                          : Number{};
            reinterpret_cast<P *>(lower)[p] = below;
            reinterpret_cast<P *>(diag)[p] = middle;
            reinterpret_cast<P *>(upper)[p] = above;
        }
    }
}

/* Whether the rows of all systems are packs. */
static bool
has_packs(const ps_products *p, int64_t width)
{
    const uintptr_t addresses =
        reinterpret_cast<uintptr_t>(p->g) | reinterpret_cast<uintptr_t>(p->x) |
        reinterpret_cast<uintptr_t>(p->lower) | reinterpret_cast<uintptr_t>(p->diag) |
        reinterpret_cast<uintptr_t>(p->upper);

    return p->inner == 1 && p->rows % width == 0 && addresses % 16 == 0;
}

static unsigned
blocks_for(int64_t count)
{
    return static_cast<unsigned>((count - 1) / (threads_a_block * at_once) + 1);
}

template <typename Number, typename Index>
static ps_status
launch(const ps_products *p, cudaStream_t stream)
{
    const int64_t count = p->outer * p->rows * p->inner;
    const int64_t width = Pack<Number>::width;
    const auto g = static_cast<const Number *>(p->g),
               x = static_cast<const Number *>(p->x);
    const auto lower = static_cast<Number *>(p->lower);
    const auto diag = static_cast<Number *>(p->diag);
    const auto upper = static_cast<Number *>(p->upper);
    const bool is_periodic = (p->flags & PS_PERIODIC) != 0;

    if (has_packs(p, width)) {
        packs_kernel<Number, Index>
            <<<blocks_for(count / width), threads_a_block, 0, stream>>>(
                g, x, lower, diag, upper, static_cast<Index>(count / width),
                static_cast<Index>(p->rows), is_periodic);
    }
    else {
        products_kernel<Number, Index><<<blocks_for(count), threads_a_block, 0, stream>>>(
            g, x, lower, diag, upper, static_cast<Index>(count),
            static_cast<Index>(p->rows), static_cast<Index>(p->inner), is_periodic);
    }
    return ps_cuda_status(cudaGetLastError());
}

ps_status
ps_cuda_products(const ps_products *p, const ps_exec *exec)
{
    const int64_t count = p->outer * p->rows * p->inner;

    if (count == 0) {
        return PS_OK;
    }
    return with_number(p->dtype, [&](auto number) {
        using Number = decltype(number);
        const cudaStream_t stream = ps_cuda_stream(exec);

        return count < INT32_MAX / 2 ? launch<Number, int32_t>(p, stream)
                                     : launch<Number, int64_t>(p, stream);
    });
}

} // namespace pysolvers::lines
