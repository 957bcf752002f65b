/* compact.cu - which compact differences are made by recurrences, and with what segments. */
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "lines/compact/compact.h"
#include "lines/join/shared_matrix.cuh"
#include "runtime/math.cuh"

namespace pysolvers::compact {

using namespace runtime;

static constexpr int most_halo = 64; /* rows */
/* Rows of the ring of a warp, which holds at least a halo and least_tile rows: most_capacity leaves room for four
 * blocks on a multiprocessor; where values are copied to the ring, table_capacity, with a table, and copied_capacity,
 * without one, for two. Parts of the speed of a copy of 2 words with 88 and 96 rows (H200): tables, 3001 rows,
 * float64 0.82 and 0.70, float32 0.62 and 0.60; differences, 4096 rows, float64 0.84 and 0.90, float32 0.85 and 0.84,
 * with values in registers 0.83. Of one segment of 64 rows values in registers have 0.76 and 0.73, copied ones 0.59
 * and 0.57; of two matrices whose values are not aligned, in float32, 0.59 and 0.57. */
static constexpr int most_capacity = 56, least_tile = 16;
static constexpr int under_way = COMPACT_DEPTH * COMPACT_BATCH;
static constexpr int copied_capacity = 96, table_capacity = 88;
static_assert(table_capacity >= COLUMN_HALO + COMPACT_BATCH + under_way);
/* The fewest rows for which a table is faster than panels, if the rows of x begin at memory sectors of 32 bytes, so
 * that teams of panels are clusters, and if they begin anywhere. Parts of the speed of a copy of 2 words with kept
 * factors, in brackets those of panels (H200):
 *
 *   at sectors, float64    777 rows 0.78 (0.80), 3001 rows 0.89 (0.76)
 *   at sectors, float32    777 rows 0.78 (0.75), 3001 rows 0.79 (0.81)
 *   anywhere, float64      300 rows 0.71 (0.48), 777 rows 0.75 (0.50), 1000 rows 0.87 (0.68), 2000 rows 0.84 (0.52),
 *                          3001 rows 0.82 (0.49)
 *   anywhere, float32      300 rows 0.56 (0.40), 777 rows 0.61 (0.44), 1000 rows 0.77 (0.50), 2000 rows 0.63 (0.47),
 *                          3001 rows 0.62 (0.44), 5000 rows 0.59 (0.45) */
static constexpr int least_at_sectors = 2000, least_anywhere = 257;
static constexpr int sector = 32; /* bytes */
/* Rows beyond those of the halo that a segment reads. */
static constexpr int margin = 2 * COMPACT_BATCH;
static constexpr int32_t most_segments = 1 << 14;
/* The fewest rows of a ring along a strided axis, the most and the fewest contiguous rows for which the
 * recurrences are faster than tiles and panels of the shared solver (shared_differences.cuh,
 * panel_stencils.cuh), or for which that solver has no room. Parts of the speed of a copy of 2 words on an
 * H200, of the recurrences, in brackets of the shared solver; of two numbers the first one is float64, the
 * second one float32:
 *
 *   strided axis, rings    256 rows 0.50 (0.56), float64; 512 rows 0.70 (0.76), float32;
 *                          4096 rows 0.89, 0.84 (0.58, 0.60)
 *   strided axis, ends     64 rows 0.67, 0.67 (0.48, 0.38); 1024 rows 0.85 (0.55), float64;
 *                          4096 rows 0.90, 0.84 (0.48, 0.49)
 *   contiguous rows        64 rows 0.79, 0.69 (0.51, 0.49); 256 rows 0.81 (0.81), float64;
 *                          1024 rows 0.81, 0.72 (0.84, 0.77); 8192 rows 0.73, 0.68 (0.22, for which
 *                          differences are stored first, 0.56); 1001 rows, whose numbers are copied
 *                          one by one, 0.50, 0.32 (0.76, 0.60)
 *   two matrices, float64  contiguous rings of 1024 rows 0.77 (0.43), contiguous 4096 rows 0.48 (0.32),
 *                          4096 rows along a strided axis 0.71 (0.19) */
static constexpr int least_ring = 1024, most_short_rows = 64, least_long_rows = 4096;

namespace {

/* p and r = -m of compact_columns.cuh, for the rows (a, 1, a) of a matrix. */
struct Recurrence {
    double p, r;

    explicit Recurrence(double a) : p(2 / (1 + std::sqrt(1 - 4 * a * a))), r(-a * p)
    {
    }
    double power(int64_t k) const
    {
        return std::pow(r, static_cast<double>(k));
    }
    /* 1 / (1 - r^(2n+2)) */
    double of_ends(int64_t rows) const
    {
        return 1 / (1 - power(2 * rows + 2));
    }
};

/* Those of the matrices of a call. */
struct Recurrences {
    Recurrence of[2];
    bool has_two;

    explicit Recurrences(const ps_differences *d)
        : of{Recurrence(d->off_diagonal[0]), Recurrence(d->off_diagonal[1])},
          has_two(d->off_diagonal[1] != 0)
    {
    }

    /* Rows after which a row counts less than rounding: of two matrices m_1^k / (1 - m_2 / m_1),
     * where m_2 is less than a third of m_1 for accuracy 8. */
    int halo(ps_dtype dtype) const
    {
        const double eps = dtype == PS_F32 ? std::numeric_limits<float>::epsilon()
                                           : std::numeric_limits<double>::epsilon();
        const double most = std::max(std::fabs(of[0].r), std::fabs(of[1].r));

        return static_cast<int>(std::ceil(std::log(eps / 4) / std::log(most))) +
               (has_two ? 2 : 0);
    }
};

} // namespace

static join::ps_cuda_shared_batch
shared_batch_of(const ps_differences *d)
{
    const ps_tridiag t = device::batch_of(*d, d->f, d->x);

    return join::ps_cuda_shared_batch_of(&t);
}

static bool
is_long(int64_t step)
{
    return std::abs(step) > INT32_MAX;
}

/* Whether all packs of columns of a lane are neighbours that begin at a multiple of 8 bytes. With
 * values in registers, packs of 16 bytes have 0.81 and 0.75 of the speed of a copy in place of 0.80 and
 * 0.78 (H200, 4096 rows, float64 and float32). */
static bool
has_aligned_packs(ps_dtype dtype, const void *f, const void *x,
                  const join::ps_cuda_shared_batch &b)
{
    const int64_t steps =
        b.lanes | b.rhs.row | b.x.row | (b.lines > 1 ? b.rhs.outer | b.x.outer : 0);
    const uintptr_t places =
        reinterpret_cast<uintptr_t>(f) | reinterpret_cast<uintptr_t>(x);

    return dtype == PS_F64 ||
           (b.rhs.inner == 1 && b.x.inner == 1 && steps % 2 == 0 && places % 8 == 0);
}

/* Rows of a ring beyond those that are done: whole batches. */
static int
halo_of(const ps_differences *d)
{
    return rounded_up(Recurrences(d).halo(d->dtype), +COMPACT_BATCH);
}

static bool
has_rows(const ps_differences *d)
{
    return d->f.stride.row == 1 && d->x.stride.row == 1;
}

static bool
is_decaying(double a)
{
    return std::fabs(a) < 0.5;
}

bool
ps_cuda_compact_accepts(const ps_differences *d)
{
    const bool has_two = d->off_diagonal[1] != 0, is_ring = (d->flags & PS_PERIODIC) != 0;

    return ps_is_real(d->dtype) && d->off_diagonal[0] != 0 &&
           is_decaying(d->off_diagonal[0]) && is_decaying(d->off_diagonal[1]) &&
           halo_of(d) <= most_halo && !is_long(d->f.stride.row) &&
           !is_long(d->x.stride.row) &&
           (!has_two || is_ring ||
            d->rows >= (has_rows(d) ? 1 : 2) * (halo_of(d) + margin));
}

/* Whether units of 16 bytes of all rows are aligned, for contiguous rows. */
static bool
are_aligned(const ps_differences *d, const join::ps_cuda_shared_batch &b)
{
    const int64_t steps = d->rows | (b.lanes > 1 ? b.rhs.inner | b.x.inner : 0) |
                          (b.lines > 1 ? b.rhs.outer | b.x.outer : 0);
    const uintptr_t places =
        reinterpret_cast<uintptr_t>(d->f.data) | reinterpret_cast<uintptr_t>(d->x.data);

    return steps * ps_dtype_size(d->dtype) % 16 == 0 && places % 16 == 0;
}

bool
ps_cuda_compact_is_faster(const ps_differences *d)
{
    const bool has_two = d->off_diagonal[1] != 0, is_ring = (d->flags & PS_PERIODIC) != 0;

    if (!ps_cuda_compact_accepts(d)) {
        return false;
    }
    if (!has_rows(d)) {
        return has_two || !is_ring || d->rows >= least_ring;
    }
    const bool is_whole = d->rows % COMPACT_ROWS == 0;

    return are_aligned(d, shared_batch_of(d)) &&
           (d->rows >= least_long_rows ||
            (is_whole && (has_two ? is_ring : d->rows <= most_short_rows)));
}

/* The number of segments with the fewest rows of all rounds of blocks. */
template <typename Real>
static int32_t
segments_of(const CompactColumns<Real> &job)
{
    const int64_t resident = std::max(compact_columns_resident(job), 1);
    const int64_t blocks = divided_up(job.panels, COMPACT_WARPS);
    int64_t least = INT64_MAX;
    const bool has_table = job.table.batches != nullptr;
    const int32_t fewest = job.ratio[1] != 0 && !job.is_ring ? 2 : 1;
    int32_t best = fewest;

    for (int32_t segments = fewest; segments <= most_segments;
         segments += has_table       ? (segments < 64 ? 1 : segments / 4)
                     : segments < 64 ? (segments > 1 ? 2 : 1)
                                     : segments / 4 * 2) {
        const int64_t rows = job.by.rows / segments;

        if (segments > fewest && rows < job.halo + margin) {
            break;
        }
        const int64_t cost = divided_up(blocks * segments, resident) *
                             (rows + (has_table && segments == 1 ? 0 : 2 * job.halo));

        if (cost < least) {
            least = cost;
            best = segments;
        }
    }
    return best;
}

/* The differences times p of each matrix. */
static ps_differences
scaled_by(const ps_differences *d, const Recurrences &by)
{
    const double p = by.of[0].p * by.of[1].p;
    ps_differences scaled = *d;

    scaled.near *= p;
    scaled.far *= p;
    for (auto &end : scaled.end) {
        for (double &weight : end) {
            weight *= p;
        }
    }
    return scaled;
}

/* The columns of a batch. */
template <typename Real>
static CompactColumns<Real>
columns_of(ps_dtype dtype, const join::ps_cuda_shared_batch &b, const void *f, void *x)
{
    CompactColumns<Real> job = {};

    job.f = static_cast<const Real *>(f);
    job.x = static_cast<Real *>(x);
    job.lanes = b.lanes;
    job.is_aligned = has_aligned_packs(dtype, f, x, b);
    job.line_panels = divided_up(b.lanes, 32 * compact_columns_pack<Real>);
    job.panels = job.line_panels * b.lines;
    job.f_line = b.rhs.outer;
    job.x_line = b.x.outer;
    job.f_lane = b.rhs.inner;
    job.x_lane = b.x.inner;
    job.f_row = static_cast<int32_t>(b.rhs.row);
    job.x_row = static_cast<int32_t>(b.x.row);
    return job;
}

template <typename Real>
static ps_status
solve_columns(const ps_differences *d, cudaStream_t stream)
{
    const Recurrences by(d);
    const double first = by.of[0].r, second = by.of[1].r;
    const join::ps_cuda_shared_batch b = shared_batch_of(d);
    CompactColumns<Real> job = columns_of<Real>(d->dtype, b, d->f.data, d->x.data);

    job.halo = halo_of(d);
    job.is_ring = (d->flags & PS_PERIODIC) != 0;
    job.ratio[0] = static_cast<Real>(first);
    job.ratio[1] = static_cast<Real>(second);
    if (by.has_two) {
        const double both = 1 - first * second, more = 1 - second * second;

        job.start[0][0] = static_cast<Real>(-first * first * both * (1 - first * first) /
                                            (first - second));
        job.start[1][0] =
            static_cast<Real>(first * second * both * more / (first - second));
        job.start[1][1] = static_cast<Real>(-second * both * more);
    }
    else {
        job.start[0][0] =
            static_cast<Real>(-first * (1 - first * first) * by.of[0].of_ends(d->rows));
    }
    job.by = lines::Differences<Real>(scaled_by(d, by));
    job.depth = COMPACT_DEPTH;
    job.capacity = std::max(+copied_capacity, job.halo + least_tile + under_way);
    job.segments = segments_of(job);
    if (job.segments == 1 || (by.has_two && !job.is_aligned)) {
        job.depth = 0;
        job.capacity = std::max(+most_capacity, job.halo + least_tile);
        job.segments = segments_of(job);
    }
    if (job.depth == 0 && job.segments == 1 && !job.is_ring) {
        job.capacity = std::min(job.capacity, rounded_up(job.by.rows, +COMPACT_BATCH));
    }
    return compact_columns_launch(job, stream);
}

template <typename Real>
static ps_status
solve_rows(const ps_differences *d, cudaStream_t stream)
{
    constexpr int rows = COMPACT_ROWS;
    const Recurrences by(d);
    const join::ps_cuda_shared_batch b = shared_batch_of(d);
    const bool is_ring = (d->flags & PS_PERIODIC) != 0;
    const int chunks = static_cast<int>(divided_up(d->rows, rows));
    CompactRows<Real> job = {};

    job.f = static_cast<const Real *>(d->f.data);
    job.x = static_cast<Real *>(d->x.data);
    job.lanes = b.lanes;
    job.f_lane = b.rhs.inner;
    job.x_lane = b.x.inner;
    job.f_line = b.rhs.outer;
    job.x_line = b.x.outer;
    job.is_ring = is_ring;
    if (chunks > 32 || (is_ring && d->rows % rows != 0)) {
        job.halo = divided_up(by.halo(d->dtype) + PS_DIFFERENCE_ENDS, rows);
    }
    job.width = std::min(chunks + (is_ring ? 2 * job.halo : 0), 32);
    job.parts = 1;
    if (job.halo > 0) {
        job.parts =
            divided_up(chunks - (is_ring ? 0 : 2 * job.halo), job.width - 2 * job.halo);
    }
    job.most = job.parts > 1 ? 1 : 32 / job.width;
    job.groups = divided_up(b.lanes, job.most);
    job.tiles = job.groups * b.lines * job.parts;
    job.is_short = d->rows < halo_of(d);
    job.in_units = are_aligned(d, b);
    job.has_two = by.has_two;
    for (int m = 0; m < 2; m++) {
        for (int k = 0; k <= rows; k++) {
            job.power[m][k] = static_cast<Real>(by.of[m].power(k));
        }
        job.start[m] = static_cast<Real>(-by.of[m].power(2) * by.of[m].of_ends(d->rows));
    }
    for (int chunk = 0; chunk < 2 && job.is_short; chunk++) {
        job.stop[chunk] =
            static_cast<Real>(-by.of[0].power(2 * d->rows - (chunk + 1) * rows));
    }
    job.by = lines::Differences<Real>(scaled_by(d, by));
    return compact_rows_launch(job, stream);
}

ps_status
ps_cuda_compact_solve(const ps_differences *d, cudaStream_t stream)
{
    return device::with_real(d->dtype, [&](auto zero) {
        using Real = decltype(zero);

        return has_rows(d) ? solve_rows<Real>(d, stream) : solve_columns<Real>(d, stream);
    });
}

/* The table of a matrix at `store`; returns its bytes. */
template <typename Real>
static size_t
lay_out(int64_t rows, const void *store, ColumnTable<Real> *t)
{
    const int64_t batches = divided_up(rows, +COMPACT_BATCH);
    const int64_t halo = COLUMN_HALO / COMPACT_BATCH;
    size_t bytes = 0;
    const auto part = [&](auto **to, size_t count) {
        *to = reinterpret_cast<std::remove_reference_t<decltype(*to)>>(
            static_cast<const char *>(store) + bytes);
        bytes += ps_cuda_padded(count * sizeof **to);
    };

    t->parts =
        static_cast<int32_t>(divided_up(batches + 2 * COLUMN_HALO / COMPACT_BATCH,
                                        TABLE_THREADS - COLUMN_HALO / COMPACT_BATCH));
    part(&t->halo, t->parts);
    part(&t->batches, batches + 2 * halo);
    t->batches += halo;
    return bytes;
}

size_t
ps_cuda_columns_table(ps_dtype dtype, int64_t rows)
{
    size_t bytes = 0;

    if (!ps_is_real(dtype) || rows < least_anywhere) {
        return 0;
    }
    (void)device::with_real(dtype, [&](auto zero) {
        ColumnTable<decltype(zero)> table;

        bytes = lay_out(rows, nullptr, &table);
        return PS_OK;
    });
    return bytes;
}

ColumnNeeds
ps_cuda_columns_needs(ps_dtype dtype, int64_t rows, const void *store)
{
    ColumnNeeds needs = {};

    (void)device::with_real(dtype, [&](auto zero) {
        ColumnTable<decltype(zero)> table;

        (void)lay_out(rows, store, &table);
        needs = {table.halo, table.parts};
        return PS_OK;
    });
    return needs;
}

bool
ps_cuda_columns_accept(const ps_tridiag *t)
{
    const join::ps_cuda_shared_batch b = join::ps_cuda_shared_batch_of(t);
    const auto is_across = [](const ps_stride &s) {
        return s.row != 1 && std::abs(s.inner) < std::abs(s.row) && !is_long(s.row);
    };
    const int64_t size = t->dtype == PS_F32 ? sizeof(float) : sizeof(double);
    const bool is_faster = b.x.row * size % sector != 0 ||
                           (t->dtype == PS_F64 && t->rows >= least_at_sectors);

    return is_faster && ps_cuda_columns_table(t->dtype, t->rows) > 0 &&
           (t->flags & (PS_PERIODIC | PS_ROW_SUMS)) == 0 && b.lanes >= 16 &&
           is_across(b.rhs) && is_across(b.x);
}

ps_status
ps_cuda_columns_keep(const ps_tridiag *t, bool transposed, void *store,
                     cudaStream_t stream)
{
    return device::with_real(t->dtype, [&](auto zero) {
        using Real = decltype(zero);
        const device::Systems<Real> s = device::systems_of<Real>(*t);
        ColumnTableJob<Real> job = {
            {s.lower, s.diag, s.upper, s.periodic, transposed, false, nullptr},
            {},
            static_cast<int32_t>(t->rows)};

        (void)lay_out(t->rows, store, &job.table);
        return column_table_launch(job, stream);
    });
}

ps_status
ps_cuda_columns_solve(const ps_tridiag *t, const void *store, uint8_t *marks,
                      cudaStream_t stream)
{
    return device::with_real(t->dtype, [&](auto zero) {
        using Real = decltype(zero);
        const join::ps_cuda_shared_batch b = join::ps_cuda_shared_batch_of(t);
        CompactColumns<Real> job = columns_of<Real>(t->dtype, b, t->rhs.data, t->x.data);

        (void)lay_out(t->rows, store, &job.table);
        job.by.rows = static_cast<int32_t>(t->rows);
        job.info = t->info;
        job.marks = marks;
        job.line_info = b.line_info;
        job.lane_info = b.lane_info;
        /* rows, of most matrices; the kernel reads those of the table */
        job.halo = sizeof(Real) == 4 ? 24 : 40;
        job.depth = COMPACT_DEPTH;
        job.capacity = table_capacity;
        job.segments = segments_of(job);
        return compact_columns_launch(job, stream);
    });
}

} // namespace pysolvers::compact
