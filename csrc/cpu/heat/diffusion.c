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
 * has no positive entry off the diagonal.
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

/* Fields of a level, in the dtype of the levels: the correction x, the right-hand side r,
 * and t. `part` has the fields between this level and the next one: part[a] has the nodes
 * of the next level along axis a and the axes after it, and those of this level along an
 * axis before it, or is not used. */
typedef struct {
    char *x, *r, *t;
    char *part[PS_DIFFUSION_AXES];
} fields;

/* Most sums of a row: for each field of the basis its products with the fields up to
 * itself, and with the residual. Those of field i begin at span_begin(i). */
enum { SUMS = PS_DIFFUSION_BASIS * (PS_DIFFUSION_BASIS + 3) / 2 };

static int
span_begin(int field)
{
    return field * (field + 3) / 2;
}

typedef struct run run;

/* A call in progress, and the current parallel loop. */
struct run {
    const ps_diffusion *d;
    const ps_diffusion_kernels *system, *kernels; /* of the system, of the levels */
    const ps_conjugate_kernels *conjugate;
    const ps_exec *exec;
    fields level[PS_DIFFUSION_LEVELS];
    char *r, *p, *q; /* in the dtype of the system */
    double *sums;    /* SUMS for each row of the system, of which a loop uses some */
    char *lines;     /* workspace of line solves */
    size_t lines_bytes;
    size_t size, cycle_size; /* of an element of the system and of the levels */
    int threads;
    /* The residual enters the V-cycle times `scale`, a power of two. The last correction
     * that left it, in x of the first level, is z times `left`. */
    double scale, left;
    /* of the current loop over the rows or the nodes of `at` */
    void (*row)(run *r, int64_t row, int64_t j, int64_t k);
    void (*part)(run *r, int64_t node, int64_t count);
    const ps_diffusion_level *at;
    const ps_diffusion_kernels *of;
    const void *from, *rhs;
    void *to;
    double factor, factors[PS_DIFFUSION_BASIS];
    /* of a transfer between levels */
    const void *weight;
    int64_t n, coarse, inner;
    int axis, adds;
};

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

/* Number of unknown nodes of a row. */
static int64_t
count_of(const ps_diffusion_level *l)
{
    return l->end[0] - l->first[0];
}

/* Threads for a loop over the nodes of a level. */
static int
threads_for(const run *r, int64_t nodes)
{
    const int threads = ps_thread_count_for(r->exec, nodes);

    return threads < r->threads ? threads : r->threads;
}

static void
some_rows(void *self, int64_t begin, int64_t end, int thread)
{
    run *const r = self;
    const ps_diffusion_level *const l = r->at;
    const int64_t count = l->end[1] - l->first[1];
    (void)thread;

    for (int64_t row = begin; row < end; row++) {
        r->row(r, row, l->first[1] + row % count, l->first[2] + row / count);
    }
}

/* Call `body` for each row of unknown nodes of a level: its number, j and k. */
static void
each_row(run *r, const ps_diffusion_level *l,
         void (*body)(run *r, int64_t row, int64_t j, int64_t k))
{
    r->at = l;
    r->row = body;
    ps_parallel_for(threads_for(r, nodes_of(l)), rows_of(l), some_rows, r);
}

static void
some_nodes(void *self, int64_t begin, int64_t end, int thread)
{
    run *const r = self;
    const int64_t row = r->at->nodes[0];
    (void)thread;

    r->part(r, begin * row, (end - begin) * row);
}

/* Call `body` for all nodes of a level, some following ones at once: their number and the
 * first of them. For operations that keep the 0 of nodes that are not unknown. */
static void
each_part(run *r, const ps_diffusion_level *l,
          void (*body)(run *r, int64_t node, int64_t count))
{
    r->at = l;
    r->part = body;
    ps_parallel_for(threads_for(r, nodes_of(l)), l->nodes[1] * l->nodes[2], some_nodes,
                    r);
}

/* The address of a node of a field with elements of `size` bytes. */
static char *
node_of(const void *field, size_t size, int64_t node)
{
    return (char *)(uintptr_t)field + (size_t)node * size;
}

/* The sum of sums[SUMS row + which] over the rows of the system, in order. */
static double
total(const run *r, int which)
{
    const int64_t rows = rows_of(&r->d->system);
    double sum = 0;

    for (int64_t row = 0; row < rows; row++) {
        sum += r->sums[SUMS * row + which];
    }
    return sum;
}

/* The address of node (first, j, k) of a field with elements of `size` bytes. */
static char *
row_of(const run *r, const void *field, size_t size, int64_t j, int64_t k)
{
    const ps_diffusion_level *const l = r->at;
    const int64_t node = (k * l->nodes[1] + j) * l->nodes[0] + l->first[0];

    return node_of(field, size, node);
}

static void
apply_row(run *r, int64_t row, int64_t j, int64_t k)
{
    const double sum = r->of->apply(r->d, r->at, j, k, r->from, r->rhs, r->to);

    if (r->rhs == NULL && r->sums != NULL) {
        r->sums[SUMS * row] = sum;
    }
}

/* The residual, and for each field d of the basis the sums of the products of A d with
 * the fields up to d, and of d with the residual. A row of A is read once for all. */
static void
span_row(run *r, int64_t row, int64_t j, int64_t k)
{
    const ps_diffusion *const d = r->d;
    const int64_t count = count_of(r->at);
    const void *const product = row_of(r, r->q, r->size, j, k);
    const void *const residual = row_of(r, r->r, r->size, j, k);

    r->system->apply(d, r->at, j, k, d->x, d->rhs, r->r);
    for (int field = 0; field < d->fields; field++) {
        double *const sums = &r->sums[SUMS * row + span_begin(field)];

        sums[field] = r->system->apply(d, r->at, j, k, d->basis[field], NULL, r->q);
        for (int i = 0; i < field; i++) {
            sums[i] =
                r->system->product(row_of(r, d->basis[i], r->size, j, k), product, count);
        }
        sums[field + 1] = r->system->product(row_of(r, d->basis[field], r->size, j, k),
                                             residual, count);
    }
}

/* Move x to a point of x + span of the basis, by the factors of the fields; then, sums of
 * x^2 with volumes, and of scale^2. A row of x is changed while it is in a cache. */
static void
begin_row(run *r, int64_t row, int64_t j, int64_t k)
{
    const ps_diffusion *const d = r->d;
    double *const sums = &r->sums[SUMS * row], squares[2];

    for (int field = 0; field < d->fields; field++) {
        if (r->factors[field] != 0) {
            r->system->move(row_of(r, d->x, r->size, j, k), r->factors[field],
                            row_of(r, d->basis[field], r->size, j, k), count_of(r->at));
        }
    }
    r->conjugate->sums(d, j, k, d->x, squares);
    sums[0] = squares[0];
    if (d->scale != NULL) {
        r->conjugate->sums(d, j, k, d->scale, squares);
        sums[1] = squares[0];
    }
}

/* r = rhs - A x, and the sum of r^2. */
static void
residual_row(run *r, int64_t row, int64_t j, int64_t k)
{
    double squares[2];

    r->system->apply(r->d, r->at, j, k, r->d->x, r->d->rhs, r->r);
    r->conjugate->sums(r->d, j, k, r->r, squares);
    r->sums[SUMS * row] = squares[1];
}

/* to = rhs - A x, or A x if rhs is null; then sums has x A x. */
static void
apply(run *r, const ps_diffusion_level *l, const void *x, const void *rhs, void *to)
{
    r->from = x;
    r->rhs = rhs;
    r->to = to;
    r->of = l == &r->d->system ? r->system : r->kernels;
    each_row(r, l, apply_row);
}

static void
add_part(run *r, int64_t node, int64_t count)
{
    r->kernels->add(node_of(r->to, r->cycle_size, node),
                    node_of(r->from, r->cycle_size, node), count);
}

static void
enter_part(run *r, int64_t node, int64_t count)
{
    r->conjugate->enter(node_of(r->r, r->size, node), r->scale,
                        node_of(r->level[0].r, r->cycle_size, node), count);
}

static void
leave_row(run *r, int64_t row, int64_t j, int64_t k)
{
    r->conjugate->leave(r->d, j, k, r->level[0].x, 1 / r->scale, r->r,
                        &r->sums[SUMS * row]);
}

static void
direct_part(run *r, int64_t node, int64_t count)
{
    r->conjugate->direct(node_of(r->p, r->size, node),
                         node_of(r->level[0].x, r->cycle_size, node), 1 / r->left,
                         r->factor, count);
}

static void
advance_row(run *r, int64_t row, int64_t j, int64_t k)
{
    r->conjugate->advance(r->d, j, k, r->factor, r->scale, r->d->x, r->r, r->p, r->q,
                          r->level[0].r, &r->sums[SUMS * row]);
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
    const ps_factor_rhs b = lines_of(l, axis, r->cycle_size, from, to);
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
    each_part(r, l, add_part);
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

/* Part `item` of a transfer: a line along axis 0, or node c of the next level on a line
 * along another axis, whose nodes are rows of `inner` values. Addresses of the fine line,
 * of its weights and of the line or node of the next level. */
typedef struct {
    char *fine, *coarse;
    const char *weight;
    size_t row; /* bytes of a node */
    int64_t c, node;
} part;

static part
part_of(const run *r, int64_t item, const void *fine, const void *coarse)
{
    const int64_t between = ps_interpolated(r->n, r->coarse);
    const size_t row = (size_t)r->inner * r->cycle_size;
    const int64_t line = r->axis == 0 ? item : item / r->coarse;
    const int64_t c = item - line * (r->axis == 0 ? 1 : r->coarse);

    return (part){(char *)(uintptr_t)fine + (size_t)(line * r->n) * row,
                  (char *)(uintptr_t)coarse + (size_t)(line * r->coarse) * row,
                  (const char *)r->weight + (size_t)(line * between) * row,
                  row,
                  c,
                  2 * c < r->n ? 2 * c : r->n - 1};
}

static void
restrict_items(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    const int64_t n = r->n, coarse = r->coarse, between = ps_interpolated(n, coarse);
    (void)thread;

    for (int64_t item = begin; item < end; item++) {
        const part p = part_of(r, item, r->from, r->to);

        if (r->axis == 0) {
            r->kernels->restrict_row(p.fine, p.weight, n, coarse, r->d->periodic[0],
                                     p.coarse);
            continue;
        }
        const int wraps = p.c == 0 && r->d->periodic[r->axis] && between == coarse;
        const int64_t q = wraps ? between - 1 : p.c - 1; /* the interpolated node below */
        const int below = q >= 0 && q < between, above = p.c < between;

        r->kernels->gather(p.fine + (size_t)p.node * p.row,
                           below ? p.fine + (size_t)(2 * q + 1) * p.row : NULL,
                           below ? p.weight + (size_t)q * p.row : NULL,
                           above ? p.fine + (size_t)(2 * p.c + 1) * p.row : NULL,
                           above ? p.weight + (size_t)p.c * p.row : NULL, r->inner,
                           p.coarse + (size_t)p.c * p.row);
    }
}

static void
interpolate_items(void *self, int64_t begin, int64_t end, int thread)
{
    const run *const r = self;
    const int64_t n = r->n, coarse = r->coarse, between = ps_interpolated(n, coarse);
    (void)thread;

    for (int64_t item = begin; item < end; item++) {
        const part p = part_of(r, item, r->to, r->from);

        if (r->axis == 0) {
            r->kernels->interpolate_row(p.coarse, p.weight, n, coarse, r->adds, p.fine);
            continue;
        }
        const char *const from = p.coarse + (size_t)p.c * p.row;
        char *const to = p.fine + (size_t)p.node * p.row;

        r->kernels->mean(from, NULL, NULL, r->inner, r->adds, to);
        if (p.c < between) {
            r->kernels->mean(
                from, p.coarse + (size_t)(p.c + 1 < coarse ? p.c + 1 : 0) * p.row,
                p.weight + (size_t)p.c * p.row, r->inner, r->adds, to + p.row);
        }
    }
}

/* The first axis along which the next level is coarser. */
static int
first_coarser(const ps_diffusion *d, const ps_diffusion_level *l)
{
    int axis = 0;

    while (axis < d->axes - 1 && l->weight[axis] == NULL) {
        axis++;
    }
    return axis;
}

/* Restrict t of a level to r of the next one, along the last axis first. */
static void
restrict_level(run *r, int level)
{
    const ps_diffusion_level *const l = &r->d->level[level], *const c = l + 1;
    int64_t nodes[3] = {l->nodes[0], l->nodes[1], l->nodes[2]};
    const void *from = r->level[level].t;
    const int last = first_coarser(r->d, l);

    for (int axis = r->d->axes - 1; axis >= last; axis--) {
        if (l->weight[axis] != NULL) {
            void *const to =
                axis == last ? r->level[level + 1].r : r->level[level].part[axis];

            transfer(r, axis, nodes, c->nodes[axis], l->weight[axis], from, to, 0,
                     restrict_items);
            from = to;
            nodes[axis] = c->nodes[axis];
        }
    }
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
    const size_t whole = ps_aligned((size_t)nodes_of(l) * r->cycle_size);
    fields *const f = &r->level[level];
    char *const start = at;
    int64_t nodes[3] = {l->nodes[0], l->nodes[1], l->nodes[2]};

    f->x = at;
    f->r = f->x + whole;
    f->t = f->r + whole;
    at = f->t + whole;
    for (int axis = r->d->axes - 1;
         axis > first_coarser(r->d, l) && level + 1 < r->d->levels; axis--) {
        if (l->weight[axis] != NULL) {
            nodes[axis] = l[1].nodes[axis];
            f->part[axis] = at;
            at += ps_aligned((size_t)(nodes[0] * nodes[1] * nodes[2]) * r->cycle_size);
        }
    }
    return (size_t)(at - start);
}

/* Let the workspace of line solves be large enough for one from `from` to `to`. */
static void
need_lines(run *r, int level, int axis, const void *from, void *to)
{
    const ps_diffusion_level *const l = &r->d->level[level];
    const ps_factor_rhs b = lines_of(l, axis, r->cycle_size, from, to);
    size_t bytes = 0;

    ps_cpu_factor_work(&l->line[axis], &b, r->exec, &bytes);
    r->lines_bytes = bytes > r->lines_bytes ? bytes : r->lines_bytes;
}

/* Set the parts of the workspace from `work` on; return its size. */
static size_t
lay_out(run *r, char *work)
{
    const ps_diffusion_level *const l = &r->d->system;
    const size_t whole = ps_aligned((size_t)nodes_of(l) * r->size);
    char *at = work;

    for (int level = 0; level < r->d->levels; level++) {
        at += lay_out_level(r, level, at);
    }
    r->r = at;
    r->p = r->r + whole;
    r->q = r->p + whole;
    at = r->q + whole;
    r->sums = (double *)at;
    at += ps_aligned((size_t)rows_of(l) * SUMS * sizeof(double));
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

/* Set the nodes of a field that are not unknown to 0. */
static void
clear_given(const ps_diffusion_level *l, char *field, size_t size)
{
    const int64_t n = l->nodes[0];

    for (int64_t row = 0; row < l->nodes[1] * l->nodes[2]; row++) {
        const int64_t j = row % l->nodes[1], k = row / l->nodes[1];
        const int is_given =
            j < l->first[1] || j >= l->end[1] || k < l->first[2] || k >= l->end[2];
        const int64_t first = is_given ? n : l->first[0], end = is_given ? n : l->end[0];

        memset(node_of(field, size, row * n), 0, (size_t)first * size);
        memset(node_of(field, size, row * n + end), 0, (size_t)(n - end) * size);
    }
}

/* Set the fields that are read at nodes that are not unknown to 0 there. Every field is
 * written at unknown nodes before it is read. */
static void
clear(run *r)
{
    for (int level = 0; level < r->d->levels; level++) {
        const ps_diffusion_level *const l = &r->d->level[level];
        const fields *const f = &r->level[level];

        clear_given(l, f->x, r->cycle_size);
        clear_given(l, f->t, r->cycle_size);
    }
    clear_given(&r->d->system, r->r, r->size);
}

static const ps_diffusion_kernels *
kernels_of(ps_dtype dtype)
{
    return dtype == PS_F32 ? PS_ISA_OF(ps_diffusion_f32) : PS_ISA_OF(ps_diffusion_f64);
}

static run
begin(const ps_diffusion *d, const ps_exec *exec, int solves)
{
    run r = {.d = d,
             .system = kernels_of(d->dtype),
             .exec = exec,
             .size = (size_t)ps_dtype_size(d->dtype),
             .threads = ps_thread_count_for(exec, nodes_of(&d->system)),
             .scale = 1};

    if (solves) {
        r.kernels = kernels_of(d->cycle);
        r.conjugate = r.system->conjugate[d->cycle];
        r.cycle_size = (size_t)ps_dtype_size(d->cycle);
    }
    return r;
}

ps_status
ps_cpu_diffusion_work(const ps_diffusion *d, const ps_exec *exec, size_t *bytes)
{
    const ps_status status = ps_diffusion_check(d, 1);

    if (status == PS_OK) {
        run r = begin(d, exec, 1);

        *bytes = lay_out(&r, NULL);
    }
    return status;
}

ps_status
ps_cpu_diffusion_apply(const ps_diffusion *d, void *out, const ps_exec *exec)
{
    const ps_status status = out == NULL ? PS_BAD_ARGUMENT : ps_diffusion_check(d, 0);

    if (status == PS_OK) {
        run r = begin(d, exec, 0);

        apply(&r, &d->system, d->x, NULL, out);
    }
    return status;
}

/* Let `scale` bring a residual with this sum of squares near 1. Its inverse is a number
 * of the dtype of the system as well. */
static void
set_scale(run *r, double squares)
{
    const int most = r->d->dtype == PS_F32 ? 126 : 1022;
    int exponent = 0;

    if (squares > 0 && isfinite(squares)) {
        frexp(sqrt(squares), &exponent);
    }
    exponent = exponent > most ? most : exponent < -most ? -most : exponent;
    r->scale = ldexp(1, -exponent);
}

/* z = P r, where r has entered the V-cycle: set sums of r z and of z^2 with volumes. */
static ps_status
make_z(run *r, double *rz, double *zz)
{
    const ps_status status = precondition(r);

    each_row(r, &r->d->system, leave_row);
    r->left = r->scale;
    *rz = total(r, 0);
    *zz = total(r, 1);
    return status;
}

/* Set the factors of the fields of the basis in the point of x + span of the basis with
 * the least error in the norm of A. */
static void
span(run *r)
{
    const ps_diffusion *const d = r->d;
    double g[PS_DIFFUSION_BASIS][PS_DIFFUSION_BASIS + 1];

    if (d->fields == 0) {
        return;
    }
    each_row(r, &d->system, span_row);
    for (int i = 0; i < d->fields; i++) {
        for (int j = 0; j <= i + 1; j++) {
            g[i][j] = total(r, span_begin(i) + j);
        }
    }
    ps_diffusion_combine(d, g, r->factors);
}

/* Set the norm of x, and the limit of the error, in a report. */
static void
take_norm(const run *r, double xx, double atol, ps_diffusion_report *report)
{
    report->norm = sqrt(xx);
    report->limit = fmax(r->d->rtol * report->norm, atol);
}

/* Conjugate gradients from r and z on; `share` is |z|/|r|. */
static ps_status
iterate(run *r, double atol, double share, double rz, ps_diffusion_report *report)
{
    const ps_diffusion *const d = r->d;
    ps_status status = PS_OK;
    ps_diffusion_least least = {0};
    double beta = 0;

    while (report->iterations < d->most && status == PS_OK && rz > 0) {
        const double before = rz;

        if (r->exec->poll != NULL && r->exec->poll(r->exec->poll_self) != 0) {
            return PS_INTERRUPTED;
        }
        r->factor = beta;
        each_part(r, &d->system, direct_part);
        apply(r, &d->system, r->p, NULL, r->q);
        r->factor = rz / total(r, 0);
        if (!(r->factor > 0) || !isfinite(r->factor)) {
            break;
        }
        ps_diffusion_least_add(&least, r->factor, beta);
        report->least = ps_diffusion_least_of(&least);
        each_row(r, &d->system, advance_row);
        const double xx = total(r, 0), rr = total(r, 1);
        const double norm = sqrt(rr);
        report->iterations++;
        take_norm(r, xx, atol, report);
        report->error = PS_DIFFUSION_MARGIN * share * norm;
        if (report->error <= report->limit) {
            report->converged = 1;
            break;
        }
        double zz;
        status = make_z(r, &rz, &zz);
        set_scale(r, rr); /* for the residual of the next iteration */
        report->error = sqrt(zz);
        if (report->error <= report->limit) {
            report->converged = 1;
            break;
        }
        share = fmax(share * PS_DIFFUSION_KEPT, report->error / norm);
        beta = rz / before;
    }
    return status;
}

ps_status
ps_cpu_diffusion_solve(const ps_diffusion *d, const ps_exec *exec,
                       ps_diffusion_report *report)
{
    ps_status status = ps_diffusion_check(d, 1);
    double rz = 0, zz = 0, atol = d->ratio;

    if (status != PS_OK) {
        return status;
    }
    run r = begin(d, exec, 1);
    if (exec->work_bytes < lay_out(&r, exec->work)) {
        return PS_WORK_TOO_SMALL;
    }
    clear(&r);
    *report = (ps_diffusion_report){
        .threads = r.threads, .kernel = ps_isa_get()->name, .least = INFINITY};
    span(&r);
    each_row(&r, &d->system, begin_row);
    const double xx = total(&r, 0);
    atol *= d->scale == NULL ? 1 : sqrt(total(&r, 1));
    each_row(&r, &d->system, residual_row);
    const double rr = total(&r, 0);
    set_scale(&r, rr);
    each_part(&r, &d->system, enter_part);
    status = make_z(&r, &rz, &zz);
    take_norm(&r, xx, atol, report);
    report->error = sqrt(zz);
    report->converged = report->error <= report->limit;
    if (status == PS_OK && !report->converged) {
        status = iterate(&r, atol, report->error / sqrt(rr), rz, report);
    }
    return status;
}
