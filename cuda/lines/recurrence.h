/* recurrence.h - what the entries of linear recurrences and their kernels share. */
#ifndef PS_CUDA_LINES_RECURRENCE_H
#define PS_CUDA_LINES_RECURRENCE_H

#include "device/operand.cuh"
#include "ps_recurrence.h"
#include "runtime/engine.h"

namespace pysolvers::lines {

using namespace device;
using namespace runtime;

/* The distribution of lines over warps, chosen by the host. A warp holds 1 << width lines,
 * in 32 >> width chunks each; `warps` warps of a block hold the following chunks of the
 * same lines. A line is computed in tiles of so many chunks, one after the other. If there
 * are `parts` > 1, each line is divided into parts of `part_tiles` tiles. */
struct RecurrenceShape {
    bool by_row; /* neighbouring lanes have chunks of one line, not neighbouring lines */
    bool is_whole; /* by_row, and all chunks are whole, dense and aligned to 16 bytes */
    int32_t width, warps, parts, part_tiles;
    int32_t chunk; /* rows of a chunk */

    __host__ __device__ __forceinline__ int32_t chunks() const
    {
        return 32 >> width;
    }
    __host__ __device__ __forceinline__ int32_t tile_rows() const
    {
        return chunks() * warps * chunk;
    }
};

/* x_i = first_i x_{i-1} + second_i x_{i-2} + b_i. Lines that are computed from the last row
 * to the first have negative strides of rows. */
template <typename Number> struct RecurrenceJob {
    Input<Number> first, second, b, initial; /* second, initial: null data for none */
    Output<Number> x;
    int64_t outer, inner;
    int32_t rows;
    bool is_transposed; /* row 0 of first, rows 0 and 1 of second are not there but 0 */
    RecurrenceShape shape;
    Number *units;     /* of all parts, [word][part][line] */
    uint8_t *in_order; /* of each line: whether its units are too large to be joined */
};

/* recurrence_dtypes.cu */
template <typename Number>
ps_status launch_recurrence(const RecurrenceJob<Number> &job, cudaStream_t stream);

/* recurrence.cu */
ps_status ps_cuda_recurrence_work(const ps_recurrence *r, size_t *bytes);
ps_status ps_cuda_recurrence(const ps_recurrence *r, const ps_exec *exec);

} // namespace pysolvers::lines

#endif
