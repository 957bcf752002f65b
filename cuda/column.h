/* column.h - batches along a strided axis: who takes them, and cut how.
 *
 * column.cu chooses, column_<dtype>.cu have the kernels.
 */
#ifndef PS_CUDA_COLUMN_H
#define PS_CUDA_COLUMN_H

#include "column.cuh"
#include "engine.h"
#include "operand.cuh"

/* Rows of a chunk, and threads of a block at most: for the registers, and for the
 * shared memory that holds the rows. */
template <typename Number> struct ColumnTuning;
template <> struct ColumnTuning<float> {
    static constexpr int rows = 16, threads = 512;
};
template <> struct ColumnTuning<double> {
    static constexpr int rows = 16, threads = 384;
};
template <> struct ColumnTuning<Complex<float>> {
    static constexpr int rows = 8, threads = 512;
};
template <> struct ColumnTuning<Complex<double>> {
    static constexpr int rows = 4, threads = 256;
};

template <typename Number> struct ColumnJob {
    Systems<Number> t;
    Input<Number> inputs[4]; /* those of t */
    int32_t absent[4];       /* the row that each does not have, or -1 */
    uint32_t vectors;        /* bit q: operand q goes 16 bytes at a time */
    ColumnShape shape;
    int64_t tiles;  /* of 1 << shape.width systems */
    uint8_t *marks; /* null, or 1 for each system that is not dominant */
};

/* Whether the systems of `t`, of which the batch axes are merged, lie so that columns
 * are the way to take them, and a block or a cluster of the device can hold one; then
 * cut as `shape` says, which depends on rows and dtype alone. */
bool ps_cuda_column_takes(const ps_tridiag *t, const ps_cuda_device *device,
                          ColumnShape *shape);

/* PS_PARTITION for a batch that was taken; marks may be null. */
cudaError_t ps_cuda_column_solve(const ps_tridiag *t, const ColumnShape &shape,
                                 uint8_t *marks, cudaStream_t stream);

#define PS_DECLARE(number, name)                                           \
    cudaError_t ps_cuda_column_launch_##name(const ColumnJob<number> &job, \
                                             cudaStream_t stream);
PS_CUDA_DTYPES(PS_DECLARE)
#undef PS_DECLARE

/* Dynamic shared memory of a block. */
template <typename Number>
inline size_t
column_bytes(const ColumnShape &shape)
{
    const size_t stage = sizeof(Number) * 4 * 32 * ColumnTuning<Number>::rows;

    return shape.warps * stage + ColumnMeeting<Number>::bytes_of(shape);
}

#endif
