/* pivoted_partition.c - long systems with row exchanges: the passes over their spans. */
#include "lines/kernels.h"
#include "lines/partition/layout.h"
#include "lines/partition/pivoted_partition.h"
#include "runtime/isa.h"
#include "runtime/workspace.h"

int
ps_span_fits(const ps_tridiag *t)
{
    return t->rows >= PS_LONG_PIVOTED_ROWS && !(t->flags & PS_PERIODIC);
}

static ps_span
span_of(const ps_tridiag *t)
{
    const ps_tridiag line = ps_partition_in_line(t);
    const int64_t systems = line.outer * line.inner, side = ps_partition_side(&line);
    ps_span s = {.t = line, .side = side, .sets = side > 0 ? systems / side : 0};

    s.stream = line.rows * systems * ps_dtype_size(t->dtype) > PS_STREAM_BYTES;
    if (systems > 0) {
        ps_isa_get()->type[t->dtype]->span_partition(&s);
    }
    return s;
}

size_t
ps_span_work(const ps_tridiag *t, int threads)
{
    const ps_type_kernels *const kernels = ps_isa_get()->type[t->dtype];
    const ps_span s = span_of(t);

    return ps_aligned(kernels->span_interface_bytes(&s)) +
           ps_aligned(kernels->span_scratch(&s)) * (size_t)threads;
}

/* What a pass does with one group or band after the other. */
typedef struct {
    const ps_type_kernels *kernels;
    ps_span spans;
} pass;

static int64_t
eliminate(void *self, const ps_job *job, int64_t index, void *scratch)
{
    const pass *const p = self;

    (void)job;
    p->kernels->span_eliminate(&p->spans, index, scratch);
    return 0;
}

static int64_t
join(void *self, const ps_job *job, int64_t index, void *scratch)
{
    const pass *const p = self;

    (void)job;
    (void)scratch;
    p->kernels->span_join(&p->spans, index);
    return 0;
}

static int64_t
substitute(void *self, const ps_job *job, int64_t index, void *scratch)
{
    const pass *const p = self;

    (void)job;
    p->kernels->span_substitute(&p->spans, index, scratch);
    return 0;
}

ps_status
ps_span_solve(const ps_tridiag *t, const ps_exec *exec, int threads, void *work)
{
    pass p = {.kernels = ps_isa_get()->type[t->dtype], .spans = span_of(t)};
    const ps_span *const s = &p.spans;
    ps_job job = {.t = {.rows = s->rows * p.kernels->lanes}, .group = 1};
    ps_tiles tiles = {
        .job = &job,
        .exec = exec,
        .threads = threads,
        .bytes = ps_aligned(p.kernels->span_scratch(s)),
        .work = (char *)work + ps_aligned(p.kernels->span_interface_bytes(s)),
        .self = &p,
    };
    int64_t none;

    p.spans.interface = work;
    job.tiles = s->sets * s->groups;
    tiles.solve = eliminate;
    ps_status status = ps_tiles_run(&tiles, &none);

    if (status == PS_OK) {
        job.tiles = s->sets * s->bands;
        tiles.solve = join;
        status = ps_tiles_run(&tiles, &none);
    }
    if (status == PS_OK) {
        job.tiles = s->sets * s->groups;
        tiles.solve = substitute;
        status = ps_tiles_run(&tiles, &none);
    }
    return status;
}
