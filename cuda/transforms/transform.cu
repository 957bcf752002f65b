/* transform.cu - load and store of transforms along an axis of a field.
 *
 * The values of a column are `row` apart, and neighbouring columns are neighbours in
 * memory; the numbers of a line are neighbours (device/turned_tile.cuh).
 *
 * Words moved per value: one read and one written by each of the two; dct1 and dst1 write and
 * read twice as many in the lines. Panels of columns whose lines fit into the cache of
 * the device leave two words per value and transform in memory: the caller's choice.
 */
#include <type_traits>

#include "transforms/element.cuh"

#include "device/operand.cuh"
#include "device/turned_tile.cuh"
#include "runtime/backend.h"
#include "runtime/elements.cuh"
#include "runtime/math.cuh"

namespace pysolvers::transforms {

using namespace device;
using namespace runtime;

static constexpr int64_t most_blocks = 1 << 20; /* the rest is looped over */

namespace {

/* Numbers of all lines, counted in tiles: numbers first. */
struct Tiles {
    int numbers;           /* of a line */
    int64_t along, across; /* tiles along the lines, and across them */
};

} // namespace

/* The first value of column `line`. */
template <typename Real>
static __device__ __forceinline__ Real *
column_of(const Output<Real> &field, int64_t line, int64_t inner)
{
    const int64_t j = quotient(line, inner);

    return field.system(j, line - j * inner);
}

namespace {

/* The load, or the store. Grid: any number of blocks. */
template <typename Real, ps_transform_kind kind, bool LOADS> struct MoveColumns {
    using Number = std::conditional_t<LOADS ? loads_complex(kind) : stores_complex(kind),
                                      Complex<Real>, Real>;

    Output<Real> field;
    ps_transform t;
    int64_t pitch;
    Tiles tiles;

    __device__ __forceinline__ void operator()() const
    {
        __shared__ Complex<Real> factors[tile_side];

        wait_for_last_kernel();
        for (int64_t b = blockIdx.x; b < tiles.along * tiles.across; b += gridDim.x) {
            const int64_t across = quotient(b, tiles.along);

            move(across * tile_side,
                 static_cast<int>(b - across * tiles.along) * tile_side, factors);
        }
    }

  private:
    /* The tile that begins with number `first` of line `first_line`. */
    __device__ __forceinline__ void move(int64_t first_line, int first,
                                         Complex<Real> *factors) const
    {
        const int n = static_cast<int>(t.size), x = static_cast<int>(threadIdx.x);
        const int64_t lines = t.outer * t.inner;
        Real *const column =
            column_of(field, first_line + x, t.inner); /* of this thread */
        const auto exists = [&](int line, int i) {
            return first_line + line < lines && first + i < tiles.numbers;
        };
        const auto number = [&](int line, int i) -> Number & {
            Real *const start =
                static_cast<Real *>(t.lines) + (first_line + line) * pitch;

            return reinterpret_cast<Number *>(start)[first + i];
        };

        if constexpr (LOADS) {
            const auto value = [&](int j) { return __ldcs(column + j * field.row); };

            turn_tile<Number>(
                [&](int line, int i, Number &found) {
                    if (exists(line, i)) {
                        found = load_number<Real, kind>(first + i, n, value);
                    }
                },
                [&] {
                    if (has_load_factor(kind) && threadIdx.y == 0) {
                        factors[x] = load_factor<Real, kind>(first + x, n);
                    }
                },
                [&](int i, int line, const Number &found) {
                    if (exists(line, i)) {
                        if constexpr (has_load_factor(kind)) {
                            number(line, i) = factors[i] * found;
                        }
                        else {
                            number(line, i) = found;
                        }
                    }
                });
        }
        else {
            const Real scale = static_cast<Real>(t.scale);
            const auto put = [&](int k, Real y) {
                __stcs(column + k * field.row, scale * y);
            };

            turn_tile<Number>(
                [&](int i, int line, Number &found) {
                    if (exists(line, i)) {
                        found = number(line, i);
                    }
                },
                [&] {
                    if (has_store_factor(kind) && threadIdx.y == 0) {
                        factors[x] = store_factor<Real, kind>(first + x, n);
                    }
                },
                [&](int line, int i, const Number &found) {
                    if (exists(line, i)) {
                        store_number<Real, kind>(first + i, n, factors[i], found, put);
                    }
                });
        }
    }
};

} // namespace

/* Numbers of a line before the transform of the library (`loads`) or after it. */
static int
numbers_of(const ps_transform_shape &s, bool loads)
{
    const bool is_half = s.form == (loads ? PS_COMPLEX_TO_REAL : PS_REAL_TO_COMPLEX);

    return static_cast<int>(is_half ? s.length / 2 + 1 : s.length);
}

template <bool LOADS, typename Real, ps_transform_kind kind>
static ps_status
launch(const ps_transform *t, cudaStream_t stream)
{
    const ps_transform_shape s = ps_transform_shape_of(kind, t->size);
    const int numbers = numbers_of(s, LOADS);
    const Tiles tiles = {numbers, divided_up(numbers, tile_side),
                         divided_up(t->outer * t->inner, tile_side)};
    const int64_t count = tiles.along * tiles.across;

    return for_threads<tile_side * tile_rows>(
        count < most_blocks ? count : most_blocks, dim3(tile_side, tile_rows), stream,
        MoveColumns<Real, kind, LOADS>{output_of<Real>(t->field), *t, s.pitch, tiles});
}

template <bool LOADS, typename Real>
static ps_status
launch_kind(const ps_transform *t, cudaStream_t stream)
{
    switch (t->kind) {
#define PS_CASE_(name, text) \
    case name:               \
        return launch<LOADS, Real, name>(t, stream);
        PS_TRANSFORM_LIST(PS_CASE_)
#undef PS_CASE_
    default:
        return PS_BAD_ARGUMENT;
    }
}

template <bool LOADS>
static ps_status
run(const ps_transform *t, const ps_exec *exec)
{
    const ps_status status = ps_transform_check(t);

    if (status != PS_OK || t->outer == 0 || t->inner == 0) {
        return status;
    }
    return with_real(t->dtype, [&](auto zero) {
        return launch_kind<LOADS, decltype(zero)>(t, ps_cuda_stream(exec));
    });
}

ps_status
ps_cuda_transform_load(const ps_transform *t, const ps_exec *exec)
{
    return run<true>(t, exec);
}

ps_status
ps_cuda_transform_store(const ps_transform *t, const ps_exec *exec)
{
    return run<false>(t, exec);
}

} // namespace pysolvers::transforms
