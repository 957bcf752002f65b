/* recurrence.cu - the distribution of linear recurrences over warps.
 *
 * Many lines: one lane each if they are neighbours in memory, or as many lanes as a line
 * has chunks if its rows are. Fewer lines have several warps each, and if the blocks are
 * still fewer than the multiprocessors hold, parts (recurrence.cuh).
 */
#include "lines/recurrence.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/math.cuh"

namespace pysolvers::lines {

/* Warps of a block; warps for each multiprocessor that keep the memory busy, of neighbouring
 * lines and of rows; blocks for each multiprocessor below which lines are divided, blocks of
 * divided lines, and the fewest tiles of a part. */
static constexpr int block_warps = 4, busy_columns = 12, busy_rows = 48, busy_blocks = 2,
                     parted_blocks = 12, least_tiles = 4;
static constexpr int64_t most_parts = 2048;

/* Whether chunks of `rows` rows are neighbours in memory and aligned to 16 bytes. */
static bool
is_whole(const void *data, const ps_stride &s, int64_t size, int64_t rows)
{
    const int64_t count = 16 / size, back = s.row < 0 ? (rows - 1) * size : 0;
    const uintptr_t first =
        reinterpret_cast<uintptr_t>(data) - static_cast<uintptr_t>(back);

    return std::abs(s.row) == 1 && first % 16 == 0 && s.outer % count == 0 &&
           s.inner % count == 0;
}

static RecurrenceShape
shape_of(const ps_recurrence &r, int processors)
{
    const int64_t lines = r.outer * r.inner;
    const int64_t size = ps_dtype_size(r.dtype);
    const int32_t chunk = static_cast<int32_t>(32 / size);
    const int64_t across = std::abs(r.x.stride.inner), along = std::abs(r.x.stride.row);
    RecurrenceShape shape = {};

    shape.chunk = chunk;
    shape.warps = 1;
    shape.by_row = r.inner == 1 || r.rows == 1 || along <= across;
    shape.is_whole = shape.by_row && r.rows % chunk == 0 && !(r.flags & PS_TRANSPOSED) &&
                     is_whole(r.first.data, r.first.stride, size, chunk) &&
                     (r.second.data == nullptr ||
                      is_whole(r.second.data, r.second.stride, size, chunk)) &&
                     is_whole(r.b.data, r.b.stride, size, chunk) &&
                     is_whole(r.x.data, r.x.stride, size, chunk);
    const int32_t chunks =
        static_cast<int32_t>(std::min<int64_t>(divided_up(r.rows, int64_t(chunk)), 32));
    shape.width = shape.by_row
                      ? 5 - log2_up(chunks)
                      : log2_up(static_cast<int32_t>(std::min<int64_t>(r.inner, 32)));
    const int64_t wanted = int64_t(shape.by_row ? busy_rows : busy_columns) * processors;
    const int32_t widest = shape.width;
    const auto sets_of = [&] { return divided_up(lines, int64_t(1) << shape.width); };

    /* neighbours fill a sector of memory at least */
    while (!shape.by_row && (chunk >> shape.width) == 0 &&
           sets_of() * block_warps < wanted && shape.tile_rows() < r.rows) {
        shape.width--;
    }
    if (sets_of() < int64_t(busy_blocks) * processors &&
        r.rows > least_tiles * block_warps * ((32 >> widest) * chunk)) {
        shape.width = widest; /* such lines are divided */
    }
    const int64_t sets = sets_of();

    while (shape.warps < block_warps && sets * shape.warps < wanted &&
           shape.tile_rows() < r.rows) {
        shape.warps *= 2;
    }
    const int64_t blocks = divided_up(sets, int64_t(block_warps / shape.warps));
    const int64_t tiles = divided_up(r.rows, int64_t(shape.tile_rows()));
    const int64_t parts =
        std::min<int64_t>({divided_up(int64_t(parted_blocks) * processors, blocks),
                           tiles / least_tiles, most_parts});

    shape.part_tiles = static_cast<int32_t>(tiles);
    if (blocks < int64_t(busy_blocks) * processors && parts > 1) {
        shape.part_tiles = static_cast<int32_t>(divided_up(tiles, parts));
    }
    shape.parts = static_cast<int32_t>(divided_up(tiles, int64_t(shape.part_tiles)));
    return shape;
}

/* The lines with the batch axis of smaller stride as the inner one, and from the last row
 * to the first if they are reversed; the coefficients of transposed ones shifted. */
static ps_recurrence
arranged(const ps_recurrence &r)
{
    ps_recurrence own = r;
    ps_stride *const strides[] = {&own.first.stride, &own.second.stride, &own.b.stride,
                                  &own.initial.stride, &own.x.stride};
    const void **const data[] = {&own.first.data, &own.second.data, &own.b.data};

    if (r.outer > 1 &&
        (r.inner == 1 || std::abs(r.x.stride.outer) < std::abs(r.x.stride.inner))) {
        std::swap(own.outer, own.inner);
        for (ps_stride *s : strides) {
            std::swap(s->outer, s->inner);
        }
    }
    if (r.flags & PS_REVERSED) {
        const int64_t size = ps_dtype_size(r.dtype);

        for (int k = 0; k < 3; k++) {
            if (*data[k] != nullptr) {
                *data[k] = static_cast<const char *>(*data[k]) +
                           (r.rows - 1) * strides[k]->row * size;
            }
            strides[k]->row = -strides[k]->row;
        }
        own.x.data =
            static_cast<char *>(own.x.data) + (r.rows - 1) * own.x.stride.row * size;
        own.x.stride.row = -own.x.stride.row;
    }
    if (r.flags &
        PS_TRANSPOSED) { /* row i of x takes row i - 1 of first, i - 2 of second */
        for (int k = 0; k < 2; k++) {
            if (*data[k] != nullptr) {
                *data[k] = static_cast<const char *>(*data[k]) -
                           (k + 1) * strides[k]->row * ps_dtype_size(r.dtype);
            }
        }
    }
    return own;
}

static size_t
units_bytes(const ps_recurrence &r, const RecurrenceShape &shape)
{
    const int64_t order = r.second.data != nullptr ? 2 : 1;

    return ps_cuda_padded(static_cast<size_t>(
        r.outer * r.inner * shape.parts * (order + 1) * order * ps_dtype_size(r.dtype)));
}

ps_status
ps_cuda_recurrence_work(const ps_recurrence *r, size_t *bytes)
{
    const ps_status status = ps_recurrence_check(r);

    *bytes = 0;
    if (status != PS_OK || r->outer == 0 || r->inner == 0) {
        return status;
    }
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const ps_recurrence own = arranged(*r);
    const RecurrenceShape shape = shape_of(own, device->processors);

    if (shape.parts > 1) {
        *bytes = units_bytes(own, shape) +
                 ps_cuda_padded(static_cast<size_t>(r->outer * r->inner));
    }
    return PS_OK;
}

ps_status
ps_cuda_recurrence(const ps_recurrence *r, const ps_exec *exec)
{
    size_t bytes = 0;
    const ps_status status = ps_cuda_recurrence_work(r, &bytes);

    if (status != PS_OK || r->outer == 0 || r->inner == 0) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    const ps_recurrence own = arranged(*r);
    const RecurrenceShape shape = shape_of(own, ps_cuda_device_get()->processors);

    return with_number(r->dtype, [&](auto zero) {
        using Number = decltype(zero);
        RecurrenceJob<Number> job = {input_of<Number>(own.first),
                                     input_of<Number>(own.second),
                                     input_of<Number>(own.b),
                                     input_of<Number>(own.initial),
                                     output_of<Number>(own.x),
                                     own.outer,
                                     own.inner,
                                     static_cast<int32_t>(own.rows),
                                     (own.flags & PS_TRANSPOSED) != 0,
                                     shape,
                                     nullptr,
                                     nullptr};

        if (shape.parts > 1) {
            job.units = static_cast<Number *>(exec->work);
            job.in_order = static_cast<uint8_t *>(exec->work) + units_bytes(own, shape);
        }
        return launch_recurrence(job, ps_cuda_stream(exec));
    });
}

} // namespace pysolvers::lines
