/* partition.c - the partition method for a batch: grouping of systems, distribution over
 * threads, repetition with row exchanges. */
#include "lines/partition/partition.h"

#include <stdatomic.h>

#include "lines/partition/pieces.h"
#include "lines/partition/pivoted_partition.h"
#include "lines/streams.h"
#include "runtime/isa.h"
#include "runtime/threads.h"

/* Solve one system with row exchanges, by spans or in order. */
static ps_status
solve_pivoted(const ps_partition_task *d, int64_t j, int64_t k, char *work, int32_t *bad)
{
    const ps_tridiag one = ps_partition_system(&d->t, j, k, bad);
    if (ps_span_fits(&one)) {
        return ps_span_solve(&one, d->exec, d->threads, work);
    }
    return ps_pieces_solve(&one, d->exec, d->threads, work);
}

static void
note(const ps_partition_task *d, int64_t system, int32_t info)
{
    if (d->t.info != NULL) {
        d->t.info[system] = info;
    }
}

/* Solve one system again whose matrix is given by row sums and has a bad pivot: in order,
 * numbers that underflow in chunks can keep their digits. *bad is the row if it is bad
 * there, too. */
static ps_status
solve_in_order(const ps_partition_task *d, int64_t j, int64_t k, char *work, int32_t *bad)
{
    int32_t info = 0;
    const ps_tridiag one = ps_partition_system(&d->t, j, k, &info);
    ps_partition_task alone = *d;

    alone.threads = 1;
    return ps_partition_few(&alone, &one, work, bad);
}

/* Solve one system; adds 1 to *pivoted if it is solved with row exchanges. */
static ps_status
solve_one(const ps_partition_task *d, int64_t j, int64_t k, char *work, int64_t *pivoted)
{
    ps_partition_task one = *d;
    int dominant;
    int32_t bad;

    one.side = 1;
    ps_status status = ps_partition_once(&one, j, k, work, &dominant, &bad);
    if (status == PS_OK && (!dominant || (bad != 0 && d->pivot == PS_PIVOT_AUTO))) {
        status = solve_pivoted(d, j, k, work, &bad);
        ++*pivoted;
    }
    else if (status == PS_OK && bad != 0 && d->t.flags & PS_ROW_SUMS) {
        status = solve_in_order(d, j, k, work, &bad);
    }
    note(d, j * d->t.inner + k, bad);
    return status;
}

/* Solve the systems of `set` together; if a row is not dominant or a pivot is bad, solve
 * them one after the other. */
static ps_status
solve_set(const ps_partition_task *d, int64_t set, char *work, int64_t *pivoted)
{
    const int64_t j = set * d->side / d->t.inner, k = set * d->side % d->t.inner;
    int dominant = 0;
    int32_t bad = 0;
    ps_status status = PS_OK;

    if (d->shared) {
        status = ps_partition_shared(d, j, work, &dominant, &bad);
    }
    else if (d->side > 1) {
        status = ps_partition_once(d, j, k, work, &dominant, &bad);
    }
    for (int64_t s = 0; s < d->side && status == PS_OK; s++) {
        if (dominant && bad == 0) {
            note(d, j * d->t.inner + k + s, 0);
        }
        else {
            status = solve_one(d, j, k + s, work, pivoted);
        }
    }
    return status;
}

/* Whether the systems along inner are long and share a matrix. */
static int
is_shared(const ps_tridiag *t)
{
    return t->inner > 1 && t->rows >= PS_MANY_CHUNKS && ps_has_one_matrix(t, 1, t->inner);
}

/* Number of systems of a set, along inner. */
static int64_t
side_of(const ps_tridiag *t)
{
    return is_shared(t) ? t->inner : ps_partition_side(t);
}

/* Whether all threads solve one set after the other; otherwise one thread per set. */
static int
is_team_work(const ps_tridiag *t, int64_t side, int threads)
{
    const int64_t sets = t->outer * t->inner / side;

    return threads > 1 && (sets < threads || t->rows * side >= PS_TEAM_ROWS);
}

static size_t
set_work(const ps_tridiag *t, int64_t side, ps_pivot pivot, int threads)
{
    const size_t all = is_shared(t) ? ps_partition_shared_bytes(t, threads)
                                    : ps_partition_bytes(t, side, pivot, threads);
    const size_t one = ps_partition_bytes(t, 1, pivot, threads);

    return all > one ? all : one;
}

size_t
ps_partition_work(const ps_tridiag *t, ps_pivot pivot, int threads)
{
    const ps_tridiag line = ps_partition_in_line(t);
    const int64_t side = side_of(&line);

    if (t->rows == 0 || t->outer == 0 || t->inner == 0) {
        return 0;
    }
    return is_team_work(&line, side, threads)
               ? set_work(&line, side, pivot, threads)
               : set_work(&line, side, pivot, 1) * (size_t)threads;
}

/* A batch whose sets are solved by one thread each. */
typedef struct {
    const ps_partition_task *set;
    char *work;
    size_t bytes; /* of the workspace of a thread */
    atomic_llong pivoted;
} batch;

static void
solve_alone(void *self, int64_t begin, int64_t end, int thread)
{
    batch *const b = self;
    int64_t pivoted = 0;

    for (int64_t k = begin; k < end; k++) { /* its exec has no poll: not interrupted */
        solve_set(b->set, k, b->work + (size_t)thread * b->bytes, &pivoted);
    }
    atomic_fetch_add(&b->pivoted, pivoted);
}

ps_status
ps_partition_solve(const ps_tridiag *t, ps_pivot pivot, const ps_exec *exec, int threads,
                   int64_t *pivoted)
{
    const ps_tridiag line = ps_partition_in_line(t);
    const int64_t side = side_of(&line), sets = line.outer * line.inner / side;
    const int team = is_team_work(&line, side, threads);
    ps_exec quiet = *exec;
    ps_partition_task d = {
        .kernels = ps_isa_get()->type[t->dtype],
        .t = line,
        .exec = team ? exec : &quiet,
        .pivot = pivot,
        .side = side,
        .shared = is_shared(&line),
        .threads = team ? threads : 1,
        .stream = ps_is_streamed(&line, ps_isa_get()->type[t->dtype]->lanes, 0, 0),
    };
    ps_status status = PS_OK;

    quiet.poll = NULL;
    if (!team) {
        batch b = {.set = &d,
                   .work = exec->work,
                   .bytes = ps_partition_work(t, pivot, threads) / (size_t)threads};

        atomic_init(&b.pivoted, 0);
        status = ps_run(exec, threads, sets, line.rows * side, solve_alone, &b);
        *pivoted = atomic_load(&b.pivoted);
        return status;
    }

    for (int64_t s = 0; s < sets && status == PS_OK; s++) {
        status = solve_set(&d, s, exec->work, pivoted);
    }
    return status;
}
