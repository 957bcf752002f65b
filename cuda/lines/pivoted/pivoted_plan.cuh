/* pivoted_plan.cuh - the choice of the tiles of a pivoted solve, on the host.
 *
 * A tile holds whole systems if they fit the shared memory of a block and a multiprocessor
 * can hold two blocks. Otherwise a cluster holds a system if it can. Otherwise a tile has a
 * power of two of chunks, of one system, or of the systems in one memory sector if the
 * stride between systems is smaller than that between rows. Many real systems of 8 to 4096 rows
 * along a strided axis have no chunks (pivot_take_halves), nor have many short ones whose rows are
 * contiguous (pivot_take_row_halves).
 */
#ifndef PS_CUDA_LINES_PIVOTED_PIVOTED_PLAN_CUH
#define PS_CUDA_LINES_PIVOTED_PIVOTED_PLAN_CUH

#include <algorithm>
#include <cstdlib>

#include "lines/geometry.h"
#include "lines/pivoted/pivoted_halves.cuh"

namespace pysolvers::pivoted {

using namespace lines;

template <typename Number> struct PivotLaunch {
    PivotPlan<Number> plan;
    int threads;
    size_t shared;
};

/* Merge the two batch axes if the strides allow it; otherwise make the one with the smaller
 * stride the inner one. */
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

/* Divide a system into chunks of one odd length, one for each of 1, 2, 4, ... lanes, so that
 * lanes at the same row of their chunks use different banks of shared memory. */
template <typename Number>
inline void
pivot_cut_rows(PivotPlan<Number> &a)
{
    constexpr int length = PIVOT_LENGTH;
    int lanes = 1;

    while (lanes < PIVOT_THREADS && lanes * length < a.rows) {
        lanes *= 2;
    }
    const int chunks = std::max(lanes, (a.rows + length - 1) / length);
    a.length = std::max((a.rows + chunks - 1) / chunks, 2) | 1;
    a.chunks = std::max(1, (a.rows + a.length - 2) / a.length);
}

/* Whether the rows of an operand are contiguous and its elements are aligned. */
template <typename Operand>
inline bool
pivot_side_by_side(const Operand &o)
{
    return o.row == 1 && reinterpret_cast<uintptr_t>(o.data) % sizeof(*o.data) == 0;
}

/* Whether an operand is aligned to 16 bytes. */
template <typename Operand>
inline bool
pivot_begins_in_units(const Operand &o)
{
    return reinterpret_cast<uintptr_t>(o.data) % 16 == 0;
}

/* Whether the systems of two operands have the same offsets to units of 16 bytes. */
template <typename One, typename Other>
inline bool
pivot_alike(const One &one, const Other &other)
{
    constexpr int64_t unit = 16, size = sizeof(*one.data);
    const uintptr_t apart =
        reinterpret_cast<uintptr_t>(one.data) - reinterpret_cast<uintptr_t>(other.data);

    return apart % unit == 0 && (one.inner - other.inner) * size % unit == 0 &&
           (one.outer - other.outer) * size % unit == 0;
}

/* Whether yes(operand) for all that are read. */
template <typename Number, typename Yes>
inline bool
pivot_all_read(const Systems<Number> &s, const Yes &yes)
{
    return yes(s.lower) && yes(s.diag) && yes(s.upper) && yes(s.rhs);
}

/* Whether all operands do. */
template <typename Number>
inline bool
pivot_begin_in_units(const Systems<Number> &s)
{
    return pivot_all_read(s, [](const auto &o) { return pivot_begins_in_units(o); });
}

/* Choose how tiles are copied. Systems that would begin in few different banks of shared
 * memory are copied one by one to different banks, short ones by all threads. The unused
 * entry of an off-diagonal is not read, because it may lie outside of the array. */
template <typename Number>
inline void
pivot_choose_copies(PivotPlan<Number> &a, bool is_short, int capability)
{
    const Systems<Number> &s = a.s;
    const int units = s.rows / pivot_unit<Number>, bytes = s.rows * int(sizeof(Number));
    const bool apart = bytes % 128 == 0, some_apart = bytes % 16 == 0 && 128 % bytes == 0;
    const auto side_by_side = [](const auto &o) { return pivot_side_by_side(o); };
    const auto follows = [&](const auto &o) { return o.inner == s.rows; };
    const bool bulk = capability >= 90 && s.rows > 1 && pivot_all_read(s, side_by_side);
    const bool tight = bulk && s.outer == 1 && pivot_all_read(s, follows);

    a.copies = bulk ? PIVOT_BULK : PIVOT_ELEMENTS;
    a.bulk_x = bulk && a.marks == nullptr && side_by_side(s.x) && pivot_alike(s.rhs, s.x);
    const bool by_units = tight && (apart || some_apart) && !is_short && a.bulk_x &&
                          follows(s.x) && pivot_begin_in_units(s) && units <= 32 &&
                          (units & (units - 1)) == 0;
    a.flat = tight && !apart && !by_units && (!a.bulk_x || follows(s.x));
    if (by_units) {
        a.copies = PIVOT_UNITS;
        a.bulk_x = false;
    }
}

/* Whether the bulk copies of tiles with this number of systems consist of whole units. */
template <typename Number>
inline bool
pivot_is_plain(const PivotPlan<Number> &a)
{
    constexpr int unit = pivot_unit<Number>;
    const Systems<Number> &s = a.s;
    const auto in_step = [](const auto &o) { return o.inner % unit == 0; };

    if (a.copies != PIVOT_BULK || !a.bulk_x || s.outer > 1 || !pivot_begin_in_units(s)) {
        return false;
    }
    return a.flat ? a.tile_systems * s.rows % unit == 0 &&
                        a.systems % a.tile_systems * s.rows % unit == 0
                  : s.rows % unit == 0 && pivot_all_read(s, in_step);
}

/* Elements from one system of a tile to the next, for the number of chunks and rows. */
template <typename Number>
inline int
pivot_pitch(const PivotPlan<Number> &a, int chunks, int rows)
{
    constexpr int unit = pivot_unit<Number>, banks = 128 / sizeof(Number);
    const int next = (chunks + unit - 1) / unit * unit; /* a chunk begins a bank on */

    if (a.flat || a.copies == PIVOT_ELEMENTS) {
        return a.flat ? rows : rows | 1;
    }
    const auto is_apart = [&](int pitch) {
        return chunks == 1 ? pitch / unit % 2 == 1 : pitch % banks == next % banks;
    };
    int pitch = (rows + 2 * unit - 2) / unit * unit;
    while (a.tile_systems > 1 && !is_apart(pitch)) {
        pitch += unit;
    }
    return pitch;
}

/* Set the members of the plan that follow from the size of a tile: its number of systems,
 * and the number of chunks for which each has memory. */
template <typename Number>
inline void
pivot_size(PivotLaunch<Number> &launch, int systems, int chunks)
{
    constexpr int unit = pivot_unit<Number>, sector = 32 / sizeof(Number);
    PivotPlan<Number> &a = launch.plan;
    const int rows = std::min(chunks * a.length + 1, a.rows);

    a.tile_systems = systems;
    a.tile_chunks = chunks;
    a.warp_systems = 32 / chunks;
    a.segments = (a.chunks + chunks - 1) / chunks;
    a.pitch = pivot_pitch(a, chunks, rows);
    /* A flat operand may begin anywhere in a unit, and one row follows the last one. Copies
     * are slower if source and target have different offsets to a sector. */
    a.plane = (systems * a.pitch + unit + sector - 1) / sector * sector;
    a.tiles = (a.systems + systems - 1) / systems * a.segments;
    launch.threads =
        32 * (a.warp_systems == 0 ? (chunks + 31) / 32
                                  : (systems + a.warp_systems - 1) / a.warp_systems);
    a.walk_size = a.along_rows ? rows : systems;
    a.tree_words = pivot_leaf_place<Number>(systems * chunks);
    if (a.pass == PIVOT_EXCHANGE) {
        a.tree_words += 2 * pivot_leaf_place<Number>(systems * a.segments);
    }
    launch.shared = (4 * static_cast<size_t>(a.plane) + a.tree_words) * sizeof(Number) +
                    systems * PivotShared<Number>::system_bytes +
                    PivotShared<Number>::block_bytes;
}

/* Blocks of a launch whose shared memory fits on a multiprocessor; 0 if none is possible.
 */
template <typename Number>
inline int
pivot_blocks(const PivotLaunch<Number> &launch, const ps_cuda_device *device)
{
    const auto bytes = static_cast<int64_t>(launch.shared) + 1024;

    return launch.threads > PIVOT_THREADS || bytes > device->shared_bytes
               ? 0
               : static_cast<int>(device->shared_bytes_processor / bytes);
}

/* Plan tiles of whole systems for a number of lanes, with at least the `least` systems of a
 * sector. Returns how many tiles a multiprocessor holds. */
template <typename Number>
inline int
pivot_try_systems(PivotLaunch<Number> &launch, int lanes, int least,
                  const ps_cuda_device *device)
{
    PivotPlan<Number> &a = launch.plan;
    const int64_t twice = 2 * static_cast<int64_t>(device->processors);
    const int64_t share = (a.systems + twice - 1) / twice;
    int chunks = 1; /* a power of two in a warp */

    while (chunks < 32 && chunks < a.chunks) {
        chunks *= 2;
    }
    chunks = std::max(chunks, a.chunks);
    if (chunks > 32 && least > 1) {
        return 0;
    }
    int64_t systems = std::min<int64_t>(std::max(lanes / chunks, 1), share);
    systems = std::max<int64_t>(systems / least * least, least);
    for (systems = std::min(systems, a.systems); systems >= least; systems /= 2) {
        pivot_size(launch, static_cast<int>(systems), chunks);
        const int held = pivot_blocks(launch, device) * static_cast<int>(systems);
        if (held > 0) {
            return held;
        }
    }
    return 0;
}

/* The same for one warp or two, whichever gives more tiles. Returns whether they are
 * useful: a multiprocessor that holds a single tile waits for its copies, while it could
 * hold several blocks of clusters. */
template <typename Number>
inline bool
pivot_take_systems(PivotLaunch<Number> &launch, int least, const ps_cuda_device *device)
{
    const int few = pivot_try_systems(launch, 32, least, device);
    const int many = pivot_try_systems(launch, 64, least, device);
    const bool alone = launch.plan.copies == PIVOT_UNITS; /* warps copy for themselves */
    const bool can_wait = launch.plan.chunks <= PIVOT_PART || device->cluster_blocks == 1;

    if (few > many || (few == many && alone)) {
        (void)pivot_try_systems(launch, 32, least, device);
    }

    return std::max(few, many) > (can_wait ? 0 : 1);
}

/* Plan tiles of four or two sectors of neighbouring systems, of which a multiprocessor holds two.
 * H200, parts of the time of tiles of one sector: 0.84 and 0.67 with 100 rows in float32 and float64,
 * 0.70 and 0.59 with 200, 1.01 and 0.61 with 300, 1.0 with 64 and 400 rows; with 512 rows 1.03. */
template <typename Number>
inline bool
pivot_take_wide(PivotLaunch<Number> &launch, int least, const ps_cuda_device *device)
{
    const PivotPlan<Number> &a = launch.plan;

    if (a.along_rows || number_traits<Number>::is_complex || a.rows > 400) {
        return false;
    }
    for (int systems = 4 * least; systems > least; systems /= 2) {
        if (a.systems >= systems && pivot_take_systems(launch, systems, device) &&
            pivot_blocks(launch, device) >= 2) {
            return true;
        }
    }
    return false;
}

/* Plan tiles of four or two sectors of neighbouring systems for the blocks of a cluster, of
 * which a multiprocessor holds two. The lanes of a system are at least as many as the blocks.
 * H200, parts of the floor, in brackets with tiles of whole systems in float32 and float64: 777
 * rows 0.34 and 0.35 (0.28, 0.29), 1500 rows 0.28 and 0.26 (0.19, 0.16), 2000 rows 0.29 and 0.27
 * (0.16, 0.14); 450 rows 0.33 and 0.32 (0.35, 0.34). */
template <typename Number>
inline bool
pivot_take_wide_cluster(PivotLaunch<Number> &launch, int least,
                        const ps_cuda_device *device)
{
    PivotPlan<Number> &a = launch.plan;

    if (a.along_rows || number_traits<Number>::is_complex || least == 1 ||
        a.rows <= 700) {
        return false;
    }
    a.pass = PIVOT_EXCHANGE;
    for (int systems = 4 * least; systems > least; systems /= 2) {
        for (int chunks = 32; a.systems >= systems && chunks > 1; chunks /= 2) {
            const int blocks = (a.chunks + chunks - 1) / chunks;

            if (blocks > 1 && blocks <= std::min(chunks, device->cluster_blocks)) {
                pivot_size(launch, systems, chunks);
                if (pivot_blocks(launch, device) >= 2) {
                    return true;
                }
            }
        }
    }
    a.pass = PIVOT_SOLVE;
    return false;
}

/* Plan tiles of equally many chunks for the blocks of a cluster. Returns whether they fit. */
template <typename Number>
inline bool
pivot_take_cluster(PivotLaunch<Number> &launch, const ps_cuda_device *device)
{
    constexpr int chunks = PIVOT_PART;
    PivotPlan<Number> &a = launch.plan;

    if (a.chunks <= chunks || a.chunks > chunks * device->cluster_blocks) {
        return false;
    }
    a.pass = PIVOT_EXCHANGE;
    pivot_size(launch, 1, chunks);
    return pivot_blocks(launch, device) > 0;
}

/* Whether the rows of halves come through a ring (half_ring.cuh): not with few rows, where it is
 * slower in float64 and not measured in float32. */
template <typename Number>
inline bool
pivot_suits_ring(const PivotPlan<Number> &a, const ps_cuda_device *device)
{
    constexpr int unit = HalfRing<Number>::unit,
                  least_rows = sizeof(Number) == 4 ? 64 : PIVOT_NO_RESTS + 1;
    const auto in_units = [](const auto &o) {
        return o.inner == 1 && o.row % unit == 0 && pivot_begins_in_units(o);
    };

    return device->capability >= 80 && a.s.rows >= least_rows && a.s.outer == 1 &&
           a.systems % unit == 0 && pivot_all_read(a.s, in_units);
}

/* The part of the shared memory that halves without a ring have, in percent; the rest is L1
 * cache, in which loads wait for their registers. H200, parts of the floor in float32 and float64 with
 * 72 %, 164 KiB, in brackets with all of it: 3001 x 11181 0.36 and 0.42 (0.27, 0.33), 3001 x 11184 0.38
 * and 0.43 (0.33, 0.41), 777 x 43184 0.40 and 0.44 (0.36, 0.42), 200 x 167772 0.52 and 0.52 (0.56,
 * 0.48). With 58 %: 0.24 and 0.27 of 3001 x 11181, two blocks instead of three. */
template <typename Number>
inline int
pivot_shared_percent(const PivotPlan<Number> &a)
{
    constexpr int least_rows = sizeof(Number) == 4 ? 513 : PIVOT_NO_RESTS + 1;

    return !a.in_ring && a.s.rows >= least_rows ? 72 : 100;
}

/* Plan tiles of systems that two threads solve in order, if there are enough of them. Three
 * blocks share a multiprocessor; two if they have up to PIVOT_NO_RESTS rows and then keep all;
 * four with a ring and 401 to 1000 rows: 512 rows 0.60 and 0.58 of the floor in float32 and float64 (three
 * blocks 0.54 and 0.54), 777 rows 0.52 and 0.53 (0.48, 0.51), but 3001 x 11184 0.46 and 0.50 (0.48, 0.51),
 * 200 rows 0.79 and 0.61 (0.79, 0.64). H200, parts of the floor, in brackets with chunks: 32 rows 0.70
 * and 0.93 (0.50, 0.58), 64 rows 0.91 and 0.93 (0.53, 0.59), 100 rows 0.83 and 0.73 (0.46, 0.55),
 * 200 rows 0.79 and 0.64 (0.43, 0.46), 777 rows 0.52 and 0.53 (0.35, 0.36), 3001 x 11181 0.36 and
 * 0.42 (0.24, 0.26). With 32 systems for a multiprocessor and without a ring 777 rows have 0.21 and
 * 0.25 (0.23, 0.27), with 42 systems 3001 rows 0.28 and 0.34 (0.23, 0.26). Up to 4096 rows the backward
 * errors are about half of what is allowed (pivoted_halves.cuh). */
template <typename Number>
inline bool
pivot_take_halves(PivotLaunch<Number> &launch, const ps_cuda_device *device)
{
    constexpr int size =
        PIVOT_HALF_WORDS * HALF_SYSTEMS * static_cast<int>(sizeof(Number));
    constexpr int statics_bytes = 256, least_systems = 40, least_rows = 8,
                  most_rows = 4096;
    PivotPlan<Number> &a = launch.plan;
    const int columns = a.s.rows - a.s.rows / 2 - 1; /* of the larger half */
    const auto is_near = [](const auto &o) {
        return std::llabs(o.row) <= INT_MAX / static_cast<int>(sizeof(Number));
    };
    a.in_ring = false;
    if constexpr (!number_traits<Number>::is_complex) {
        a.in_ring = pivot_suits_ring(a, device);
    }
    const int ring_bytes =
        a.in_ring ? 2 * HalfRing<Number>::words * static_cast<int>(sizeof(Number)) : 0;
    const int all = device->shared_bytes_processor / 100 * pivot_shared_percent(a);
    const auto most = [&](int blocks) {
        const int room = std::min(all / blocks - 1024, device->shared_bytes);

        return (room - statics_bytes - size - ring_bytes) / (2 * size);
    };
    const int blocks = a.in_ring && a.s.rows > 400 && a.s.rows <= 1000 ? 4 : 3;
    const bool is_short = a.s.rows <= PIVOT_NO_RESTS;

    if (a.along_rows || a.s.periodic || a.marks != nullptr ||
        number_traits<Number>::is_complex || a.s.rows < least_rows ||
        a.s.rows > most_rows ||
        a.systems < static_cast<int64_t>(least_systems) * device->processors ||
        !pivot_all_read(a.s, is_near) || most(blocks) < 2 * half_ahead<Number>) {
        a.in_ring = false;
        return false;
    }
    a.held_rows = is_short || !a.in_ring ? 0 : pivot_held<Number>;
    a.kept_rows = std::min(
        is_short && columns > most(3) && columns <= 2 * most(2) ? most(2) : most(blocks),
        columns - a.held_rows);
    a.tile_systems = HALF_SYSTEMS;
    a.tiles = (a.systems + HALF_SYSTEMS - 1) / HALF_SYSTEMS;
    a.segments = 1;
    launch.threads = HALF_THREADS;
    launch.shared = (1 + 2 * static_cast<size_t>(a.kept_rows)) * size + ring_bytes;
    return true;
}

/* Plan tiles of whole systems that two lanes solve in order, if these are short and if there are
 * twice as many as all multiprocessors hold at once. Systems with an odd number of rows are
 * contiguous in shared memory, too, and begin in different banks; of others two share a bank. H200,
 * parts of the floor in float32 and float64, in brackets with chunks: 8 rows 0.55 and 0.83 (0.47,
 * 0.67), 16 rows 0.79 and 0.92 (0.54, 0.79), 32 rows 0.90 and 0.92 (0.57, 0.68), 64 rows 0.88 and
 * 0.90 (0.62, 0.75), 80 rows 0.75 and 0.77 (0.57, 0.71), 100 rows 0.75 and 0.73 (0.71, 0.75), 128
 * rows 0.83 and 0.70 (0.70, 0.72), 129 rows 0.78 and 0.65 (0.59, 0.56), 150 rows 0.59 and 0.55 (0.56,
 * 0.74), 200 rows 0.60 and 0.55 (0.65, 0.69), 201 rows 0.69 and 0.58 (0.61, 0.69). */
template <typename Number>
inline bool
pivot_take_row_halves(PivotLaunch<Number> &launch, const ps_cuda_device *device)
{
    constexpr bool is_float = sizeof(Number) == 4;
    constexpr int least_rows = 8, most_even = is_float ? 150 : 80,
                  most_odd = is_float ? 201 : 129,
                  least_words = PIVOT_HALF_WORDS * HALF_SYSTEMS;
    PivotPlan<Number> &a = launch.plan;
    const PivotPlan<Number> before = a;

    if (!a.along_rows || a.s.periodic || a.marks != nullptr || a.copies < PIVOT_UNITS ||
        number_traits<Number>::is_complex || a.s.rows < least_rows ||
        a.s.rows > (a.s.rows % 2 == 1 ? most_odd : most_even)) {
        return false;
    }
    a.flat = a.flat && a.rows % 2 == 1;
    a.chunks = 1;
    a.length = a.rows;
    pivot_size(launch, ROW_HALF_SYSTEMS, 1);
    launch.shared += (std::max<int>(least_words - a.tree_words, 0)) * sizeof(Number);
    a.tree_words = std::max<int>(a.tree_words, least_words);
    const int64_t blocks = std::min(pivot_blocks(launch, device), 32);
    if (a.systems >= 2 * ROW_HALF_SYSTEMS * blocks * device->processors) {
        a.row_halves = true;
        return true;
    }
    a = before;
    return false;
}

/* Plan tiles with a power of two of chunks, solved in three passes. Real systems side by side: of
 * four sectors, 0.25 and 0.27 of the floor with 3001 rows in float32 and float64, 0.20 and 0.17
 * with one sector, 0.26 and 0.27 in place of 0.15 and 0.13 with 8000 rows. */
template <typename Number>
inline void
pivot_take_parts(PivotLaunch<Number> &launch, int least, const ps_cuda_device *device)
{
    PivotPlan<Number> &a = launch.plan;
    int chunks = least > 1 ? 32 : PIVOT_PART;

    a.pass = PIVOT_REDUCE;
    if (least > 1 && !number_traits<Number>::is_complex && a.systems >= 4 * least) {
        least *= 4;
    }
    for (pivot_size(launch, least, chunks);
         pivot_blocks(launch, device) < 2 || a.segments == 1;) {
        chunks /= 2;
        pivot_size(launch, least, chunks);
    }
}

/* Distribute the copies of a tile over the threads. Copies of single elements take the few
 * threads that have chunks too long, so that other threads of the block take part. */
template <typename Number>
inline void
pivot_share_copies(PivotLaunch<Number> &launch, const ps_cuda_device *device)
{
    PivotPlan<Number> &a = launch.plan;

    if (a.copies == PIVOT_ELEMENTS) {
        const int blocks = std::max(pivot_blocks(launch, device), 1);
        const int enough = std::min<int>(512 / blocks / 32 * 32, PIVOT_THREADS);
        launch.threads = std::max(launch.threads, enough);
    }
    a.walk_fast = launch.threads % a.walk_size;
    a.walk_slow = launch.threads / a.walk_size;
    for (int w = 0; w < 5; w++) {
        const int64_t row = w < 4 ? a.in[w].row : a.s.x.row;

        a.walk_bytes[w] = a.along_rows ? 0 : a.walk_slow * row * int64_t(sizeof(Number));
    }
}

/* Largest number of rows of a segment of a solve in order, if a system does not fit the
 * memory of a block: with longer segments a block holds fewer systems, with shorter ones it
 * waits longer for memory. */
enum { PIVOT_ORDERED_LENGTH = 256 };

/* Divide the memory of a block between the systems that are solved in order: each needs the
 * pivot rows of a segment and the carried rows of all segments. If a tile holds whole
 * systems, all rows are one segment, provided that they fit. */
template <typename Number>
inline void
pivot_share_ordered(PivotLaunch<Number> &launch)
{
    PivotPlan<Number> &a = launch.plan;
    const int words = a.s.periodic ? static_cast<int>(ORDERED_FOLDED_WORDS)
                                   : static_cast<int>(ORDERED_WORDS);
    const int kept = a.s.periodic ? static_cast<int>(ORDERED_FOLDED_KEPT)
                                  : static_cast<int>(ORDERED_KEPT);
    const bool here = a.pass != PIVOT_REDUCE; /* what is kept is in shared memory */
    const int room = static_cast<int>(launch.shared / sizeof(Number));
    const int longest = std::min<int>(
        a.s.rows, a.segments == 1 ? a.s.rows : static_cast<int>(PIVOT_ORDERED_LENGTH));
    int segments = (a.s.rows + longest - 1) / longest;

    /* With more segments each is shorter, but more carried rows are kept. */
    for (;; segments++) {
        const int length = (a.s.rows + segments - 1) / segments;
        const int needed = ordered_pitch(length, words) + (here ? segments * kept : 0);

        a.ordered_length = length;
        if (needed <= room || length <= 16) {
            break;
        }
    }
    a.ordered_kept = segments * kept;
    const int needed =
        ordered_pitch(a.ordered_length, words) + (here ? a.ordered_kept : 0);
    launch.shared = std::max(launch.shared, needed * sizeof(Number));
    const int systems = std::max(room / needed, 1);
    a.ordered_warps = std::min(launch.threads / 32, systems);
    a.ordered_systems = std::min(systems / a.ordered_warps, 32);
}

/* Plan the refinement, if tiles hold whole systems with enough chunks: as many blocks refine
 * as the device holds at once, each with a thread for every chunk. */
template <typename Number>
inline void
pivot_choose_refinement(PivotLaunch<Number> &launch, const ps_cuda_device *device)
{
    PivotPlan<Number> &a = launch.plan;
    const int blocks = std::max(pivot_blocks(launch, device), 1);

    if (a.segments == 1 && a.chunks >= REFINED_CHUNKS) {
        a.spare_blocks =
            std::min<int64_t>(a.tiles, static_cast<int64_t>(blocks) * device->processors);
    }
}

/* Set the members of the plan that depend on the addresses of operands and marks. */
template <typename Number>
inline void
pivot_set_operands(PivotPlan<Number> &a, const ps_tridiag *t, uint8_t *marks)
{
    a.s = systems_of<Number>(*t);
    pivot_order(a);
    a.in[PIVOT_LOWER] = a.s.lower;
    a.in[PIVOT_DIAG] = a.s.diag;
    a.in[PIVOT_UPPER] = a.s.upper;
    a.in[PIVOT_RHS] = a.s.rhs;
    a.marks = a.again = marks;
}

template <typename Number>
inline PivotLaunch<Number>
pivot_choose(const ps_tridiag *t, uint8_t *marks, const ps_cuda_device *device)
{
    constexpr int sector = 32 / sizeof(Number);
    const bool is_short = (t->flags & (PS_SHORT_LOWER | PS_SHORT_UPPER)) != 0;
    PivotLaunch<Number> launch = {};
    PivotPlan<Number> &a = launch.plan;

    pivot_set_operands(a, t, marks);
    a.rows = std::max(a.s.rows, 2);
    a.systems = a.s.outer * a.s.inner;
    pivot_cut_rows(a);
    pivot_choose_copies(a, is_short, device->capability);
    if (pivot_take_halves(launch, device)) {
        pivot_share_ordered(launch);
        return launch;
    }
    const int least =
        a.along_rows ? 1 : static_cast<int>(std::min<int64_t>(sector, a.systems));
    if (!pivot_take_row_halves(launch, device) &&
        !pivot_take_wide(launch, least, device) &&
        !pivot_take_wide_cluster(launch, least, device) &&
        !pivot_take_systems(launch, least, device)) {
        a.flat = false;
        if (least > 1 || !pivot_take_cluster(launch, device)) {
            pivot_take_parts(launch, least, device);
        }
    }
    if (!is_short && pivot_is_plain(a)) {
        a.copies = PIVOT_PLAIN;
    }
    pivot_share_copies(launch, device);
    pivot_share_ordered(launch);
    pivot_choose_refinement(launch, device);
    return launch;
}

template <typename Number>
inline PivotLaunch<Number>
pivot_launch(const ps_tridiag *t, uint8_t *marks, const ps_cuda_device *device)
{
    static thread_local Remembered<Geometry, PivotLaunch<Number>, 8> launches;
    PivotLaunch<Number> launch =
        remembered_plan(launches, geometry_of(*t, device, marks != nullptr),
                        [=] { return pivot_choose<Number>(t, marks, device); });

    pivot_set_operands(launch.plan, t, marks);
    return launch;
}

} // namespace pysolvers::pivoted

#endif
