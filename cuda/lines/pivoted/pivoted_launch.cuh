/* pivoted_launch.cuh - workspace and launches of the passes of a pivoted solve. */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_LAUNCH_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_LAUNCH_CUH

#include "lines/pivoted/pivoted_dtypes.h"
#include "lines/pivoted/pivoted_plan.cuh"
#include "runtime/elements.cuh"

namespace pysolvers::pivoted {

/* Bytes of the marks of a solve of all systems, for which the caller has none. */
template <typename Number>
inline size_t
pivot_again_bytes(const PivotPlan<Number> &a)
{
    return a.marks == nullptr ? ps_cuda_padded(static_cast<size_t>(a.systems)) : 0;
}

/* Bytes of the workspace of the refinement. */
template <typename Number>
inline size_t
pivot_spare_bytes(const PivotPlan<Number> &a)
{
    return ps_cuda_padded(static_cast<size_t>(a.spare_blocks * REFINED_VECTORS * a.rows) *
                          sizeof(Number));
}

/* Words of the workspace of all levels: of each the groups, then x at the ends. */
template <typename Number>
inline size_t
pivot_level_words(int64_t systems, int64_t count)
{
    return static_cast<size_t>(systems * count) * (PIVOT_GROUP_WORDS + 2);
}

/* Bytes of the carried rows of halves of systems. */
template <typename Number>
inline size_t
pivot_carried_bytes(const PivotPlan<Number> &a)
{
    constexpr int ahead = half_ahead<Number>;
    const int left = a.s.rows - a.s.rows / 2 - 1 - a.held_rows - a.kept_rows;

    if (a.kept_rows == 0 || left <= 0) {
        return 0;
    }
    const int segments = (left + ahead - 1) / (a.kept_rows / ahead * ahead) + 1;

    return ps_cuda_padded(static_cast<size_t>(a.tiles * segments) *
                          (PIVOT_HALF_WORDS * HALF_THREADS) * sizeof(Number));
}

template <typename Number>
inline size_t
pivot_plan_bytes(const PivotPlan<Number> &a)
{
    if (a.pass != PIVOT_REDUCE) {
        return pivot_again_bytes(a) + pivot_spare_bytes(a) + pivot_carried_bytes(a);
    }
    size_t bytes =
        pivot_again_bytes(a) +
        ps_cuda_padded(static_cast<size_t>(a.systems) * sizeof(int32_t)) +
        ps_cuda_padded(static_cast<size_t>(a.systems * a.ordered_kept) * sizeof(Number));
    for (int64_t count = a.segments;; count = (count + PIVOT_GROUPS - 1) / PIVOT_GROUPS) {
        bytes +=
            ps_cuda_padded(pivot_level_words<Number>(a.systems, count) * sizeof(Number));
        if (count <= PIVOT_GROUPS) {
            return bytes;
        }
    }
}

/* Bytes of workspace of a solve of all systems or of the marked ones, the larger number. */
template <typename Number>
ps_status
pivot_work_bytes(const ps_tridiag *t, size_t *bytes)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    uint8_t some = 1;

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    *bytes = std::max(pivot_plan_bytes(pivot_launch<Number>(t, nullptr, device).plan),
                      pivot_plan_bytes(pivot_launch<Number>(t, &some, device).plan));
    return PS_OK;
}

/* Compute x at the ends of all tiles: reduce level by level, then substitute in the reverse
 * order. */
template <typename Number>
inline ps_status
pivot_solve_groups(const PivotPlan<Number> &a, cudaStream_t stream)
{
    PivotLevel<Number> levels[5] = {}; /* PIVOT_GROUPS^5 groups are more than 2^31 */
    Number *place = a.groups;
    int top = 0;

    for (int count = a.segments;; top++) {
        PivotLevel<Number> &level = levels[top];
        level.groups = place;
        level.ends =
            a.groups == place ? a.ends : place + a.systems * count * PIVOT_GROUP_WORDS;
        level.count = count;
        level.tiles = (count + PIVOT_GROUPS - 1) / PIVOT_GROUPS;
        level.pass = level.tiles == 1 ? PIVOT_SOLVE : PIVOT_REDUCE;
        level.state = a.state;
        level.marks = a.exchanged ? nullptr : a.marks;
        place +=
            ps_cuda_padded(pivot_level_words<Number>(a.systems, count) * sizeof(Number)) /
            sizeof(Number);
        if (level.tiles == 1) {
            break;
        }
        count = level.tiles;
        level.upper_groups = place;
        level.upper_ends = place + a.systems * count * PIVOT_GROUP_WORDS;
    }
    for (int i = 0; i <= 2 * top; i++) {
        PivotLevel<Number> &level = levels[i <= top ? i : 2 * top - i];

        if (i > top) {
            level.pass = PIVOT_FINISH;
        }
        const ps_status status = for_threads<PIVOT_GROUPS>(
            a.systems * level.tiles, stream, PivotedGroups<Number>{level});
        if (status != PS_OK) {
            return status;
        }
    }
    return PS_OK;
}

template <typename Number, bool has_rests, bool in_ring, int held_rows>
inline ps_status
pivot_run_halves(const PivotLaunch<Number> &launch, cudaStream_t stream)
{
    const auto kernel = pivoted_halves_kernel<Number, has_rests, in_ring, held_rows>;
    const int percent = pivot_shared_percent(launch.plan);

    if (allow_shared(kernel) != cudaSuccess ||
        cudaFuncSetAttribute(
            kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
            percent < 100 ? percent : static_cast<int>(cudaSharedmemCarveoutDefault)) !=
            cudaSuccess) {
        return PS_DEVICE_FAILURE;
    }
    return Launch(launch.plan.tiles, launch.threads, launch.shared, stream)
        .run(kernel, launch.plan);
}

template <typename Number>
inline ps_status
pivot_run_halves(const PivotLaunch<Number> &launch, cudaStream_t stream)
{
    const bool has_rests = launch.plan.s.rows > PIVOT_NO_RESTS;

    if (!has_rests) {
        if constexpr (sizeof(Number) == 4) {
            if (launch.plan.in_ring) {
                return pivot_run_halves<Number, false, true, 0>(launch, stream);
            }
        }
        return pivot_run_halves<Number, false, false, 0>(launch, stream);
    }
    return launch.plan.in_ring
               ? pivot_run_halves<Number, true, true, pivot_held<Number>>(launch, stream)
               : pivot_run_halves<Number, true, false, 0>(launch, stream);
}

/* The kernel that solves the tiles of a plan. */
template <typename Number>
inline auto
pivot_kernel(const PivotPlan<Number> &a)
{
    if constexpr (!number_traits<Number>::is_complex) {
        if (a.row_halves) {
            return a.s.rows > PIVOT_NO_RESTS
                       ? pivoted_rows_kernel<Number, PIVOT_HALVES_RESTS>
                       : pivoted_rows_kernel<Number, PIVOT_HALVES>;
        }
    }
    return a.segments > 1 ? pivoted_rows_kernel<Number, PIVOT_PARTS>
                          : pivoted_rows_kernel<Number, PIVOT_WHOLE>;
}

template <typename Number>
inline ps_status
pivot_run_rows(const PivotLaunch<Number> &launch, cudaStream_t stream)
{
    const auto kernel = pivot_kernel(launch.plan);
    const int cluster = launch.plan.pass == PIVOT_EXCHANGE ? launch.plan.segments : 1;
    const bool waits = launch.plan.marks != nullptr || launch.plan.pass >= PIVOT_FINISH;
    int fit = 0;
    const ps_status status =
        resident(kernel, launch.threads, launch.shared, cluster, &fit);

    if (status != PS_OK) {
        return status;
    }
    int64_t grid = std::min(launch.plan.tiles, int64_t{fit} * cluster);

    if (launch.plan.spare != nullptr) {
        grid = std::min(grid, launch.plan.spare_blocks);
    }
    Launch rows(grid, launch.threads, launch.shared, stream);

    if (cluster > 1) {
        rows.in_clusters(cluster);
    }
    if (waits) {
        rows.closely();
    }
    return rows.run(kernel, launch.plan);
}

/* Solve the marked systems; if marks is null, all systems, whose marks are then the first
 * part of the workspace. */
template <typename Number>
ps_status
pivot_run(const ps_tridiag *t, uint8_t *marks, const ps_exec *exec, void *work)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    cudaStream_t const stream = ps_cuda_stream(exec);

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    PivotLaunch<Number> launch = pivot_launch<Number>(t, marks, device);
    PivotPlan<Number> &a = launch.plan;
    char *place = static_cast<char *>(work);
    if (marks == nullptr) {
        a.again = static_cast<uint8_t *>(work);
        place += pivot_again_bytes(a);
    }
    if constexpr (!number_traits<Number>::is_complex) {
        if (a.kept_rows > 0) {
            a.carried = reinterpret_cast<Number *>(place);
            return pivot_run_halves(launch, stream);
        }
    }
    if (a.spare_blocks > 0) {
        a.spare = reinterpret_cast<Number *>(place);
    }
    if (a.pass != PIVOT_REDUCE) {
        return pivot_run_rows(launch, stream);
    }
    const size_t states = static_cast<size_t>(a.systems) * sizeof(int32_t);
    a.state = reinterpret_cast<int32_t *>(place);
    place += ps_cuda_padded(states);
    a.kept = reinterpret_cast<Number *>(place);
    place +=
        ps_cuda_padded(static_cast<size_t>(a.systems * a.ordered_kept) * sizeof(Number));
    a.groups = reinterpret_cast<Number *>(place);
    a.ends = a.groups + a.systems * a.segments * PIVOT_GROUP_WORDS;
    ps_status status =
        ps_cuda_status(cudaMemsetAsync(a.state, PIVOT_FINE, states, stream));
    if (status == PS_OK) {
        status = pivot_run_rows(launch, stream);
    }
    if (status == PS_OK) {
        status = pivot_solve_groups(a, stream);
    }
    for (const PivotPass pass : {PIVOT_CHECK, PIVOT_FINISH}) {
        if (status == PS_OK) {
            a.pass = pass;
            status = pivot_run_rows(launch, stream);
        }
    }
    return status;
}

} // namespace pysolvers::pivoted

#endif
