/* long.cu - long systems: one pass over memory, 5 words per row, where unknowns do not depend on
 * distant rows; otherwise two passes, 9 words.
 *
 * One pass: the tiles of a system overlap by a halo on each side. Each is solved as if there were
 * nothing beyond it, and the rows between its halos are stored. In truth an unknown next to a halo is
 * x + s x', where x' is the unknown beyond the halo. |s|, the dependence, follows from the segments
 * of the tile; where the matrix is dominant, it decreases exponentially with the rows of the halo. A
 * system is given up if |s| exceeds 2^-40 (2^-24 in single precision) or |s x'| a quarter of a unit in
 * the last place of the unknowns at the seam, which CheckHalos tests with the solution. Diagonals of
 * 2.25 between off-diagonals of -1 suffice. Blocks do not begin other tiles of a system that has been
 * given up, and begin none if all have been. On
 * an H200 one pass has 0.61, 0.74, 0.75 and 0.84 of the speed of a copy of 5 words with 40000, 65536,
 * 300000 and 2^20 rows in float64, where clusters or two passes had 0.54, 0.67, 0.54 and 0.56; the
 * kernels for systems that may have been given up take some 20 us of it.
 *
 * Two passes, for the systems that have been given up, for periodic ones, for row sums, and if x
 * replaces the right-hand sides: the first one makes a segment of each part of a system
 * (segment.cuh). Let y_k be the last unknown of part k, and x_next = g - l y_k - u y_{k+1} the first
 * of part k + 1. The segments are
 *
 *   a_k y_{k-1} + (b_k - c_k l_{k+1}) y_k - c_k u_{k+1} y_{k+1} = d_k - c_k g_{k+1},
 *
 * a tridiagonal system that is some thousand times shorter, and periodic if the long
 * one is. It is solved by the same method. The second pass reads the rows again and
 * substitutes. No pivoting: stable for diagonally dominant systems. Wang 1981.
 *
 * Segments of parts that blocks which are resident together receive from each other through global
 * memory, without halos, took longer than two passes (40000 to 2^25 rows, 0.43 of the speed of a copy
 * in float64): a message arrives behind the copies of the next tile, 12 us for each tile.
 */
#include <algorithm>

#include "device/work_queue.cuh"
#include "lines/partition/long.h"
#include "runtime/elements.cuh"

namespace pysolvers::partition {

namespace {

/* The rows of the coarse systems, one per part: part k of system s at s * parts + k. */
template <typename Number> struct CoarseRows {
    Number *lower, *diag, *upper, *rhs;
};

} // namespace

static constexpr int threads = 256;

namespace {

/* Row number i of the coarse systems, from the segments of two neighbouring parts. */
template <typename Number> struct MakeCoarseRows {
    const Segment<Number> *__restrict__ segment;
    CoarseRows<Number> rows;
    int32_t parts;

    __device__ __forceinline__ void operator()(int64_t i) const
    {
        const int64_t next = (i + 1) % parts == 0 ? i + 1 - parts : i + 1;
        const Segment<Number> s = segment[i];
        const Spike<Number> first = segment[next].first;

        rows.lower[i] = s.row_before(first).lower;
        rows.diag[i] = s.row_before(first).diag;
        rows.upper[i] = s.row_before(first).upper;
        rows.rhs[i] = s.row_before(first).rhs;
    }
};

} // namespace

/* One block per system: its info and its mark, from those of its parts and of its
 * coarse system, whose row k is the last row of part k. */
struct CollectInfo {
    const Note *note;
    const int32_t *coarse_info;
    int64_t systems;
    int32_t parts;
    int32_t rows;
    int32_t part_rows;
    int32_t *info;
    uint8_t *marks;
    const uint32_t *failed; /* null, or for each system whether it takes part */

    __device__ __forceinline__ void operator()() const
    {
        __shared__ int32_t least;

        wait_for_last_kernel();
        for (int64_t s = blockIdx.x; s < systems; s += gridDim.x) {
            int32_t bad_pivot = BadPivot::none;
            bool not_dominant = false;

            if (failed != nullptr && failed[s] == 0) {
                continue;
            }
            if (threadIdx.x == 0) {
                const int32_t behind = parts - coarse_info[s];
                least =
                    coarse_info[s] == 0 ? BadPivot::none : rows - 1 - behind * part_rows;
            }
            __syncthreads();
#pragma unroll 4
            for (int32_t k = threadIdx.x; k < parts; k += threads) {
                const Note n = note[s * parts + k];

                bad_pivot = min(bad_pivot, n.bad_pivot);
                not_dominant = not_dominant | (n.not_dominant != 0);
            }
            if (bad_pivot != BadPivot::none) {
                atomicMin(&least, bad_pivot);
            }
            not_dominant = __syncthreads_or(not_dominant) != 0;
            if (threadIdx.x == 0 && info != nullptr) {
                info[s] = least == BadPivot::none ? 0 : least + 1;
            }
            if (threadIdx.x == 0 && marks != nullptr) {
                marks[s] = not_dominant;
            }
            __syncthreads();
        }
    }
};

/* Elements: tiles with halos. An unknown at a seam is x + s x', where x' is the unknown beyond the
 * halo and |s| the dependence. A system fails if s x' is not below the rounding error of x. */
template <typename Number> struct CheckHalos {
    Output<Number> x;
    int64_t outer, inner;
    int32_t rows, tiles, tile_rows, halo;
    const double *dependence;
    const uint8_t *not_dominant;
    Parts<Number> parts;
    int32_t *info;
    uint8_t *marks;

    __device__ __forceinline__ void operator()(int64_t i) const
    {
        const int64_t system = quotient(i, tiles);
        const auto part = static_cast<int32_t>(i - system * tiles);
        const int32_t end = rows - (tiles - 1 - part) * (tile_rows - 2 * halo);
        const int64_t j = outer > 1 ? quotient(system, inner) : 0;
        const Number *const of = x.system(j, system - j * inner);
        const auto size = [&](int32_t row) {
            return static_cast<double>(size_of(of[row * x.row]));
        };
        const auto is_right = [&](int side, int32_t beyond, int32_t seam) {
            constexpr double eps = sizeof(size_of(Number())) == 4 ? 0x1p-26 : 0x1p-55;

            return dependence[2 * i + side] * size(beyond) <=
                   eps * (size(seam - 1) + size(seam));
        };

        if ((part > 0 && !is_right(0, end - tile_rows - 1, end - tile_rows + halo)) ||
            (part < tiles - 1 && !is_right(1, end, end - halo))) {
            parts.fail(system);
        }
        if (part == 0 && info != nullptr) {
            info[system] = 0;
        }
        if (part == 0 && marks != nullptr) {
            marks[system] = not_dominant[system];
        }
    }
};

namespace {

/* The parts of a workspace, one after the other. */
struct Store {
    size_t segment, note, lower, diag, upper, rhs, y, info, work_queue, coarse, bytes;
    /* of halos; three counters are cleared with what follows them */
    size_t dependence, cleared, failed, not_dominant, left;
};

} // namespace

static int64_t
count_of(const ps_tridiag &t)
{
    return t.outer * t.inner;
}

/* The tiles with halos of a system. */
template <typename Number>
static int32_t
halo_tiles_of(const ps_tridiag &t, const Plan &plan)
{
    const int64_t more = std::max<int64_t>(t.rows - plan.block_rows, 0);

    return static_cast<int32_t>(1 +
                                divided_up(more, plan.block_rows - 2 * halo_of<Number>));
}

template <typename Number>
static Store
store_of(const ps_tridiag &t, const Plan &plan, bool has_halos)
{
    const size_t systems = static_cast<size_t>(count_of(t));
    const size_t count = systems * plan.shape.blocks;
    const size_t numbers = ps_cuda_padded(count * sizeof(Number));
    Store s = {};

    s.note = ps_cuda_padded(count * sizeof(Segment<Number>));
    s.lower = s.note + ps_cuda_padded(count * sizeof(Note));
    s.diag = s.lower + numbers;
    s.upper = s.diag + numbers;
    s.rhs = s.upper + numbers;
    s.y = s.rhs + numbers;
    s.info = s.y + numbers;
    s.work_queue = s.info + ps_cuda_padded(systems * sizeof(int32_t));
    s.dependence = s.work_queue + work_queue_bytes(1);
    s.cleared = s.dependence;
    s.coarse = s.cleared;
    if (has_halos) {
        const size_t tiles = systems * halo_tiles_of<Number>(t, plan);

        s.cleared += ps_cuda_padded(2 * tiles * sizeof(double));
        s.failed = s.cleared + work_queue_bytes(3);
        s.not_dominant = s.failed + ps_cuda_padded(systems * sizeof(uint32_t));
        s.left = s.not_dominant + ps_cuda_padded(systems);
        s.coarse = s.left + ps_cuda_padded((1 + systems) * sizeof(uint32_t));
    }
    s.bytes = s.coarse;
    return s;
}

template <typename Number>
static Number *
numbers_at(void *work, size_t offset)
{
    return reinterpret_cast<Number *>(static_cast<char *>(work) + offset);
}

/* The coarse systems over the workspace at `work`. */
static ps_tridiag
coarse_of(const ps_tridiag &t, const Plan &plan, const Store &s, void *work)
{
    const ps_stride stride = {1, 0, plan.shape.blocks};
    char *const at = static_cast<char *>(work);

    return {t.dtype,
            t.flags & (PS_PERIODIC | PS_ROW_SUMS),
            plan.shape.blocks,
            1,
            count_of(t),
            {at + s.lower, stride},
            {at + s.diag, stride},
            {at + s.upper, stride},
            {at + s.rhs, stride},
            {at + s.y, stride},
            reinterpret_cast<int32_t *>(at + s.info)};
}

static int
grid_for(int64_t blocks, const ps_cuda_device *device)
{
    const int64_t most = 8 * device->processors;
    return static_cast<int>(blocks < most ? blocks : most);
}

/* One pass over tiles with halos. `parts` are the two passes over the systems that fail. */
template <typename Number>
static ps_status
solve_with_halos(const ps_tridiag &t, Job<Number> &parts, const Plan &plan,
                 const Store &store, void *work, cudaStream_t stream)
{
    HaloJob<Number> job = {};
    Plan tiles = plan;

    parts.parts.failed = numbers_at<uint32_t>(work, store.failed);
    parts.parts.left = numbers_at<uint32_t>(work, store.left);
    parts.work_queue = numbers_at<uint32_t>(work, store.cleared);
    tiles.shape.rows = plan.block_rows;
    tiles.shape.blocks = 1;
    static_cast<Job<Number> &>(job) = parts;
    job.halo = halo_of<Number>;
    job.most = sizeof(size_of(Number())) == 4 ? 0x1p-24 : 0x1p-40;
    job.tiles_of_system = halo_tiles_of<Number>(t, plan);
    job.dependence = numbers_at<double>(work, store.dependence);
    job.not_dominant = numbers_at<uint8_t>(work, store.not_dominant);
    job.shape = tiles.shape;
    job.tiling.tiles = count_of(t) * job.tiles_of_system;
    job.work_queue += 2 * work_queue_pitch;
    tiles.tiling = job.tiling;
    ps_status status = ps_cuda_status(
        cudaMemsetAsync(parts.work_queue, 0, store.coarse - store.cleared, stream));
    if (status == PS_OK) {
        status = launch_halos(job, tiles, stream);
    }
    return status == PS_OK
               ? for_elements(job.tiling.tiles, stream,
                              CheckHalos<Number>{job.t.x, job.t.outer, job.t.inner,
                                                 job.t.rows, job.tiles_of_system,
                                                 plan.block_rows, job.halo,
                                                 job.dependence, job.not_dominant,
                                                 job.parts, t.info, parts.marks})
               : status;
}

template <typename Number>
static ps_status
solve(const ps_tridiag &t, const Plan &plan, bool may_have_halos,
      const ps_cuda_device *device, uint8_t *marks, const ps_exec *exec, void *work)
{
    const Store store = store_of<Number>(t, plan, may_have_halos);
    const ps_tridiag coarse = coarse_of(t, plan, store, work);
    const int32_t parts = plan.shape.blocks;
    const int32_t part_rows = plan.block_rows;
    const int64_t systems = count_of(t), count = systems * parts;
    cudaStream_t const stream = ps_cuda_stream(exec);
    Job<Number> job =
        job_of<Number>(t, plan, marks, numbers_at<char>(work, store.work_queue));
    const CoarseRows<Number> rows = {
        numbers_at<Number>(work, store.lower), numbers_at<Number>(work, store.diag),
        numbers_at<Number>(work, store.upper), numbers_at<Number>(work, store.rhs)};

    job.parts = {numbers_at<Segment<Number>>(work, store.segment),
                 numbers_at<Note>(work, store.note), numbers_at<Number>(work, store.y)};
    const bool has_halos = may_have_halos && t.x.data != t.rhs.data;
    ps_status status = PS_OK;
    if (has_halos) {
        status = solve_with_halos(t, job, plan, store, work, stream);
    }
    if (status == PS_OK) {
        status = launch_partition(job, TOP_SEGMENT, plan, stream);
    }
    if (status == PS_OK) {
        status = for_elements(count, stream,
                              MakeCoarseRows<Number>{job.parts.segment, rows, parts});
    }
    if (status == PS_OK) {
        status = ps_cuda_partition_solve(&coarse, device, nullptr, exec,
                                         numbers_at<char>(work, store.coarse));
    }
    if (status == PS_OK && (t.info != nullptr || marks != nullptr)) {
        status = for_threads<threads>(grid_for(systems, device), stream,
                                      CollectInfo{job.parts.note, coarse.info, systems,
                                                  parts, job.t.rows, part_rows, t.info,
                                                  marks, job.parts.failed});
    }
    if (has_halos) {
        job.work_queue += work_queue_pitch;
    }
    return status == PS_OK ? launch_partition(job, TOP_KNOWN, plan, stream) : status;
}

size_t
ps_cuda_long_work(const ps_tridiag *t, const Plan &plan, bool has_halos,
                  const ps_cuda_device *device)
{
    size_t bytes = 0;

    (void)with_form(*t, [&](auto zero) {
        const Store s = store_of<decltype(zero)>(*t, plan, has_halos);
        const ps_tridiag coarse = coarse_of(*t, plan, s, nullptr);

        bytes = s.bytes + ps_cuda_partition_work(&coarse, device);
        return PS_OK;
    });
    return bytes;
}

ps_status
ps_cuda_long_solve(const ps_tridiag *t, const Plan &plan, bool has_halos,
                   const ps_cuda_device *device, uint8_t *marks, const ps_exec *exec,
                   void *work)
{
    return with_form(*t, [&](auto zero) {
        return solve<decltype(zero)>(*t, plan, has_halos, device, marks, exec, work);
    });
}

} // namespace pysolvers::partition
