/* column.h - batches along a strided axis: conditions, shape, and kernels.
 *
 * column.cu chooses the shape; column_kernel.cuh has the kernels, which column_forms.cu
 * compiles once per dtype and form.
 */
#ifndef PS_CUDA_LINES_COLUMNS_COLUMN_H
#define PS_CUDA_LINES_COLUMNS_COLUMN_H

#include <climits>

#include "device/operand.cuh"
#include "lines/columns/column.cuh"
#include "lines/columns/shaped_kernels.h"
#include "lines/join/step_terms.cuh"
#include "runtime/engine.h"

namespace pysolvers::columns {

/* The largest number of rows of a chunk; of a chunk that is a whole system; shorter
 * chunks, of which clusters use the last one only; the largest number of threads of
 * a block, and that of a block of which a multiprocessor has more if the systems fit.
 * Limited by the registers. The bytes of neighbouring systems of a cluster, and the warps of
 * a lane that joins them. */
template <typename Number> struct ColumnTuning {
    static constexpr int rows = 32, alone = 32, threads = sizeof(Number) == 4 ? 512 : 256;
    static constexpr int usual_threads = threads;
    static constexpr int shorter[] = {16, 20, 24};
    static constexpr int long_from = INT_MAX;     /* rows; otherwise the fewest pads, */
    static constexpr bool takes_shortest = false; /* of several such chunks */
    static constexpr int cluster_bytes = 256, span = 4;
};
template <> struct ColumnTuning<Complex<float>> {
    static constexpr int rows = 16, alone = 32, threads = 512, usual_threads = threads;
    static constexpr int shorter[] = {16, 16, 16};
    static constexpr int long_from = INT_MAX;
    static constexpr bool takes_shortest = false;
    static constexpr int cluster_bytes = 256, span = 4;
};
template <> struct ColumnTuning<Complex<double>> {
    static constexpr int rows = 8, alone = 8, threads = 256, usual_threads = threads;
    static constexpr int shorter[] = {4, 4, 8};
    static constexpr int long_from = INT_MAX;
    static constexpr bool takes_shortest = false;
    static constexpr int cluster_bytes = 128, span = 4;
};

template <typename Real> struct ColumnTuning<BySums<Real>> : ColumnTuning<Real> {};

/* Limited by the shared memory, in which there are the right-hand sides of the chunks and of
 * the rows that are copied. */
template <typename Real, int COUNT> struct ColumnTuning<WithSides<Real, COUNT>> {
    static constexpr int rows = 16, alone = 16, threads = sizeof(Real) == 4 ? 512 : 256;
    static constexpr int usual_threads = threads;
    static constexpr int shorter[] = {16, 16, 16};
    static constexpr int long_from = 0;
    static constexpr bool takes_shortest = false;
    static constexpr int cluster_bytes = 256, span = 4;
};

/* The largest number of threads of a block with chunks of ROWS rows: chunks shorter than
 * those of clusters leave registers for more threads. */
template <typename Number, int ROWS, typename Job>
static constexpr int
column_threads()
{
    using Tuned = ColumnTuning<Number>;

    if (Job::is_step) {
        return Job::Tuned::threads;
    }
    if (ROWS > Tuned::rows) {
        return 32;
    }
    return ROWS < Tuned::shorter[2] && sizeof(Number) < 16 ? 512 : Tuned::threads;
}

/* How rows are copied: by 16 bytes if all rows begin at a sector of 32 bytes (sectors),
 * or at half a sector (half_sectors); or element by element. */
enum class ColumnAccess { sectors, half_sectors, elements };

/* The rows are those in memory: of a step, step_column.cuh. */
template <typename Number> struct ColumnJob {
    using Tuned = ColumnTuning<Number>;
    static constexpr bool is_step = false, keeps_u = false, has_absent = false;
    static constexpr bool may_be_periodic = true;
    static constexpr int operands = 4; /* that the ring copies */
    /* numbers of a lane in shared memory apart from those of its chunk */
    template <int ROWS> static constexpr int words = 0;
    Systems<Number> t;
    Input<Number> inputs[4];  /* those of t */
    int32_t begin[4], end[4]; /* the rows that each of them has */
    ColumnAccess access;
    ColumnShape shape;
    int64_t tiles;        /* of 1 << shape.width systems */
    int32_t sharing;      /* sharing_of() */
    uint8_t *marks;       /* null, or 1 for each system that is not dominant */
    uint32_t *work_queue; /* null, or the number of tiles that were drawn */

    __device__ __forceinline__ SystemRange systems(int64_t tile) const
    {
        return systems_of_tile(tile, 1 << shape.width, sharing, t.outer, t.inner);
    }
    template <typename Visit>
    __device__ __forceinline__ void each_side(int64_t system, const Visit &visit) const
    {
        visit(system);
    }
    /* Whether x of systems that are not dominant is not stored. */
    __device__ __forceinline__ bool leaves_systems() const
    {
        return marks != nullptr;
    }
};

/* The same for groups of right-hand sides with one matrix: each system of the outer axis of
 * `t` is a group. The ring has zeros for sides that the last group does not have. */
template <typename Number> struct SideColumnJob : ColumnJob<Number> {
    static constexpr int sides = sides_of_number<Number>, operands = 3 + sides;
    Input<Number> inputs[operands];
    int32_t begin[operands], end[operands];
    SideGroups groups;

    template <typename Visit>
    __device__ __forceinline__ void each_side(int64_t system, const Visit &visit) const
    {
        groups.each(system, this->t.inner, visit);
    }
};

/* The shapes of steps: the longest chunks, because the registers of shorter ones leave no
 * room for another block. In float32, systems of up to 128 rows have chunks with the fewest
 * pads: 64, 75, 100 and 128 rows take 0.97, 0.90, 0.88 and 0.96 of the time, 200 rows 1.09
 * (H200). */
template <typename Number, int MOST> struct StepColumnTuning : ColumnTuning<Number> {
    static constexpr bool has_fewest_pads = sizeof(Number) == 4 && MOST == 32;
    static constexpr int rows = MOST, alone = MOST;
    static constexpr int shorter[] = {16, has_fewest_pads ? 20 : 16, MOST};
    static constexpr int long_from = has_fewest_pads ? 129 : 0;
    static constexpr bool takes_shortest = has_fewest_pads;
};

/* The same for a step: inputs and their rows are those of the ring, with u[i + 1] in the
 * place of u[i] and then, with StepKind::more, the source. The rows that a system does not
 * have, and lower and upper that couple to them, are not in memory: the ring has zeros. */
template <typename Number, StepKind KIND> struct StepColumnJob : ColumnJob<Number> {
    using Tuned = StepColumnTuning<Number, 32>;
    static constexpr bool is_step = true, keeps_u = KIND != StepKind::bare;
    static constexpr bool is_masked = KIND == StepKind::masked; /* otherwise perhaps */
    static constexpr bool has_source = KIND == StepKind::more;
    static constexpr int operands = has_source ? 5 : 4;
    /* u of the last row, two numbers of u, the words of the mask */
    template <int ROWS> static constexpr int words = 3 + mask_words(ROWS);
    Input<Number> inputs[operands];
    int32_t begin[operands], end[operands];
    StepNumbers<Number> terms;
};

/* The same for fluxes: the ring has the source, d[i + 1], the diffusivity of the face
 * after row i, and u[i + 1]. What is not there, and a thickness that holds for all
 * systems, is not copied. A face has one diffusivity, which is that of `upper`. */
template <typename Real, FluxKind KIND> struct FluxColumnJob : ColumnJob<BySums<Real>> {
    using Tuned = StepColumnTuning<Real, 24>;
    static constexpr bool is_step = true, has_absent = true;
    static constexpr bool keeps_u = KIND == FluxKind::more;
    static constexpr bool is_masked = false; /* perhaps */
    static constexpr bool may_be_periodic = false;
    static constexpr int operands = 4;
    static constexpr int fetched = 18;
    /* u of the last row; numbers that are copied in advance or computed from them; tables
     * of 2 ROWS + 1 numbers for the four chunks of a system in a warp, if so many */
    template <int ROWS> static constexpr int words = 1 + fetched + ROWS / 4 + 1;
    Input<BySums<Real>> inputs[4];
    int32_t begin[4], end[4];
    FluxNumbers<Real> terms;
};

/* The shape for systems of so many rows, with a width of at most `widest`; false if a
 * block or a cluster of the device cannot hold such systems. */
bool ps_cuda_column_shape(ps_dtype dtype, int64_t rows, int32_t widest,
                          const ps_cuda_device *device, ColumnShape *shape);

/* For systems along a strided axis, one of which fits into a block or a cluster of the device;
 * the shape depends on the number of rows and the dtype only. */
extern const lines::ShapedKernels<ColumnShape> ps_cuda_columns;

/* For several right-hand sides of each matrix, which are eliminated together: systems of real
 * numbers that are not in row-sum form, with the sides on the outer axis. */
extern const lines::ShapedKernels<ColumnShape> ps_cuda_side_columns;

/* Whether a step of real numbers, whose batch axes are merged, suits column kernels. */
bool ps_cuda_step_column_accepts(const ps_tridiag *t, StepKind kind,
                                 const ps_cuda_device *device, ColumnShape *shape);
/* Bytes of workspace of a step. */
size_t ps_cuda_step_column_work(const ps_tridiag *t, const StepTerms &terms,
                                const ColumnShape &shape, const ps_cuda_device *device);
ps_status ps_cuda_step_column_solve(const ps_tridiag *t, const StepTerms &terms,
                                    const ColumnShape &shape,
                                    const ps_cuda_device *device, uint8_t *marks,
                                    void *work, cudaStream_t stream);

/* column_halves.cu: enqueue the kernel of a job of real systems that are not periodic. */
template <typename Number>
ps_status launch_column_halves(const ColumnJob<Number> &job, cudaStream_t stream);

/* column_kernel.cuh: enqueue the kernel of a job. */
template <typename Number>
ps_status launch_columns(const ColumnJob<Number> &job, cudaStream_t stream);
template <typename Number>
ps_status launch_side_columns(const SideColumnJob<Number> &job, cudaStream_t stream);
template <typename Number, StepKind KIND>
ps_status launch_step_columns(const StepColumnJob<Number, KIND> &job,
                              cudaStream_t stream);
template <typename Real, FluxKind KIND>
ps_status launch_flux_columns(const FluxColumnJob<Real, KIND> &job, cudaStream_t stream);

/* The ring buffer of a warp: slots for batches of rows; of a row the four operands; of
 * an operand one element per lane. Two batches in flight are enough, and more of them
 * disturb the order in which memory is read, except in clusters, whose blocks wait for
 * each other; three are used if there is room. Copies of half sectors use the L1
 * cache and need no larger ring. */
template <typename Number, bool IS_CLUSTER, ColumnAccess ACCESS, int OPERANDS>
struct ColumnRing {
    static constexpr int batch = is_block<Number> ? 1 : 4; /* rows */
    static constexpr int slots = is_block<Number> ? 4
                                 : IS_CLUSTER && ACCESS == ColumnAccess::sectors &&
                                         OPERANDS == 4 &&
                                         !number_traits<Number>::is_complex
                                     ? 3
                                     : 2;
    static constexpr int row_words = OPERANDS * 32, batch_words = batch * row_words;
    static constexpr int words = slots * batch_words;
};

/* Words of shared memory of a warp: its ring, the part of its chunks that is not in
 * registers, and those of its job. */
template <typename Number, int ROWS, bool IS_CLUSTER, ColumnAccess ACCESS, typename Job>
static constexpr int column_words =
    ColumnRing<Number, IS_CLUSTER, ACCESS, Job::operands>::words +
    ColumnChunk<Number, ROWS>::words + 32 * Job::template words<ROWS>;

/* Dynamic shared memory of a block. */
template <typename Number, int ROWS, bool IS_CLUSTER, ColumnAccess ACCESS, typename Job>
inline size_t
column_bytes(const ColumnShape &shape)
{
    return shape.warps * sizeof(ElementOf<Number>) *
               column_words<Number, ROWS, IS_CLUSTER, ACCESS, Job> +
           bytes_of_arrays<ColumnArrays<Number>>(shape);
}

} // namespace pysolvers::columns

#endif
