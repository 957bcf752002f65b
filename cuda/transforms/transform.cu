/* transform.cu - load and store of transforms along an axis of a field.
 *
 * The values of a column are `row` apart, and neighbouring columns are neighbours in
 * memory; the numbers of a line are neighbours. Both kernels go through tiles of 32
 * numbers of 32 lines in shared memory, so that a warp moves neighbours on both sides.
 *
 * Words moved per value: one read and one written in each kernel; dct1 and dst1 write and
 * read twice as many in the lines. Panels of columns whose lines fit into the cache of
 * the device leave two words per value and transform in memory: the caller's choice.
 */
#include <type_traits>

#include "transforms/element.cuh"

#include "device/operand.cuh"
#include "runtime/backend.h"
#include "runtime/launch.cuh"
#include "runtime/math.cuh"

namespace pysolvers::transforms {

using namespace device;
using namespace runtime;

static constexpr int side = 32; /* of a tile */
static constexpr int tile_threads = 8;
static constexpr int tile_numbers = side / tile_threads; /* of a thread */
static constexpr int64_t most_blocks = 1 << 20;          /* the rest is looped over */

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

/* Grid: any number of blocks of (side, tile_threads) threads. A thread reads all its
 * numbers before it writes one, so that the reads wait for each other once. */
template <typename Real, ps_transform_kind kind>
static __global__ void
load_kernel(const __grid_constant__ Output<Real> field,
            const __grid_constant__ ps_transform t, int64_t pitch,
            const __grid_constant__ Tiles tiles)
{
    using Number = std::conditional_t<loads_complex(kind), Complex<Real>, Real>;
    __shared__ Number tile[side][side + 1];
    __shared__ Complex<Real> factors[side];
    const int64_t lines = t.outer * t.inner;
    const int x = threadIdx.x, n = static_cast<int>(t.size);

    for (int64_t b = blockIdx.x; b < tiles.along * tiles.across; b += gridDim.x) {
        const int64_t across = quotient(b, tiles.along);
        const int first = static_cast<int>(b - across * tiles.along) * side;
        const int64_t line = across * side + x;
        const int rows = line < lines ? min(side, tiles.numbers - first) : 0;
        Number numbers[tile_numbers];

        if (rows > 0) {
            const Real *const column = column_of(field, line, t.inner);
            const auto value = [&](int j) { return __ldcs(column + j * field.row); };

#pragma unroll
            for (int k = 0; k < tile_numbers; k++) {
                const int y = threadIdx.y + k * tile_threads;

                if (y < rows) {
                    numbers[k] = load_number<Real, kind>(first + y, n, value);
                }
            }
        }
        if (has_load_factor(kind) && threadIdx.y == 0) {
            factors[x] = load_factor<Real, kind>(first + x, n);
        }
#pragma unroll
        for (int k = 0; k < tile_numbers; k++) {
            const int y = threadIdx.y + k * tile_threads;

            if (y < rows) {
                tile[y][x] = numbers[k];
            }
        }
        __syncthreads(); /* the tile and the factors are written */
        for (int y = threadIdx.y; y < side; y += tile_threads) {
            const int64_t to = across * side + y;

            if (to < lines && first + x < tiles.numbers) {
                Real *const out = static_cast<Real *>(t.lines) + to * pitch;

                if constexpr (has_load_factor(kind)) {
                    reinterpret_cast<Number *>(out)[first + x] = factors[x] * tile[x][y];
                }
                else {
                    reinterpret_cast<Number *>(out)[first + x] = tile[x][y];
                }
            }
        }
        __syncthreads(); /* the tile is read */
    }
}

/* Grid: as above. */
template <typename Real, ps_transform_kind kind>
static __global__ void
store_kernel(const __grid_constant__ Output<Real> field,
             const __grid_constant__ ps_transform t, int64_t pitch,
             const __grid_constant__ Tiles tiles)
{
    using Number = std::conditional_t<stores_complex(kind), Complex<Real>, Real>;
    __shared__ Number tile[side][side + 1];
    __shared__ Complex<Real> factors[side];
    const int64_t lines = t.outer * t.inner;
    const int x = threadIdx.x, n = static_cast<int>(t.size);
    const Real scale = static_cast<Real>(t.scale);

    for (int64_t b = blockIdx.x; b < tiles.along * tiles.across; b += gridDim.x) {
        const int64_t across = quotient(b, tiles.along);
        const int first = static_cast<int>(b - across * tiles.along) * side;
        const int64_t line = across * side + x;
        Number numbers[tile_numbers];

#pragma unroll
        for (int k = 0; k < tile_numbers; k++) {
            const int64_t from = across * side + threadIdx.y + k * tile_threads;

            if (from < lines && first + x < tiles.numbers) {
                const Real *const in = static_cast<const Real *>(t.lines) + from * pitch;

                numbers[k] = reinterpret_cast<const Number *>(in)[first + x];
            }
        }
        if (has_store_factor(kind) && threadIdx.y == 0) {
            factors[x] = store_factor<Real, kind>(first + x, n);
        }
#pragma unroll
        for (int k = 0; k < tile_numbers; k++) {
            const int y = threadIdx.y + k * tile_threads;

            if (across * side + y < lines && first + x < tiles.numbers) {
                tile[x][y] = numbers[k];
            }
        }
        __syncthreads(); /* the tile and the factors are written */
        if (line < lines) {
            Real *const column = column_of(field, line, t.inner);
            const auto put = [&](int k, Real y) {
                __stcs(column + k * field.row, scale * y);
            };

            for (int y = threadIdx.y; y < side && first + y < tiles.numbers;
                 y += tile_threads) {
                store_number<Real, kind>(first + y, n, factors[y], tile[y][x], put);
            }
        }
        __syncthreads(); /* the tile is read */
    }
}

/* Numbers of a line before the transform of the library (`loads`) or after it. */
static int
numbers_of(const ps_transform_shape &s, bool loads)
{
    const bool is_half = s.form == (loads ? PS_COMPLEX_TO_REAL : PS_REAL_TO_COMPLEX);

    return static_cast<int>(is_half ? s.length / 2 + 1 : s.length);
}

template <typename Real, ps_transform_kind kind>
static ps_status
launch(const ps_transform *t, bool loads, cudaStream_t stream)
{
    const ps_transform_shape s = ps_transform_shape_of(kind, t->size);
    const int64_t lines = t->outer * t->inner;
    Tiles tiles = {numbers_of(s, loads), 0, divided_up(lines, side)};

    tiles.along = divided_up(tiles.numbers, side);
    const int64_t count = tiles.along * tiles.across;
    return Launch(count < most_blocks ? count : most_blocks, dim3(side, tile_threads), 0,
                  stream)
        .run(loads ? load_kernel<Real, kind> : store_kernel<Real, kind>,
             output_of<Real>(t->field), *t, s.pitch, tiles);
}

template <typename Real>
static ps_status
launch_kind(const ps_transform *t, bool loads, cudaStream_t stream)
{
    switch (t->kind) {
#define PS_CASE_(name, text) \
    case name:               \
        return launch<Real, name>(t, loads, stream);
        PS_TRANSFORM_LIST(PS_CASE_)
#undef PS_CASE_
    default:
        return PS_BAD_ARGUMENT;
    }
}

static ps_status
run(const ps_transform *t, bool loads, const ps_exec *exec)
{
    const ps_status status = ps_transform_check(t);

    if (status != PS_OK || t->outer == 0 || t->inner == 0) {
        return status;
    }
    return with_real(t->dtype, [&](auto zero) {
        return launch_kind<decltype(zero)>(t, loads, ps_cuda_stream(exec));
    });
}

ps_status
ps_cuda_transform_load(const ps_transform *t, const ps_exec *exec)
{
    return run(t, true, exec);
}

ps_status
ps_cuda_transform_store(const ps_transform *t, const ps_exec *exec)
{
    return run(t, false, exec);
}

} // namespace pysolvers::transforms
