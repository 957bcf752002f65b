/* partition_passes.c - the passes of the partition method: elimination of chunks,
 * solution of the reduced system, substitution. */
#include <stdatomic.h>

#include "lines/partition/partition.h"
#include "lines/partition/pieces.h"
#include "lines/partition/pivoted_partition.h"
#include "runtime/isa.h"
#include "runtime/workspace.h"

/* The workspace of the systems that are solved together. */
typedef struct {
    /* Bytes of each part; in_order: for one system, solved a second time. */
    size_t separators, info, rows, solve, in_order;
    int keeps; /* `rows` holds all groups */
} parts;

/* One pass over the blocks of groups of some systems. */
typedef struct {
    const ps_partition_task *do_this;
    const ps_partition *partition;
    char *rows;   /* eliminated rows: of all groups, or of each thread */
    size_t bytes; /* of a thread */
    atomic_int dominant;
    atomic_int row; /* first bad row + 1, or 0 */
} pass;

/* The reduced systems, stored at `data`. */
static ps_tridiag
separator_systems(const ps_partition *partition, void *data, int32_t *info)
{
    const ps_tridiag *const t = partition->t;
    const size_t bytes =
        (size_t)(partition->chunks * partition->side * ps_dtype_size(t->dtype));
    char *const at = data;
    const ps_stride dense = {partition->side, 0, 1};

    return (ps_tridiag){
        .dtype = t->dtype,
        .flags = t->flags & (PS_PERIODIC | PS_ROW_SUMS),
        .rows = partition->chunks,
        .outer = 1,
        .inner = partition->side,
        .lower = {at + PS_LOWER * bytes, dense},
        .diag = {at + PS_DIAG * bytes, dense},
        .upper = {at + PS_UPPER * bytes, dense},
        .rhs = {at + PS_RHS * bytes, dense},
        .x = {at + PS_RHS * bytes, dense},
        .info = info,
    };
}

/* The plan that solves small reduced systems, one system per lane and one tile after the
 * other. */
static ps_plan
separator_plan(const ps_tridiag *separators, int threads)
{
    const ps_isa *const isa = separators->inner > 1 ? ps_isa_get() : &ps_isa_baseline;
    ps_plan plan = ps_plan_of(isa->type[separators->dtype], separators, PS_THOMAS,
                              PS_PIVOT_NEVER, separators->inner > 1 ? threads : 1);

    plan.scratch = ps_aligned(plan.kernels->direct_scratch(&plan.job));
    plan.solve = plan.kernels->direct;
    return plan;
}

size_t
ps_partition_few_bytes(const ps_tridiag *separators, int threads)
{
    return separator_plan(separators, threads).scratch * (size_t)threads;
}

/* Whether the separators are cut themselves. */
static int
is_long(const ps_partition *partition)
{
    return partition->chunks >= PS_MANY_CHUNKS;
}

static size_t
total(parts p)
{
    return p.separators + p.info + p.rows + p.solve + p.in_order;
}

/* The parts for `side` systems of t, worked on by `threads` threads. */
static parts
parts_of(const ps_tridiag *t, int64_t side, ps_pivot pivot, int threads)
{
    const ps_type_kernels *const kernels = ps_isa_get()->type[t->dtype];
    ps_partition partition = {.t = t, .side = side};
    parts p = {0};

    kernels->partition(&partition);
    const size_t group = ps_aligned(kernels->partition_scratch(&partition));
    const ps_tridiag separators = separator_systems(&partition, NULL, NULL);
    ps_tridiag one = *t;

    one.outer = one.inner = 1;
    p.keeps = group * (size_t)partition.groups <= PS_KEPT_BYTES;
    p.separators = ps_aligned(kernels->partition_interface_bytes(&partition));
    p.info = ps_aligned((size_t)side * sizeof(int32_t));
    p.rows = group * (size_t)(p.keeps ? partition.groups : threads);
    if (is_long(&partition)) {
        p.solve = total(parts_of(&separators, side, PS_PIVOT_NEVER, threads));
    }
    else {
        p.solve = ps_partition_few_bytes(&separators, threads);
    }
    p.in_order = t->flags & PS_ROW_SUMS   ? ps_partition_few_bytes(&one, 1)
                 : pivot != PS_PIVOT_AUTO ? 0
                 : ps_span_fits(t)        ? ps_span_work(&one, threads)
                                          : ps_pieces_work(&one, threads);
    return p;
}

size_t
ps_partition_bytes(const ps_tridiag *t, int64_t side, ps_pivot pivot, int threads)
{
    return total(parts_of(t, side, pivot, threads));
}

static void
eliminate_block(pass *p, int64_t batch_block, void *scratch)
{
    int dominant = atomic_load(&p->dominant);

    if (!dominant) {
        return;
    }
    const int32_t row = p->do_this->kernels->partition_eliminate(
        p->partition, batch_block, scratch, &dominant);
    int known = atomic_load(&p->row);

    if (!dominant) {
        atomic_store(&p->dominant, 0);
    }
    while (row != 0 && (known == 0 || row < known) &&
           !atomic_compare_exchange_weak(&p->row, &known, row)) {
    }
}

static void
eliminate(void *self, int64_t begin, int64_t end, int thread)
{
    pass *const p = self;

    for (int64_t k = begin; k < end; k++) {
        eliminate_block(p, k, p->rows + (size_t)thread * p->bytes);
    }
}

static void
substitute(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const p = self;

    for (int64_t k = begin; k < end; k++) {
        p->do_this->kernels->partition_substitute(p->partition, k,
                                                  p->rows + (size_t)thread * p->bytes);
    }
}

ps_status
ps_partition_run(const ps_partition *partition, const ps_exec *exec, int threads,
                 ps_body body, void *self)
{
    const int64_t block = partition->batch_block;

    return ps_run(exec, threads, (partition->groups + block - 1) / block,
                  partition->rows * partition->tiles * block * 8, body, self);
}

ps_status
ps_partition_few(const ps_partition_task *d, const ps_tridiag *separators, char *work,
                 int32_t *bad)
{
    const ps_plan plan = separator_plan(separators, d->threads);
    int64_t none;
    const ps_status status = ps_plan_run(&plan, d->exec, work, &none);

    *bad = 0;
    for (int64_t s = 0; s < separators->inner && *bad == 0; s++) {
        *bad = separators->info[s];
    }
    return status;
}

/* Solve the systems of the separators; *bad gets 0 or 1 + the row of a bad pivot. */
static ps_status
solve_separators(const ps_partition_task *d, const ps_partition *partition,
                 const ps_tridiag *system, char *work, int32_t *bad)
{
    ps_partition_task inner = *d;
    int dominant;

    if (!is_long(partition)) {
        return ps_partition_few(d, system, work, bad);
    }
    inner.t = *system;
    inner.stream = 0;
    inner.pivot = PS_PIVOT_NEVER;
    return ps_partition_once(&inner, 0, 0, work, &dominant, bad);
}

ps_status
ps_partition_once(const ps_partition_task *d, int64_t j, int64_t k, char *work,
                  int *dominant, int32_t *bad)
{
    const parts room = parts_of(&d->t, d->side, d->pivot, d->threads);
    int32_t *const info = (int32_t *)(work + room.separators);
    char *const rows = (char *)info + room.info;
    ps_partition partition = {.t = &d->t,
                              .j = j,
                              .k = k,
                              .side = d->side,
                              .separators = work,
                              .kept = room.keeps ? rows : NULL,
                              .stream = d->stream,
                              .check = d->pivot == PS_PIVOT_AUTO};
    pass p = {.do_this = d, .partition = &partition};

    d->kernels->partition(&partition);
    p.rows = rows;
    p.bytes = ps_aligned(d->kernels->partition_scratch(&partition));
    atomic_init(&p.dominant, 1);
    atomic_init(&p.row, 0);
    ps_status status = ps_partition_run(&partition, d->exec, d->threads, eliminate, &p);

    *dominant = atomic_load(&p.dominant);
    *bad = atomic_load(&p.row);
    if (status != PS_OK || !*dominant || (*bad != 0 && d->side > 1)) {
        return status;
    }

    const ps_tridiag system = separator_systems(&partition, work, info);
    int32_t chunk = 0;

    d->kernels->partition_assemble(&partition);
    status = solve_separators(d, &partition, &system, rows + room.rows, &chunk);
    if (*bad == 0 && chunk != 0) { /* chunks 0 .. chunk-1 end with the bad row */
        *bad = (int32_t)(chunk * partition.rows +
                         (chunk < partition.wide ? chunk : partition.wide));
    }
    if (status != PS_OK || (*bad != 0 && d->side > 1)) {
        return status;
    }
    return ps_partition_run(&partition, d->exec, d->threads, substitute, &p);
}
