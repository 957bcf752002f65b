/* long.cu - long systems in two passes over memory: 9 words per row.
 *
 * The first pass makes a segment of each part of a system (segment.cuh). Let y_k be the
 * last unknown of part k, and x_next = g - l y_k - u y_{k+1} the first of part k + 1.
 * The segments are
 *
 *   a_k y_{k-1} + (b_k - c_k l_{k+1}) y_k - c_k u_{k+1} y_{k+1} = d_k - c_k g_{k+1},
 *
 * a tridiagonal system that is some thousand times shorter, and periodic if the long
 * one is. It is solved by the same method. The second pass reads the rows again and
 * substitutes. No pivoting: stable for diagonally dominant systems. Wang 1981.
 */
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

    __device__ __forceinline__ void operator()() const
    {
        __shared__ int32_t least;

        wait_for_last_kernel();
        for (int64_t s = blockIdx.x; s < systems; s += gridDim.x) {
            int32_t bad_pivot = BadPivot::none;
            bool not_dominant = false;

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

namespace {

/* The parts of a workspace, one after the other. */
struct Store {
    size_t segment, note, lower, diag, upper, rhs, y, info, work_queue, coarse, bytes;
};

} // namespace

static int64_t
count_of(const ps_tridiag &t)
{
    return t.outer * t.inner;
}

template <typename Number>
static Store
store_of(const ps_tridiag &t, const Plan &plan)
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
    s.coarse = s.work_queue + work_queue_bytes(1);
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

template <typename Number>
static ps_status
solve(const ps_tridiag &t, const Plan &plan, const ps_cuda_device *device, uint8_t *marks,
      const ps_exec *exec, void *work)
{
    const Store store = store_of<Number>(t, plan);
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
    ps_status status = launch_partition(job, TOP_SEGMENT, plan, stream);
    if (status == PS_OK) {
        status = for_elements(count, stream,
                              MakeCoarseRows<Number>{job.parts.segment, rows, parts});
    }
    if (status == PS_OK) {
        status = ps_cuda_partition_solve(&coarse, device, nullptr, exec,
                                         numbers_at<char>(work, store.coarse));
    }
    if (status == PS_OK && (t.info != nullptr || marks != nullptr)) {
        status =
            for_threads<threads>(grid_for(systems, device), stream,
                                 CollectInfo{job.parts.note, coarse.info, systems, parts,
                                             job.t.rows, part_rows, t.info, marks});
    }
    return status == PS_OK ? launch_partition(job, TOP_KNOWN, plan, stream) : status;
}

size_t
ps_cuda_long_work(const ps_tridiag *t, const Plan &plan, const ps_cuda_device *device)
{
    size_t bytes = 0;

    (void)with_form(*t, [&](auto zero) {
        const Store s = store_of<decltype(zero)>(*t, plan);
        const ps_tridiag coarse = coarse_of(*t, plan, s, nullptr);

        bytes = s.bytes + ps_cuda_partition_work(&coarse, device);
        return PS_OK;
    });
    return bytes;
}

ps_status
ps_cuda_long_solve(const ps_tridiag *t, const Plan &plan, const ps_cuda_device *device,
                   uint8_t *marks, const ps_exec *exec, void *work)
{
    return with_form(*t, [&](auto zero) {
        return solve<decltype(zero)>(*t, plan, device, marks, exec, work);
    });
}

} // namespace pysolvers::partition
