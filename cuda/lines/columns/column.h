/* column.h - batches along a strided axis: conditions, shape, and kernels.
 *
 * column.cu chooses the shape; column_kernel.cuh has the kernels, which column_forms.cu
 * compiles once per dtype and form.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_H
#define PS_CUDA_LINES_COLUMNS_COLUMN_H

#include "device/operand.cuh"
#include "lines/columns/column.cuh"
#include "lines/join/step_terms.cuh"
#include "runtime/engine.h"

namespace pysolvers::columns {

/* The largest number of rows of a chunk; of a chunk that is a whole system; shorter
 * chunks, of which clusters use the last one only; and the largest number of threads of
 * a block. Limited by the registers. */
template <typename Number> struct ColumnTuning {
    static constexpr int rows = 32, alone = 32, threads = sizeof(Number) == 4 ? 512 : 256;
    static constexpr int shorter[] = {16, 20, 24};
};
template <> struct ColumnTuning<Complex<float>> {
    static constexpr int rows = 16, alone = 32, threads = 512;
    static constexpr int shorter[] = {16, 16, 16};
};
template <> struct ColumnTuning<Complex<double>> {
    static constexpr int rows = 8, alone = 8, threads = 256;
    static constexpr int shorter[] = {4, 4, 8};
};

template <typename Real> struct ColumnTuning<BySums<Real>> : ColumnTuning<Real> {};

/* The same for the rows of steps, which take more registers. */
template <typename Number> struct StepColumnTuning : ColumnTuning<Number> {
    static constexpr int rows = 24, alone = 24;
    static constexpr int shorter[] = {16, 16, 24};
};

/* The largest number of threads of a block with chunks of ROWS rows: chunks shorter than
 * those of clusters leave registers for more threads. */
template <typename Number, int ROWS, bool IS_STEP = false>
static constexpr int
column_threads()
{
    using Tuned = ColumnTuning<Number>;

    if (IS_STEP) {
        return Tuned::threads;
    }
    if (ROWS > Tuned::rows) {
        return 32;
    }
    return ROWS < Tuned::shorter[2] && sizeof(Number) < 16 ? 512 : Tuned::threads;
}

/* How rows are copied: by 16 bytes if all rows begin at a sector of 32 bytes (sectors),
 * or at half a sector (halves); or element by element. */
enum class ColumnAccess { sectors, halves, elements };

/* The rows are those in memory: of a step, step_column.cuh. */
template <typename Number> struct ColumnJob {
    static constexpr bool is_step = false;
    static constexpr int operands = 4; /* that the ring copies */
    Systems<Number> t;
    Input<Number> inputs[4]; /* those of t */
    int32_t absent[4];       /* the row that each operand does not have, or -1 */
    ColumnAccess access;
    ColumnShape shape;
    int64_t tiles;        /* of 1 << shape.width systems */
    uint8_t *marks;       /* null, or 1 for each system that is not dominant */
    uint32_t *work_queue; /* null, or the number of tiles that were drawn */
};

/* The same for a step: inputs and absent rows are those of the ring, with u[i + 1] in the
 * place of u[i] and then the source. */
template <typename Number> struct StepColumnJob : ColumnJob<Number> {
    static constexpr bool is_step = true;
    static constexpr int operands = 5;
    Input<Number> inputs[5];
    int32_t absent[5];
    StepNumbers<Number> terms;
    bool is_in_place; /* x is u */
};

/* The shape for systems of so many rows, with a width of at most `widest`; false if a
 * block or a cluster of the device cannot hold such systems. */
bool ps_cuda_column_shape(ps_dtype dtype, int64_t rows, int32_t widest,
                          const ps_cuda_device *device, ColumnShape *shape);

/* Whether the systems of `t`, whose batch axes are merged, are suitable for column
 * kernels, and a block or a cluster of the device can hold one. `shape` depends on the
 * number of rows and the dtype only. */
bool ps_cuda_column_accepts(const ps_tridiag *t, const ps_cuda_device *device,
                            ColumnShape *shape);
/* The same for a step of real numbers. */
bool ps_cuda_step_column_accepts(const ps_tridiag *t, const ps_cuda_device *device,
                                 ColumnShape *shape);

/* Bytes of workspace, and the solve by PS_PARTITION of an accepted batch; marks may be
 * null. */
size_t ps_cuda_column_work(const ps_tridiag *t, const ColumnShape &shape,
                           const ps_cuda_device *device);
ps_status ps_cuda_column_solve(const ps_tridiag *t, const ColumnShape &shape,
                               const ps_cuda_device *device, uint8_t *marks, void *work,
                               cudaStream_t stream);

/* The same for a step, whose batch axes are merged. */
ps_status ps_cuda_step_column_solve(const ps_tridiag *t, const StepTerms &terms,
                                    const ColumnShape &shape,
                                    const ps_cuda_device *device, uint8_t *marks,
                                    void *work, cudaStream_t stream);

/* column_kernel.cuh: enqueue the kernel of a job. */
template <typename Number>
ps_status launch_columns(const ColumnJob<Number> &job, cudaStream_t stream);
template <typename Number>
ps_status launch_step_columns(const StepColumnJob<Number> &job, cudaStream_t stream);

/* The ring buffer of a warp: slots for batches of rows; of a row the four operands; of
 * an operand one element per lane. Two batches in flight are enough, and more of them
 * disturb the order in which memory is read, except in clusters, whose blocks wait for
 * each other; three are used if there is room. Copies of halves of sectors use the L1
 * cache and need no larger ring. */
template <typename Number, bool IS_CLUSTER, ColumnAccess ACCESS, int OPERANDS = 4>
struct ColumnRing {
    static constexpr int batch = 4; /* rows */
    static constexpr int slots = IS_CLUSTER && ACCESS == ColumnAccess::sectors &&
                                         !number_traits<Number>::is_complex
                                     ? 3
                                     : 2;
    static constexpr int row_words = OPERANDS * 32, batch_words = batch * row_words;
    static constexpr int words = slots * batch_words;
};

/* Words of shared memory of a warp: its ring, and the part of its chunks that is not in
 * registers. */
template <typename Number, int ROWS, bool IS_CLUSTER, ColumnAccess ACCESS,
          int OPERANDS = 4>
static constexpr int column_words =
    ColumnRing<Number, IS_CLUSTER, ACCESS, OPERANDS>::words +
    ColumnChunk<Number, ROWS>::words;

/* Dynamic shared memory of a block. */
template <typename Number, int ROWS, bool IS_CLUSTER, ColumnAccess ACCESS,
          int OPERANDS = 4>
inline size_t
column_bytes(const ColumnShape &shape)
{
    return shape.warps * sizeof(Number) *
               column_words<Number, ROWS, IS_CLUSTER, ACCESS, OPERANDS> +
           ColumnExchange<Number>::bytes_of(shape);
}

} // namespace pysolvers::columns

#endif
