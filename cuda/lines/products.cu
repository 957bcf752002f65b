/* products.cu - the derivatives of a batch of solves with respect to the diagonals.
 *
 * With A x = b and g = A^{-T} (cotangent of x), the cotangents of the diagonals are
 *
 *   lower[i] = -g[i] x[i-1],  diag[i] = -g[i] x[i],  upper[i] = -g[i] x[i+1]
 *
 * (Giles 2008). One pass reads two arrays and writes three: 5 words and 3 operations per
 * unknown; of a step it reads four, 7 words. The neighbours of x come from the cache; where
 * adjacent systems are adjacent in memory, a thread has several rows of them, so that it
 * reads 3/2 numbers of x for each row, not 3.
 *
 * Kernels, not operations of elements.cuh: of pointers that are parameters of a kernel the compiler
 * knows that the memory is only read, and loads past the coherent cache. As operations the products
 * of a step take 1.02 to 1.14 of the time (H200).
 */
#include "device/operand.cuh"
#include "device/pack.cuh"
#include "lines/products.h"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::lines {

using namespace device;
using namespace runtime;

/* Each thread loads the operands of `at_once` packs before it stores a result. */
static constexpr int threads_a_block = 256, at_once = 4;

namespace {

/* What a thread reads: g and x. */
template <typename Number> struct OfSolve {
    const Number *__restrict__ g, *__restrict__ x;

    template <int WIDTH, typename Index>
    __device__ __forceinline__ Pack<Number, WIDTH> factors(Index p) const
    {
        return reinterpret_cast<const Pack<Number, WIDTH> *>(g)[p];
    }
    template <int WIDTH, typename Index>
    __device__ __forceinline__ Pack<Number, WIDTH> values(Index p) const
    {
        return reinterpret_cast<const Pack<Number, WIDTH> *>(x)[p];
    }
};

/* What a thread reads of a step: g + share of, and scale (u + theta (x - u)). */
template <typename Number> struct OfStep {
    const Number *__restrict__ g, *__restrict__ x, *__restrict__ of, *__restrict__ u;
    Number share, theta, scale;

    template <int WIDTH, typename Index>
    __device__ __forceinline__ Pack<Number, WIDTH> factors(Index p) const
    {
        Pack<Number, WIDTH> found = reinterpret_cast<const Pack<Number, WIDTH> *>(g)[p];
        const auto other = reinterpret_cast<const Pack<Number, WIDTH> *>(of)[p];

#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            found.of[j] += share * other.of[j];
        }
        return found;
    }
    template <int WIDTH, typename Index>
    __device__ __forceinline__ Pack<Number, WIDTH> values(Index p) const
    {
        Pack<Number, WIDTH> found = reinterpret_cast<const Pack<Number, WIDTH> *>(x)[p];
        const auto first = reinterpret_cast<const Pack<Number, WIDTH> *>(u)[p];

#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            found.of[j] = scale * (first.of[j] + theta * (found.of[j] - first.of[j]));
        }
        return found;
    }
};

} // namespace

/* The arrays have `packs` packs; fewer than 2^30 numbers if Index has 32 bits. Row i of a
 * system follows row i - 1 after `inner` numbers; if a pack has several, they are rows
 * of one system, and inner is 1. */
template <int WIDTH, typename Number, typename Index, typename Operands>
static __global__ void
__launch_bounds__(threads_a_block)
    products_kernel(const Operands o, Number *__restrict__ lower,
                    Number *__restrict__ diag, Number *__restrict__ upper, Index packs,
                    Index rows, Index inner, bool is_periodic)
{
    using P = Pack<Number, WIDTH>;
    const Index first = Index(blockIdx.x) * (threads_a_block * at_once) + threadIdx.x;
    P factor[at_once], value[at_once];
    Number before[at_once], after[at_once];
    bool has_before[at_once], has_after[at_once];

    /* Threads behind the end load the last pack, so that no load waits for a branch. */
#pragma unroll
    for (int k = 0; k < at_once; k++) {
        const Index p = min(first + k * threads_a_block, packs - 1), e = p * WIDTH;
        const Index i = (WIDTH > 1 || inner == 1 ? e : e / inner) % rows;
        const bool is_first = i == 0, is_last = i + WIDTH == rows;

        factor[k] = o.template factors<WIDTH>(p);
        value[k] = o.template values<WIDTH>(p);
        before[k] =
            o.template values<1>(is_first ? e + (rows - 1) * inner : e - inner).of[0];
        after[k] =
            o.template values<1>(is_last ? e - i * inner : e + WIDTH * inner).of[0];
        has_before[k] = !is_first || is_periodic;
        has_after[k] = !is_last || is_periodic;
    }

#pragma unroll
    for (int k = 0; k < at_once; k++) {
        const Index p = first + k * threads_a_block;
        P below, middle, above;

#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            const Number minus = -factor[k].of[j];

            below.of[j] = minus * (j > 0 ? value[k].of[j - 1] : before[k]);
            middle.of[j] = minus * value[k].of[j];
            above.of[j] = minus * (j + 1 < WIDTH ? value[k].of[j + 1] : after[k]);
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

/* Neighbouring numbers are equal rows of `packs` times WIDTH systems. A thread has `at_once`
 * rows of WIDTH systems; there are `threads` in all. H200, of the time of single numbers:
 * float32 0.84, 0.85 of a step, 0.96 of a solve; float64 0.91 to 0.94, 0.97; with WIDTH 1
 * instead 0.95 to 1.08 of a step, 1.11 to 1.18 of a solve. */
template <int WIDTH, typename Number, typename Index, typename Operands>
static __global__ void
__launch_bounds__(threads_a_block)
    column_products_kernel(const Operands o, Number *__restrict__ lower,
                           Number *__restrict__ diag, Number *__restrict__ upper,
                           Index threads, Index rows, Index packs, bool is_periodic)
{
    using P = Pack<Number, WIDTH>;
    const Index thread = Index(blockIdx.x) * threads_a_block + threadIdx.x;
    const Index parts = (rows + at_once - 1) / at_once, part = thread / packs;
    const Index first = part % parts * at_once, system = part / parts * rows;
    P factor[at_once], value[at_once + 2];

    if (thread >= threads) {
        return;
    }
    /* The row after the last one is the first one, and those after it are not used. */
    const auto pack_of = [&](Index row) {
        const Index own = row < rows ? row : row == rows ? 0 : rows - 1;

        return (system + own) * packs + thread % packs;
    };

    value[0] = o.template values<WIDTH>(pack_of(first == 0 ? rows - 1 : first - 1));
#pragma unroll
    for (int k = 0; k <= at_once; k++) {
        value[k + 1] = o.template values<WIDTH>(pack_of(first + k));
        if (k < at_once) {
            factor[k] = o.template factors<WIDTH>(pack_of(first + k));
        }
    }
#pragma unroll
    for (int k = 0; k < at_once; k++) {
        const Index row = first + k;
        const bool has_before = row > 0 || is_periodic,
                   has_after = row + 1 < rows || is_periodic;
        P below, middle, above;

#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            const Number minus = -factor[k].of[j];

            below.of[j] = has_before ? minus * value[k].of[j] : Number{};
            middle.of[j] = minus * value[k + 1].of[j];
            above.of[j] = has_after ? minus * value[k + 2].of[j] : Number{};
        }
        if (row < rows) {
            const Index p = pack_of(row);

            reinterpret_cast<P *>(lower)[p] = below;
            reinterpret_cast<P *>(diag)[p] = middle;
            reinterpret_cast<P *>(upper)[p] = above;
        }
    }
}

/* Whether the arrays are packs: of the rows of all systems, or of as many systems. */
static bool
has_packs(const ps_products *p, int64_t width)
{
    const uintptr_t addresses =
        reinterpret_cast<uintptr_t>(p->g) | reinterpret_cast<uintptr_t>(p->x) |
        reinterpret_cast<uintptr_t>(p->of) | reinterpret_cast<uintptr_t>(p->u) |
        reinterpret_cast<uintptr_t>(p->lower) | reinterpret_cast<uintptr_t>(p->diag) |
        reinterpret_cast<uintptr_t>(p->upper);

    return (p->inner == 1 ? p->rows : p->inner) % width == 0 && addresses % 16 == 0;
}

template <int WIDTH, typename Number, typename Index, typename Operands>
static ps_status
launch(const ps_products *p, const Operands &operands, cudaStream_t stream)
{
    Number *const lower = static_cast<Number *>(p->lower);
    Number *const diag = static_cast<Number *>(p->diag);
    Number *const upper = static_cast<Number *>(p->upper);
    const Index rows = static_cast<Index>(p->rows), inner = static_cast<Index>(p->inner);
    const bool is_periodic = (p->flags & PS_PERIODIC) != 0;

    if constexpr (WIDTH > 1) {
        if (p->inner > 1) {
            const int64_t packs = p->inner / WIDTH;
            const int64_t threads = p->outer * divided_up(p->rows, at_once) * packs;

            return Launch(divided_up(threads, threads_a_block), threads_a_block, 0,
                          stream)
                .run(column_products_kernel<WIDTH, Number, Index, Operands>, operands,
                     lower, diag, upper, static_cast<Index>(threads), rows,
                     static_cast<Index>(packs), is_periodic);
        }
    }
    const int64_t packs = p->outer * p->rows * p->inner / WIDTH;
    const int64_t blocks = divided_up(packs, threads_a_block * at_once);

    return Launch(blocks, threads_a_block, 0, stream)
        .run(products_kernel<WIDTH, Number, Index, Operands>, operands, lower, diag,
             upper, static_cast<Index>(packs), rows, inner, is_periodic);
}

template <typename Number, typename Operands>
static ps_status
launch_widest(const ps_products *p, const Operands &operands, cudaStream_t stream)
{
    constexpr int width = 16 / sizeof(Number);
    const bool is_wide = has_packs(p, width);

    if (p->outer * p->rows * p->inner < INT32_MAX / 2) {
        return is_wide ? launch<width, Number, int32_t>(p, operands, stream)
                       : launch<1, Number, int32_t>(p, operands, stream);
    }
    return is_wide ? launch<width, Number, int64_t>(p, operands, stream)
                   : launch<1, Number, int64_t>(p, operands, stream);
}

ps_status
ps_cuda_products(const ps_products *p, const ps_exec *exec)
{
    const cudaStream_t stream = ps_cuda_stream(exec);

    if (p->outer * p->rows * p->inner == 0) {
        return PS_OK;
    }
    if (p->u != nullptr) {
        return with_real(p->dtype, [&](auto number) {
            using Real = decltype(number);
            const auto at = [](const void *data) {
                return static_cast<const Real *>(data);
            };

            return launch_widest<Real>(p,
                                       OfStep<Real>{at(p->g), at(p->x), at(p->of),
                                                    at(p->u), static_cast<Real>(p->share),
                                                    static_cast<Real>(p->theta),
                                                    static_cast<Real>(p->scale)},
                                       stream);
        });
    }
    return with_number(p->dtype, [&](auto number) {
        using Number = decltype(number);

        return launch_widest<Number>(p,
                                     OfSolve<Number>{static_cast<const Number *>(p->g),
                                                     static_cast<const Number *>(p->x)},
                                     stream);
    });
}

} // namespace pysolvers::lines
