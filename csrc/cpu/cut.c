/* cut.c - the partition method around its kernels: passes, threads, fallback. */
#include <stdatomic.h>

#include "kernels.h"
#include "threads.h"

/* Systems of at least this many rows are worth all threads at once. */
enum { ROWS_FOR_TEAM = 1 << 18 };

/* The workspace of one system. */
typedef struct {
    size_t told, separators, rows, solve, pivoted; /* bytes of each part */
    int keeps;                                     /* `rows` holds all groups */
} parts;

typedef struct {
    const ps_type_kernels *kernels;
    const ps_tridiag *t;
    const ps_exec *exec;
    ps_pivot pivot;
    int threads; /* on one system */
    int stream;  /* store x past the caches */
    parts parts;
} task;

/* One pass over the groups of one system. */
typedef struct {
    const task *do_this;
    const ps_cut *cut;
    const void *x; /* the separators, in the second pass */
    atomic_int dominant;
    atomic_int row; /* first bad row + 1, or 0 */
} pass;

static ps_tridiag
separator_system(const ps_tridiag *t, const ps_cut *cut, void *data)
{
    const size_t bytes = (size_t)cut->chunks * ps_isa_get()->type[t->dtype]->element;
    char *const at = data;
    const ps_stride dense = {1, 0, 0};

    return (ps_tridiag){
        .dtype = t->dtype,
        .flags = t->flags & PS_PERIODIC,
        .rows = cut->chunks,
        .outer = 1,
        .inner = 1,
        .lower = {at + PS_LOWER * bytes, dense},
        .diag = {at + PS_DIAG * bytes, dense},
        .upper = {at + PS_UPPER * bytes, dense},
        .rhs = {at + PS_RHS * bytes, dense},
        .x = {at + PS_RHS * bytes, dense},
    };
}

/* System (j, k) of a batch as a job of one tile for the narrow kernels. */
static ps_job
single_job(const ps_tridiag *t, int64_t j, int64_t k, ps_pivot pivot, int32_t *info)
{
    const size_t element = ps_isa_get()->type[t->dtype]->element;
    const ps_input *const from[] = {&t->lower, &t->diag, &t->upper, &t->rhs};
    ps_tridiag one = *t;
    ps_input *const to[] = {&one.lower, &one.diag, &one.upper, &one.rhs};

    for (int w = 0; w < PS_WORDS; w++) {
        const ps_stride s = from[w]->stride;

        to[w]->data =
            (const char *)from[w]->data + (j * s.outer + k * s.inner) * (int64_t)element;
    }
    one.x.data = (char *)t->x.data +
                 (j * t->x.stride.outer + k * t->x.stride.inner) * (int64_t)element;
    one.outer = one.inner = 1;
    one.info = info;
    return (ps_job){
        .t = one, .pivot = pivot, .run = 1, .runs = 1, .tiles = 1, .group = 1};
}

static int
is_long(const ps_cut *cut)
{
    const size_t element = ps_isa_get()->type[cut->t->dtype]->element;

    return (size_t)cut->chunks * element > PS_LANE_BYTES;
}

static size_t
total(parts p)
{
    return p.told + p.separators + p.rows + p.solve + p.pivoted;
}

/* The parts for a system of t, worked on by `threads` threads. */
static parts
parts_of(const ps_tridiag *t, ps_pivot pivot, int threads)
{
    const ps_type_kernels *const kernels = ps_isa_get()->type[t->dtype];
    const ps_type_kernels *const narrow = ps_isa_narrow.type[t->dtype];
    ps_cut cut = {.t = t};
    parts p = {0};

    kernels->cut(&cut);
    const size_t group = ps_aligned(kernels->cut_scratch(&cut));
    const ps_tridiag separators = separator_system(t, &cut, NULL);
    const ps_job solve = {.t = separators, .pivot = PS_PIVOT_NEVER, .group = 1};
    const ps_job exchange = {.t = *t, .pivot = PS_PIVOT_ALWAYS, .group = 1};

    p.keeps = group * (size_t)cut.groups <= PS_KEPT_BYTES;
    p.told = ps_aligned(kernels->cut_told(&cut));
    p.separators = ps_aligned((size_t)cut.chunks * kernels->element * PS_WORDS);
    p.rows = group * (size_t)(p.keeps ? cut.groups : threads);
    p.solve = is_long(&cut) ? total(parts_of(&separators, PS_PIVOT_NEVER, threads))
                            : ps_aligned(narrow->direct_scratch(&solve));
    p.pivoted =
        pivot == PS_PIVOT_AUTO ? ps_aligned(narrow->direct_scratch(&exchange)) : 0;
    return p;
}

static int64_t
eliminate(void *self, const ps_job *job, int64_t group, void *scratch)
{
    pass *const p = self;
    int dominant = 1;
    const int32_t row =
        p->do_this->kernels->cut_eliminate(p->cut, group, scratch, &dominant);
    int known = atomic_load(&p->row);

    (void)job;
    if (!dominant) {
        atomic_store(&p->dominant, 0);
    }
    while (row != 0 && (known == 0 || row < known) &&
           !atomic_compare_exchange_weak(&p->row, &known, row)) {
    }
    return 0;
}

static int64_t
substitute(void *self, const ps_job *job, int64_t group, void *scratch)
{
    const pass *const p = self;

    (void)job;
    p->do_this->kernels->cut_substitute(p->cut, group, p->x, scratch);
    return 0;
}

static ps_status
run_pass(pass *p, int64_t (*one)(void *, const ps_job *, int64_t, void *), char *rows)
{
    const task *const d = p->do_this;
    const ps_job job = {.t = {.rows = p->cut->rows}, .tiles = p->cut->groups, .group = 1};
    const size_t group = ps_aligned(d->kernels->cut_scratch(p->cut));
    const ps_tiles tiles = {
        .job = &job,
        .exec = d->exec,
        .threads = d->threads,
        .bytes = group,
        .work = rows,
        .self = p,
        .solve = one,
    };
    int64_t none;

    return ps_tiles_run(&tiles, &none);
}

/* Solve system (j, k); `info` gets 0 or 1 + the row of a bad pivot, *pivoted is
 * set when rows had to be exchanged. */
static ps_status
solve_one(const task *d, int64_t j, int64_t k, char *work, int32_t *info,
          int64_t *pivoted)
{
    const ps_type_kernels *const narrow = ps_isa_narrow.type[d->t->dtype];
    char *const separators = work + d->parts.told;
    char *const rows = separators + d->parts.separators;
    char *const rest = rows + d->parts.rows;
    ps_cut cut = {.t = d->t,
                  .j = j,
                  .k = k,
                  .separators = work,
                  .kept = d->parts.keeps ? rows : NULL,
                  .stream = d->stream,
                  .check = d->pivot == PS_PIVOT_AUTO};
    pass p = {.do_this = d, .cut = &cut};

    d->kernels->cut(&cut);
    atomic_init(&p.dominant, 1);
    atomic_init(&p.row, 0);
    ps_status status = run_pass(&p, eliminate, rows);
    if (status != PS_OK) {
        return status;
    }
    if (!atomic_load(&p.dominant)) {
        const ps_job job = single_job(d->t, j, k, PS_PIVOT_ALWAYS, info);

        *pivoted = 1;
        narrow->direct(&job, 0, rest + d->parts.solve);
        return PS_OK;
    }

    const ps_tridiag system = separator_system(d->t, &cut, separators);
    int32_t bad = 0;
    int64_t none = 0;

    d->kernels->cut_assemble(&cut, separators);
    if (is_long(&cut)) {
        task inner = *d;

        inner.t = &system;
        inner.stream = 0;
        inner.pivot = PS_PIVOT_NEVER;
        inner.parts = parts_of(&system, PS_PIVOT_NEVER, d->threads);
        status = solve_one(&inner, 0, 0, rest, &bad, &none);
        if (status != PS_OK) {
            return status;
        }
    }
    else {
        const ps_job job = single_job(&system, 0, 0, PS_PIVOT_NEVER, &bad);

        narrow->direct(&job, 0, rest);
    }
    p.x = system.x.data;
    *info = atomic_load(&p.row);
    if (*info == 0 && bad != 0) {
        const int64_t q = bad; /* chunks 0 .. bad-1 end with the bad row */

        *info = (int32_t)(q * cut.rows + (q < cut.wide ? q : cut.wide));
    }
    return run_pass(&p, substitute, rows);
}

/* All threads on one system after the other, or one thread a system. */
static int
is_team_work(const ps_tridiag *t, int threads)
{
    return threads > 1 && (t->outer * t->inner < threads || t->rows >= ROWS_FOR_TEAM);
}

size_t
ps_cut_work(const ps_tridiag *t, ps_pivot pivot, int threads)
{
    if (t->rows == 0) {
        return 0;
    }
    return is_team_work(t, threads) ? total(parts_of(t, pivot, threads))
                                    : total(parts_of(t, pivot, 1)) * (size_t)threads;
}

static int64_t
solve_system(void *self, const ps_job *job, int64_t system, void *work)
{
    const task *const d = self;
    int32_t info = 0;
    int64_t pivoted = 0;

    /* A system on one thread is not interrupted: its exec has no poll. */
    solve_one(d, system / job->t.inner, system % job->t.inner, work, &info, &pivoted);
    if (job->t.info != NULL) {
        job->t.info[system] = info;
    }
    return pivoted;
}

ps_status
ps_cut_solve(const ps_tridiag *t, ps_pivot pivot, const ps_exec *exec, int threads,
             int64_t *pivoted)
{
    const int team = is_team_work(t, threads);
    const int64_t systems = t->outer * t->inner;
    const ps_job job = {.t = *t, .run = systems, .runs = 1, .tiles = systems, .group = 1};
    ps_exec quiet = *exec;
    task d = {
        .kernels = ps_isa_get()->type[t->dtype],
        .t = t,
        .exec = team ? exec : &quiet,
        .pivot = pivot,
        .threads = team ? threads : 1,
        .stream = t->rows * systems * (int64_t)ps_isa_get()->type[t->dtype]->element >
                  PS_STREAM_BYTES,
    };
    const ps_tiles tiles = {
        .job = &job,
        .exec = exec,
        .threads = threads,
        .bytes = ps_cut_work(t, pivot, threads) / (size_t)threads,
        .work = exec->work,
        .self = &d,
        .solve = solve_system,
    };

    quiet.poll = NULL;
    d.parts = parts_of(t, pivot, d.threads);
    if (!team) {
        return ps_tiles_run(&tiles, pivoted);
    }
    for (int64_t s = 0; s < systems; s++) {
        int32_t info = 0;
        int64_t exchanged = 0;
        const ps_status status =
            solve_one(&d, s / t->inner, s % t->inner, exec->work, &info, &exchanged);

        if (status != PS_OK) {
            return status;
        }
        if (t->info != NULL) {
            t->info[s] = info;
        }
        *pivoted += exchanged;
    }
    return PS_OK;
}
