/* pieces.c - long systems with row exchanges: the passes over their pieces. */
#include "lines/partition/pieces.h"

#include <stdatomic.h>
#include <string.h>

#include "lines/kernels.h"
#include "lines/partition/pivoted_partition.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

/* Whether a system may be divided: into pieces, or into spans. */
static int
has_pieces(const ps_tridiag *t)
{
    return t->rows >= PS_PIECES_ROWS && !(t->flags & PS_PERIODIC);
}

static int
has_spans(const ps_tridiag *t)
{
    return t->rows >= PS_SPANS_ROWS && !(t->flags & PS_PERIODIC);
}

static ps_pieces
pieces_of(const ps_tridiag *t)
{
    ps_pieces p = {.t = *t};

    if (has_pieces(t)) {
        ps_isa_get()->type[t->dtype]->pieces_plan(&p);
    }
    return p;
}

/* Bytes of the carried numbers at one end of all pieces, and of one piece. */
static size_t
carried_bytes(const ps_pieces *p, int numbers)
{
    return (size_t)(p->pieces * numbers) * ps_isa_get()->type[p->t.dtype]->element;
}

static ps_job
in_order(const ps_tridiag *t)
{
    return (ps_job){
        .t = *t, .pivot = PS_PIVOT_ALWAYS, .run = 1, .runs = 1, .tiles = 1, .group = 1};
}

size_t
ps_pieces_work(const ps_tridiag *t, int threads)
{
    ps_tridiag one = *t; /* spans of one system can take more than those of a batch */

    one.outer = one.inner = 1;
    const ps_job job = in_order(&one);
    const ps_pieces p = pieces_of(&one);
    const size_t parts[] = {
        ps_isa_baseline.type[t->dtype]->direct_scratch(&job),
        2 * ps_aligned(carried_bytes(&p, PS_PIECE_NUMBERS)) +
            p.kept_bytes * (size_t)p.groups,
        has_spans(&one) ? ps_span_work(&one, threads) : 0,
    };
    size_t most = 0;

    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        most = parts[k] > most ? parts[k] : most;
    }
    return ps_aligned(most);
}

/* A test of the systems of a batch. */
typedef struct {
    const ps_type_kernels *kernels;
    const ps_tridiag *t;
    atomic_int some, others; /* whether some systems fit, and whether some do not */
} test;

static void
test_systems(void *self, int64_t begin, int64_t end, int thread)
{
    test *const s = self;

    (void)thread;
    for (int64_t k = begin;
         k < end && !(atomic_load(&s->some) && atomic_load(&s->others)); k++) {
        const int fit = s->kernels->pieces_fit(s->t, k * s->kernels->lanes);

        if (fit >= 0) {
            atomic_store(&s->some, 1);
        }
        if (fit <= 0) {
            atomic_store(&s->others, 1);
        }
    }
}

ps_status
ps_pieces_fit(const ps_tridiag *t, const ps_exec *exec, int threads, int *fit)
{
    test s = {.kernels = ps_isa_get()->type[t->dtype], .t = t};
    const int64_t systems = t->outer * t->inner, lanes = s.kernels->lanes;

    atomic_init(&s.some, 0);
    atomic_init(&s.others, 0);
    const ps_status status = ps_run(exec, threads, (systems + lanes - 1) / lanes,
                                    4 * PS_PIECE_LEAD * lanes, test_systems, &s);

    *fit = !atomic_load(&s.others) ? 1 : atomic_load(&s.some) ? 0 : -1;
    return status;
}

/* A pass over the groups of pieces. */
typedef struct {
    const ps_type_kernels *kernels;
    ps_pieces pieces;
    atomic_int failed;
} pass;

static void
eliminate(void *self, int64_t begin, int64_t end, int thread)
{
    pass *const p = self;

    (void)thread;
    for (int64_t k = begin; k < end && !atomic_load(&p->failed); k++) {
        if (!p->kernels->pieces_down(&p->pieces, k)) {
            atomic_store(&p->failed, 1);
        }
    }
}

static void
substitute(void *self, int64_t begin, int64_t end, int thread)
{
    const pass *const p = self;

    (void)thread;
    for (int64_t k = begin; k < end; k++) {
        p->kernels->pieces_up(&p->pieces, k);
    }
}

/* Whether the piece above and piece `index` carry the same `numbers` numbers where they
 * meet. */
static int
meet(const ps_pieces *p, int64_t index, int numbers)
{
    const size_t one = carried_bytes(p, PS_PIECE_NUMBERS) / (size_t)p->pieces;
    const char *const begin = (const char *)p->begin + (size_t)index * one;
    const char *const end = (const char *)p->end + (size_t)(index - 1) * one;

    return memcmp(begin, end, one / PS_PIECE_NUMBERS * (size_t)numbers) == 0;
}

/* Solve in pieces. Where they do not meet, *solved is 0 and nothing is stored. */
static ps_status
solve_pieces(pass *p, const ps_exec *exec, int threads, int *solved)
{
    const ps_pieces *const pieces = &p->pieces;
    const int64_t cost = pieces->t.rows / pieces->groups;
    ps_status status = ps_run(exec, threads, pieces->groups, cost, eliminate, p);

    *solved = status == PS_OK && !atomic_load(&p->failed);
    for (int64_t k = 1; k < pieces->pieces && *solved; k++) {
        *solved =
            meet(pieces, k, PS_PIECE_NUMBERS) || p->kernels->pieces_rejoin(pieces, k);
    }
    if (!*solved) {
        return status;
    }
    status = ps_run(exec, threads, pieces->groups, cost, substitute, p);
    for (int64_t k = pieces->pieces - 1; k > 0 && status == PS_OK; k--) {
        if (!meet(pieces, k, 2)) {
            p->kernels->pieces_mend(pieces, k - 1);
        }
    }
    return status;
}

ps_status
ps_pieces_solve(const ps_tridiag *t, const ps_exec *exec, int threads, void *work)
{
    pass p = {.kernels = ps_isa_get()->type[t->dtype], .pieces = pieces_of(t)};
    const size_t carried = ps_aligned(carried_bytes(&p.pieces, PS_PIECE_NUMBERS));
    const ps_job job = in_order(t);
    const int fit = has_pieces(t) && p.kernels->pieces_fit(t, 0) > 0;
    ps_status status = PS_OK;
    int solved = 0;

    if (!fit && has_spans(t)) {
        return ps_span_solve(t, exec, threads, work);
    }
    if (fit && p.pieces.pieces > 0) {
        p.pieces.begin = work;
        p.pieces.end = (char *)work + carried;
        p.pieces.kept = (char *)work + 2 * carried;
        atomic_init(&p.failed, 0);
        status = solve_pieces(&p, exec, threads, &solved);
    }
    if (status != PS_OK) {
        return status;
    }
    if (!solved) {
        ps_isa_baseline.type[t->dtype]->direct(&job, 0, work);
    }
    else if (t->info != NULL) {
        t->info[0] = 0;
    }
    return PS_OK;
}
