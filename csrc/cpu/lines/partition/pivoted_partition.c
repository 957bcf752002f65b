/* pivoted_partition.c - long systems with row exchanges: the passes over their spans. */
#include "lines/kernels.h"
#include "lines/partition/layout.h"
#include "lines/partition/pivoted_partition.h"
#include "lines/streams.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

int
ps_span_fits(const ps_tridiag *t)
{
    return t->rows >= (t->flags & PS_PERIODIC ? PS_RING_ROWS : PS_LONG_PIVOTED_ROWS);
}

static ps_span
span_of(const ps_tridiag *t)
{
    const ps_tridiag line = ps_partition_in_line(t);
    const int64_t systems = line.outer * line.inner, side = ps_partition_side(&line);
    ps_span s = {.t = line, .side = side, .sets = side > 0 ? systems / side : 0};

    s.stream = ps_is_streamed(&line, ps_isa_get()->type[t->dtype]->lanes, 0, 0);
    if (systems > 0) {
        ps_isa_get()->type[t->dtype]->span_partition(&s);
    }
    return s;
}

/* Whether the eliminated rows of all groups are kept between the passes. */
static int
keeps(const ps_type_kernels *kernels, const ps_span *s)
{
    return kernels->span_kept_bytes(s) <= PS_SPAN_KEPT_BYTES;
}

/* Bytes for the eliminated rows of all groups, or of each thread. */
static size_t
rows_bytes(const ps_type_kernels *kernels, const ps_span *s, int threads)
{
    return keeps(kernels, s) ? ps_aligned(kernels->span_kept_bytes(s))
                             : ps_aligned(kernels->span_scratch(s)) * (size_t)threads;
}

size_t
ps_span_work(const ps_tridiag *t, int threads)
{
    const ps_type_kernels *const kernels = ps_isa_get()->type[t->dtype];
    const ps_span s = span_of(t);

    return ps_aligned(kernels->span_interface_bytes(&s)) +
           rows_bytes(kernels, &s, threads);
}

/* What a pass does with one group or band after the other. */
typedef struct {
    const ps_type_kernels *kernels;
    ps_span spans;
    char *work;
    size_t bytes; /* of a thread, unless the rows of all groups are kept */
} pass;

static void
eliminate(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const p = self;

    for (int64_t k = begin; k < end; k++) {
        p->kernels->span_eliminate(&p->spans, k, p->work + (size_t)thread * p->bytes);
    }
}

static void
join(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const p = self;

    (void)thread;
    for (int64_t k = begin; k < end; k++) {
        p->kernels->span_join(&p->spans, k);
    }
}

static void
substitute(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const p = self;

    for (int64_t k = begin; k < end; k++) {
        p->kernels->span_substitute(&p->spans, k, p->work + (size_t)thread * p->bytes);
    }
}

ps_status
ps_span_solve(const ps_tridiag *t, const ps_exec *exec, int threads, void *work)
{
    pass p = {.kernels = ps_isa_get()->type[t->dtype], .spans = span_of(t)};
    const ps_span *const s = &p.spans;
    const int64_t cost = s->rows * p.kernels->lanes * PS_SPAN_TILES;
    const int64_t groups = s->sets * s->groups, bands = s->sets * s->bands;

    p.bytes = keeps(p.kernels, s) ? 0 : ps_aligned(p.kernels->span_scratch(s));
    p.work = (char *)work + ps_aligned(p.kernels->span_interface_bytes(s));
    p.spans.interface = work;
    p.spans.kept = keeps(p.kernels, s) ? p.work : NULL;
    ps_status status = ps_run(exec, threads, groups, cost, eliminate, &p);

    if (status == PS_OK) {
        status = ps_run(exec, threads, bands, cost, join, &p);
    }
    return status == PS_OK ? ps_run(exec, threads, groups, cost, substitute, &p) : status;
}
