/* recurrence.c - linear recurrences: lines as they are, or in chunks.
 *
 * A line of fewer than PS_RECURRENCE_ROWS rows is computed in order, one line per lane
 * (lines/recurrence.inc). A longer one is about PS_RECURRENCE_CHUNKS chunks, one per lane,
 * and a tail of the other rows, in three steps: the units of all chunks; their join, which gives
 * the state before each chunk; the rows. A line whose units grow too much for the join has
 * its states computed in order. The chunks depend on the rows alone, so that the bits do
 * not depend on the batch.
 *
 * Lines are taken in slices that stay in cache between the first step and the last: each
 * thread has slices of its own or, if there are fewer slices than threads, all threads
 * compute the chunks of one.
 */
#include "recurrence.h"

#include <string.h>

#include "lines/kernels.h"
#include "lines/recurrence.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

/* The widest kernels, or others: for lines that do not fill more lanes than those have, but
 * not for one line of other numbers than float32 (1.1 to 1.7 of the time), and for contiguous
 * lines from memory (PS_RECURRENCE_BYTES). All have the same bits. */
static const ps_recurrence_kernels *
fitting(const ps_recurrence *r, const ps_recurrence_kernels *wide,
        const ps_recurrence_kernels *narrow)
{
    const int is_far =
        r->x.stride.row == 1 &&
        r->rows * r->outer * r->inner * wide->element > PS_RECURRENCE_BYTES;

    const int is_few = r->inner <= narrow->lanes && (r->inner > 1 || r->dtype == PS_F32);

    return is_few || is_far ? narrow : wide;
}

#define FITTING(r, name) fitting(r, PS_ISA_OF(name), PS_ISA_NARROW(name))

/* The kernels of lines of the inner axis. */
static const ps_recurrence_kernels *
kernels_of(const ps_recurrence *r)
{
    switch (r->dtype) {
    case PS_F32:
        return FITTING(r, ps_recurrence_f32);
    case PS_F64:
        return FITTING(r, ps_recurrence_f64);
    case PS_C64:
        return FITTING(r, ps_recurrence_c64);
    default:
        return FITTING(r, ps_recurrence_c128);
    }
}

#undef FITTING

/* A slice: some lines of one index of the outer axis, or of the inner one if the axes are
 * exchanged. */
typedef struct {
    ps_recurrence r; /* of all lines, those of a slice along inner */
    const ps_recurrence_kernels *kernels;
    const ps_exec *exec;
    int order, reversed, threads;
    int64_t chunks, chunk, tail;  /* number of chunks; rows of one and of the tail */
    int64_t first_row;            /* row 0 of chunk 0 */
    int64_t lines, slices, pitch; /* of a slice; per outer index; lines in memory */
    int64_t element;
    size_t bytes; /* of the workspace of a slice */
} chunked;

static int
is_long(const ps_recurrence *r)
{
    return r->rows >= PS_RECURRENCE_ROWS;
}

static int
unit_words(int order)
{
    return (order + 1) * order + 1;
}

static void
exchange_axes(ps_recurrence *r)
{
    ps_stride *const strides[] = {&r->first.stride, &r->second.stride, &r->b.stride,
                                  &r->initial.stride, &r->x.stride};
    const int64_t outer = r->outer;

    r->outer = r->inner;
    r->inner = outer;
    for (int k = 0; k < 5; k++) {
        *strides[k] = ps_exchanged(*strides[k]);
    }
}

/* Let the lanes be along the axis of adjacent lines or, if there is none, the longer one.
 */
static void
choose_axes(ps_recurrence *r)
{
    const int inner = r->inner > 1 && r->x.stride.inner == 1;
    const int outer = r->outer > 1 && r->x.stride.outer == 1;

    if (!inner && (outer || r->outer > r->inner)) {
        exchange_axes(r);
    }
}

/* Rows of a chunk. */
static int64_t
chunk_of(int64_t rows)
{
    const int64_t units = rows / PS_RECURRENCE_CHUNKS / PS_RECURRENCE_UNIT;
    const int64_t chunk = (units | 1) * PS_RECURRENCE_UNIT;

    return chunk < PS_RECURRENCE_CHUNK ? chunk : PS_RECURRENCE_CHUNK;
}

static void
plan_chunks(const ps_recurrence *r, const ps_exec *exec, chunked *c)
{
    memset(c, 0, sizeof *c);
    c->r = *r;
    choose_axes(&c->r);
    c->kernels = kernels_of(&c->r);
    c->exec = exec;
    c->order = r->second.data != NULL ? 2 : 1;
    c->reversed = (r->flags & PS_REVERSED) != 0;
    c->threads = ps_thread_count_for(exec, r->rows * r->outer * r->inner);
    c->chunk = chunk_of(r->rows);
    c->chunks = r->rows / c->chunk;
    c->tail = r->rows % c->chunk;
    c->first_row = c->reversed ? c->tail : 0;
    c->element = c->kernels->element;

    const int64_t line = r->rows * c->element * (1 + c->order);
    const int64_t room = PS_SLICE_BYTES / line;
    const int64_t least = r->x.stride.inner == 1 ? c->kernels->lanes : 1;
    const int64_t wished = room > least ? room : least;

    c->lines = wished < c->r.inner ? wished : c->r.inner;
    c->slices = (c->r.inner + c->lines - 1) / c->lines;
    c->pitch = (c->lines + c->kernels->lanes - 1) / c->kernels->lanes * c->kernels->lanes;
    c->bytes = ps_aligned((size_t)(unit_words(c->order) * (c->chunks + 1) * c->pitch *
                                   c->element)) +
               ps_aligned((size_t)c->pitch);
}

/* Rows from `row` on of an operand. */
static void *
from_row(const void *data, ps_stride s, int64_t row, int64_t outer, int64_t inner,
         int64_t element)
{
    return data == NULL ? NULL
                        : (char *)data +
                              (row * s.row + outer * s.outer + inner * s.inner) * element;
}

/* Where the state before chunk k is. */
static ps_input
states_at(const chunked *c, void *units, int64_t k, int64_t line)
{
    return (ps_input){(char *)units + (k * c->pitch + line) * c->element,
                      {(c->chunks + 1) * c->pitch, c->pitch, 1}};
}

/* The recurrence of `count` chunks (or of the tail, if count is 0) from chunk k on of some
 * lines of a slice. */
static ps_recurrence
part_of(const chunked *c, void *units, int64_t j, int64_t slice, int64_t k, int64_t count,
        int64_t line, int64_t lines)
{
    const int64_t tail = c->reversed ? 0 : c->chunks * c->chunk;
    const int64_t row = count == 0 ? tail : c->first_row + k * c->chunk;
    const int64_t at = slice * c->lines + line;
    ps_recurrence p = c->r;
    ps_input *const inputs[] = {&p.first, &p.second, &p.b};

    p.rows = count == 0 ? c->tail : c->chunk;
    p.outer = count == 0 ? 1 : count;
    p.inner = lines;
    for (int w = 0; w < 3; w++) {
        inputs[w]->data =
            from_row(inputs[w]->data, inputs[w]->stride, row, j, at, c->element);
        inputs[w]->stride.outer = c->chunk * inputs[w]->stride.row;
    }
    p.x.data = from_row(p.x.data, p.x.stride, row, j, at, c->element);
    p.x.stride.outer = c->chunk * p.x.stride.row;
    p.initial = states_at(c, units, count == 0 ? c->chunks : k, line);
    return p;
}

/* A loop over the tiles of all indices of the outer axis of a recurrence. */
typedef struct {
    const ps_recurrence *r;
    const ps_output *units;
    const ps_recurrence_kernels *kernels;
    int64_t tiles; /* of one index */
} tile_loop;

/* An operand at an index of the outer axis, without that axis. */
static void *
at_outer(const void *data, ps_stride s, int64_t j, int64_t element)
{
    return from_row(data, s, 0, j, 0, element);
}

static void
run_tiles(void *self, int64_t begin, int64_t end, int thread)
{
    const tile_loop *const l = self;
    const int64_t element = l->kernels->element;

    (void)thread;
    for (int64_t k = begin, count; k < end; k += count) {
        const int64_t j = k / l->tiles, tile = k % l->tiles;
        ps_recurrence one = *l->r;
        ps_output units = *l->units;

        count = l->tiles - tile < end - k ? l->tiles - tile : end - k;
        one.outer = 1;
        one.first.data = at_outer(one.first.data, one.first.stride, j, element);
        one.second.data = at_outer(one.second.data, one.second.stride, j, element);
        one.b.data = at_outer(one.b.data, one.b.stride, j, element);
        one.initial.data = at_outer(one.initial.data, one.initial.stride, j, element);
        one.x.data = at_outer(one.x.data, one.x.stride, j, element);
        units.data = at_outer(units.data, units.stride, j, element);
        l->kernels->run(&one, &units, tile, count);
    }
}

/* Compute the rows of a recurrence or, if `units` is not null, its units, which are written
 * there. Without `exec` in the calling thread. */
static ps_status
run_part(const ps_recurrence *r, const ps_output *units, const ps_exec *exec, int threads)
{
    static const ps_output none = {NULL, {0, 0, 0}};
    const ps_recurrence_kernels *const kernels = kernels_of(r);
    tile_loop l = {r, units != NULL ? units : &none, kernels,
                   (r->inner + kernels->lanes - 1) / kernels->lanes};

    if (exec != NULL) {
        return ps_run(exec, threads, r->outer * l.tiles, r->rows * kernels->lanes,
                      run_tiles, &l);
    }
    run_tiles(&l, 0, r->outer * l.tiles, 0);
    return PS_OK;
}

/* Copy the initial states of lines of a slice to those before chunk k. */
static void
copy_initial(const chunked *c, void *units, int64_t j, int64_t slice, int64_t k,
             int64_t line, int64_t lines)
{
    const ps_input to = states_at(c, units, k, line);
    const ps_input *const from = &c->r.initial;
    const int64_t left = c->r.inner - slice * c->lines - line;
    const int64_t own = left < lines ? left : lines;

    for (int64_t i = 0; i < c->order; i++) {
        char *const row = (char *)to.data + i * to.stride.row * c->element;

        memset(row, 0, (size_t)(lines * c->element));
        for (int64_t v = 0; v < own && from->data != NULL; v++) {
            memcpy(row + v * c->element,
                   from_row(from->data, from->stride, i, j, slice * c->lines + (line + v),
                            c->element),
                   (size_t)c->element);
        }
    }
}

/* Compute the states of a line chunk by chunk: what is left of each is the one before the
 * next. */
static void
states_in_order(const chunked *c, void *units, int64_t j, int64_t slice, int64_t line)
{
    const int64_t last = c->chunks - 1;

    copy_initial(c, units, j, slice, c->reversed ? last : 0, line, 1);
    for (int64_t i = 0; i <= last; i++) {
        const int64_t k = c->reversed ? last - i : i;
        const int64_t next = i == last ? last + 1 : c->reversed ? k - 1 : k + 1;
        const ps_recurrence part = part_of(c, units, j, slice, k, 1, line, 1);
        const ps_input at = states_at(c, units, next, line);
        const ps_output to = {(void *)(uintptr_t)at.data, at.stride};

        run_part(&part, &to, NULL, 1);
    }
}

/* As run_part(), with the chunks, along the outer axis, in the lanes unless the lines of
 * the inner axis are adjacent and fill them. Two real lines are enough: vectors that they do
 * not fill take 0.5 of the time of single elements. */
static ps_status
run_chunks(const ps_recurrence *r, const ps_output *units, const ps_exec *exec,
           int threads)
{
    ps_recurrence own = *r;
    ps_output to = {NULL, {0, 0, 0}};

    if (units != NULL) {
        to = *units;
    }
    const int is_real = ps_is_real(r->dtype);

    if (own.x.stride.inner != 1 || own.inner < (is_real ? 2 : kernels_of(r)->lanes)) {
        exchange_axes(&own);
        to.stride = ps_exchanged(to.stride);
    }
    return run_part(&own, &to, exec, threads);
}

static ps_status
solve_slice(const chunked *c, int64_t index, void *work, const ps_exec *exec)
{
    const int64_t j = index / c->slices, slice = index % c->slices;
    const int64_t left = c->r.inner - slice * c->lines;
    const int64_t lines = left < c->lines ? left : c->lines;
    uint8_t *const again = (uint8_t *)work + c->bytes - ps_aligned((size_t)c->pitch);
    const double limit = c->order == 2 ? PS_RECURRENCE_GROWTH_2 : PS_RECURRENCE_GROWTH;
    const ps_input at = states_at(c, work, 0, 0);
    const ps_output units = {(void *)(uintptr_t)at.data, at.stride};
    ps_recurrence part = part_of(c, work, j, slice, 0, c->chunks, 0, lines);

    part.initial.data = NULL;
    copy_initial(c, work, j, slice, c->chunks, 0, c->pitch);
    ps_status status = run_chunks(&part, &units, exec, c->threads);
    if (status != PS_OK) {
        return status;
    }
    c->kernels->join(work, c->chunks, c->pitch, c->order, c->reversed, limit, again);
    for (int64_t v = 0; v < lines; v++) {
        if (again[v]) {
            states_in_order(c, work, j, slice, v);
        }
    }
    part.initial = at;
    status = run_chunks(&part, NULL, exec, c->threads);
    if (status == PS_OK && c->tail > 0) {
        part = part_of(c, work, j, slice, 0, 0, 0, lines);
        status = run_part(&part, NULL, NULL, 1);
    }
    return status;
}

static void
solve_slices(void *self, int64_t begin, int64_t end, int thread)
{
    chunked own = *(const chunked *)self;
    void *const work = (char *)own.exec->work + (size_t)thread * own.bytes;

    own.threads = 1;
    for (int64_t k = begin; k < end; k++) {
        solve_slice(&own, k, work, NULL);
    }
}

static ps_status
solve_chunks(chunked *c)
{
    const int64_t slices = c->slices * c->r.outer;
    ps_status status = PS_OK;

    if (slices >= c->threads && slices > 1) {
        return ps_run(c->exec, c->threads, slices, c->lines * c->r.rows, solve_slices, c);
    }
    for (int64_t k = 0; k < slices && status == PS_OK; k++) {
        status = solve_slice(c, k, c->exec->work, c->exec);
    }
    return status;
}

ps_status
ps_cpu_recurrence_work(const ps_recurrence *r, const ps_exec *exec, size_t *bytes)
{
    const ps_status status = ps_recurrence_check(r);
    chunked c;

    *bytes = 0;
    if (status == PS_OK && r->outer > 0 && r->inner > 0 && is_long(r)) {
        plan_chunks(r, exec, &c);
        *bytes = c.bytes * (size_t)c.threads;
    }
    return status;
}

ps_status
ps_cpu_recurrence(const ps_recurrence *r, const ps_exec *exec)
{
    size_t bytes;
    chunked c;
    const ps_status status = ps_cpu_recurrence_work(r, exec, &bytes);

    if (status != PS_OK || r->outer == 0 || r->inner == 0) {
        return status;
    }
    if (bytes > exec->work_bytes) {
        return PS_WORK_TOO_SMALL;
    }
    if (is_long(r)) {
        plan_chunks(r, exec, &c);
        return solve_chunks(&c);
    }
    const int threads = ps_thread_count_for(exec, r->rows * r->outer * r->inner);
    ps_recurrence own = *r;

    choose_axes(&own);
    return run_part(&own, NULL, exec, threads);
}
