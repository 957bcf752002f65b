/* pivoted_launch.cuh - tiles and passes of a pivoted solve, chosen on the host.
 *
 * A tile holds whole systems where they fit in the shared memory of a block, as many as
 * make the usual number of chunks; else a power of two chunks of one system, or of the
 * systems in one memory sector where systems lie closer than rows.
 */
#ifndef PS_CUDA_PIVOTED_LAUNCH_CUH
#define PS_CUDA_PIVOTED_LAUNCH_CUH

#include <algorithm>
#include <cstdlib>

#include "pivoted.cuh"

template <typename Number> struct PivotLaunch {
    PivotPlan<Number> plan;
    int threads;
    size_t shared;
};

/* Make one batch axis of two where the strides allow, else let inner be the closer. */
template <typename Number>
inline void
pivot_order(PivotPlan<Number> &a)
{
    Systems<Number> &s = a.s;
    const auto flat = [&](const auto &o) { return o.outer == o.inner * s.inner; };
    const auto exchanged = [](auto &o) { std::swap(o.outer, o.inner); };
    const bool one = s.outer == 1 || s.inner == 1;

    if (!one && flat(s.lower) && flat(s.diag) && flat(s.upper) && flat(s.rhs) &&
        flat(s.x)) {
        s.inner *= s.outer;
        s.outer = 1;
    }
    else if (s.outer > 1 &&
             (s.inner == 1 || std::llabs(s.x.outer) < std::llabs(s.x.inner))) {
        exchanged(s.lower);
        exchanged(s.diag);
        exchanged(s.upper);
        exchanged(s.rhs);
        exchanged(s.x);
        std::swap(s.outer, s.inner);
        a.exchanged = !one;
    }
    a.along_rows = s.inner == 1 || std::llabs(s.x.row) <= std::llabs(s.x.inner);
}

/* Choose the number of chunks: the least whose lengths differ by one and are mostly odd,
 * or differ by two and all are. Chunks of an even length have their rows in the same
 * banks; and few of two odd lengths, where systems begin in the same bank. */
template <typename Number>
inline void
pivot_cut_rows(PivotPlan<Number> &a, int length)
{
    const int least = a.rows / length + (a.rows % length != 0);

    for (a.chunks = least; a.chunks < 2 * least; a.chunks++) {
        const int odd = (a.rows / a.chunks - 1) | 1, over = a.rows - a.chunks * odd;
        a.base = a.rows / a.chunks;
        a.longer = a.rows % a.chunks;
        a.step = 1;
        if (3 * (a.base % 2 != 0 ? a.chunks - a.longer : a.longer) >= 2 * a.chunks) {
            return;
        }
        if (odd >= 3 && over % 2 == 0 && (a.rows % 32 != 0 || a.chunks > 8) &&
            odd + (over > 0 ? 2 : 0) <= length) {
            a.base = odd;
            a.longer = over / 2;
            a.step = 2;
            return;
        }
    }
    a.chunks = least;
    a.base = a.rows / a.chunks;
    a.longer = a.rows % a.chunks;
    a.step = 1;
}

/* Whether the rows of an operand are side by side, each element at a place of its own
 * size. */
template <typename Operand>
inline bool
pivot_side_by_side(const Operand &o)
{
    return o.row == 1 && reinterpret_cast<uintptr_t>(o.data) % sizeof(*o.data) == 0;
}

/* Fill in what follows from the size of a tile. */
template <typename Number>
inline void
pivot_size(PivotLaunch<Number> &launch, int systems, int chunks)
{
    constexpr int length = PivotShape<Number>::length, unit = bulk_unit<Number>;
    PivotPlan<Number> &a = launch.plan;
    const int rows = std::min(chunks * length, a.rows);
    const int units = (rows + 2 * unit - 2) / unit * unit;
    a.tile_systems = systems;
    a.tile_chunks = chunks;
    a.segments = (a.chunks + chunks - 1) / chunks;
    a.flat = a.bulk && a.segments == 1 && a.s.outer == 1 && a.s.lower.inner == a.rows &&
             a.s.diag.inner == a.rows && a.s.upper.inner == a.rows &&
             a.s.rhs.inner == a.rows && (!a.bulk_x || a.s.x.inner == a.rows);
    a.pitch = a.flat ? rows : a.bulk ? units : rows | 1;
    /* A flat operand may begin anywhere in a unit, and a lone row gets a second one. */
    a.plane = (systems * a.pitch + std::max(1, 2 * unit - 2)) / unit * unit;
    a.tiles = (a.systems + systems - 1) / systems * a.segments;
    launch.threads = (systems * chunks + 31) / 32 * 32;
    a.walk_size = a.along_rows ? rows : systems;
    a.walk_fast = launch.threads % a.walk_size;
    a.walk_slow = launch.threads / a.walk_size;
    a.tree_words = pivot_leaf_place<Number>(systems * chunks);
    launch.shared = (5 * static_cast<size_t>(a.plane) + a.tree_words) * sizeof(Number) +
                    systems * PivotShared<Number>::system_bytes +
                    PivotShared<Number>::block_bytes;
}

template <typename Number>
inline PivotLaunch<Number>
pivot_launch(const ps_tridiag *t, const uint8_t *marks, const ps_cuda_device *device)
{
    constexpr int length = PivotShape<Number>::length, most = PivotShape<Number>::threads;
    constexpr int usual = PivotShape<Number>::usual, sector = 32 / sizeof(Number);
    PivotLaunch<Number> launch = {};
    PivotPlan<Number> &a = launch.plan;
    const auto fits = [&] {
        return launch.threads <= most &&
               launch.shared + 1024 <= static_cast<size_t>(device->shared_bytes);
    };

    a.s = systems_of<Number>(*t);
    pivot_order(a);
    a.in[PIVOT_LOWER] = a.s.lower;
    a.in[PIVOT_DIAG] = a.s.diag;
    a.in[PIVOT_UPPER] = a.s.upper;
    a.in[PIVOT_RHS] = a.s.rhs;
    a.marks = marks;
    a.rows = std::max(a.s.rows, 2);
    pivot_cut_rows(a, length);
    a.systems = a.s.outer * a.s.inner;
    a.bulk = device->capability >= 90 && a.s.rows > 1 && pivot_side_by_side(a.s.lower) &&
             pivot_side_by_side(a.s.diag) && pivot_side_by_side(a.s.upper) &&
             pivot_side_by_side(a.s.rhs);
    a.bulk_x = a.bulk && marks == nullptr && pivot_side_by_side(a.s.x);

    const int64_t share = (a.systems + 2 * device->processors - 1) /
                          (2 * static_cast<int64_t>(device->processors));
    const int least = a.along_rows ? 1 : sector;
    int64_t systems = std::min<int64_t>(usual / std::min(a.chunks, usual), share);
    systems = std::max<int64_t>(systems / least * least, least);
    for (systems = std::min(systems, a.systems); systems > 0; systems /= 2) {
        if (systems * a.chunks <= most) {
            pivot_size(launch, static_cast<int>(systems), a.chunks);
            if (fits()) {
                return launch;
            }
        }
    }
    const int across = static_cast<int>(std::min<int64_t>(least, a.systems));
    int chunks = PivotShape<Number>::part / least;
    for (pivot_size(launch, across, chunks); !fits() || a.segments == 1;) {
        chunks /= 2;
        pivot_size(launch, across, chunks);
    }
    a.pass = PIVOT_REDUCE;
    return launch;
}

/* Words of the workspace from level to level: groups, then ends. */
template <typename Number>
inline size_t
pivot_level_words(int64_t systems, int64_t count)
{
    return static_cast<size_t>(systems * count) * (PIVOT_GROUP_WORDS + 2);
}

template <typename Number>
inline ps_status
pivot_work_bytes(const ps_tridiag *t, size_t *bytes)
{
    const ps_cuda_device *const device = ps_cuda_device_get();

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    const PivotPlan<Number> a = pivot_launch<Number>(t, nullptr, device).plan;
    *bytes = 0;
    if (a.segments > 1) {
        *bytes = ps_cuda_padded(static_cast<size_t>(a.systems) * sizeof(int32_t));
        for (int64_t count = a.segments;;
             count = (count + PIVOT_GROUPS - 1) / PIVOT_GROUPS) {
            *bytes += ps_cuda_padded(pivot_level_words<Number>(a.systems, count) *
                                     sizeof(Number));
            if (count <= PIVOT_GROUPS) {
                break;
            }
        }
    }
    return PS_OK;
}

/* Solve for x at the ends of tiles: up the levels of groups, and down again. */
template <typename Number>
inline cudaError_t
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
        pivoted_groups_kernel<Number>
            <<<static_cast<unsigned>(a.systems * level.tiles), PIVOT_GROUPS, 0, stream>>>(
                level);
    }
    return cudaGetLastError();
}

/* Parts of long systems have chunks of about the greatest length. */
template <typename Number>
inline auto
pivot_rows_kernel(const PivotPlan<Number> &a)
{
    const bool even = a.base >= PivotShape<Number>::length - 5;

    return a.segments > 1 ? pivoted_rows_kernel<Number, true, false>
           : even         ? pivoted_rows_kernel<Number, true, true>
                          : pivoted_rows_kernel<Number, false, true>;
}

template <typename Number>
inline cudaError_t
pivot_run_rows(const PivotLaunch<Number> &launch, const ps_cuda_device *device,
               cudaStream_t stream)
{
    const auto kernel = pivot_rows_kernel(launch.plan);
    int blocks = 0;

    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(launch.shared));
    if (error == cudaSuccess) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, kernel, launch.threads, launch.shared);
    }
    if (error != cudaSuccess) {
        return error;
    }
    const int64_t grid =
        std::min<int64_t>(launch.plan.tiles,
                          static_cast<int64_t>(std::max(blocks, 1)) * device->processors);
    kernel<<<static_cast<unsigned>(grid), launch.threads, launch.shared, stream>>>(
        launch.plan);
    return cudaGetLastError();
}

/* Solve the marked systems, all if marks is null. */
template <typename Number>
inline ps_status
pivot_run(const ps_tridiag *t, const uint8_t *marks, const ps_exec *exec, void *work)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    cudaStream_t const stream = ps_cuda_stream(exec);

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    PivotLaunch<Number> launch = pivot_launch<Number>(t, marks, device);
    PivotPlan<Number> &a = launch.plan;
    if (a.segments == 1) {
        return ps_cuda_status(pivot_run_rows(launch, device, stream));
    }
    const size_t states = static_cast<size_t>(a.systems) * sizeof(int32_t);
    a.state = static_cast<int32_t *>(work);
    a.groups =
        reinterpret_cast<Number *>(static_cast<char *>(work) + ps_cuda_padded(states));
    a.ends = a.groups + a.systems * a.segments * PIVOT_GROUP_WORDS;
    cudaError_t error = cudaMemsetAsync(a.state, PIVOT_FINE, states, stream);
    if (error == cudaSuccess) {
        error = pivot_run_rows(launch, device, stream);
    }
    if (error == cudaSuccess) {
        error = pivot_solve_groups(a, stream);
    }
    if (error == cudaSuccess) {
        a.pass = PIVOT_FINISH;
        error = pivot_run_rows(launch, device, stream);
    }
    return ps_cuda_status(error);
}

#endif
