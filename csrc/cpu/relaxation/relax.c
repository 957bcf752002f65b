/* relax.c - iterations of a red-black relaxation: one half-sweep after the other, or
 * several iterations in one pass.
 *
 * plain: one half-sweep after the other; the threads share the rows.
 *
 * blocked: K iterations, 2 K half-sweeps, in one pass over memory (time skewing: Wolf
 * and Lam 1991, Wonnacott 2000). The rows are divided into bands, up to four per
 * thread. First, of half-sweep s, the rows of each band whose distance from its
 * boundaries is at least s are computed; then, for each boundary between two bands, the
 * 2 s rows around it. In both parts the columns are divided into tiles that move one
 * chunk to the left with each half-sweep. A tile is computed along fronts of constant j
 * + s, so that its rows stay in the cache until all half-sweeps have processed them. No
 * row is computed twice. Half-sweeps 0 and 1 read from one field and write to the
 * other: if an iteration within a pass ends the call, the pass is repeated up to this
 * iteration.
 *
 * periodic axes: plain passes. The half-sweep that relaxes a row copies its end nodes, and
 * the first or the last row as a whole, to the frame of the same colour, which only the
 * next half-sweep reads.
 */
#include "relaxation/relax.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/copy.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"
#include "runtime/tuning.h"

/* Rows low + s low_step <= j < high + s high_step of half-sweep s. */
typedef struct {
    int64_t low, low_step, high, high_step;
} region;

typedef struct {
    const ps_relax *r;
    char *from, *to;
    size_t row_bytes, plane_bytes; /* plane_bytes: from a red row to the black one */
    int64_t chunk;                 /* elements */
    int threads;
    int64_t block;  /* largest number of iterations of a pass */
    int64_t sweeps; /* half-sweeps of the current pass */
    int64_t tile;   /* chunks per tile */
    int64_t bands;
    char *slots, *scratch;
    size_t slots_bytes, scratch_bytes; /* scratch_bytes per thread */
    size_t second_bytes, bytes;        /* of the second field, of the workspace */
    int64_t sweep;                     /* of a plain pass: the current half-sweep */
} pass;

static size_t
element_bytes(const ps_relax *r)
{
    return (size_t)ps_dtype_size(r->dtype);
}

static size_t
field_bytes(const ps_relax *r)
{
    return (size_t)(2 * (r->ny + 2) * r->pitch) * element_bytes(r);
}

/* Several bands per thread, so that a thread that is not scheduled delays few rows; but
 * bands are wide enough that the number of iterations of a pass is not reduced. */
static int64_t
band_count(const ps_relax *r, int threads)
{
    const int64_t most = r->ny / (4 * PS_RELAX_ITERATIONS);
    const int64_t wished = 4 * threads < most ? 4 * threads : most;

    return threads == 1 || wished < threads ? threads : wished;
}

/* The division of the work; pointers are null. */
static pass
plan(const ps_relax *r, const ps_exec *exec)
{
    pass p = {.r = r, .block = 1};
    const int wanted = ps_thread_count_for(exec, 2 * r->nx * r->ny);
    const int64_t most = r->ny / 16 > 0 ? r->ny / 16 : 1;

    p.threads = r->interleaved ? 1 : wanted < most ? wanted : (int)most;
    p.bands = band_count(r, p.threads);
    p.row_bytes = (size_t)(r->pitch * (1 + r->interleaved)) * element_bytes(r);
    p.plane_bytes = r->interleaved ? 0 : (size_t)(r->ny + 2) * p.row_bytes;
    p.chunk = PS_CHUNK_BYTES / (int64_t)element_bytes(r);
    p.tile = INT64_MAX / 2;
    if (r->blocked) {
        const int64_t room = p.bands > 1 ? r->ny / (4 * p.bands) : PS_RELAX_ITERATIONS;

        p.block = room < PS_RELAX_ITERATIONS ? room : PS_RELAX_ITERATIONS;
        p.tile =
            PS_RELAX_TILE_BYTES / PS_CHUNK_BYTES / (2 * (2 * p.block + 2) * r->row_words);
    }
    p.scratch_bytes = ps_aligned((size_t)r->pitch * element_bytes(r));
    if (r->stop->every > 0) {
        p.slots_bytes = PS_CHUNK_BYTES * (size_t)p.block *
                        (size_t)(r->stop->norm == PS_NORM_MAX ? p.threads : 2 * r->ny);
    }
    p.second_bytes = r->blocked ? ps_aligned(field_bytes(r)) : 0;
    p.bytes = p.second_bytes + p.slots_bytes + (size_t)p.threads * p.scratch_bytes;
    return p;
}

size_t
ps_relax_work(const ps_relax *r, const ps_exec *exec)
{
    return plan(r, exec).bytes;
}

static void *
slot_of(const pass *p, int64_t s, int64_t j, int thread)
{
    if (p->slots == NULL) {
        return NULL;
    }
    const int64_t index = p->r->stop->norm == PS_NORM_MAX ? s / 2 * p->threads + thread
                                                          : s * p->r->ny + j - 1;
    return p->slots + PS_CHUNK_BYTES * index;
}

/* Relax the chunks begin <= v < end of half-sweep s of row j. */
static void
make_row(const pass *p, int64_t s, int64_t j, int64_t begin, int64_t end, int thread)
{
    const ps_relax *const r = p->r;
    const int colour = (int)(s & 1), parity = (int)((j + s) & 1);
    const size_t along = (size_t)j * p->row_bytes, plane = p->plane_bytes;
    const size_t offset = along + (size_t)colour * plane;
    const char *const own = s < 2 ? p->from : p->to;
    const char *const other =
        (s < 1 ? p->from : p->to) + along + (size_t)(1 - colour) * plane;
    const int64_t last = r->interleaved ? r->nx + 1 : (r->nx - parity) / 2 + 1;
    const int64_t chunks = (last + p->chunk - 1) / p->chunk;
    ps_relax_row row = {
        .own = own + offset,
        .other = other,
        .north = other + p->row_bytes,
        .south = other - p->row_bytes,
        .to = p->to + offset,
        .first = r->interleaved ? 2 - parity : 1 - parity,
        .last = last,
        .parity = parity,
        .criterion = r->stop->criterion,
        .measure = r->stop->norm == PS_NORM_MAX ? PS_MEASURE_MAX : PS_MEASURE_SQUARES,
        .slot = ps_stop_counts(r->stop, j) ? slot_of(p, s, j, thread) : NULL,
    };

    begin = begin > 0 ? begin : 0;
    end = end < chunks ? end : chunks;
    if (begin < end) {
        r->describe(r->self, colour, j, offset,
                    p->scratch + (size_t)thread * p->scratch_bytes, &row);
        r->row(&row, begin, end);
    }
}

/* Copy what half-sweep s wrote to row j to the frame of periodic axes. */
static void
wrap_row(const pass *p, int64_t s, int64_t j)
{
    const ps_relax *const r = p->r;
    const size_t size = element_bytes(r);
    const int parity = (int)((j + s) & 1); /* of the nodes: the last one is even */
    const size_t last = (size_t)(r->interleaved ? r->nx : r->nx / 2) * size;
    const size_t step = r->interleaved ? size : 0;
    char *const row = p->to + (size_t)(s & 1) * p->plane_bytes + (size_t)j * p->row_bytes;

    if (r->periodic & PS_PERIODIC_X) {
        if (parity == 0) {
            memcpy(row, row + last, size);
        }
        else {
            memcpy(row + last + step, row + step, size);
        }
    }
    if (r->periodic & PS_PERIODIC_Y) {
        const size_t across = (size_t)r->ny * p->row_bytes;

        if (j == 1) {
            memcpy(row + across, row, p->row_bytes);
        }
        if (j == r->ny) {
            memcpy(row - across, row, p->row_bytes);
        }
    }
}

static void
make_region(const pass *p, region g, int thread)
{
    const int64_t n = p->sweeps, chunks = p->r->nx / 2 / p->chunk + 1 + n;

    for (int64_t x = 0; x < chunks; x += p->tile) {
        for (int64_t front = g.low; front < g.high + 2 * n; front++) {
            for (int64_t s = 0; s < n; s++) {
                const int64_t j = front - s;

                if (j >= g.low + s * g.low_step && j < g.high + s * g.high_step) {
                    make_row(p, s, j, x - s, x - s + p->tile, thread);
                }
            }
        }
    }
}

/* The rows of each band that depend on no row of another band. */
static void
make_bands(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const p = self;
    const int64_t ny = p->r->ny, n = p->bands;

    for (int64_t k = begin; k < end; k++) {
        const region g = {1 + k * ny / n, k > 0, 1 + (k + 1) * ny / n, -(k < n - 1)};

        make_region(p, g, thread);
    }
}

/* The rows around the lower boundary of band k + 1. */
static void
make_cuts(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const p = self;

    for (int64_t k = begin + 1; k <= end; k++) {
        const int64_t cut = 1 + k * p->r->ny / p->bands;

        make_region(p, (region){cut, -1, cut, 1}, thread);
    }
}

static void
make_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const p = self;

    for (int64_t j = begin + 1; j <= end; j++) {
        make_row(p, p->sweep, j, 0, p->tile, thread);
        if (p->r->periodic != 0) {
            wrap_row(p, p->sweep, j);
        }
    }
}

static void
make_pass(pass *p, int64_t iterations)
{
    p->sweeps = 2 * iterations;
    if (p->slots != NULL) {
        memset(p->slots, 0, p->slots_bytes);
    }
    if (p->r->blocked) {
        ps_parallel_for(p->threads, p->bands, make_bands, p);
        ps_parallel_for(p->threads, p->bands - 1, make_cuts, p);
        return;
    }
    for (p->sweep = 0; p->sweep < p->sweeps; p->sweep++) {
        ps_parallel_for(p->threads, p->r->ny, make_rows, p);
    }
}

/* Element k of a slot. */
static double
slot_value(const pass *p, const char *slot, int k)
{
    return p->r->dtype == PS_F32 ? (double)((const float *)slot)[k]
                                 : ((const double *)slot)[k];
}

/* The norm of iteration t of the pass: first per lane, then over the lanes. */
static double
measure_of(const pass *p, int64_t t)
{
    const int lanes = (int)p->chunk;
    const int is_max = p->r->stop->norm == PS_NORM_MAX;
    const int64_t count = is_max ? p->threads : 2 * p->r->ny;
    const char *const slots = p->slots + PS_CHUNK_BYTES * t * count;
    double lane[PS_CHUNK_BYTES / sizeof(float)] = {0}, all = 0;

    for (int64_t n = 0; n < count; n++) {
        for (int k = 0; k < lanes; k++) {
            const double x = slot_value(p, slots + PS_CHUNK_BYTES * n, k);

            lane[k] = !is_max                          ? lane[k] + x
                      : lane[k] >= x || isnan(lane[k]) ? lane[k]
                                                       : x;
        }
    }
    for (int k = 0; k < lanes; k++) {
        all = !is_max ? all + lane[k] : all >= lane[k] || isnan(all) ? all : lane[k];
    }
    const int64_t rows = ps_stop_rows(p->r->stop, p->r->ny);

    return is_max ? all : sqrt(all / ((double)p->r->nx * (double)rows));
}

/* Read the norms of the iterations of a pass; returns the number of iterations to be
 * kept. */
static int64_t
judge(const pass *p, int64_t made, int64_t count, ps_relax_report *report)
{
    const ps_stop *const stop = p->r->stop;
    const int64_t before = report->iterations;

    for (int64_t t = 0; t < made && stop->every > 0; t++) {
        const int64_t n = before + t + 1;

        if (n % stop->every != 0 && n != count) {
            continue;
        }
        report->measure = measure_of(p, t);
        if (stop->history != NULL) {
            stop->history[report->measures] = report->measure;
        }
        report->measures++;
        if (!(report->measure <= DBL_MAX)) {
            report->end = PS_END_NOT_FINITE;
        }
        else if (report->measure <= stop->tolerance) {
            report->end = PS_END_TOLERANCE;
        }
        if (report->end != PS_END_COUNT) {
            return t + 1;
        }
    }
    return made;
}

/* Copy the values that a pass does not write: the boundary rows and the ends of the
 * other rows. */
static void
copy_frame(const pass *p, char *to, const char *from)
{
    const int64_t ny = p->r->ny, written = p->r->nx / 2 / p->chunk * PS_CHUNK_BYTES;

    for (int64_t row = 0; row < 2 * (ny + 2); row++) {
        const int is_boundary = row % (ny + 2) == 0 || row % (ny + 2) == ny + 1;
        const size_t skip = is_boundary ? 0 : (size_t)written;
        const size_t at = (size_t)row * p->row_bytes + skip;

        memcpy(to + at, from + at, p->row_bytes - skip);
    }
}

ps_status
ps_relax_iterate(const ps_relax *r, int64_t count, const ps_exec *exec,
                 ps_relax_report *report)
{
    pass p = plan(r, exec);
    char *work = exec->work;
    ps_status status = PS_OK;

    if (count < 0) {
        return PS_BAD_ARGUMENT;
    }
    if (exec->work_bytes < p.bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report =
        (ps_relax_report){.measure = NAN, .threads = p.threads, .kernel = r->kernel};
    p.from = p.to = r->field;
    if (r->blocked) {
        p.to = work;
        copy_frame(&p, p.to, p.from);
        work += p.second_bytes;
    }
    p.slots = p.slots_bytes > 0 ? work : NULL;
    p.scratch = work + p.slots_bytes;
    while (status == PS_OK && report->iterations < count && report->end == PS_END_COUNT) {
        const int64_t left = count - report->iterations;
        const int64_t made = left < p.block ? left : p.block;

        make_pass(&p, made);
        const int64_t kept = judge(&p, made, count, report);
        if (kept < made) {
            make_pass(&p, kept);
        }
        report->iterations += kept;
        char *const old = p.from;
        p.from = p.to;
        p.to = old;
        if (exec->poll != NULL && exec->poll(exec->poll_self) != 0) {
            status = PS_INTERRUPTED;
        }
    }
    if (p.from != r->field) {
        const ps_exec team = {.threads = p.threads};

        (void)ps_cpu_copy(r->field, p.from, field_bytes(r), &team);
    }
    return status;
}
