/* cut_shared.c - long systems that share a matrix, cut into chunks.
 *
 * The partition method (partition.inc), with the matrix of a group of chunks eliminated
 * for all systems at once: on each of the two passes, or on the first if what is
 * eliminated stays in cache. 3 words an unknown, and 6 or 3 a row of the matrix.
 */
#include <stdatomic.h>

#include "cut.h"
#include "threads.h"

/* The workspace of some systems. */
typedef struct {
    size_t matrix, told, info, tables, rows, solve; /* bytes of each part */
} parts;

/* One pass over the chunks. */
typedef struct {
    const ps_type_kernels *kernels;
    const ps_cut *cut;
    const ps_chunks *chunks;
    char *tables; /* of all groups, or null */
    int up;
    atomic_int dominant;
    atomic_int row; /* first bad row + 1, or 0 */
} pass;

/* Tiles of a group. */
enum { TABLE_TILES = 4 };

void
ps_cut_tables(ps_cut *cut, const ps_type_kernels *kernels)
{
    const int64_t size = (int64_t)TABLE_TILES * kernels->lanes;

    cut->side = 1;
    kernels->cut(cut);
    cut->tiles = TABLE_TILES;
    cut->groups = (cut->chunks + size - 1) / size;
    cut->stretch = 1;
}

/* The matrix of t, cut. */
static ps_cut
cut_of(const ps_tridiag *t, const ps_type_kernels *kernels)
{
    ps_cut cut = {.t = t};

    ps_cut_tables(&cut, kernels);
    return cut;
}

/* The systems of the separators of t: their matrix, and what the chunks told.
 */
static ps_tridiag
separator_systems(const ps_tridiag *t, const ps_cut *cut, void *matrix, void *told,
                  int32_t *info)
{
    const size_t bytes = (size_t)(cut->chunks * ps_dtype_size(t->dtype));
    const ps_stride one = {1, 0, 0}, all = {t->inner, 0, 1};
    char *const at = matrix;

    return (ps_tridiag){
        .dtype = t->dtype,
        .flags = t->flags & PS_PERIODIC,
        .rows = cut->chunks,
        .outer = 1,
        .inner = t->inner,
        .lower = {at + PS_LOWER * bytes, one},
        .diag = {at + PS_DIAG * bytes, one},
        .upper = {at + PS_UPPER * bytes, one},
        .rhs = {told, all},
        .x = {told, all},
        .info = info,
    };
}

static size_t
thread_bytes(const ps_cut *cut, const ps_type_kernels *kernels)
{
    return ps_aligned(kernels->chunks_table(cut)) +
           ps_aligned(kernels->chunks_scratch(cut));
}

static size_t
total(parts p)
{
    return p.matrix + p.told + p.info + p.tables + p.rows + p.solve;
}

static parts
parts_of(const ps_tridiag *t, int threads)
{
    const ps_type_kernels *const kernels = ps_isa_get()->type[t->dtype];
    const ps_cut cut = cut_of(t, kernels);
    const ps_tridiag separators = separator_systems(t, &cut, NULL, NULL, NULL);
    const size_t tables = ps_aligned(kernels->chunks_table(&cut) * (size_t)cut.groups);
    parts p = {
        .matrix = ps_aligned(kernels->cut_told(&cut)),
        .told = ps_aligned(2 * (size_t)(cut.chunks * t->inner * ps_dtype_size(t->dtype))),
        .info = ps_aligned((size_t)t->inner * sizeof(int32_t)),
        .tables = tables <= PS_KEPT_BYTES ? tables : 0,
        .rows = thread_bytes(&cut, kernels) * (size_t)threads,
    };

    if (cut.chunks >= PS_MANY_CHUNKS) {
        p.solve = total(parts_of(&separators, threads));
    }
    else {
        p.solve = ps_cut_few_bytes(&separators, threads);
    }
    return p;
}

size_t
ps_cut_shared_bytes(const ps_tridiag *t, int threads)
{
    return total(parts_of(t, threads));
}

/* A stretch of groups. */
static int64_t
go_on(void *self, const ps_job *job, int64_t stretch, void *work)
{
    pass *const p = self;
    const ps_cut *const cut = p->cut;
    void *const y = (char *)work + ps_aligned(p->kernels->chunks_table(cut));
    const int64_t tiles = (cut->chunks + p->kernels->lanes - 1) / p->kernels->lanes;
    const int64_t first = stretch * cut->stretch, beyond = first + cut->stretch;
    int dominant = atomic_load(&p->dominant);

    (void)job;
    for (int64_t k = first; k < beyond && k < cut->groups && dominant; k++) {
        const int64_t end = (k + 1) * cut->tiles < tiles ? (k + 1) * cut->tiles : tiles;
        const size_t place = p->kernels->chunks_table(cut) * (size_t)k;
        void *const table = p->tables == NULL ? work : p->tables + place;
        int32_t row = 0;
        int known = atomic_load(&p->row);

        if (p->tables == NULL || !p->up) {
            row = p->kernels->chunks_make(cut, k, table, &dominant);
        }
        while (row != 0 && (known == 0 || row < known) &&
               !atomic_compare_exchange_weak(&p->row, &known, row)) {
        }
        if (dominant) {
            p->kernels->chunks_solve(p->chunks, k * cut->tiles, end, table, y, p->up);
        }
    }
    if (!dominant) {
        atomic_store(&p->dominant, 0);
    }
    return 0;
}

static ps_status
run_pass(pass *p, const ps_cut_task *d, char *work)
{
    const ps_tiles tiles = {
        .exec = d->exec,
        .threads = d->threads,
        .bytes = thread_bytes(p->cut, p->kernels),
        .work = work,
        .self = p,
        .solve = go_on,
    };

    return ps_cut_run(p->cut, &tiles);
}

/* Solve the systems along inner of d->t. */
static ps_status
solve_level(const ps_cut_task *d, char *work, int *dominant, int32_t *bad)
{
    const ps_tridiag *const t = &d->t;
    const parts room = parts_of(t, d->threads);
    char *const told = work + room.matrix, *const info = told + room.told;
    char *const tables = info + room.info, *const rows = tables + room.tables;
    ps_cut cut = cut_of(t, d->kernels);
    const ps_chunks chunks = {.cut = &cut,
                              .systems = t->inner,
                              .rhs = t->rhs,
                              .x = t->x,
                              .told = told,
                              .stream = d->stream,
                              .eliminates = room.tables == 0};
    pass p = {.kernels = d->kernels,
              .cut = &cut,
              .chunks = &chunks,
              .tables = room.tables > 0 ? tables : NULL};

    cut.separators = work;
    cut.check = d->pivot == PS_PIVOT_AUTO;
    atomic_init(&p.dominant, 1);
    atomic_init(&p.row, 0);
    ps_status status = run_pass(&p, d, rows);

    *dominant = atomic_load(&p.dominant);
    *bad = atomic_load(&p.row);
    if (status != PS_OK || !*dominant || *bad != 0) {
        return status;
    }
    d->kernels->cut_assemble(&cut);
    d->kernels->chunks_told(&chunks);

    ps_cut_task next = *d;
    next.t = separator_systems(t, &cut, work, told, (int32_t *)info);
    next.stream = 0;
    next.pivot = PS_PIVOT_NEVER;
    status = cut.chunks >= PS_MANY_CHUNKS
                 ? solve_level(&next, rows + room.rows, dominant, bad)
                 : ps_cut_few(&next, &next.t, rows + room.rows, bad);
    if (status != PS_OK || *bad != 0) {
        return status;
    }
    p.up = 1;
    return run_pass(&p, d, rows);
}

ps_status
ps_cut_shared(const ps_cut_task *d, int64_t j, char *work, int *dominant, int32_t *bad)
{
    const int64_t element = ps_dtype_size(d->t.dtype);
    ps_cut_task one = *d;
    ps_input *const inputs[] = {&one.t.lower, &one.t.diag, &one.t.upper, &one.t.rhs};

    for (int w = 0; w < PS_WORDS; w++) {
        const int64_t bytes = j * inputs[w]->stride.outer * element;

        inputs[w]->data = (const char *)inputs[w]->data + bytes;
    }
    one.t.x.data = (char *)d->t.x.data + j * d->t.x.stride.outer * element;
    one.t.outer = 1;
    return solve_level(&one, work, dominant, bad);
}
