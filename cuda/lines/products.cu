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
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::lines {

using namespace device;
using namespace runtime;

/* Each thread loads the operands of `at_once` packs before it stores a result. */
static constexpr int threads_a_block = 256, at_once = 4;

namespace {

/* Neighbouring numbers that one load or store moves. */
template <typename Number, int WIDTH> struct alignas(WIDTH * sizeof(Number)) Pack {
    Number of[WIDTH];
};

} // namespace

/* The arrays have `packs` packs; fewer than 2^30 numbers if Index has 32 bits. Row i of a
 * system follows row i - 1 after `inner` numbers; if a pack has several, they are rows
 * of one system, and inner is 1. */
template <int WIDTH, typename Number, typename Index>
static __global__ void
__launch_bounds__(threads_a_block)
    products_kernel(const Number *__restrict__ g, const Number *__restrict__ x,
                    Number *__restrict__ lower, Number *__restrict__ diag,
                    Number *__restrict__ upper, Index packs, Index rows, Index inner,
                    bool is_periodic)
{
    using P = Pack<Number, WIDTH>;
    const Index first = Index(blockIdx.x) * (threads_a_block * at_once) + threadIdx.x;
    P of_g[at_once], of_x[at_once];
    Number before[at_once], after[at_once];
    bool has_before[at_once], has_after[at_once];

    /* Threads behind the end load the last pack, so that no load waits for a branch. */
#pragma unroll
    for (int k = 0; k < at_once; k++) {
        const Index p = min(first + k * threads_a_block, packs - 1), e = p * WIDTH;
        const Index i = (WIDTH > 1 || inner == 1 ? e : e / inner) % rows;
        const bool is_first = i == 0, is_last = i + WIDTH == rows;

        of_g[k] = reinterpret_cast<const P *>(g)[p];
        of_x[k] = reinterpret_cast<const P *>(x)[p];
        before[k] = x[is_first ? e + (rows - 1) * inner : e - inner];
        after[k] = x[is_last ? e - i * inner : e + WIDTH * inner];
        has_before[k] = !is_first || is_periodic;
        has_after[k] = !is_last || is_periodic;
    }

#pragma unroll
    for (int k = 0; k < at_once; k++) {
        const Index p = first + k * threads_a_block;
        P below, middle, above;

#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            const Number factor = -of_g[k].of[j];

            below.of[j] = factor * (j > 0 ? of_x[k].of[j - 1] : before[k]);
            middle.of[j] = factor * of_x[k].of[j];
            above.of[j] = factor * (j + 1 < WIDTH ? of_x[k].of[j + 1] : after[k]);
        }
        if (!has_before[k]) {
            below.of[0] = Number{};
        }
        if (!has_after[k]) {
            above.of[WIDTH - 1] = Number{};
        }
        if (p < packs) {
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

template <int WIDTH, typename Number, typename Index>
static ps_status
launch(const ps_products *p, cudaStream_t stream)
{
    const int64_t packs = p->outer * p->rows * p->inner / WIDTH;
    const int64_t blocks = divided_up(packs, threads_a_block * at_once);

    return Launch(blocks, threads_a_block, 0, stream)
        .run(products_kernel<WIDTH, Number, Index>, static_cast<const Number *>(p->g),
             static_cast<const Number *>(p->x), static_cast<Number *>(p->lower),
             static_cast<Number *>(p->diag), static_cast<Number *>(p->upper),
             static_cast<Index>(packs), static_cast<Index>(p->rows),
             static_cast<Index>(p->inner), (p->flags & PS_PERIODIC) != 0);
}

template <typename Number, typename Index>
static ps_status
launch(const ps_products *p, cudaStream_t stream)
{
    constexpr int width = 16 / sizeof(Number);

    return has_packs(p, width) ? launch<width, Number, Index>(p, stream)
                               : launch<1, Number, Index>(p, stream);
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
