/* diffusion.c - implicit diffusion that is not split: conjugate gradients, preconditioned
 * by multigrid with alternating line relaxation (ps_diffusion.h).
 *
 * The condition of A grows as k dt/h^2 and as the ratio of the values of k. Line
 * relaxation damps what is rough along an axis, for any spacing and for layers across an
 * axis; the coarser levels damp what is smooth. Conjugate gradients remove the few waves
 * that both leave where k jumps.
 *
 * Cost of an iteration: 2 line solves with stored factors and 2 applications of A along
 * each axis, times 4/3 for the coarser levels with two axes and 8/7 with three: about 70
 * words and 150 operations per unknown with two axes. It converges for any A that is
 * symmetric and positive definite; the rounding error of each pivot is small because A
 * has no positive entry beside the diagonal.
 *
 * Source: M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving
 * linear systems, J. Res. NBS 49 (1952) 409-436; R. E. Alcouffe, A. Brandt, J. E. Dendy
 * and J. W. Painter, The multi-grid method for the diffusion equation with strongly
 * discontinuous coefficients, SIAM J. Sci. Stat. Comput. 2 (1981) 430-454 (interpolation
 * by fluxes, alternating lines); O. Tatebe, The multigrid preconditioned conjugate
 * gradient method, Copper Mountain 1993.
 */
#include "heat/diffusion.h"

#include <math.h>
#include <string.h>

#include "heat/diffusion_kernels.h"
#include "lines/factor/factor.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "runtime/workspace.h"

/* Fields of a level: the correction x, the right-hand side r, and t. On the first level x
 * is z = P r, and p and q are the direction and A p. `part` has the fields between this
 * level and the next one: part[a] has the nodes of the next level along axis a and the
 * axes after it. */
typedef struct {
    char *x, *r, *t;
    char *part[PS_DIFFUSION_AXES];
} fields;

/* A call in progress, and the current parallel loop. */
typedef struct {
    const ps_diffusion *d;
    const ps_diffusion_kernels *kernels;
    const ps_exec *exec;
    fields level[PS_DIFFUSION_LEVELS];
    char *p, *q;
    double *sums; /* 2 for each row of the first level */
    char *lines;  /* workspace of line solves */
    size_t lines_bytes, size;
    int threads;
    /* of the current loop */
    const ps_diffusion_level *at;
    const void *from, *rhs, *vector;
    void *to;
    double factor;
    const void *weight;
    int64_t n, coarse, inner;
    int axis, adds;
} run;

static const ps_diffusion_kernels *
kernels_for(ps_dtype dtype)
{
    const ps_isa *const isa = ps_isa_get();

#ifdef PS_HAVE_AVX512
    if (isa == &ps_isa_avx512) {
        return &ps_diffusion_isa_avx512.type[dtype];
    }
#endif
#ifdef PS_HAVE_AVX2
    if (isa == &ps_isa_avx2) {
        return &ps_diffusion_isa_avx2.type[dtype];
    }
#endif
    (void)isa;
    return &ps_diffusion_isa_baseline.type[dtype];
}

static int64_t
nodes_of(const ps_diffusion_level *l)
{
    return l->nodes[0] * l->nodes[1] * l->nodes[2];
}

static int64_t
rows_of(const ps_diffusion_level *l)
{
    return (l->end[1] - l->first[1]) * (l->end[2] - l->first[2]);
}

/* Threads for a loop over the nodes of a level. */
static int
threads_for(const run *r, int64_t nodes)
{
    const int threads = ps_thread_count_for(r->exec, nodes);

    return threads < r->threads ? threads : r->threads;
}

/* Row number `row` of the unknown nodes: its j and k. */
static void
row_at(const ps_diffusion_level *l, int64_t row, int64_t *j, int64_t *k)
{
    const int64_t count = l->end[1] - l->first[1];

    *j = l->first[1] + row % count;
    *k = l->first[2] + row / count;
}

static void
each_row(run *r, const ps_diffusion_level *l,
         void (*body)(void *self, int64_t begin, int64_t end, int thread))
{
    r->at = l;
    ps_parallel_for(threads_for(r, nodes_of(l)), rows_of(l), body, r);
}

/* The sum of sums[2 row + which] over the rows, in order. */
static double
total(const run *r, int which)
{
    const int64_t rows = rows_of(&r->d->level[0]);
    double sum = 0;

    for (int64_t row = 0; row < rows; row++) {
        sum += r->sums[2 * row + which];
    }
    return sum;
}

static void
apply_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    int64_t j, k;
    (void)thread;

    for (int64_t row = begin; row < end; row++) {
        row_at(r->at, row, &j, &k);
        const double sum = r->kernels->apply(r->d, r->at, j, k, r->from, r->rhs, r->to);
        if (r->rhs == NULL && r->sums != NULL) {
            r->sums[2 * row] = sum;
        }
    }
}

/* to = rhs - A x, or A x if rhs is null; then sums has x A x. */
static void
apply(run *r, const ps_diffusion_level *l, const void *x, const void *rhs, void *to)
{
    r->from = x;
    r->rhs = rhs;
    r->to = to;
    each_row(r, l, apply_rows);
}

/* The address of node (first, j, k) of a field. */
static char *
row_of(const run *r, const void *field, int64_t j, int64_t k)
{
    const ps_diffusion_level *const l = r->at;
    const int64_t node = (k * l->nodes[1] + j) * l->nodes[0] + l->first[0];

    return (char *)(uintptr_t)field + (size_t)node * r->size;
}

static void
add_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    int64_t j, k;
    (void)thread;

    for (int64_t row = begin; row < end; row++) {
        row_at(r->at, row, &j, &k);
        r->kernels->add(row_of(r, r->to, j, k), row_of(r, r->from, j, k),
                        r->at->end[0] - r->at->first[0]);
    }
}

static void
direct_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    int64_t j, k;
    (void)thread;

    for (int64_t row = begin; row < end; row++) {
        row_at(r->at, row, &j, &k);
        r->kernels->direct(row_of(r, r->p, j, k), row_of(r, r->level[0].x, j, k),
                           r->factor, r->at->end[0] - r->at->first[0]);
    }
}

static void
advance_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    int64_t j, k;
    (void)thread;

    for (int64_t row = begin; row < end; row++) {
        row_at(r->at, row, &j, &k);
        r->sums[2 * row] = r->kernels->advance(r->d, j, k, r->factor, r->d->x,
                                               r->level[0].r, r->p, r->q);
    }
}

static void
sum_rows(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    int64_t j, k;
    (void)thread;

    for (int64_t row = begin; row < end; row++) {
        row_at(r->at, row, &j, &k);
        r->kernels->sums(r->d, j, k, r->from, r->vector, &r->sums[2 * row]);
    }
}

/* Strides of the lines along an axis over the unknown nodes, and the first of these. */
static ps_stride
stride_of(const ps_diffusion_level *l, int axis, int64_t *start)
{
    const int64_t strides[] = {1, l->nodes[0], l->nodes[0] * l->nodes[1]};
    const int inner = axis == 0 ? 1 : 0, outer = axis == 2 ? 1 : 2;

    *start = 0;
    for (int a = 0; a < PS_DIFFUSION_AXES; a++) {
        *start += l->first[a] * strides[a];
    }
    return (ps_stride){strides[axis], strides[outer], strides[inner]};
}

static ps_factor_rhs
lines_of(const ps_diffusion_level *l, int axis, size_t size, const void *from, void *to)
{
    int64_t start;
    const ps_stride stride = stride_of(l, axis, &start);
    const ps_factor *const f = &l->line[axis];

    return (ps_factor_rhs){.trans = PS_TRANS_NONE,
                           .outer = f->outer,
                           .inner = f->inner,
                           .outer_step = 1,
                           .inner_step = 1,
                           .rhs = {(const char *)from + (size_t)start * size, stride},
                           .x = {(char *)to + (size_t)start * size, stride}};
}

/* to = T^-1 from along an axis. */
static ps_status
solve_lines(run *r, const ps_diffusion_level *l, int axis, const void *from, void *to)
{
    const ps_factor_rhs b = lines_of(l, axis, r->size, from, to);
    ps_exec exec = *r->exec;

    exec.work = r->lines;
    exec.work_bytes = r->lines_bytes;
    return ps_cpu_factor_solve(&l->line[axis], &b, &exec);
}

/* x += T^-1 (r - A x) along an axis; `begins` if x is 0. */
static ps_status
relax(run *r, int level, int axis, int begins)
{
    const ps_diffusion_level *const l = &r->d->level[level];
    const fields *const f = &r->level[level];

    if (begins) {
        return solve_lines(r, l, axis, f->r, f->x);
    }
    apply(r, l, f->x, f->r, f->t);
    const ps_status status = solve_lines(r, l, axis, f->t, f->t);
    r->from = f->t;
    r->to = f->x;
    each_row(r, l, add_rows);
    return status;
}

/* One axis of a transfer between levels: the lines along `axis` of n nodes, of which
 * `coarse` are kept, with `inner` nodes in front of the axis and `outer` behind. */
static void
transfer(run *r, int axis, const int64_t fine[3], int64_t coarse, const void *weight,
         const void *from, void *to, int adds,
         void (*body)(void *, int64_t, int64_t, int))
{
    int64_t outer = 1;

    r->inner = 1;
    for (int a = 0; a < PS_DIFFUSION_AXES; a++) {
        if (a < axis) {
            r->inner *= fine[a];
        }
        if (a > axis) {
            outer *= fine[a];
        }
    }
    r->axis = axis;
    r->n = fine[axis];
    r->coarse = coarse;
    r->weight = weight;
    r->from = from;
    r->to = to;
    r->adds = adds;
    ps_parallel_for(threads_for(r, r->inner * r->n * outer),
                    axis == 0 ? outer : coarse * outer, body, r);
}

/* Rows of the axis, or the nodes c = item % coarse of lines number item / coarse. */
static void
restrict_items(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    const ps_diffusion_kernels *const kernels = r->kernels;
    const int64_t n = r->n, coarse = r->coarse, between = ps_interpolated(n, coarse);
    const size_t size = r->size, row = (size_t)r->inner * size;
    (void)thread;

    for (int64_t item = begin; item < end; item++) {
        if (r->axis == 0) {
            kernels->restrict_row(
                (const char *)r->from + (size_t)(item * n) * size,
                (const char *)r->weight + (size_t)(item * between) * size, n, coarse,
                r->d->periodic[0], (char *)r->to + (size_t)(item * coarse) * size);
            continue;
        }
        const int64_t line = item / coarse, c = item % coarse;
        const char *const from = (const char *)r->from + (size_t)(line * n) * row;
        const char *const weight =
            (const char *)r->weight + (size_t)(line * between) * row;
        const int wraps = c == 0 && r->d->periodic[r->axis] && between == coarse;
        const int64_t q = wraps ? between - 1 : c - 1; /* the interpolated node below */
        const int below = q >= 0 && q < between, above = c < between;
        const int64_t node = 2 * c < n ? 2 * c : n - 1;

        kernels->gather(from + (size_t)node * row,
                        below ? from + (size_t)(2 * q + 1) * row : NULL,
                        below ? weight + (size_t)q * row : NULL,
                        above ? from + (size_t)(2 * c + 1) * row : NULL,
                        above ? weight + (size_t)c * row : NULL, r->inner,
                        (char *)r->to + (size_t)item * row);
    }
}

static void
interpolate_items(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    const ps_diffusion_kernels *const kernels = r->kernels;
    const int64_t n = r->n, coarse = r->coarse, between = ps_interpolated(n, coarse);
    const size_t size = r->size, row = (size_t)r->inner * size;
    (void)thread;

    for (int64_t item = begin; item < end; item++) {
        if (r->axis == 0) {
            kernels->interpolate_row(
                (const char *)r->from + (size_t)(item * coarse) * size,
                (const char *)r->weight + (size_t)(item * between) * size, n, coarse,
                r->adds, (char *)r->to + (size_t)(item * n) * size);
            continue;
        }
        const int64_t line = item / coarse, c = item % coarse;
        const char *const from = (const char *)r->from + (size_t)(line * coarse) * row;
        char *const to = (char *)r->to + (size_t)(line * n) * row;
        const int64_t node = 2 * c < n ? 2 * c : n - 1;

        kernels->mean(from + (size_t)c * row, NULL, NULL, r->inner, r->adds,
                      to + (size_t)node * row);
        if (c < between) {
            kernels->mean(from + (size_t)c * row,
                          from + (size_t)(c + 1 < coarse ? c + 1 : 0) * row,
                          (const char *)r->weight + (size_t)(line * between + c) * row,
                          r->inner, r->adds, to + (size_t)(node + 1) * row);
        }
    }
}

/* Restrict t of a level to r of the next one, along the last axis first. */
static void
restrict_level(run *r, int level)
{
    const ps_diffusion_level *const l = &r->d->level[level], *const c = l + 1;
    int64_t nodes[3] = {l->nodes[0], l->nodes[1], l->nodes[2]};
    const void *from = r->level[level].t;

    for (int axis = r->d->axes - 1; axis >= 0; axis--) {
        if (l->weight[axis] != NULL) {
            transfer(r, axis, nodes, c->nodes[axis], l->weight[axis], from,
                     r->level[level].part[axis], 0, restrict_items);
            from = r->level[level].part[axis];
            nodes[axis] = c->nodes[axis];
        }
    }
    memcpy(r->level[level + 1].r, from, (size_t)nodes_of(c) * r->size);
}

/* Add the interpolated x of the next level to x of a level, along the first axis first.
 */
static void
interpolate_level(run *r, int level)
{
    const ps_diffusion_level *const l = &r->d->level[level], *const c = l + 1;
    int64_t nodes[3] = {c->nodes[0], c->nodes[1], c->nodes[2]};
    const void *from = r->level[level + 1].x;
    int last = 0;

    for (int axis = 0; axis < r->d->axes; axis++) {
        last = l->weight[axis] != NULL ? axis : last;
    }
    for (int axis = 0; axis <= last; axis++) {
        int next = axis + 1;

        if (l->weight[axis] == NULL) {
            continue;
        }
        while (next <= last && l->weight[next] == NULL) {
            next++;
        }
        void *const to = axis == last ? r->level[level].x : r->level[level].part[next];

        nodes[axis] = l->nodes[axis];
        transfer(r, axis, nodes, c->nodes[axis], l->weight[axis], from, to, axis == last,
                 interpolate_items);
        from = to;
    }
}

/* x = P r on the first level. */
static ps_status
precondition(run *r)
{
    const int axes = r->d->axes, last = r->d->levels - 1;
    ps_status status = PS_OK;

    for (int level = 0; level <= last; level++) {
        for (int axis = 0; axis < axes && status == PS_OK; axis++) {
            status = relax(r, level, axis, axis == 0);
        }
        if (level < last) {
            apply(r, &r->d->level[level], r->level[level].x, r->level[level].r,
                  r->level[level].t);
            restrict_level(r, level);
        }
    }
    for (int level = last; level >= 0; level--) {
        if (level < last) {
            interpolate_level(r, level);
        }
        for (int axis = axes - 1; axis >= 0 && status == PS_OK; axis--) {
            status = relax(r, level, axis, 0);
        }
    }
    return status;
}

/* Bytes of the fields of a level, and where they lie from `at` on. */
static size_t
lay_out_level(run *r, int level, char *at)
{
    const ps_diffusion_level *const l = &r->d->level[level];
    const size_t whole = ps_aligned((size_t)nodes_of(l) * r->size);
    fields *const f = &r->level[level];
    char *const start = at;
    int64_t nodes[3] = {l->nodes[0], l->nodes[1], l->nodes[2]};

    f->x = at;
    f->r = f->x + whole;
    f->t = f->r + whole;
    at = f->t + whole;
    for (int axis = r->d->axes - 1; axis >= 0 && level + 1 < r->d->levels; axis--) {
        if (l->weight[axis] != NULL) {
            nodes[axis] = l[1].nodes[axis];
            f->part[axis] = at;
            at += ps_aligned((size_t)(nodes[0] * nodes[1] * nodes[2]) * r->size);
        }
    }
    return (size_t)(at - start);
}

/* Let the workspace of line solves be large enough for one from `from` to `to`. */
static void
need_lines(run *r, int level, int axis, const void *from, void *to)
{
    const ps_diffusion_level *const l = &r->d->level[level];
    const ps_factor_rhs b = lines_of(l, axis, r->size, from, to);
    size_t bytes = 0;

    ps_cpu_factor_work(&l->line[axis], &b, r->exec, &bytes);
    r->lines_bytes = bytes > r->lines_bytes ? bytes : r->lines_bytes;
}

/* Set the parts of the workspace from `work` on; return its size. The fields come first:
 * *cleared is the size of what must be 0. */
static size_t
lay_out(run *r, char *work, size_t *cleared)
{
    const ps_diffusion_level *const first = &r->d->level[0];
    char *at = work;

    for (int level = 0; level < r->d->levels; level++) {
        at += lay_out_level(r, level, at);
    }
    r->p = at;
    r->q = r->p + ps_aligned((size_t)nodes_of(first) * r->size);
    at = r->q + ps_aligned((size_t)nodes_of(first) * r->size);
    *cleared = (size_t)(at - work);
    r->sums = (double *)at;
    at += ps_aligned((size_t)rows_of(first) * 2 * sizeof(double));
    r->lines = at;
    r->lines_bytes = 0;
    for (int level = 0; level < r->d->levels; level++) {
        for (int axis = 0; axis < r->d->axes; axis++) {
            const fields *const f = &r->level[level];

            /* What a line solve needs depends on how its operands are aligned. */
            need_lines(r, level, axis, f->r, f->x);
            need_lines(r, level, axis, f->t, f->t);
        }
    }
    return (size_t)(at - work) + r->lines_bytes;
}

static run
begin(const ps_diffusion *d, const ps_exec *exec)
{
    return (run){.d = d,
                 .kernels = kernels_for(d->dtype),
                 .exec = exec,
                 .size = (size_t)ps_dtype_size(d->dtype),
                 .threads = ps_thread_count_for(exec, nodes_of(&d->level[0]))};
}

ps_status
ps_cpu_diffusion_work(const ps_diffusion *d, const ps_exec *exec, size_t *bytes)
{
    const ps_status status = ps_diffusion_check(d, 1);
    size_t cleared;

    if (status == PS_OK) {
        run r = begin(d, exec);

        *bytes = lay_out(&r, NULL, &cleared);
    }
    return status;
}

ps_status
ps_cpu_diffusion_apply(const ps_diffusion *d, void *out, const ps_exec *exec)
{
    const ps_status status = out == NULL ? PS_BAD_ARGUMENT : ps_diffusion_check(d, 0);

    if (status == PS_OK) {
        run r = begin(d, exec);

        apply(&r, &d->level[0], d->x, NULL, out);
    }
    return status;
}

/* z = P r; set sums of r z and of z^2 with volumes. */
static ps_status
make_z(run *r, double *rz, double *zz)
{
    const ps_status status = precondition(r);

    r->from = r->level[0].r;
    r->vector = r->level[0].x;
    each_row(r, &r->d->level[0], sum_rows);
    *rz = total(r, 0);
    *zz = total(r, 1);
    return status;
}

/* The sum of v^2 with volumes. */
static double
square(run *r, const void *v)
{
    r->from = r->vector = v;
    each_row(r, &r->d->level[0], sum_rows);
    return total(r, 1);
}

/* Conjugate gradients from r and z on. */
static ps_status
iterate(run *r, double atol, double rz, double zz, ps_diffusion_report *report)
{
    const ps_diffusion *const d = r->d;
    const ps_diffusion_level *const l = &d->level[0];
    ps_status status = PS_OK;
    double beta = 0;

    while (report->iterations < d->most && status == PS_OK && rz > 0) {
        double xx, before = rz;

        if (r->exec->poll != NULL && r->exec->poll(r->exec->poll_self) != 0) {
            return PS_INTERRUPTED;
        }
        r->factor = beta;
        each_row(r, l, direct_rows);
        apply(r, l, r->p, NULL, r->q);
        r->factor = rz / total(r, 0);
        if (!(r->factor > 0) || !isfinite(r->factor)) {
            break;
        }
        each_row(r, l, advance_rows);
        xx = total(r, 0);
        report->iterations++;
        status = make_z(r, &rz, &zz);
        report->error = sqrt(zz);
        if (report->error <= fmax(d->rtol * sqrt(xx), atol)) {
            report->converged = 1;
            break;
        }
        beta = rz / before;
    }
    return status;
}

ps_status
ps_cpu_diffusion_solve(const ps_diffusion *d, const ps_exec *exec,
                       ps_diffusion_report *report)
{
    ps_status status = ps_diffusion_check(d, 1);
    size_t cleared;
    double rz = 0, zz = 0, xx = 0;

    if (status != PS_OK) {
        return status;
    }
    run r = begin(d, exec);
    if (exec->work_bytes < lay_out(&r, exec->work, &cleared)) {
        return PS_WORK_TOO_SMALL;
    }
    memset(exec->work, 0, cleared);
    *report = (ps_diffusion_report){.threads = r.threads, .kernel = ps_isa_get()->name};
    apply(&r, &d->level[0], d->x, d->rhs, r.level[0].r);
    xx = square(&r, d->x);
    const double atol = d->ratio * (d->scale == NULL ? 1 : sqrt(square(&r, d->scale)));
    status = make_z(&r, &rz, &zz);
    report->error = sqrt(zz);
    report->converged = report->error <= fmax(d->rtol * sqrt(xx), atol);
    if (status == PS_OK && !report->converged) {
        status = iterate(&r, atol, rz, zz, report);
    }
    return status;
}
