/* column.cu - batches along a strided axis, on the host. */
#include <algorithm>

#include "column.h"

static constexpr int line = 128;           /* bytes of neighbours that memory likes */
static constexpr int least = 64;           /* and of which it can live */
static constexpr int most_blocks = 8;      /* of a cluster */
static constexpr int statics_bytes = 1024; /* shared memory of a block besides */

static int32_t
divided_up(int64_t a, int64_t b)
{
    return static_cast<int32_t>((a + b - 1) / b);
}

static int32_t
log_of(int32_t count)
{
    int32_t log = 0;

    while ((1 << log) < count) {
        log++;
    }
    return log;
}

/* Rows of a chunk where a block holds systems whole: half of the most if fewer are then
 * missing from the first. */
template <typename Number>
static int32_t
chunk_of(int64_t rows, int32_t width)
{
    using Tuned = ColumnTuning<Number>;
    constexpr int32_t half = Tuned::rows / 2;
    const int32_t halves = divided_up(rows, half);

    return width == 5 && halves % 2 != 0 && halves <= Tuned::threads / 32 ? half
                                                                          : Tuned::rows;
}

/* The shape with as few blocks as hold 1 << width systems, a power of two, as clusters of
 * other sizes leave more multiprocessors empty; false if there is none. */
template <typename Number>
static bool
cut(int64_t rows, int32_t width, const ps_cuda_device *device, ColumnShape *shape)
{
    using Tuned = ColumnTuning<Number>;
    const int32_t most = std::min(device->cluster_blocks, most_blocks);
    const int32_t chunk = chunk_of<Number>(rows, width);
    const int32_t units = divided_up(divided_up(rows, chunk), 32 >> width);
    const int32_t blocks = 1 << log_of(divided_up(units, Tuned::threads / 32));
    const int32_t warps = divided_up(units, blocks);
    const int32_t lanes = log_of(std::max(divided_up(warps, 4), divided_up(blocks, 2)));

    *shape = {static_cast<int32_t>(rows), chunk, width, warps, lanes, blocks, 0, 0, 0};
    shape->set_first();
    return blocks <= most && 1 << (width + lanes) <= 32 * warps &&
           (blocks > 1 ? column_bytes<Number, Tuned::rows, true, true>(*shape)
                       : column_bytes<Number, Tuned::rows, false, true>(*shape)) +
                   statics_bytes <=
               static_cast<size_t>(device->shared_bytes);
}

/* A block as wide as a warp if it holds systems whole; else a line of neighbours; else
 * as many as a cluster holds. */
template <typename Number>
static bool
shape_of(int64_t rows, const ps_cuda_device *device, ColumnShape *shape)
{
    constexpr int32_t bytes = sizeof(Number);

    for (int32_t width = 5; (bytes << width) >= least; width--) {
        if (cut<Number>(rows, width, device, shape) &&
            (shape->blocks == 1 || (bytes << width) <= line)) {
            return true;
        }
    }
    return false;
}

static int64_t
magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

/* Whether systems lie closer to each other than rows, if at all. */
static bool
lies_by_column(const ps_stride &s)
{
    return s.inner == 0 || s.row == 0 || magnitude(s.inner) < magnitude(s.row);
}

bool
ps_cuda_column_takes(const ps_tridiag *t, const ps_cuda_device *device,
                     ColumnShape *shape)
{
    bool fits = false;

    if (t->inner == 1 || t->rows == 1 || !lies_by_column(t->lower.stride) ||
        !lies_by_column(t->diag.stride) || !lies_by_column(t->upper.stride) ||
        !lies_by_column(t->rhs.stride) || !lies_by_column(t->x.stride)) {
        return false;
    }
    (void)with_number(t->dtype, [&](auto zero) {
        fits = shape_of<decltype(zero)>(t->rows, device, shape);
        return PS_OK;
    });
    return fits;
}

/* Whether neighbouring systems are 16 aligned bytes in every row. */
static bool
goes_by_vectors(const ps_tridiag &t, const ps_input &in)
{
    const int64_t vector = 16 / ps_dtype_size(t.dtype);
    const ps_stride &s = in.stride;

    return s.inner == 1 && s.row % vector == 0 && t.inner % vector == 0 &&
           (t.outer == 1 || s.outer % vector == 0) &&
           reinterpret_cast<uintptr_t>(in.data) % 16 == 0;
}

template <typename Number>
static cudaError_t
solve(const ps_tridiag &t, const ColumnShape &shape, uint8_t *marks, cudaStream_t stream)
{
    const Systems<Number> s = systems_of<Number>(t);
    const ps_input *const inputs[] = {&t.lower, &t.diag, &t.upper, &t.rhs};
    const int64_t width = int64_t(1) << shape.width;
    ColumnJob<Number> job = {
        s, {s.lower, s.diag, s.upper, s.rhs}, {-1, -1, -1, -1}, true, shape, 0, marks};

    job.tiles = (t.outer * t.inner + width - 1) / width;
    job.absent[0] = (t.flags & PS_SHORT_LOWER) != 0 ? 0 : -1;
    job.absent[2] = (t.flags & PS_SHORT_UPPER) != 0 ? s.rows - 1 : -1;
    for (int q = 0; q < 4; q++) {
        job.is_aligned = job.is_aligned && goes_by_vectors(t, *inputs[q]);
    }
#define PS_LAUNCH(number, name)                                                   \
    if constexpr (number_traits<Number>::dtype == number_traits<number>::dtype) { \
        return ps_cuda_column_launch_##name(job, stream);                         \
    }
    PS_CUDA_DTYPES(PS_LAUNCH)
#undef PS_LAUNCH
}

cudaError_t
ps_cuda_column_solve(const ps_tridiag *t, const ColumnShape &shape, uint8_t *marks,
                     cudaStream_t stream)
{
    cudaError_t error = cudaErrorInvalidValue;

    (void)with_number(t->dtype, [&](auto zero) {
        error = solve<decltype(zero)>(*t, shape, marks, stream);
        return PS_OK;
    });
    return error;
}
