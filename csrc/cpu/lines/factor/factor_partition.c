/* factor_partition.c - factor of a long matrix by the partition method, so that all
 * threads solve one system together.
 *
 * The store holds the eliminated chunks, group by group (factor_chunks.inc), and a factor
 * of the reduced matrix. The entries of factor.c make that factor and solve with it; they
 * call this file again if the reduced matrix is long: the method is recursive. 9 words
 * per unknown for one system, 5 of them of the matrix.
 */
#include <stdatomic.h>

#include "lines/factor/factor.h"
#include "lines/factor/factor_partition.h"
#include "lines/streams.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

/* The division of a matrix into chunks, and the layout of its store. */
typedef struct {
    const ps_type_kernels *kernels;
    ps_tridiag t;
    ps_partition partition;
    ps_factor next;   /* of the separators */
    size_t table;     /* bytes of a group */
    size_t tables;    /* of all; then the store of `next` */
    size_t interface; /* of the workspace, for the matrix of the separators */
} partition_factor;

int
ps_factor_is_long(const ps_factor *f)
{
    return f->rows >= PS_LONG_FACTOR_ROWS && f->pivot != PS_PIVOT_ALWAYS;
}

/* The data of an operand at a matrix, or right-hand side, of its own. */
static const void *
data_at(const void *data, ps_stride s, int64_t j, int64_t k, ps_dtype dtype)
{
    return data == NULL
               ? NULL
               : (const char *)data + (j * s.outer + k * s.inner) * ps_dtype_size(dtype);
}

/* The matrix of part i. */
ps_tridiag
ps_factor_matrix_of(const ps_factor *f, const ps_tridiag *t, int64_t i)
{
    ps_tridiag one = *t;

    if (!ps_factor_is_long(f)) {
        return one;
    }
    ps_input *const operands[] = {&one.lower, &one.diag, &one.upper};
    const int64_t j = i / f->inner, k = i - j * f->inner;

    one.outer = one.inner = 1;
    for (int q = 0; q < 3; q++) {
        operands[q]->data =
            data_at(operands[q]->data, operands[q]->stride, j, k, t->dtype);
    }
    if (one.info != NULL) {
        one.info += i;
    }
    return one;
}

/* The right-hand sides of part i. */
ps_factor_rhs
ps_factor_rhs_of(const ps_factor *f, const ps_factor_rhs *b, int64_t i)
{
    ps_factor_rhs one = *b;

    if (!ps_factor_is_long(f) || f->outer * f->inner == 0) {
        return one;
    }
    const int64_t j = i / f->inner * b->outer_step, k = i % f->inner * b->inner_step;

    one.outer = b->outer_step != 0 ? 1 : b->outer;
    one.inner = b->inner_step != 0 ? 1 : b->inner;
    one.outer_step = one.inner_step = 0;
    one.rhs.data = data_at(b->rhs.data, b->rhs.stride, j, k, f->dtype);
    one.x.data = (void *)data_at(b->x.data, b->x.stride, j, k, f->dtype);
    return one;
}

static partition_factor
partition_of(const ps_factor *f)
{
    partition_factor c = {.kernels = ps_isa_get()->type[f->dtype]};

    c.t = (ps_tridiag){.dtype = f->dtype,
                       .flags = f->flags & PS_PERIODIC,
                       .rows = f->rows,
                       .outer = 1,
                       .inner = 1};
    c.partition.t = &c.t;
    ps_partition_tables(&c.partition, c.kernels);
    c.table = c.kernels->chunks_table(&c.partition);
    c.tables = ps_aligned((size_t)c.partition.groups * c.table);
    c.interface = ps_aligned(c.kernels->partition_interface_bytes(&c.partition));
    c.next = (ps_factor){.dtype = f->dtype,
                         .flags = f->flags & (PS_PERIODIC | PS_ROW_SUMS),
                         .rows = c.partition.chunks,
                         .outer = 1,
                         .inner = 1,
                         .pivot = PS_PIVOT_NEVER};
    if (f->store != NULL) {
        c.next.store = (char *)f->store + c.tables;
        c.next.store_bytes = f->store_bytes - c.tables;
    }
    c.partition.t = NULL; /* it points into what is returned */
    return c;
}

size_t
ps_factor_partition_store(const ps_factor *f, const ps_exec *exec)
{
    const partition_factor c = partition_of(f);
    size_t bytes;

    ps_cpu_factor_store(&c.next, exec, &bytes);
    return c.tables + bytes;
}

size_t
ps_factor_partition_make_work(const ps_factor *f, const ps_exec *exec)
{
    const partition_factor c = partition_of(f);
    size_t bytes;

    ps_cpu_factor_make_work(&c.next, exec, &bytes);
    return c.interface + bytes;
}

/* A copy of an exec whose workspace starts after the first `used` bytes. */
static ps_exec
rest_of(const ps_exec *exec, size_t used)
{
    ps_exec rest = *exec;

    rest.work = (char *)exec->work + used;
    rest.work_bytes = exec->work_bytes - used;
    return rest;
}

typedef struct {
    const partition_factor *c;
    char *tables;
    atomic_int sound; /* no row that is not dominant, no bad pivot */
} making;

static void
make_block(making *m, int64_t batch_block)
{
    const ps_partition *const partition = &m->c->partition;
    const int64_t first = batch_block * partition->batch_block,
                  beyond = first + partition->batch_block;
    int dominant = atomic_load(&m->sound), bad = 0;

    for (int64_t k = first; k < beyond && k < partition->groups && dominant && !bad;
         k++) {
        char *const table = m->tables + (size_t)k * m->c->table;

        bad = m->c->kernels->chunks_make(partition, k, table, &dominant) != 0;
    }
    if (!dominant || bad) {
        atomic_store(&m->sound, 0);
    }
}

static void
make_blocks(void *self, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    for (int64_t k = begin; k < end; k++) {
        make_block(self, k);
    }
}

/* The reduced matrix, stored at `at`. */
static ps_tridiag
separators_of(const partition_factor *c, void *at, int32_t *info)
{
    const size_t bytes = (size_t)(c->partition.chunks * ps_dtype_size(c->t.dtype));
    const ps_stride one = {1, 0, 0};
    char *const words = at;

    return (ps_tridiag){.dtype = c->t.dtype,
                        .flags = c->t.flags & (PS_PERIODIC | PS_ROW_SUMS),
                        .rows = c->partition.chunks,
                        .outer = 1,
                        .inner = 1,
                        .lower = {words + PS_LOWER * bytes, one},
                        .diag = {words + PS_DIAG * bytes, one},
                        .upper = {words + PS_UPPER * bytes, one},
                        .info = info};
}

ps_status
ps_factor_partition_make(const ps_factor *f, const ps_tridiag *t, const ps_exec *exec,
                         int threads, int *sound)
{
    partition_factor c = partition_of(f);
    const ps_exec rest = rest_of(exec, c.interface);
    making m = {.c = &c, .tables = f->store};
    ps_report report;
    int32_t info = 0;

    c.t = *t;
    c.t.rhs = t->diag; /* it is not read */
    c.t.x = (ps_output){NULL, {0, 0, 0}};
    c.partition.t = &c.t;
    c.partition.separators = exec->work;
    c.partition.check = f->pivot == PS_PIVOT_AUTO;
    atomic_init(&m.sound, 1);
    ps_status status = ps_partition_run(&c.partition, exec, threads, make_blocks, &m);

    *sound = atomic_load(&m.sound);
    if (status != PS_OK || !*sound) {
        return status;
    }
    c.kernels->partition_assemble(&c.partition);
    const ps_tridiag separators = separators_of(&c, exec->work, &info);

    status = ps_cpu_factor_make(&c.next, &separators, &rest, &report);
    *sound = info == 0;
    return status;
}

/* Right-hand sides of one outer index, and their reduced right-hand sides. */
typedef struct {
    const partition_factor *c;
    const char *tables;
    ps_chunks chunks;
    char *work;
    size_t bytes; /* of the workspace of a thread */
    int up;
} solving;

static void
solve_block(const solving *s, int64_t batch_block, void *work)
{
    const ps_partition *const partition = &s->c->partition;
    const int lanes = s->c->kernels->lanes;
    const int64_t all = (partition->chunks + lanes - 1) / lanes;
    const int64_t first = batch_block * partition->batch_block * partition->tiles;
    const int64_t beyond = first + partition->batch_block * partition->tiles;

    s->c->kernels->chunks_solve(
        &s->chunks, first, beyond < all ? beyond : all,
        s->tables + (size_t)(batch_block * partition->batch_block) * s->c->table, work,
        s->up);
}

static void
solve_blocks(void *self, int64_t begin, int64_t end, int thread)
{
    const solving *const s = self;

    for (int64_t k = begin; k < end; k++) {
        solve_block(s, k, s->work + (size_t)thread * s->bytes);
    }
}

/* The batch of right-hand sides, one column of it along inner. */
static ps_tridiag
in_line(const ps_factor *f, const ps_factor_rhs *b)
{
    const ps_tridiag t = {.dtype = f->dtype,
                          .rows = f->rows,
                          .outer = b->outer,
                          .inner = b->inner,
                          .rhs = b->rhs,
                          .x = b->x};
    ps_job job;

    ps_job_init(&job, &t, 1);
    return job.t;
}

/* Right-hand sides of the reduced system. */
static ps_factor_rhs
interface_rhs(const ps_factor_rhs *b, const ps_tridiag *line, void *interface)
{
    const ps_stride stride = {line->inner, 0, 1};

    return (ps_factor_rhs){.trans = b->trans,
                           .outer = 1,
                           .inner = line->inner,
                           .rhs = {interface, stride},
                           .x = {interface, stride}};
}

/* Bytes of the reduced right-hand sides, and per thread. */
static size_t
interface_bytes(const partition_factor *c, int64_t systems)
{
    return ps_aligned(
        2 * (size_t)(c->partition.chunks * systems * ps_dtype_size(c->t.dtype)));
}

static size_t
thread_bytes(const partition_factor *c)
{
    return ps_aligned(c->kernels->chunks_scratch(&c->partition));
}

size_t
ps_factor_partition_work(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec,
                         int threads)
{
    const partition_factor c = partition_of(f);
    const ps_tridiag line = in_line(f, b);
    const ps_factor_rhs interface = interface_rhs(b, &line, NULL);
    size_t next;

    ps_cpu_factor_work(&c.next, &interface, exec, &next);
    return interface_bytes(&c, line.inner) + thread_bytes(&c) * (size_t)threads + next;
}

ps_status
ps_factor_partition_solve(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec,
                          int threads)
{
    const int64_t element = ps_dtype_size(f->dtype);
    const ps_tridiag line = in_line(f, b);
    partition_factor c = partition_of(f);
    const size_t interface = interface_bytes(&c, line.inner), one = thread_bytes(&c);
    const ps_exec rest = rest_of(exec, interface + one * (size_t)threads);
    const ps_factor_rhs separators = interface_rhs(b, &line, exec->work);
    solving s = {.c = &c,
                 .tables = f->store,
                 .work = (char *)exec->work + interface,
                 .bytes = one};
    ps_status status = PS_OK;

    c.partition.t = &c.t;
    s.chunks = (ps_chunks){.partition = &c.partition,
                           .trans = b->trans,
                           .systems = line.inner,
                           .rhs = line.rhs,
                           .x = line.x,
                           .interface = exec->work,
                           .stream = ps_is_streamed(&line, c.kernels->lanes, 0, 0)};

    for (int64_t j = 0; j < line.outer && status == PS_OK; j++) {
        s.chunks.rhs.data =
            (const char *)line.rhs.data + j * line.rhs.stride.outer * element;
        s.chunks.x.data = (char *)line.x.data + j * line.x.stride.outer * element;
        s.up = 0;
        status = ps_partition_run(&c.partition, exec, threads, solve_blocks, &s);
        if (status == PS_OK) {
            c.kernels->chunks_add_interfaces(&s.chunks);
            status = ps_cpu_factor_solve(&c.next, &separators, &rest);
        }
        if (status == PS_OK) {
            s.up = 1;
            status = ps_partition_run(&c.partition, exec, threads, solve_blocks, &s);
        }
    }
    return status;
}
