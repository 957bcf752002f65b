/* column.cu - the choice of shape and kernel for batches along a strided axis. */
#include <algorithm>
#include <cstdlib>

#include "device/work_queue.cuh"
#include "lines/columns/column.h"
#include "runtime/math.cuh"

namespace pysolvers::columns {

static constexpr int line = 128;           /* bytes of a line of memory */
static constexpr int least = 64;           /* fewest bytes of neighbouring systems */
static constexpr int most_blocks = 8;      /* of a cluster */
static constexpr int statics_bytes = 1024; /* static shared memory of a block */

/* Warps that hold a system in chunks, 1 << width systems side by side. */
static int32_t
warps_of(int64_t rows, int32_t chunk, int32_t width)
{
    return static_cast<int32_t>(divided_up(divided_up(rows, chunk), 32 >> width));
}

/* The fewest blocks of at most ColumnTuning::threads threads, rounded up to a power of
 * two, because clusters of other sizes leave more multiprocessors empty. */
template <typename Tuned>
static int32_t
blocks_of(int64_t rows, int32_t chunk, int32_t width)
{
    return 1 << log2_up(divided_up(warps_of(rows, chunk, width), Tuned::threads / 32));
}

/* Rows of a chunk. If a block is as wide as a warp and holds whole systems, several
 * blocks share a multiprocessor, and the chunk is chosen so that the first one has the
 * fewest pads. Otherwise it is chosen for the fewest blocks with the most warps. */
template <typename Tuned>
static int32_t
chunk_of(int64_t rows, int32_t width)
{
    const int32_t blocks = blocks_of<Tuned>(rows, Tuned::rows, width);
    int32_t best = Tuned::rows;

    if (rows > best && rows <= Tuned::alone && width == 5) {
        return Tuned::alone;
    }
    if (blocks > 1 || width < 5) {
        const int32_t chunk = Tuned::shorter[2];
        return blocks_of<Tuned>(rows, chunk, width) == blocks ? chunk : best;
    }
    for (const int32_t chunk : Tuned::shorter) {
        if (blocks_of<Tuned>(rows, chunk, width) == 1 &&
            divided_up(rows, chunk) * chunk < divided_up(rows, best) * best) {
            best = chunk;
        }
    }
    return best;
}

/* The shape with the fewest blocks that hold 1 << width systems; false if there is
 * none. */
template <typename Number, typename Tuned, int OPERANDS>
static bool
cut(int64_t rows, int32_t width, const ps_cuda_device *device, ColumnShape *shape)
{
    const int32_t most = std::min(device->cluster_blocks, most_blocks);
    const int32_t chunk = chunk_of<Tuned>(rows, width);
    const int32_t units = warps_of(rows, chunk, width);
    const int32_t blocks = blocks_of<Tuned>(rows, chunk, width);
    const int32_t warps = divided_up(units, blocks);
    const int32_t lanes = log2_up(std::max(divided_up(warps, 4), divided_up(blocks, 2)));

    *shape = {static_cast<int32_t>(rows), chunk, width, warps, lanes, blocks, 0, 0, 0};
    shape->set_first();
    return blocks <= most && 1 << (width + lanes) <= 32 * warps &&
           (blocks > 1 ? column_bytes<Number, Tuned::rows, true, ColumnAccess::sectors,
                                      OPERANDS>(*shape)
                       : column_bytes<Number, Tuned::rows, false, ColumnAccess::sectors,
                                      OPERANDS>(*shape)) +
                   statics_bytes <=
               static_cast<size_t>(device->shared_bytes);
}

/* The width: that of a warp if such a block holds whole systems. Otherwise two lines of
 * memory of neighbouring systems (one for complex128), because fewer sectors are then
 * shared by two tiles. Otherwise as many systems as a cluster can hold. */
template <typename Number, typename Tuned, int OPERANDS>
static bool
shape_of(int64_t rows, int32_t widest, const ps_cuda_device *device, ColumnShape *shape)
{
    constexpr int32_t bytes = sizeof(Number);
    constexpr int32_t preferred = bytes < 16 ? 2 * line : line;

    for (int32_t width = widest; (bytes << width) >= least; width--) {
        if (cut<Number, Tuned, OPERANDS>(rows, width, device, shape) &&
            (shape->blocks == 1 || (bytes << width) <= preferred)) {
            return true;
        }
    }
    return false;
}

bool
ps_cuda_column_shape(ps_dtype dtype, int64_t rows, int32_t widest,
                     const ps_cuda_device *device, ColumnShape *shape)
{
    bool fits = false;

    (void)with_number(dtype, [&](auto zero) {
        using Number = decltype(zero);
        fits = shape_of<Number, ColumnTuning<Number>, 4>(rows, widest, device, shape);
        return PS_OK;
    });
    return fits;
}

/* Whether neighbouring systems are closer to each other in memory than neighbouring
 * rows. */
static bool
lies_by_column(const ps_stride &s)
{
    return s.inner == 0 || s.row == 0 || std::abs(s.inner) < std::abs(s.row);
}

static bool
lies_by_column(const ps_tridiag *t)
{
    return t->inner > 1 && t->rows > 1 && lies_by_column(t->lower.stride) &&
           lies_by_column(t->diag.stride) && lies_by_column(t->upper.stride) &&
           lies_by_column(t->rhs.stride) && lies_by_column(t->x.stride);
}

bool
ps_cuda_column_accepts(const ps_tridiag *t, const ps_cuda_device *device,
                       ColumnShape *shape)
{
    return lies_by_column(t) && ps_cuda_column_shape(t->dtype, t->rows, 5, device, shape);
}

bool
ps_cuda_step_column_accepts(const ps_tridiag *t, const ps_cuda_device *device,
                            ColumnShape *shape)
{
    return lies_by_column(t) && with_real(t->dtype, [&](auto zero) {
               using Number = decltype(zero);
               return shape_of<Number, StepColumnTuning<Number>,
                               StepColumnJob<Number>::operands>(t->rows, 5, device,
                                                                shape);
           });
}

/* Whether every row begins at a multiple of `bytes` bytes and the systems can be copied
 * by 16 bytes. */
static bool
is_aligned_to(int64_t bytes, const ps_tridiag &t, const ps_input &in)
{
    const int64_t size = ps_dtype_size(t.dtype), count = bytes / size;
    const ps_stride &s = in.stride;

    return s.inner == 1 && s.row % count == 0 && t.inner % (16 / size) == 0 &&
           (t.outer == 1 || (s.outer % count == 0 && t.inner % count == 0)) &&
           reinterpret_cast<uintptr_t>(in.data) % bytes == 0;
}

/* Halves of sectors have a separate path in float32 only: it is no faster for other
 * types. */
static ColumnAccess
access_of(const ps_tridiag &t)
{
    const ps_input *const inputs[] = {&t.lower, &t.diag, &t.upper, &t.rhs};
    bool by_sectors = true, by_halves = true;

    for (const ps_input *in : inputs) {
        by_sectors = by_sectors && is_aligned_to(32, t, *in);
        by_halves = by_halves && is_aligned_to(16, t, *in);
    }
    if (!by_halves) {
        return ColumnAccess::elements;
    }
    return by_sectors || t.dtype != PS_F32 ? ColumnAccess::sectors : ColumnAccess::halves;
}

static int64_t
tiles_of(const ps_tridiag &t, const ColumnShape &shape)
{
    const int64_t width = int64_t(1) << shape.width;
    return divided_up(t.outer * t.inner, width);
}

/* Whether tiles are drawn from a work queue: if there are many for each multiprocessor,
 * and only one tile in advance must be known. For single blocks of float32 it was no
 * faster. */
static bool
uses_work_queue(const ps_tridiag &t, const ColumnShape &shape,
                const ps_cuda_device *device)
{
    return (shape.blocks > 1 || ps_dtype_size(t.dtype) > 4) && shape.chunk >= 16 &&
           pays_for_work_queue(tiles_of(t, shape), device->processors / shape.blocks);
}

size_t
ps_cuda_column_work(const ps_tridiag *t, const ColumnShape &shape,
                    const ps_cuda_device *device)
{
    return uses_work_queue(*t, shape, device) ? work_queue_bytes(1) : 0;
}

template <typename Number>
static ColumnJob<Number>
job_of(const ps_tridiag &t, const ColumnShape &shape, uint8_t *marks,
       uint32_t *work_queue)
{
    const Systems<Number> s = systems_of<Number>(t);
    ColumnJob<Number> job = {s,
                             {s.lower, s.diag, s.upper, s.rhs},
                             {-1, -1, -1, -1},
                             access_of(t),
                             shape,
                             tiles_of(t, shape),
                             marks,
                             work_queue};

    job.absent[0] = (t.flags & PS_SHORT_LOWER) != 0 ? 0 : -1;
    job.absent[2] = (t.flags & PS_SHORT_UPPER) != 0 ? s.rows - 1 : -1;
    return job;
}

ps_status
ps_cuda_column_solve(const ps_tridiag *t, const ColumnShape &shape,
                     const ps_cuda_device *device, uint8_t *marks, void *work,
                     cudaStream_t stream)
{
    uint32_t *const counter =
        uses_work_queue(*t, shape, device) ? static_cast<uint32_t *>(work) : nullptr;

    return with_form(*t, [&](auto zero) {
        return launch_columns(job_of<decltype(zero)>(*t, shape, marks, counter), stream);
    });
}

/* Whether the source can be copied as the other operands are. */
static bool
is_aligned_source(const ps_tridiag &t, const ps_input &source)
{
    return source.data == nullptr || is_aligned_to(32, t, source);
}

ps_status
ps_cuda_step_column_solve(const ps_tridiag *t, const StepTerms &terms,
                          const ColumnShape &shape, const ps_cuda_device *device,
                          uint8_t *marks, void *work, cudaStream_t stream)
{
    uint32_t *const counter =
        uses_work_queue(*t, shape, device) ? static_cast<uint32_t *>(work) : nullptr;

    return with_real(t->dtype, [&](auto zero) {
        using Number = decltype(zero);
        StepColumnJob<Number> job = {};
        ColumnJob<Number> &plain = job;

        plain = job_of<Number>(*t, shape, marks, counter);
        for (int q = 0; q < 4; q++) {
            job.inputs[q] = plain.inputs[q];
            job.absent[q] = plain.absent[q];
        }
        job.inputs[3].data += job.inputs[3].row;
        job.absent[3] = job.t.rows - 1;
        job.inputs[4] = input_of<Number>(terms.source);
        job.absent[4] = -1;
        if (job.access == ColumnAccess::halves || !is_aligned_source(*t, terms.source)) {
            job.access = ColumnAccess::elements;
        }
        job.terms = step_numbers_of<Number>(terms);
        job.is_in_place = t->rhs.data == t->x.data;
        return launch_step_columns(job, stream);
    });
}

} // namespace pysolvers::columns
