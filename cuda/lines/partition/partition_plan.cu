/* partition_plan.cu - the distribution of a batch: tiles, chunks, warps, clusters.
 *
 * The distribution of the rows of a system over chunks, warps and blocks depends on the
 * length, the dtype and the strides of the system only, so that the solution does not
 * depend on the batch. Only the number of systems of a tile depends on the batch.
 */
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "device/work_queue.cuh"
#include "lines/partition/partition.h"
#include "runtime/math.cuh"

namespace pysolvers::partition {

static constexpr int shared_for_statics = 5120; /* of a block, apart from the tile */
static constexpr int shared_of_system = 1024;   /* reserved by the driver per block */
static constexpr int line = 128;  /* bytes of neighbours for efficient memory access */
static constexpr int sector = 32; /* bytes of a memory transaction */
static constexpr int most_warps_of_part = 8;
static constexpr int64_t least_bytes_with_halos = 288 << 10;
static constexpr int tile_bytes = 16384; /* of an operand, if systems are short */

namespace {

/* Bytes of a number; rows of a chunk; numbers in 16 bytes; the largest number of
 * threads of a block; bytes of the message of a block and of a device about a system. */
struct Sizes {
    int bytes, rows, vector, threads, message, device_message;
};

} // namespace

template <typename Number, bool BY_ROW, typename Tuned = Tuning<Number, BY_ROW>>
static Sizes
sizes()
{
    return {sizeof(Number),
            Tuned::rows,
            16 / sizeof(Number),
            Tuned::threads,
            sizeof(TileMessage<Number>),
            sizeof(DeviceMessage<Number>)};
}

static Sizes
sizes_of(ps_dtype dtype, bool by_row, int32_t sides = 1, bool long_chunks = false)
{
    Sizes size = {};

    if (sides > 1) {
        return with_real(dtype, [](auto zero) {
            return sizes<WithSides<decltype(zero), most_sides>, true>();
        });
    }
    (void)with_number(dtype, [&](auto zero) {
        using Number = decltype(zero);
        size = by_row ? sizes<Number, true>() : sizes<Number, false>();
        if constexpr (has_long_chunks<Number>) {
            size = long_chunks ? sizes<Number, true, LongTuning>() : size;
        }
        return PS_OK;
    });
    return size;
}

/* Short systems: whole systems per warp. Otherwise systems that are copied side by side
 * also lie side by side in the warps, as many as 16 bytes hold: their lanes have no
 * bank conflicts although rows begin at 16-byte boundaries. */
static Shape
shape_of(const ps_tridiag &t, const Choice &c)
{
    const Sizes size = sizes_of(t.dtype, c.by_row, c.sides, c.long_chunks);
    const int64_t chunks = divided_up(t.rows, size.rows);
    const int64_t of_block = divided_up(chunks, c.blocks);
    const int64_t short_chunks = c.by_row ? 32 : 32 / size.vector;
    Shape s = {static_cast<int32_t>(t.rows), 32, 1, c.warps, c.blocks, !c.by_row};

    if (c.warps == 0 && c.blocks == 1 && of_block <= short_chunks) {
        s.warps = 1;
        s.lanes = static_cast<int32_t>(of_block);
        s.groups = std::min(32 / s.lanes, c.systems);
        if (c.devices > 1) { /* a lane per system and device */
            s.groups = std::min(s.groups, 32 / c.devices);
        }
        return s;
    }
    s.groups = c.by_row ? 1 : size.vector;
    s.lanes = 32 / s.groups;
    if (c.warps > 0) {
        s.blocks = static_cast<int32_t>(divided_up(chunks, s.lanes * c.warps));
        return s;
    }
    s.warps = static_cast<int32_t>(divided_up(of_block, s.lanes));
    if (c.blocks > 1) { /* all blocks get equally many rows; otherwise the pads are in the
                           first one */
        s.lanes = static_cast<int32_t>(divided_up(of_block, s.warps));
    }
    return s;
}

/* The largest number of lanes of a warp that access the same bank when every lane reads
 * its row i. */
static int
conflicts(const Shape &s, const Sizes &size, int64_t row_pitch, int64_t system_pitch)
{
    const int banks = 128 / size.bytes;
    int most = 1;

    for (int phase = 0; phase < s.groups * s.lanes; phase += banks) {
        const int end = std::min(phase + banks, s.groups * s.lanes);
        uint8_t used[32] = {};

        for (int lane = phase; lane < end; lane++) {
            const int chunk = s.side_by_side ? lane / s.groups : lane % s.lanes;
            const int system = s.side_by_side ? lane % s.groups : lane / s.lanes;
            const int64_t at = chunk * size.rows * row_pitch + system * system_pitch;

            most = std::max<int>(most, ++used[at % banks]);
        }
    }
    return most;
}

/* The distance of neighbours, rows or systems, across the contiguous axis: the pitch
 * from `least` on with the fewest bank conflicts; the search ends at a pitch with at
 * most `accepted` of them. */
static int32_t
pitch_of(const Shape &s, const Sizes &size, int64_t least, int accepted)
{
    const int step = least % size.vector == 0 ? size.vector : 1;
    int64_t best = least;
    int fewest = 33;

    for (int k = 0; k < 9 && fewest > accepted; k++) {
        const int64_t pitch = least + k * step;
        const int found =
            s.side_by_side ? conflicts(s, size, pitch, 1) : conflicts(s, size, 1, pitch);
        if (found < fewest) {
            fewest = found;
            best = pitch;
        }
    }
    return static_cast<int32_t>(best);
}

/* Whether the systems of each tile are neighbours on the inner axis. */
static bool
is_on_inner_axis(const ps_tridiag &t, const Tiling &how)
{
    return t.outer == 1 || how.sharing > 1;
}

/* Whether the tiles of an operand are contiguous in memory, with the layout of shared
 * memory. */
static bool
is_run(const ps_tridiag &t, const ps_stride &s, const Tiling &how, bool by_row)
{
    const bool next_to_each_other =
        how.systems == 1 ||
        (s.inner == t.rows && is_on_inner_axis(t, how) && how.system_pitch == t.rows);

    return by_row && s.row == 1 && next_to_each_other;
}

/* Whether elements can be copied by 16 bytes along the contiguous axis, aligned in both
 * memories. `data` may lie up to `most` bytes after a multiple of 16 bytes. */
static bool
allows_vectors(const ps_tridiag &t, const void *data, int most, const ps_stride &s,
               const Tiling &how, bool by_row)
{
    const int vector = sizes_of(t.dtype, by_row).vector;
    const int64_t next = by_row ? s.row : s.inner, across = by_row ? s.inner : s.row;
    const int64_t count = by_row ? t.rows : t.inner;
    const int64_t pitch = by_row ? how.system_pitch : how.row_pitch;

    return next == 1 && across % vector == 0 && count % vector == 0 &&
           pitch % vector == 0 && (t.outer == 1 || s.outer % vector == 0) &&
           reinterpret_cast<uintptr_t>(data) % 16 <= static_cast<uintptr_t>(most);
}

/* A short operand whose systems are as far apart as those of the others, like an
 * off-diagonal of a transposed matrix, is copied with the elements between its systems.
 * Vectors of more than one element can include one beyond its ends. */
static void
set_copies(const ps_tridiag &t, bool by_row, int32_t sides, Tiling *how)
{
    const Sizes size = sizes_of(t.dtype, by_row);
    const void *const data[] = {t.lower.data, t.diag.data, t.upper.data, t.rhs.data,
                                t.x.data};
    const ps_stride *const strides[] = {&t.lower.stride, &t.diag.stride, &t.upper.stride,
                                        &t.rhs.stride, &t.x.stride};

    if ((t.flags & PS_SHORT_LOWER) != 0) {
        how->shorts |= 1u;
    }
    if ((t.flags & PS_SHORT_UPPER) != 0) {
        how->shorts |= 4u;
    }
    for (int q = 0; q < 5; q++) {
        const uint32_t bit = 1u << q;
        const ps_stride &s = *strides[q];
        const bool is_cut = by_row && (how->shorts & bit) != 0;
        const bool is_dense = is_on_inner_axis(t, *how) && s.inner == t.rows;
        const bool is_aligned = s.outer / sides % size.vector == 0 || sides == 1;

        if ((!is_cut || t.rows > 1) && is_run(t, s, *how, by_row)) {
            how->runs |= bit;
        }
        else if (is_aligned && (!is_cut || (is_dense && size.vector > 1)) &&
                 allows_vectors(t, data[q], is_cut ? size.bytes : 0, s, *how, by_row)) {
            how->vectors |= bit;
            how->dense |= is_dense ? bit : 0;
        }
    }
}

/* log2 of the neighbouring threads that copy `count` pieces along the contiguous axis,
 * for each of `across` others. */
static int32_t
threads_along(int64_t threads, int64_t count, int64_t across)
{
    int32_t log = 0;

    while ((1 << log) < count && (2 << log) <= threads &&
           (log < 5 || (2 << log) * across <= threads)) {
        log++;
    }
    return log;
}

bool
ps_cuda_plan(const ps_tridiag *t, const ps_cuda_device *device, Choice c, Plan *plan)
{
    const Sizes size = sizes_of(t->dtype, c.by_row, c.sides, c.long_chunks);
    const Shape s = shape_of(*t, c);
    const int64_t warps = s.warps * divided_up(c.systems, s.groups);
    const int64_t rows =
        std::min<int64_t>(t->rows, static_cast<int64_t>(s.warps) * s.lanes * size.rows);
    const int32_t units = std::max({s.warps, c.blocks, c.devices});
    const bool exchanges = units > 1, cut = rows < t->rows;
    Tiling how = {};

    if (warps * 32 > size.threads || (cut && c.by_row && c.systems > 1) ||
        (exchanges && (warps * s.groups > 256 / size.bytes || s.groups * units > 32))) {
        return false;
    }
    how.systems = c.systems;
    how.sharing = c.warps > 0 || c.devices > 1 ? 1 : sharing_of(*t);
    how.tiles = count_of_tiles(*t, c.systems, how.sharing) * (c.warps > 0 ? s.blocks : 1);
    if (c.sides > 1) { /* a tile has all groups of its systems */
        how.tiles /= how.sharing;
    }
    how.row_pitch = c.by_row ? 1 : pitch_of(s, size, c.systems, 1);
    how.system_pitch = c.by_row ? pitch_of(s, size, rows, 4) : 1;

    const int64_t span =
        (rows - 1) * how.row_pitch + (c.systems - 1) * how.system_pitch + size.vector;
    const int64_t words = divided_up(span, size.vector) * size.vector;
    const int64_t exchange = c.blocks > 1    ? 2 * c.systems * c.blocks * size.message
                             : c.devices > 1 ? c.systems * c.devices * size.device_message
                                             : 0;
    const bool direct = !c.by_row && s.groups * size.bytes >= sector;
    const int64_t arrays = 3 + c.sides + (direct ? 0 : c.sides);
    const int64_t bytes = arrays * words * size.bytes + exchange;
    const int64_t along = c.by_row ? rows : c.systems;
    const int64_t across = c.by_row ? c.systems : 1; /* no thread has two systems */

    if (bytes + shared_for_statics > device->shared_bytes) {
        return false;
    }
    how.words = static_cast<int32_t>(words);
    how.direct = direct;
    how.fast = threads_along(warps * 32, along, across);
    how.wide = threads_along(warps * 32, divided_up(along, size.vector), across);
    how.divisor = static_cast<uint32_t>(
        divided_up(1 << 20, std::max<int64_t>(1, t->rows / size.vector)));
    set_copies(*t, c.by_row, c.sides, &how);
    *plan = {s,
             how,
             static_cast<int32_t>(warps * 32),
             static_cast<int32_t>(bytes),
             static_cast<int32_t>(s.warps) * s.lanes * size.rows,
             false,
             c.long_chunks};
    plan->work_queue =
        c.blocks == 1 && pays_for_work_queue(how.tiles, 4 * device->processors);
    return true;
}

void
ps_cuda_plan_ahead(const ps_tridiag *t, const ps_cuda_device *device, Plan *plan)
{
    Tiling &how = plan->tiling;
    const bool by_row = how.row_pitch == 1;
    const Sizes size = sizes_of(t->dtype, by_row);
    const int32_t more = 4 * how.words * size.bytes;

    if (by_row && (how.runs & 15u) == 15u && plan->shape.blocks > 1 &&
        2 * plan->threads > size.threads &&
        plan->shared_bytes + more + shared_for_statics <= device->shared_bytes) {
        how.stage = 5 * how.words;
        plan->shared_bytes += more;
    }
}

static int
largest_cluster(const ps_cuda_device *device)
{
    const int family = device->capability / 10;

    return device->cluster_blocks > 1 && (family == 9 || family == 10)
               ? 16
               : device->cluster_blocks;
}

static bool
lies_by_row(const ps_tridiag &t)
{
    const ps_stride &s = t.x.stride;

    return t.inner == 1 || (t.rows > 1 && std::abs(s.row) <= std::abs(s.inner));
}

/* Whether at least `count` blocks of a choice fit a multiprocessor, whose registers
 * suffice for one block of the largest size. */
static bool
fits(const ps_tridiag &t, const ps_cuda_device *device, const Choice &c, int count)
{
    const int64_t each =
        device->shared_bytes_processor / count - shared_of_system - shared_for_statics;
    Plan p;

    return ps_cuda_plan(&t, device, c, &p) && p.shared_bytes <= each &&
           p.threads * count <= sizes_of(t.dtype, c.by_row, 1, c.long_chunks).threads;
}

/* Rows of a system that are on a multiprocessor at the same time. */
static int64_t
rows_at_once(const ps_tridiag &t, const ps_cuda_device *device, const Choice &c)
{
    int count = 0;

    while (count < 32 && fits(t, device, c, count + 1)) {
        count++;
    }
    return count * divided_up(t.rows, c.blocks);
}

/* 1.5 times as many blocks, if then clearly more rows are resident: registers may have
 * been unused. */
static Choice
cut_finer(const ps_tridiag &t, const ps_cuda_device *device, const Choice &c)
{
    Choice finer = c;

    finer.blocks = c.blocks / 2 * 3;

    return c.blocks > 1 && finer.blocks <= largest_cluster(device) &&
                   8 * rows_at_once(t, device, finer) > 9 * rows_at_once(t, device, c)
               ? finer
               : c;
}

/* The fewest blocks that hold `systems` systems, such that two of them, or else one,
 * fit a multiprocessor; parts of systems if no cluster can hold them. */
static Choice
cut(const ps_tridiag &t, const ps_cuda_device *device, bool by_row, int32_t systems,
    int32_t sides = 1)
{
    const int largest = largest_cluster(device);

    for (int count = 2; count >= 1; count--) {
        const int most = by_row || count == 1 ? largest : std::min(largest, 8);

        for (int blocks = 1; blocks <= most; blocks *= 2) {
            const Choice c = {by_row, systems, blocks, 0, 1, sides};

            if (fits(t, device, c, count)) {
                return by_row ? cut_finer(t, device, c) : c;
            }
        }
    }
    Choice parts = {by_row, systems, 1, most_warps_of_part};
    while (parts.warps > 1 && !fits(t, device, parts, 2)) {
        parts.warps--;
    }
    return parts;
}

/* The largest multiple of `step` systems, at most `wanted`, such that two tiles fit a
 * multiprocessor; if possible one that gives its four schedulers equally many warps.
 * Without such a multiple, the systems of the choice. */
static int32_t
multiple_of(const ps_tridiag &t, const ps_cuda_device *device, Choice c, int64_t step,
            int64_t wanted)
{
    int32_t best = c.systems;
    bool even = false;

    for (int64_t n = step; n <= wanted; n += c.by_row ? step : n) {
        c.systems = static_cast<int32_t>(n);
        if (!fits(t, device, c, 2)) {
            break;
        }
        const Shape s = shape_of(t, c);
        const bool is_even = s.warps * divided_up(n, s.groups) % 4 == 0;
        if (!c.by_row || is_even || !even) {
            best = c.systems;
            even = is_even;
        }
    }
    return best;
}

/* Systems of a tile: enough to fill it if they are short, as long as every
 * multiprocessor has four tiles. By row: whole warps of systems that end with a line of
 * memory, if a tile has so many; then half a tile is faster, because more tiles are
 * resident. */
static int32_t
systems_for(const ps_tridiag &t, const ps_cuda_device *device, const Choice &c)
{
    const int64_t systems = c.sides > 1 ? t.inner : t.outer * t.inner;
    const int64_t each = systems / (4 * device->processors);
    const int64_t bytes = sizes_of(t.dtype, c.by_row).bytes * t.rows;
    const int64_t most = tile_bytes / bytes;

    if (!c.by_row) {
        return multiple_of(t, device, c, c.systems, std::min(most, each));
    }
    const int64_t warp =
        shape_of(t, {true, 32, 1, 0, c.devices, c.sides, c.long_chunks}).groups;
    const int64_t lines = std::lcm(warp, line / std::gcd<int64_t>(line, bytes));

    if (lines <= std::min(most, each)) {
        const int64_t usual = std::max((most + 1) / 2, lines);
        const int32_t best = multiple_of(t, device, c, lines, std::min(usual, each));

        if (best >= lines) {
            return best;
        }
    }
    const int64_t wanted = std::min(most, each);
    return multiple_of(t, device, c, std::min(warp, std::max<int64_t>(wanted, 1)),
                       wanted);
}

Choice
ps_cuda_choose(const ps_tridiag *t, const ps_cuda_device *device)
{
    const bool by_row = lies_by_row(*t);
    const int neighbours = line / sizes_of(t->dtype, by_row).bytes;
    Choice c = cut(*t, device, by_row, by_row ? 1 : neighbours);

    for (int few = neighbours / 2; !by_row && c.warps > 0 && few >= neighbours / 4;
         few /= 2) {
        const Choice narrow = cut(*t, device, false, few);
        c = narrow.warps > 0 ? c : narrow;
    }
    while (c.warps > 0 && c.systems > 1 && !fits(*t, device, c, 1)) {
        c.systems /= 2;
    }
    if (c.blocks == 1 && c.warps == 0) {
        c.systems = systems_for(*t, device, c);
    }
    return c;
}

/* Real systems; those of fewer than 288 KiB an operand are faster in clusters. */
bool
ps_cuda_plan_halos(const ps_tridiag *t, const ps_cuda_device *device, Plan *parts)
{
    Choice c = {true, 1, 1, most_warps_of_part};

    if (!lies_by_row(*t) || (t->dtype != PS_F32 && t->dtype != PS_F64) ||
        (t->flags & (PS_PERIODIC | PS_ROW_SUMS)) != 0 ||
        t->rows * sizes_of(t->dtype, true).bytes < least_bytes_with_halos) {
        return false;
    }
    while (c.warps > 1 && !fits(*t, device, c, 2)) {
        c.warps--;
    }
    return c.warps > 1 && ps_cuda_plan(t, device, c, parts);
}

bool
ps_cuda_choose_groups(const ps_tridiag *groups, const ps_cuda_device *device,
                      Choice *choice)
{
    if (!lies_by_row(*groups)) {
        return false;
    }
    *choice = cut(*groups, device, true, 1, most_sides);
    if (choice->blocks > 1 || choice->warps > 0) {
        return false;
    }
    choice->systems = systems_for(*groups, device, *choice);
    return true;
}

/* One block per system, of one if possible with another one on the same multiprocessor. */
static Choice
one_block(const ps_tridiag &t, const ps_cuda_device *device, int32_t devices,
          bool long_chunks)
{
    const bool by_row = lies_by_row(t);
    const int most = by_row ? 1 : line / sizes_of(t.dtype, by_row).bytes;

    for (int count = 2; count >= 1; count--) {
        for (int32_t systems = most; systems >= 1; systems /= 2) {
            Choice c = {by_row, systems, 1, 0, devices, 1, long_chunks};

            if (fits(t, device, c, count)) {
                c.systems = systems_for(t, device, c);
                return c;
            }
        }
    }
    return {by_row, 1, 1, 0, devices, 1, long_chunks};
}

/* Whether a multiprocessor holds clearly more rows with long chunks, of which fewer threads fit:
 * eight systems of 512 rows, which a warp has each, in place of six. */
static bool
suits_long_chunks(const ps_tridiag &t, const ps_cuda_device *device, const Choice &usual,
                  const Choice &with_long)
{
    const auto rows = [&](const Choice &c) {
        return c.systems * rows_at_once(t, device, c);
    };

    return 8 * rows(with_long) > 9 * rows(usual);
}

Choice
ps_cuda_choose_block(const ps_tridiag *t, const ps_cuda_device *device, int32_t devices)
{
    const Choice usual = one_block(*t, device, devices, false);

    if (!usual.by_row || t->dtype != PS_F64) {
        return usual;
    }
    const Choice with_long = one_block(*t, device, devices, true);

    return suits_long_chunks(*t, device, usual, with_long) ? with_long : usual;
}

/* Long chunks where a block has several warps for each system, of whose lanes many have no rows.
 * H200, parts of the speed of a copy, in brackets with the usual chunks: 353 rows 0.88 (0.64), 450
 * rows 1.00 (0.79), 512 rows 1.03 (0.88), 1070 rows 0.99 (0.89); with a mask 400 rows 0.52 (0.52),
 * 512 rows 0.81 (0.65). */
Choice
ps_cuda_choose_step(const ps_tridiag *t, const ps_cuda_device *device)
{
    Choice usual = ps_cuda_choose(t, device);

    if (!usual.by_row || usual.blocks > 1 || usual.warps > 0 || t->dtype != PS_F64 ||
        shape_of(*t, usual).warps == 1) {
        return usual;
    }
    Choice one = usual, with_long = usual;

    one.systems = with_long.systems = 1;
    with_long.long_chunks = true;
    if (!suits_long_chunks(*t, device, one, with_long)) {
        return usual;
    }
    with_long.systems = systems_for(*t, device, with_long);
    return with_long;
}

} // namespace pysolvers::partition
