/* partition.h - plans of the partition method: the distribution of a batch over the
 * device.
 *
 * partition.cu chooses a plan; partition.cuh has the kernels, which partition_forms.cu
 * compiles once per dtype and form; long.cu solves systems that need more than one tile.
 */
#ifndef PS_CUDA_LINES_PARTITION_PARTITION_H
#define PS_CUDA_LINES_PARTITION_PARTITION_H

#include <type_traits>

#include "lines/join/levels.cuh"
#include "lines/join/step_terms.cuh"
#include "lines/partition/device_exchange.cuh"
#include "lines/partition/tile.cuh"
#include "runtime/engine.h"

namespace pysolvers::partition {

using namespace join;

/* The largest number of rows of a chunk, odd so that neighbouring threads use different
 * banks, and of threads of a block; limited by the registers of the kernels by row and
 * by column. */
template <typename Number, bool BY_ROW> struct Tuning;
template <bool BY_ROW> struct Tuning<float, BY_ROW> {
    static constexpr int rows = 17, threads = 512;
};
template <> struct Tuning<double, true> {
    static constexpr int rows = 11, threads = 384;
};
template <> struct Tuning<double, false> {
    static constexpr int rows = 9, threads = 512;
};
template <> struct Tuning<Complex<float>, true> {
    static constexpr int rows = 11, threads = 384;
};
template <> struct Tuning<Complex<float>, false> {
    static constexpr int rows = 9, threads = 512;
};
template <bool BY_ROW> struct Tuning<Complex<double>, BY_ROW> {
    static constexpr int rows = 5, threads = 384;
};
template <typename Real, bool BY_ROW>
struct Tuning<BySums<Real>, BY_ROW> : Tuning<Real, BY_ROW> {};
/* The same for systems that are divided over devices and for steps, where a block holds more rows
 * with it. */
struct LongTuning {
    static constexpr int rows = 17, threads = 256;
};
template <typename Real, int COUNT>
struct Tuning<WithSides<Real, COUNT>, true> { /* fewer threads fill the shared memory */
    static constexpr int rows = sizeof(Real) == 4 ? 17 : 9, threads = 384;
};

/* Whether there is a kernel with long chunks, along the rows. */
template <typename Number>
inline constexpr bool has_long_chunks = std::is_same_v<Number, double>;

/* The last level of a block: its segment is a whole system; the segments of a cluster
 * are joined; the segment is stored for the coarse system; y is known from the coarse
 * system; or the segments of several devices are joined. */
enum Top { TOP_BLOCK, TOP_CLUSTER, TOP_SEGMENT, TOP_KNOWN, TOP_DEVICES };

/* Arrays over the parts of long systems, part k of system s at s * parts + k. */
template <typename Number> struct Parts {
    Segment<Number> *segment;
    Note *note;
    const Number *y;  /* the last unknown of each part */
    uint32_t *failed; /* for each system, whether its tiles with halos are given up */
    uint32_t *
        left; /* the number of these systems, and their list; null: the two passes are for
                         all systems */

    /* Give a system up. */
    __device__ __forceinline__ void fail(int64_t system) const
    {
        if (atomicExch(failed + system, 1u) == 0) {
            left[1 + atomicAdd(left, 1u)] = static_cast<uint32_t>(system);
        }
    }
};

/* The free parameters of a plan. */
struct Choice {
    bool by_row;         /* copy along the rows, otherwise along the systems */
    int32_t systems;     /* per tile */
    int32_t blocks;      /* per cluster */
    int32_t warps;       /* per part of a system; 0: systems are not divided into parts */
    int32_t devices = 1; /* per system */
    int32_t sides = 1;   /* right-hand sides that are eliminated together */
    bool long_chunks = false;
};

struct Plan {
    Shape shape;
    Tiling tiling;
    int32_t threads, shared_bytes; /* of a block; dynamic shared memory */
    int32_t block_rows;            /* largest number of rows of a system in a block */
    bool work_queue;               /* blocks draw their tiles from a counter */
    bool long_chunks;
    int32_t most_blocks; /* of parts that share a device; 0: as many as are resident */
};

/* The batch of `t` with one axis of systems if the strides allow it. */
ps_tridiag ps_cuda_merged(const ps_tridiag *t);
Choice ps_cuda_choose(const ps_tridiag *t, const ps_cuda_device *device);
/* The choice for groups_of(): along the rows, with systems that fit a block; false if there is
 * none. In clusters, 4000 rows took 1.0 to 1.2 times as long as one side after the other. */
bool ps_cuda_choose_groups(const ps_tridiag *groups, const ps_cuda_device *device,
                           Choice *choice);
/* The choice for the rows that one of `devices` devices has of each system. */
Choice ps_cuda_choose_block(const ps_tridiag *t, const ps_cuda_device *device,
                            int32_t devices);
/* The choice for a step of numbers that are not in row-sum form. */
Choice ps_cuda_choose_step(const ps_tridiag *t, const ps_cuda_device *device);
/* The plan that follows from a choice; false if it does not fit the device. */
bool ps_cuda_plan(const ps_tridiag *t, const ps_cuda_device *device, Choice choice,
                  Plan *plan);
/* Rows of a halo, whole chunks: with random dominant matrices an unknown beyond 48 rows changes one
 * at the seam by e^-67 of itself, give or take 6, beyond 72 rows by e^-101, give or take 8; a quarter
 * of a unit in the last place is e^-18 and e^-38. */
template <typename Number>
static constexpr int32_t halo_of =
    ((sizeof(Number) == 4 ? 48 : 72) + Tuning<Number, true>::rows - 1) /
    Tuning<Number, true>::rows * Tuning<Number, true>::rows;
/* The plan for the parts of long contiguous systems that are solved by tiles with halos where that
 * is possible (long.cu); false if there is none. */
bool ps_cuda_plan_halos(const ps_tridiag *t, const ps_cuda_device *device, Plan *parts);
/* Load each tile while the one before it is solved, if the operands are contiguous, only one
 * block of a cluster fits a multiprocessor and its memory suffices. */
void ps_cuda_plan_ahead(const ps_tridiag *t, const ps_cuda_device *device, Plan *plan);

/* Bytes of workspace, and the solve: info and marks may be null. */
size_t ps_cuda_partition_work(const ps_tridiag *t, const ps_cuda_device *device);
ps_status ps_cuda_partition_solve(const ps_tridiag *t, const ps_cuda_device *device,
                                  uint8_t *marks, const ps_exec *exec, void *work);

template <typename Number> struct Job {
    static constexpr bool is_step = false, is_flux = false, has_halos = false;
    static constexpr bool in_passes = false;
    Systems<Number> t;
    Input<Number> inputs[4]; /* those of t */
    Shape shape;
    Tiling tiling;
    uint8_t *marks;       /* null, or 1 for each system that is not dominant */
    uint32_t *work_queue; /* null, or the number of tiles that blocks have drawn */
    Parts<Number> parts;
    DeviceExchange<Number> devices;
    int64_t in_turn;         /* tiles that are not drawn, if devices share the systems */
    bool has_left, has_next; /* whether row 0 has a left and the last row a right
                                neighbour */
};

/* Not for row sums, whose segments have no coefficient of their last unknown; complex numbers were
 * not measured. */
template <typename Number>
static constexpr bool may_have_halos =
    std::is_same_v<Number, float> || std::is_same_v<Number, double>;

/* Tiles of one system that overlap by twice `halo` rows, and store the rows between their halos. The
 * first tile of each system precedes the others. */
template <typename Number> struct HaloJob : Job<Number> {
    static constexpr bool has_halos = true;
    int32_t tiles_of_system;
    int32_t halo; /* rows, a multiple of those of a chunk */
    double most;  /* of a dependence: with more, the system is given up */
    /* of the unknowns at both seams of each tile on those beyond its halos */
    double *dependence;
    uint8_t *not_dominant; /* one for each system */
};

/* The same for groups of right-hand sides with one matrix, which are systems of the outer
 * axis. */
template <typename Number> struct SideJob : Job<Number> {
    Input<Number> inputs[3 + sides_of_number<Number>];
    SideGroups groups;
};

/* The same in passes: the matrices of a tile are eliminated once, and its groups of sides follow
 * one after the other. */
template <typename Number> struct SidePassJob : SideJob<Number> {
    static constexpr bool in_passes = true;
};

/* The mask of a step, for systems of two batch axes. */
struct StepMask {
    Input<uint8_t> where;       /* null data: none */
    int64_t inner;              /* systems of the inner axis */
    const uint8_t *begin, *end; /* all its bytes lie between */
};

/* The same for a step without a source. */
template <typename Number, bool IS_MASKED> struct StepJob : Job<Number> {
    static constexpr bool is_step = true, is_masked = IS_MASKED;
    StepNumbers<Number> terms;
    StepMask mask;
};

/* The same for fluxes: lower and upper are the diffusivities, diag the thicknesses. A face
 * has one diffusivity, which is that of `upper`: `lower` is not copied, and neither is a
 * thickness that holds for all systems. There is no source. */
template <typename Real, FluxKind KIND> struct FluxJob : Job<BySums<Real>> {
    static constexpr bool is_step = true, is_flux = true;
    static constexpr bool is_masked = KIND == FluxKind::more;
    FluxNumbers<Real> terms;
    StepMask mask;
};

template <typename Number>
inline Job<Number>
job_of(const ps_tridiag &t, const Plan &plan, uint8_t *marks, void *work_queue)
{
    const Systems<Number> s = systems_of<Number>(t);

    return {s,          {s.lower, s.diag, s.upper, s.rhs},
            plan.shape, plan.tiling,
            marks,      plan.work_queue ? static_cast<uint32_t *>(work_queue) : nullptr,
            {},         {},
            0,          s.periodic,
            s.periodic};
}

/* partition.cuh: enqueue the kernel of a job. */
template <typename Number>
ps_status launch_partition(const Job<Number> &job, Top top, const Plan &plan,
                           cudaStream_t stream);
/* The same for tiles with halos. */
template <typename Number>
ps_status launch_halos(const HaloJob<Number> &job, const Plan &plan, cudaStream_t stream);
/* The same for groups of right-hand sides, along the rows. */
template <typename Number>
ps_status launch_side_partition(const SideJob<Number> &job, const Plan &plan,
                                cudaStream_t stream);
template <typename Number>
ps_status launch_side_passes(const SidePassJob<Number> &job, const Plan &plan,
                             cudaStream_t stream);
/* The same for a step along the rows, in one pass over memory. */
template <typename Number, bool IS_MASKED>
ps_status launch_step_partition(const StepJob<Number, IS_MASKED> &job, const Plan &plan,
                                cudaStream_t stream);
template <typename Real, FluxKind KIND>
ps_status launch_flux_partition(const FluxJob<Real, KIND> &job, const Plan &plan,
                                cudaStream_t stream);

} // namespace pysolvers::partition

#endif
