/* shared_plan.cu - the distribution of a batch with one matrix over the device. */
#include <cstdlib>

#include "device/work_queue.cuh"
#include "lines/shared/shared.h"
#include "runtime/math.cuh"

namespace pysolvers::shared {

static constexpr int sector = 32; /* bytes of a memory transaction */
/* alignment of systems with which bulk copies are faster */
static constexpr int line = 128;
static constexpr int most_stages = 5;
static constexpr int usual_threads = 256;
/* lanes of a system from which on it is copied in bulk */
static constexpr int least_width = 8;
/* of a team of several warps, for which a work queue saves time: 2047 tiles of 132 teams
 * took 73 us with it and 79 without */
static constexpr int least_tiles = 8;

namespace {

/* SharedLimits of a dtype at run time. */
typedef struct {
    int element, rows, short_rows, threads;
    bool
        is_real; /* of complex numbers, bulk copies of short and unaligned systems were not
                     measured */
    int level_words;
} limits;

} // namespace

template <typename Number>
static constexpr limits
limits_of_number()
{
    using Limits = SharedLimits<Number>;

    return {sizeof(Number),
            Limits::rows,
            Limits::short_rows,
            Limits::threads,
            !number_traits<Number>::is_complex,
            Limits::level_words};
}

static limits
limits_of(ps_dtype dtype)
{
    limits found = {};

    (void)with_number(dtype, [&](auto zero) {
        found = limits_of_number<decltype(zero)>();
        return PS_OK;
    });
    return found;
}

static ps_cuda_shared_shape
team_of_chunks(int64_t rows, int chunk)
{
    const int chunks = static_cast<int>(divided_up(rows, chunk));
    ps_cuda_shared_shape shape = {};

    shape.rows = static_cast<int32_t>(rows);
    shape.chunk = chunk;
    shape.warps = (chunks + 31) / 32;
    for (shape.width = 1; shape.width < 32 && shape.width < chunks; shape.width *= 2) {
    }
    return shape;
}

namespace {

/* Teams of a block, and blocks of a multiprocessor. */
typedef struct {
    int teams, threads, resident;
} division;

} // namespace

/* As many teams, a power of two, as `threads` threads contain. */
static division
divide_block(const limits &l, const ps_cuda_shared_shape &shape, int threads)
{
    const int team = shape.width * shape.warps;
    division d = {1, 0, 0};

    while (2 * d.teams * team <= threads) {
        d.teams *= 2;
    }
    d.threads = d.teams * team;
    d.resident = l.threads / d.threads > 1 ? 2 : 1;
    return d;
}

/* Short chunks if they need no more lanes, or of float32 no fewer teams solve at a time: fewer lanes
 * are idle. H200, 2^25 unknowns, parts of the floor with chunks of 13 and 17 rows: float32, 777 rows
 * 0.74 and 0.62, 3001 rows 0.71 and 0.53; float64, 300 rows 0.86 and 0.80, 777 rows 0.79 and 0.74, but
 * 3001 rows, with 8 and 6 warps, 0.66 and 0.70. */
static ps_cuda_shared_shape
team_of(const limits &l, int64_t rows)
{
    const ps_cuda_shared_shape usual = team_of_chunks(rows, l.rows);
    const ps_cuda_shared_shape other = team_of_chunks(rows, l.short_rows);
    const auto teams = [&](const ps_cuda_shared_shape &shape) {
        const division d = divide_block(l, shape, usual_threads);

        return d.teams * d.resident;
    };
    const bool same = other.width * other.warps == usual.width * usual.warps;

    if (other.warps * 32 > l.threads) {
        return usual;
    }
    return same || (l.element == 4 && teams(other) >= teams(usual)) ? other : usual;
}

bool
ps_cuda_shared_block_fits(ps_dtype dtype, int64_t rows, size_t *store)
{
    const limits l = limits_of(dtype);

    if (rows > static_cast<int64_t>(l.rows) * l.threads) {
        return false;
    }
    const ps_cuda_shared_shape shape = team_of(l, rows);
    const size_t chunks = static_cast<size_t>(shape.width) * shape.warps;
    const int words = SharedLimits<float>::words(shape.chunk);

    *store = sizeof(StoredNote) + (chunks * words + 32 * l.level_words) * l.element;
    return true;
}

ps_cuda_shared_shape
ps_cuda_shared_team(ps_dtype dtype, int64_t rows)
{
    return team_of(limits_of(dtype), rows);
}

static bool
is_across(const ps_cuda_shared_batch &b, ps_stride s)
{
    return b.lanes > 1 && std::abs(s.inner) < std::abs(s.row);
}

/* How the copies traverse one operand; the shape has rows and pitch. */
static ps_cuda_route
route_of(const ps_cuda_shared_batch &b, const limits &l,
         const ps_cuda_shared_shape &shape, const void *data, ps_stride s)
{
    const int64_t size = l.element;
    const uintptr_t steps =
        static_cast<uintptr_t>((b.lanes > 1 ? s.inner : 0) | (b.lines > 1 ? s.outer : 0) |
                               shape.rows | shape.pitch);
    ps_cuda_route r = {};

    r.data = static_cast<char *>(const_cast<void *>(data));
    r.lane_step = s.inner * size;
    r.line_step = s.outer * size;
    r.lane_pitch = static_cast<int32_t>(shape.pitch * size);
    r.across = is_across(b, s);
    r.unit = !r.across && (s.row == 1 || shape.rows == 1) &&
                     (reinterpret_cast<uintptr_t>(data) | steps * l.element) % 16 == 0
                 ? 16
                 : l.element;
    r.unit_pitch = r.unit;
    r.unit_step = r.unit > l.element ? r.unit : s.row * size;
    return r;
}

/* Whether systems are contiguous and each right-hand side and its x lie at the same distance from
 * a multiple of 16 bytes. */
static bool
are_alike(const ps_cuda_shared_batch &b, const limits &l, const ps_cuda_route &rhs,
          const ps_cuda_route &x)
{
    const auto differ = [](int64_t one, int64_t other) {
        return (one - other) % 16 != 0;
    };

    return b.rhs.row == 1 && b.x.row == 1 && l.is_real && !rhs.across && !x.across &&
           !differ(reinterpret_cast<intptr_t>(rhs.data),
                   reinterpret_cast<intptr_t>(x.data)) &&
           (b.lanes == 1 || !differ(rhs.lane_step, x.lane_step)) &&
           (b.lines == 1 || !differ(rhs.line_step, x.line_step));
}

/* Choose the threads that copy, and the number of neighbouring threads along a line. */
static void
share_copies(ps_cuda_shared_shape *shape, const limits &l, const ps_cuda_device &device,
             bool skewed, ps_cuda_route *rhs, ps_cuda_route *x)
{
    const int along = shape->rows * l.element;
    const bool across = rhs->across || x->across;

    shape->copies =
        !across || (shape->teams == 1 && shape->warps > 1) ? COPY_BY_WARP : COPY_BY_BLOCK;
    const bool aligned =
        rhs->unit == 16 && x->unit == 16 && rhs->unit_step == 16 && x->unit_step == 16;

    if (!across && device.capability >= 90 && (aligned || skewed) &&
        shape->width >= (l.is_real ? least_width : 32)) {
        shape->copies = COPY_IN_BULK;
    }
    for (ps_cuda_route *r : {rhs, x}) {
        const int side = r->across ? shape->teams * shape->rounds : along / r->unit;
        const int most = r->across ? side : 32;

        while (1 << r->shift < side && 1 << r->shift < most) {
            r->shift++;
        }
    }
}

/* Elements between the systems of a tile so that neither chunks nor copies have bank
 * conflicts; `lanes` threads access memory together. */
static int
pitch_of(const limits &l, const ps_cuda_shared_shape &shape, bool across)
{
    const int lanes = 128 / l.element, vector = 16 / l.element;
    const int slots = shape.teams * shape.rounds;
    const int group = across ? (slots < lanes ? lanes / slots : 1)
                             : (shape.width > vector ? shape.width : vector);
    const int unit = across && slots >= lanes ? 2 : lanes;
    const int rest = group % unit;
    const int least = shape.rows + shape.front;

    if (!across && shape.width * shape.warps >= lanes) {
        return rounded_up(least, lanes);
    }
    return least + ((rest - least) % unit + unit) % unit;
}

/* Zeros before a system, which chunks that begin before row 0 read as their pads. */
static int
front_of(const limits &l, const ps_cuda_shared_shape &shape)
{
    return rounded_up(l.rows, (shape.width == 32 ? line : 16) / l.element);
}

namespace {

typedef struct {
    ps_cuda_shared_shape shape;
    int threads, resident; /* blocks per multiprocessor */
    size_t shared;
} plan;

} // namespace

/* Lay out tiles of `rounds` rounds of the teams in the shared memory of `resident`
 * blocks. */
static bool
lay_out(plan *p, const limits &l, const ps_cuda_device &device, int rounds, bool across)
{
    const int fixed = 2560 + 512 * l.element; /* bytes of a block apart from the tiles */
    const int share = device.shared_bytes_processor / p->resident;
    ps_cuda_shared_shape *const shape = &p->shape;

    shape->rounds = rounds;
    shape->front = front_of(l, *shape);
    shape->pitch = pitch_of(l, *shape, across);
    shape->tile_bytes =
        rounded_up(shape->teams * rounds * shape->pitch * l.element, line);
    shape->exchange_bytes =
        shape->warps > 1
            ? rounded_up(rounds * (p->threads + p->threads / 8) * l.element, line)
            : 0;

    const int room = (share < device.shared_bytes ? share : device.shared_bytes) - fixed -
                     shape->exchange_bytes;
    shape->stages = room > 0 ? room / shape->tile_bytes : 0;
    if (shape->stages > most_stages) {
        shape->stages = most_stages;
    }
    p->shared =
        static_cast<size_t>(shape->stages) * shape->tile_bytes + shape->exchange_bytes;
    return shape->stages > 0;
}

/* Tiles of whole memory sectors if systems are neighbours in memory. Otherwise tiles of
 * so many rounds of the teams, which share the overhead of a tile, that other blocks
 * still fit. */
static void
choose_tile(plan *p, const limits &l, const ps_cuda_device &device, int64_t systems,
            bool across)
{
    const int bytes = p->shape.teams * l.element; /* neighbouring systems in a round */
    int rounds = 1;

    if (across) {
        while (rounds * bytes < 2 * sector) {
            rounds *= 2;
        }
        while (rounds > 1 && rounds * bytes > sector &&
               (!lay_out(p, l, device, rounds, true) || p->shape.stages < 3)) {
            rounds /= 2;
        }
        while (rounds > 1 && !lay_out(p, l, device, rounds, true)) {
            rounds /= 2;
        }
    }
    else {
        /* The teams of several warps of a block that is alone on its multiprocessor are few,
         * and it may happen that all of them wait for copies. */
        const int stages = p->resident == 1 && (!l.is_real || p->shape.warps > 1) ? 3 : 2;
        const int64_t teams =
            static_cast<int64_t>(device.processors) * p->resident * p->shape.teams;

        for (int usual = l.is_real ? 3 : 2; usual > 1 && rounds == 1; usual--) {
            if (usual * teams <= systems && lay_out(p, l, device, usual, false) &&
                p->shape.stages >= stages) {
                rounds = usual;
            }
        }
    }
    lay_out(p, l, device, rounds, across);
}

static plan
plan_of(const ps_cuda_shared_batch &b, const limits &l, const ps_cuda_device &device,
        int64_t rows, bool across)
{
    plan p = {};

    p.shape = team_of(l, rows);
    const auto set_teams = [&](int threads) {
        const division d = divide_block(l, p.shape, threads);

        p.shape.teams = d.teams;
        p.threads = d.threads;
        p.resident = d.resident;
    };

    set_teams(usual_threads);
    if (!across) {
        const int64_t processors = device.processors * p.resident;

        while (p.threads % 64 == 0 && p.shape.teams > 1 &&
               b.lanes * b.lines < processors * p.shape.teams) {
            p.shape.teams /= 2;
            p.threads /= 2;
        }
    }
    choose_tile(&p, l, device, b.lanes * b.lines, across);
    if (across && p.resident > 1 && p.shape.stages < 3) {
        set_teams(l.threads);
        choose_tile(&p, l, device, b.lanes * b.lines, across);
    }
    return p;
}

ps_cuda_shared_plan
ps_cuda_shared_plan_of(const ps_tridiag *t, const ps_cuda_device *device)
{
    const limits l = limits_of(t->dtype);
    const ps_cuda_shared_batch b = ps_cuda_shared_batch_of(t);
    const plan p =
        plan_of(b, l, *device, t->rows, is_across(b, b.rhs) || is_across(b, b.x));
    ps_cuda_shared_plan all = {};

    all.shape = p.shape;
    all.rhs = route_of(b, l, p.shape, t->rhs.data, b.rhs);
    all.x = route_of(b, l, p.shape, t->x.data, b.x);
    all.skewed = all.rhs.unit < 16 && are_alike(b, l, all.rhs, all.x);
    share_copies(&all.shape, l, *device, all.skewed, &all.rhs, &all.x);
    all.lines = b.lines;
    all.lanes = b.lanes;
    all.line_info = b.line_info;
    all.lane_info = b.lane_info;
    all.threads = p.threads;

    const bool in_bulk = all.shape.copies == COPY_IN_BULK;

    all.skewed = all.skewed && in_bulk;
    all.shared_bytes = p.shared + (all.skewed ? 16 : 0); /* beyond the last system */
    /* the block, or its crews, that draw tiles */
    const int of_crew = p.shape.warps == 1 ? 32 / p.shape.width : 1;
    const int takers = in_bulk ? p.shape.teams / of_crew : 1;
    const int64_t most = static_cast<int64_t>(device->processors) * p.resident;

    all.takers = takers;
    all.slots = p.shape.rounds * (in_bulk ? of_crew : p.shape.teams);
    all.tiles = divided_up(b.lanes, all.slots);
    const int64_t tiles = all.tiles * all.lines, blocks = divided_up(tiles, takers);
    all.blocks = blocks < most ? blocks : most;
    all.work_queue = in_bulk && p.shape.stages > 1 &&
                     (pays_for_work_queue(tiles, all.blocks * takers) ||
                      (p.shape.warps > 1 && tiles <= INT32_MAX &&
                       tiles >= least_tiles * all.blocks * takers));
    return all;
}

} // namespace pysolvers::shared
