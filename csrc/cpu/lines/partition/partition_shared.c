/* partition_shared.c - the partition method for long systems that share one matrix.
 *
 * The method of partition.inc; the matrix of a group of chunks is eliminated once for all
 * systems, in each of the two passes, or only in the first pass if the eliminated rows
 * fit in cache. 3 words per unknown, and 6 or 3 words per row of the matrix.
 */
#include <stdatomic.h>

#include "lines/partition/partition.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

/* The workspace of some systems. */
typedef struct {
    size_t matrix, interface, info, tables, rows, solve; /* bytes of each part */
} parts;

/* State of one pass over the chunks. */
typedef struct {
    const ps_type_kernels *kernels;
    const ps_partition *partition;
    const ps_chunks *chunks;
    char *tables; /* of all groups, or null */
    char *work;
    size_t bytes; /* of the workspace of a thread */
    int up;
    atomic_int dominant;
    atomic_int row; /* first bad row + 1, or 0 */
} pass;

void
ps_partition_tables(ps_partition *partition, const ps_type_kernels *kernels)
{
    const int64_t size = (int64_t)PS_TABLE_TILES * kernels->lanes;

    partition->side = 1;
    kernels->partition(partition);
    partition->tiles = PS_TABLE_TILES;
    partition->groups = (partition->chunks + size - 1) / size;
    partition->batch_block = 1;
}

/* The division of the matrix of t into chunks. */
static ps_partition
partition_of(const ps_tridiag *t, const ps_type_kernels *kernels)
{
    ps_partition partition = {.t = t};

    ps_partition_tables(&partition, kernels);
    return partition;
}

/* The reduced systems of t: their matrix, and the right-hand sides in `interface`. */
static ps_tridiag
separator_systems(const ps_tridiag *t, const ps_partition *partition, void *matrix,
                  void *interface, int32_t *info)
{
    const size_t bytes = (size_t)(partition->chunks * ps_dtype_size(t->dtype));
    const ps_stride one = {1, 0, 0}, all = {t->inner, 0, 1};
    char *const at = matrix;

    return (ps_tridiag){
        .dtype = t->dtype,
        .flags = t->flags & (PS_PERIODIC | PS_ROW_SUMS),
        .rows = partition->chunks,
        .outer = 1,
        .inner = t->inner,
        .lower = {at + PS_LOWER * bytes, one},
        .diag = {at + PS_DIAG * bytes, one},
        .upper = {at + PS_UPPER * bytes, one},
        .rhs = {interface, all},
        .x = {interface, all},
        .info = info,
    };
}

static size_t
thread_bytes(const ps_partition *partition, const ps_type_kernels *kernels)
{
    return ps_aligned(kernels->chunks_table(partition)) +
           ps_aligned(kernels->chunks_scratch(partition));
}

static size_t
total(parts p)
{
    return p.matrix + p.interface + p.info + p.tables + p.rows + p.solve;
}

static parts
parts_of(const ps_tridiag *t, int threads)
{
    const ps_type_kernels *const kernels = ps_isa_get()->type[t->dtype];
    const ps_partition partition = partition_of(t, kernels);
    const ps_tridiag separators = separator_systems(t, &partition, NULL, NULL, NULL);
    const size_t tables =
        ps_aligned(kernels->chunks_table(&partition) * (size_t)partition.groups);
    parts p = {
        .matrix = ps_aligned(kernels->partition_interface_bytes(&partition)),
        .interface = ps_aligned(
            2 * (size_t)(partition.chunks * t->inner * ps_dtype_size(t->dtype))),
        .info = ps_aligned((size_t)t->inner * sizeof(int32_t)),
        .tables = tables <= PS_KEPT_BYTES ? tables : 0,
        .rows = thread_bytes(&partition, kernels) * (size_t)threads,
    };

    if (partition.chunks >= PS_MANY_CHUNKS) {
        p.solve = total(parts_of(&separators, threads));
    }
    else {
        p.solve = ps_partition_few_bytes(&separators, threads);
    }
    return p;
}

size_t
ps_partition_shared_bytes(const ps_tridiag *t, int threads)
{
    return total(parts_of(t, threads));
}

/* A stretch of groups. */
static void
shared_block(pass *p, int64_t batch_block, void *work)
{
    const ps_partition *const partition = p->partition;
    void *const y = (char *)work + ps_aligned(p->kernels->chunks_table(partition));
    const int64_t tiles = (partition->chunks + p->kernels->lanes - 1) / p->kernels->lanes;
    const int64_t first = batch_block * partition->batch_block,
                  beyond = first + partition->batch_block;
    int dominant = atomic_load(&p->dominant);

    for (int64_t k = first; k < beyond && k < partition->groups && dominant; k++) {
        const int64_t end =
            (k + 1) * partition->tiles < tiles ? (k + 1) * partition->tiles : tiles;
        const size_t place = p->kernels->chunks_table(partition) * (size_t)k;
        void *const table = p->tables == NULL ? work : p->tables + place;
        int32_t row = 0;
        int known = atomic_load(&p->row);

        if (p->tables == NULL || !p->up) {
            row = p->kernels->chunks_make(partition, k, table, &dominant);
        }
        while (row != 0 && (known == 0 || row < known) &&
               !atomic_compare_exchange_weak(&p->row, &known, row)) {
        }
        if (dominant) {
            p->kernels->chunks_solve(p->chunks, k * partition->tiles, end, table, y,
                                     p->up);
        }
    }
    if (!dominant) {
        atomic_store(&p->dominant, 0);
    }
}

static void
shared_blocks(void *self, int64_t begin, int64_t end, int thread)
{
    pass *const p = self;

    for (int64_t k = begin; k < end; k++) {
        shared_block(p, k, p->work + (size_t)thread * p->bytes);
    }
}

/* Solve the systems along inner of d->t. */
static ps_status
solve_level(const ps_partition_task *d, char *work, int *dominant, int32_t *bad)
{
    const ps_tridiag *const t = &d->t;
    const parts room = parts_of(t, d->threads);
    char *const interface = work + room.matrix, *const info = interface + room.interface;
    char *const tables = info + room.info, *const rows = tables + room.tables;
    ps_partition partition = partition_of(t, d->kernels);
    const ps_chunks chunks = {.partition = &partition,
                              .systems = t->inner,
                              .rhs = t->rhs,
                              .x = t->x,
                              .interface = interface,
                              .stream = d->stream,
                              .eliminates = room.tables == 0};
    pass p = {.kernels = d->kernels,
              .partition = &partition,
              .chunks = &chunks,
              .tables = room.tables > 0 ? tables : NULL,
              .work = rows,
              .bytes = thread_bytes(&partition, d->kernels)};

    partition.separators = work;
    partition.check = d->pivot == PS_PIVOT_AUTO;
    atomic_init(&p.dominant, 1);
    atomic_init(&p.row, 0);
    ps_status status =
        ps_partition_run(&partition, d->exec, d->threads, shared_blocks, &p);

    *dominant = atomic_load(&p.dominant);
    *bad = atomic_load(&p.row);
    if (status != PS_OK || !*dominant || *bad != 0) {
        return status;
    }
    d->kernels->partition_assemble(&partition);
    d->kernels->chunks_add_interfaces(&chunks);

    ps_partition_task next = *d;
    next.t = separator_systems(t, &partition, work, interface, (int32_t *)info);
    next.stream = 0;
    next.pivot = PS_PIVOT_NEVER;
    status = partition.chunks >= PS_MANY_CHUNKS
                 ? solve_level(&next, rows + room.rows, dominant, bad)
                 : ps_partition_few(&next, &next.t, rows + room.rows, bad);
    if (status != PS_OK || *bad != 0) {
        return status;
    }
    p.up = 1;
    return ps_partition_run(&partition, d->exec, d->threads, shared_blocks, &p);
}

ps_status
ps_partition_shared(const ps_partition_task *d, int64_t j, char *work, int *dominant,
                    int32_t *bad)
{
    const int64_t element = ps_dtype_size(d->t.dtype);
    ps_partition_task one = *d;
    ps_input *const inputs[] = {&one.t.lower, &one.t.diag, &one.t.upper, &one.t.rhs};

    for (int w = 0; w < PS_WORDS; w++) {
        const int64_t bytes = j * inputs[w]->stride.outer * element;

        inputs[w]->data = (const char *)inputs[w]->data + bytes;
    }
    one.t.x.data = (char *)d->t.x.data + j * d->t.x.stride.outer * element;
    one.t.outer = 1;
    return solve_level(&one, work, dominant, bad);
}
