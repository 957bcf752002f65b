/* rows.cu - the choice of shapes for several right-hand sides along a contiguous axis. */
#include "lines/sides/rows.h"

#include <algorithm>
#include <numeric>

#include "device/sides.cuh"
#include "runtime/math.cuh"

namespace pysolvers::sides {

static constexpr int64_t most_of_slot = 36 << 10; /* bytes */
static constexpr int64_t line = 128;              /* bytes */
static constexpr int64_t least_copy = 512; /* bytes of a system that is copied alone */

static int64_t
most_threads(int32_t bytes, int32_t chunk)
{
    return bytes == 4 ? (chunk == long_chunk ? side_rows_threads<float, long_chunk>
                                             : side_rows_threads<float, short_chunk>)
                      : (chunk == long_chunk ? side_rows_threads<double, long_chunk>
                                             : side_rows_threads<double, short_chunk>);
}

/* The threads of a system with chunks of so many rows: lanes, or whole warps. */
static int64_t
threads_of(int64_t rows, int32_t chunk)
{
    const int64_t chunks = divided_up(rows, chunk);
    int64_t lanes = 1;

    while (lanes < chunks && lanes < 32) {
        lanes *= 2;
    }
    return chunks <= 32 ? lanes : divided_up(chunks, 32) * 32;
}

/* The turns in which the lanes that read shared memory together, those of 128 bytes, read it. */
static int
turns_of(int64_t rows, int32_t chunk, int32_t bytes)
{
    const int64_t banks = 128 / bytes, lanes = threads_of(rows, chunk);
    int used[32] = {}, most = 1;

    for (int64_t lane = 0; lane < banks; lane++) {
        most =
            std::max(most, ++used[(lane / lanes * rows + lane % lanes * chunk) % banks]);
    }
    return most;
}

/* The systems of a tile for so many threads of chunks: a multiple of `step`, if possible whole
 * lines of memory. 0 if they do not hold one. */
static int64_t
systems_of_tile(int64_t rows, int64_t step, int32_t bytes, int32_t chunk, int64_t threads)
{
    const int64_t each = threads_of(rows, chunk), size = rows * bytes;
    const int64_t steps =
        bytes == 4 ? SharedLimits<float>::steps : SharedLimits<double>::steps;
    const int64_t named =
        each > 32 ? 15 : threads; /* barriers of teams of several warps */
    const int64_t most = std::min(threads / each, named);
    const int64_t whole = line / std::gcd(line, size);
    int64_t systems = std::min(most, std::max<int64_t>(most_of_slot / size, 1));

    systems = std::max(systems / step * step, step);
    if (4 * (systems / whole * whole) >= 3 * systems) {
        systems = systems / whole * whole;
    }
    return each <= 32 * (1 + (int64_t(1) << steps)) && systems <= most ? systems : 0;
}

/* A tile of `systems` systems in each of `blocks` blocks on a multiprocessor. */
static bool
shape_with(const ps_tridiag &t, int32_t bytes, const ps_cuda_device *device,
           int32_t chunk, int64_t systems, int blocks, SideRows *s)
{
    const int64_t each = threads_of(t.rows, chunk);

    if (systems == 0) {
        return false;
    }
    s->chunk = chunk;
    s->team = {};
    s->team.rows = static_cast<int32_t>(t.rows);
    s->team.width = static_cast<int32_t>(std::min<int64_t>(each, 32));
    s->team.warps = static_cast<int32_t>(each > 32 ? each / 32 : 1);
    s->team.teams = static_cast<int32_t>(systems);
    s->team.rounds = 1;
    int64_t numbers = systems * t.rows;

    if (s->by_warps) { /* each part with room for a begin at any number of a vector */
        const int64_t vector = 16 / bytes, width = s->team.width;
        const int64_t most = each > 32 ? 32 * chunk : 32 / width * t.rows;

        s->part = static_cast<int32_t>(rounded_up(most, vector) + vector);
        numbers = s->workers() / 32 * s->part;
    }
    s->numbers = static_cast<int32_t>(rounded_up(numbers * bytes, line) / bytes);
    s->slots = slots_that_fit(device, blocks, static_cast<size_t>(s->numbers) * bytes,
                              bytes == 4 ? bytes_of_arrays<RowsArrays<float>>(*s)
                                         : bytes_of_arrays<RowsArrays<double>>(*s));
    return s->slots >= least_slots;
}

/* For many sides two blocks on a multiprocessor with long chunks, if they hold enough rows at a time
 * to hide the eliminations; otherwise one. Short chunks if so a block holds more systems: in
 * float64 if it holds few rows otherwise and there are few sides. On an H200, microseconds of two
 * blocks, of one with long and of one with short chunks, 2^26 numbers of float64: 3 sides of 75 rows
 * 470, 419, 391; of 100 rows 380, 386, 394; of 1000 rows 512, 395, 397; of 2000 rows 485 with long
 * and 389 with short chunks; 10 sides of 64 rows 320 and 341; of 75 rows 313, 318, 338. */
static bool
shape_of(const ps_tridiag &t, int64_t step, int32_t bytes, const ps_cuda_device *device,
         SideRows *s)
{
    const int64_t rows = t.rows, half = bytes == 4 ? 224 : 96;
    const int64_t enough = bytes == 4 ? 4500 : 2400, few = 2500;
    const int64_t two = systems_of_tile(rows, step, bytes, long_chunk, half);
    const int64_t with_long =
        systems_of_tile(rows, step, bytes, long_chunk, most_threads(bytes, long_chunk));
    const int64_t with_short =
        systems_of_tile(rows, step, bytes, short_chunk, most_threads(bytes, short_chunk));
    const int turns = turns_of(rows, long_chunk, bytes);
    const bool few_banks = turns > 4 && turns_of(rows, short_chunk, bytes) < turns;
    const bool many_sides = t.outer > 5;

    if (s->by_warps && bytes == 8 &&
        threads_of(rows, short_chunk) == threads_of(rows, long_chunk) &&
        shape_with(t, bytes, device, short_chunk, with_short, 1, s)) {
        return true;
    }
    if (many_sides && !few_banks && 2 * two * rows >= enough &&
        shape_with(t, bytes, device, long_chunk, two, 2, s)) {
        return true;
    }
    const bool short_is_better =
        with_short > with_long &&
        (bytes == 4 || (many_sides ? with_long == 1 : with_long * rows < few));

    return ((few_banks || short_is_better || with_long == 0) &&
            shape_with(t, bytes, device, short_chunk, with_short, 1, s)) ||
           shape_with(t, bytes, device, long_chunk, with_long, 1, s);
}

/* Whether an operand is copied by 16 bytes: all of its systems begin there or, if they follow each
 * other, tiles of `step` systems. */
static bool
is_aligned(const ps_tridiag &t, const void *data, const ps_stride &s, bool has_sides,
           bool whole, int64_t step)
{
    const int64_t vector = 16 / static_cast<int64_t>(ps_dtype_size(t.dtype));

    return s.row == 1 && reinterpret_cast<uintptr_t>(data) % 16 == 0 &&
           (!has_sides || s.outer % vector == 0) &&
           (whole ? s.inner == t.rows && t.inner % step == 0
                  : s.inner % vector == 0 && t.rows % vector == 0);
}

static bool
are_aligned(const ps_tridiag &t, bool whole, int64_t step)
{
    return (t.flags & (PS_SHORT_LOWER | PS_SHORT_UPPER)) == 0 &&
           is_aligned(t, t.lower.data, t.lower.stride, false, whole, step) &&
           is_aligned(t, t.diag.data, t.diag.stride, false, whole, step) &&
           is_aligned(t, t.upper.data, t.upper.stride, false, whole, step) &&
           is_aligned(t, t.rhs.data, t.rhs.stride, true, whole, step) &&
           is_aligned(t, t.x.data, t.x.stride, true, whole, step);
}

/* Whether the systems of all operands follow each other in memory. */
static bool
are_dense(const ps_tridiag &t)
{
    const auto is_dense = [&](const ps_stride &s) {
        return s.row == 1 && s.inner == t.rows;
    };

    return (t.flags & (PS_SHORT_LOWER | PS_SHORT_UPPER)) == 0 &&
           is_dense(t.lower.stride) && is_dense(t.diag.stride) &&
           is_dense(t.upper.stride) && is_dense(t.rhs.stride) && is_dense(t.x.stride);
}

static bool
accepts(const ps_tridiag *t, const ps_cuda_device *device, SideRows *shape)
{
    const int32_t bytes = static_cast<int32_t>(ps_dtype_size(t->dtype));
    int64_t step = 1;

    if (!has_side_groups(*t) || t->rows < 2 || t->inner < 2 || t->rhs.stride.row != 1 ||
        device->capability < 90) {
        return false;
    }
    while (step * t->rows * bytes % 16 != 0) {
        step *= 2;
    }
    shape->blocks = 1;
    shape->by_warps = false;
    if (are_aligned(*t, true, step)) {
        return shape_of(*t, step, bytes, device, shape);
    }
    if (t->rows * bytes >= least_copy && are_aligned(*t, false, 1) &&
        shape_of(*t, 1, bytes, device, shape)) {
        return true;
    }
    shape->by_warps = true;
    return t->outer > 5 && are_dense(*t) && shape_of(*t, 1, bytes, device, shape);
}

static ps_status
solve(const ps_tridiag *t, const SideRows &shape, const ps_cuda_device *device,
      uint8_t *marks, void *work, cudaStream_t stream)
{
    return with_real(t->dtype, [&](auto zero) {
        auto job = tiles_of<decltype(zero)>(*t, shape, device, marks, work);

        if (shape.by_warps) {
            job.work_queue = nullptr; /* equal shares of the tiles */
        }
        return launch_side_rows(job, stream);
    });
}

const ShapedKernels<SideRows> ps_cuda_side_rows = {accepts, work_of_tiles<SideRows>,
                                                   solve};

} // namespace pysolvers::sides
