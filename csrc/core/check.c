/* check.c - checks of the request structs, independent of the backend.
 *
 * Two operands overlap if an element of one shares a byte with an element of the other.
 * The elements of a strided operand form a lattice. Two lattices overlap if
 *
 *   sum_k |s_k| i_k  in  [low, low + (size - 1) + (other size - 1)],   0 <= i_k <= m_k
 *
 * has a solution, where s_k are the byte strides of both operands. The search handles the
 * terms in descending order of the stride and tries only those i_k for which the
 * remaining terms can reach the interval: one or two values for the strides of real
 * arrays. The search is exact up to SEARCH_STEPS steps; beyond that the check reports an
 * overlap.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "ps_api.h"
#include "ps_recurrence.h"
#include "ps_step.h"

enum { AXES = 3, TERMS = 2 * AXES, SEARCH_STEPS = 100000 };

/* Largest distance along one axis between the first and the last element of an operand,
 * in elements: sums over all axes of two operands, in bytes, stay below INT64_MAX. */
static const int64_t max_span = INT64_MAX / 256;

typedef struct {
    int64_t rows, outer, inner;
} extents;

typedef struct {
    int64_t step;  /* magnitude of the stride along this axis, in bytes; > 0 */
    int64_t limit; /* largest index; > 0 */
} term;

/* The elements of an operand: `lowest` plus all sums of the terms. */
typedef struct {
    uintptr_t lowest, highest; /* address of the first and last element */
    term terms[AXES];
    int count;
} lattice;

typedef struct {
    const term *terms;
    int count, steps_left;
} search;

int64_t
ps_dtype_size(ps_dtype dtype)
{
    static const int64_t sizes[PS_DTYPE_COUNT] = {
        [PS_F32] = 4, [PS_F64] = 8, [PS_C64] = 8, [PS_C128] = 16};

    return sizes[dtype];
}

int
ps_is_real(ps_dtype dtype)
{
    return dtype == PS_F32 || dtype == PS_F64;
}

ps_pivot
ps_options_pivot(const ps_options *options)
{
    switch (options->method) {
    case PS_AUTO:
        return options->pivot;
    case PS_PIVOTED:
        return PS_PIVOT_ALWAYS;
    default:
        return PS_PIVOT_NEVER;
    }
}

/* Whether `count` elements `stride` apart span no more than max_span. */
static bool
span_fits(int64_t stride, int64_t count)
{
    return count < 2 || (stride >= -max_span && stride <= max_span &&
                         llabs(stride) <= max_span / (count - 1));
}

static bool
spans_fit(ps_stride stride, extents n)
{
    return span_fits(stride.row, n.rows) && span_fits(stride.outer, n.outer) &&
           span_fits(stride.inner, n.inner);
}

/* The lattice of an operand without empty axes. Strides of axes of length 1 are ignored.
 */
static lattice
lattice_of(const void *data, ps_stride stride, int64_t size, extents n)
{
    const int64_t steps[AXES] = {stride.row, stride.outer, stride.inner};
    const int64_t counts[AXES] = {n.rows, n.outer, n.inner};
    lattice l = {.lowest = (uintptr_t)data, .highest = (uintptr_t)data};

    for (int k = 0; k < AXES; k++) {
        const int64_t span = steps[k] * size * (counts[k] - 1);

        if (span == 0) {
            continue;
        }
        if (span < 0) {
            l.lowest -= (uintptr_t)llabs(span);
        }
        else {
            l.highest += (uintptr_t)span;
        }
        l.terms[l.count++] = (term){llabs(steps[k] * size), counts[k] - 1};
    }
    return l;
}

/* Insert `new` in descending order of the steps; merge terms of equal steps. Returns the
 * number of terms. */
static int
insert_term(term *terms, int count, term new)
{
    int k = count;

    for (int i = 0; i < count; i++) {
        if (terms[i].step == new.step) {
            terms[i].limit += new.limit;
            return count;
        }
    }
    for (; k > 0 && terms[k - 1].step < new.step; k--) {
        terms[k] = terms[k - 1];
    }
    terms[k] = new;
    return count + 1;
}

/* Whether the terms k, k+1, ... can sum to a value in [low, high]. The result is true if
 * the step budget is exhausted. */
static bool
reaches(search *s, int k, int64_t low, int64_t high)
{
    int64_t reach = 0; /* largest sum of the terms after k */

    if (low <= 0 && high >= 0) {
        return true;
    }
    if (k == s->count || high < 0) {
        return false;
    }
    for (int i = k + 1; i < s->count; i++) {
        reach += s->terms[i].step * s->terms[i].limit;
    }

    const term t = s->terms[k];
    const int64_t missing = low - reach;
    const int64_t first = missing > 0 ? (missing + t.step - 1) / t.step : 0;
    const int64_t last = high / t.step < t.limit ? high / t.step : t.limit;
    for (int64_t i = first; i <= last; i++) {
        if (s->steps_left-- <= 0 ||
            reaches(s, k + 1, low - i * t.step, high - i * t.step)) {
            return true;
        }
    }
    return false;
}

static bool
overlap(const lattice *a, int64_t size, const lattice *b, int64_t size_b)
{
    term terms[TERMS];
    int count = 0;

    if (a->highest + (uintptr_t)size <= b->lowest ||
        b->highest + (uintptr_t)size_b <= a->lowest) {
        return false;
    }
    for (int k = 0; k < a->count; k++) {
        count = insert_term(terms, count, a->terms[k]);
    }
    for (int k = 0; k < b->count; k++) {
        count = insert_term(terms, count, b->terms[k]);
    }

    /* Elements of a are counted upwards from a->lowest, those of b downwards from
     * b->highest. */
    const int64_t distance = (int64_t)(b->highest - a->lowest);
    search s = {terms, count, SEARCH_STEPS};
    return reaches(&s, 0, distance - (size - 1), distance + (size_b - 1));
}

/* Whether two index triples may have the same address. They cannot if every step exceeds
 * the sum of step * limit over all shorter steps, which holds for every view made by
 * slicing, reversing and transposing. lattice_of() drops zero strides and insert_term()
 * merges equal ones: in both cases count < long_axes and the operand may repeat. */
static bool
may_repeat(const lattice *l, extents n)
{
    const int long_axes = (n.rows > 1) + (n.outer > 1) + (n.inner > 1);
    term sorted[AXES];
    int count = 0;
    int64_t reach = 0;

    for (int k = 0; k < l->count; k++) {
        count = insert_term(sorted, count, l->terms[k]);
    }
    if (count < long_axes) {
        return true;
    }
    for (int k = count - 1; k >= 0; k--) {
        if (sorted[k].step <= reach) {
            return true;
        }
        reach += sorted[k].step * sorted[k].limit;
    }
    return false;
}

static bool
same_layout(ps_stride a, ps_stride b, extents n)
{
    return (n.rows == 1 || a.row == b.row) && (n.outer == 1 || a.outer == b.outer) &&
           (n.inner == 1 || a.inner == b.inner);
}

static bool
sizes_are_legal(ps_dtype dtype, extents n)
{
    return (unsigned)dtype < PS_DTYPE_COUNT && n.rows >= 1 && n.rows <= INT32_MAX - 1 &&
           n.outer >= 0 && n.inner >= 0 &&
           (n.inner == 0 || n.outer <= INT64_MAX / n.inner);
}

static bool
flags_are_legal(uint32_t flags)
{
    const uint32_t short_any = PS_SHORT_LOWER | PS_SHORT_UPPER;

    return (flags & ~(PS_PERIODIC | short_any)) == 0 &&
           !((flags & PS_PERIODIC) && (flags & short_any));
}

/* Check an output and compute its lattice. */
static ps_status
check_output(const ps_output *x, int64_t size, extents n, lattice *taken)
{
    if (x->data == NULL || !spans_fit(x->stride, n)) {
        return PS_BAD_ARGUMENT;
    }
    *taken = lattice_of(x->data, x->stride, size, n);
    return may_repeat(taken, n) ? PS_BAD_LAYOUT : PS_OK;
}

/* Check an input of the extents n against the lattice of the output, or alone. */
static ps_status
check_input(const ps_input *input, int64_t size, extents n, const lattice *taken)
{
    if (n.rows == 0) {
        return PS_OK; /* the short off-diagonal of one row has no element */
    }
    if (input->data == NULL || !spans_fit(input->stride, n)) {
        return PS_BAD_ARGUMENT;
    }

    if (taken == NULL) {
        return PS_OK;
    }
    const lattice read = lattice_of(input->data, input->stride, size, n);
    return overlap(taken, size, &read, size) ? PS_BAD_LAYOUT : PS_OK;
}

/* Check the right-hand side, which may be the output (same data and strides). */
static ps_status
check_rhs(const ps_input *rhs, const ps_output *x, int64_t size, extents n,
          const lattice *taken)
{
    if (rhs->data == x->data && same_layout(rhs->stride, x->stride, n)) {
        return PS_OK;
    }
    return check_input(rhs, size, n, taken);
}

/* Check the diagonals against the lattice of an output, or alone. */
static ps_status
check_matrix(const ps_tridiag *t, const lattice *taken)
{
    const int64_t size = ps_dtype_size(t->dtype);
    const extents n = {t->rows, t->outer, t->inner};
    const extents n_lower = {t->rows - !!(t->flags & PS_SHORT_LOWER), t->outer, t->inner};
    const extents n_upper = {t->rows - !!(t->flags & PS_SHORT_UPPER), t->outer, t->inner};
    ps_status status = check_input(&t->lower, size, n_lower, taken);

    if (status == PS_OK) {
        status = check_input(&t->diag, size, n, taken);
    }
    return status == PS_OK ? check_input(&t->upper, size, n_upper, taken) : status;
}

static bool
request_is_legal(const ps_tridiag *t, const ps_options *options)
{
    const bool has_sums = (t->flags & PS_ROW_SUMS) != 0;

    return (unsigned)options->method < PS_METHOD_COUNT &&
           (unsigned)options->pivot < PS_PIVOT_COUNT && options->variant >= 0 &&
           sizes_are_legal(t->dtype, (extents){t->rows, t->outer, t->inner}) &&
           (!has_sums || (options->method == PS_AUTO &&
                          options->pivot == PS_PIVOT_NEVER && ps_is_real(t->dtype))) &&
           flags_are_legal(t->flags & ~(uint32_t)PS_ROW_SUMS);
}

ps_status
ps_tridiag_check(const ps_tridiag *t, const ps_options *options)
{
    if (t == NULL || options == NULL || !request_is_legal(t, options)) {
        return PS_BAD_ARGUMENT;
    }
    if (t->outer == 0 || t->inner == 0) {
        return PS_OK; /* nothing to read, so no pointer to check */
    }

    const int64_t size = ps_dtype_size(t->dtype);
    const extents n = {t->rows, t->outer, t->inner};
    lattice taken;
    ps_status status = check_output(&t->x, size, n, &taken);

    if (status == PS_OK) {
        status = check_matrix(t, &taken);
    }
    return status == PS_OK ? check_rhs(&t->rhs, &t->x, size, n, &taken) : status;
}

/* Check an output in addition to x: it shares no element with the operands of t nor with
 * the other one of these outputs, and the off-diagonal of its column is not short. */
static ps_status
check_spike(const ps_tridiag *t, const ps_output *spike, const ps_output *other,
            uint32_t is_short)
{
    const int64_t size = ps_dtype_size(t->dtype);
    const extents n = {t->rows, t->outer, t->inner};
    const ps_input others[] = {
        t->rhs, {t->x.data, t->x.stride}, {other->data, other->stride}};
    lattice taken;

    if (spike->data == NULL) {
        return PS_OK;
    }
    if (t->flags & is_short) {
        return PS_BAD_ARGUMENT;
    }
    ps_status status = check_output(spike, size, n, &taken);
    if (status == PS_OK) {
        status = check_matrix(t, &taken);
    }
    for (int k = 0; k < 2 + (other->data != NULL) && status == PS_OK; k++) {
        status = check_input(&others[k], size, n, &taken);
    }
    return status;
}

ps_status
ps_spikes_check(const ps_spikes *s, const ps_options *options)
{
    if (s == NULL || options == NULL) {
        return PS_BAD_ARGUMENT;
    }
    const ps_tridiag *const t = &s->t;
    ps_status status = ps_tridiag_check(t, options);

    if (status == PS_OK && (t->flags & (PS_PERIODIC | PS_ROW_SUMS))) {
        status = PS_BAD_ARGUMENT;
    }
    if (status == PS_OK &&
        ((options->method != PS_AUTO && options->method != PS_THOMAS) ||
         ps_options_pivot(options) == PS_PIVOT_ALWAYS)) {
        status = PS_UNSUPPORTED;
    }
    if (status != PS_OK || t->outer == 0 || t->inner == 0) {
        return status;
    }
    status = check_spike(t, &s->left, &s->right, PS_SHORT_LOWER);
    return status == PS_OK ? check_spike(t, &s->right, &s->left, PS_SHORT_UPPER) : status;
}

/* Whether a factor of `made` matrices along an axis can solve `asked` systems along it
 * with the given step. */
static bool
axis_is_legal(int32_t step, int64_t asked, int64_t made)
{
    return step == 0 ? asked == 0 || made > 0
                     : step == 1 && (asked == made || asked == 0);
}

static bool
factor_is_legal(const ps_factor *f)
{
    const bool has_sums = (f->flags & PS_ROW_SUMS) != 0;
    const uint32_t of_factors = PS_ROW_SUMS | PS_COLUMNS;

    return (unsigned)f->pivot < PS_PIVOT_COUNT &&
           (!has_sums || f->pivot == PS_PIVOT_NEVER) &&
           flags_are_legal(f->flags & ~of_factors) &&
           sizes_are_legal(f->dtype, (extents){f->rows, f->outer, f->inner});
}

ps_status
ps_matrix_check(const ps_factor *f, const ps_tridiag *t)
{
    if (f == NULL || !factor_is_legal(f) || t == NULL ||
        !flags_are_legal(t->flags & ~(uint32_t)PS_ROW_SUMS)) {
        return PS_BAD_ARGUMENT;
    }
    return t->outer == 0 || t->inner == 0 ? PS_OK : check_matrix(t, NULL);
}

ps_status
ps_factor_check(const ps_factor *f, const ps_factor_rhs *b)
{
    if (f == NULL || !factor_is_legal(f)) {
        return PS_BAD_ARGUMENT;
    }
    if (b == NULL) {
        return PS_OK; /* check of the factor without its store */
    }

    const extents n = {f->rows, b->outer, b->inner};
    if ((unsigned)b->trans >= PS_TRANS_COUNT || !sizes_are_legal(f->dtype, n) ||
        !axis_is_legal(b->outer_step, b->outer, f->outer) ||
        !axis_is_legal(b->inner_step, b->inner, f->inner)) {
        return PS_BAD_ARGUMENT;
    }
    if (b->outer == 0 || b->inner == 0) {
        return PS_OK;
    }
    if (f->store == NULL || (uintptr_t)f->store % 64 != 0) {
        return PS_BAD_ARGUMENT;
    }

    const int64_t size = ps_dtype_size(f->dtype);
    lattice taken;
    const ps_status status = check_output(&b->x, size, n, &taken);
    return status == PS_OK ? check_rhs(&b->rhs, &b->x, size, n, &taken) : status;
}

ps_status
ps_product_check(const ps_product *p)
{
    if (p == NULL || !sizes_are_legal(p->dtype, (extents){p->rows, p->outer, p->inner}) ||
        ((p->flags & PS_ROW_SUMS) && !ps_is_real(p->dtype)) ||
        !flags_are_legal(p->flags & ~(uint32_t)PS_ROW_SUMS)) {
        return PS_BAD_ARGUMENT;
    }
    if (p->outer == 0 || p->inner == 0) {
        return PS_OK;
    }
    const int64_t size = ps_dtype_size(p->dtype);
    const extents n = {p->rows, p->outer, p->inner};
    const ps_tridiag matrix = {.dtype = p->dtype,
                               .flags = p->flags,
                               .rows = p->rows,
                               .outer = p->outer,
                               .inner = p->inner,
                               .lower = p->lower,
                               .diag = p->diag,
                               .upper = p->upper};
    lattice taken;
    ps_status status = check_output(&p->out, size, n, &taken);

    if (status == PS_OK) {
        status = check_matrix(&matrix, &taken);
    }
    if (status == PS_OK) {
        status = check_input(&p->x, size, n, &taken);
    }
    return status == PS_OK && p->b.data != NULL
               ? check_rhs(&p->b, &p->out, size, n, &taken)
               : status;
}

/* Check the mask against the lattice of an output of elements of `size` bytes. */
static ps_status
check_mask(const ps_mask *where, int64_t size, extents n, const lattice *taken)
{
    if (where->data == NULL) {
        return PS_OK;
    }
    if (!spans_fit(where->stride, n)) {
        return PS_BAD_ARGUMENT;
    }
    const lattice read = lattice_of(where->data, where->stride, 1, n);

    return overlap(taken, size, &read, 1) ? PS_BAD_LAYOUT : PS_OK;
}

static bool
step_is_legal(const ps_step *s, ps_pivot pivot)
{
    const ps_options options = {.method = PS_AUTO, .pivot = pivot};
    const bool is_flux = s->kind == PS_STEP_FLUX;
    const bool has_least = s->least.data != NULL;
    const bool is_real = ps_is_real(s->t.dtype);

    if ((unsigned)s->kind >= PS_STEP_COUNT || !request_is_legal(&s->t, &options)) {
        return false;
    }
    if (s->kind == PS_STEP_MATRIX && s->source.data != NULL) {
        return false;
    }
    for (int end = 0; end < 2; end++) {
        const uint32_t is_short = end == 0 ? PS_SHORT_LOWER : PS_SHORT_UPPER;

        if ((!is_flux && (s->flux[end].data != NULL || s->value[end].data != NULL)) ||
            (s->value[end].data != NULL && (s->t.flags & is_short))) {
            return false;
        }
    }
    return (!is_flux || !(s->t.flags & PS_ROW_SUMS)) &&
           (!is_flux || (is_real && !(s->t.flags & PS_PERIODIC))) &&
           (!has_least || (is_real && !(s->t.flags & PS_PERIODIC) &&
                           pivot != PS_PIVOT_ALWAYS && !is_flux));
}

ps_status
ps_step_check(const ps_step *s, ps_pivot pivot)
{
    const ps_options options = {.method = PS_AUTO, .pivot = pivot};

    if (s == NULL || !step_is_legal(s, pivot)) {
        return PS_BAD_ARGUMENT;
    }
    if (s->t.outer == 0 || s->t.inner == 0) {
        return PS_OK;
    }
    const int64_t size = ps_dtype_size(s->t.dtype);
    const extents n = {s->t.rows, s->t.outer, s->t.inner};
    const extents one = {1, s->t.outer, s->t.inner};
    const ps_input *const inputs[] = {&s->source,  &s->least,    &s->flux[0],
                                      &s->flux[1], &s->value[0], &s->value[1]};
    lattice taken;
    ps_status status = ps_tridiag_check(&s->t, &options);

    if (status == PS_OK) {
        status = check_output(&s->t.x, size, n, &taken);
    }
    if (status == PS_OK) {
        status = check_mask(&s->where, size, n, &taken);
    }
    for (int k = 0; k < 6 && status == PS_OK; k++) {
        if (inputs[k]->data != NULL) {
            status = check_input(inputs[k], size, k < 2 ? n : one, &taken);
        }
    }
    return status;
}

ps_status
ps_factor_step_check(const ps_factor *f, const ps_factor_step *s)
{
    if (f == NULL || s == NULL) {
        return PS_BAD_ARGUMENT;
    }
    ps_status status = ps_factor_check(f, &s->b);

    if (status == PS_OK && s->b.trans != PS_TRANS_NONE &&
        (s->gain != 0 || s->source.data != NULL)) {
        status = PS_BAD_ARGUMENT;
    }
    if (status != PS_OK || s->b.outer == 0 || s->b.inner == 0) {
        return status;
    }
    const int64_t size = ps_dtype_size(f->dtype);
    const extents n = {f->rows, s->b.outer, s->b.inner};
    lattice taken;

    status = check_output(&s->b.x, size, n, &taken);
    if (status == PS_OK) {
        status = check_mask(&s->where, size, n, &taken);
    }
    return status == PS_OK && s->source.data != NULL
               ? check_input(&s->source, size, n, &taken)
               : status;
}

ps_status
ps_recurrence_check(const ps_recurrence *r)
{
    const uint32_t known = PS_REVERSED | PS_TRANSPOSED;

    if (r == NULL || !sizes_are_legal(r->dtype, (extents){r->rows, r->outer, r->inner}) ||
        (r->flags & ~known) != 0) {
        return PS_BAD_ARGUMENT;
    }
    if (r->outer == 0 || r->inner == 0) {
        return PS_OK;
    }
    const int64_t size = ps_dtype_size(r->dtype);
    const extents n = {r->rows, r->outer, r->inner};
    const extents states = {r->second.data != NULL ? 2 : 1, r->outer, r->inner};
    const ps_input *const inputs[] = {&r->first, &r->second, &r->initial};
    lattice taken;
    ps_status status = check_output(&r->x, size, n, &taken);

    for (int k = 0; k < 3 && status == PS_OK; k++) {
        if (k == 0 || inputs[k]->data != NULL) {
            status = check_input(inputs[k], size, k < 2 ? n : states, &taken);
        }
    }
    return status == PS_OK ? check_rhs(&r->b, &r->x, size, n, &taken) : status;
}
