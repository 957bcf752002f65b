/* cylinder_sines.c - the plan of the sine transform of the cylinder, and its matrices. */
#include "flow/cylinder_sines.h"

#include <string.h>

/* The places of the matrices that a plan has already. */
typedef struct {
    ps_sine_plan *plan;
    int64_t table[PS_SINE_KINDS][PS_SINE_LEVELS];
} builder;

static void
add_product(builder *b, ps_sine_product p)
{
    int64_t *const table = &b->table[p.kind][p.level];
    const int64_t groups = (p.results + PS_SINE_ROWS - 1) / PS_SINE_ROWS;

    if (*table < 0) {
        *table = b->plan->entries;
        b->plan->entries += groups * PS_SINE_ROWS * p.terms;
    }
    p.table = *table;
    b->plan->product[b->plan->products++] = p;
}

/* A(n): node j is row first + j step, wave w row w out_step. */
static void
add_odd(builder *b, int level, int64_t first, int64_t step, int64_t n, int64_t out_step)
{
    if (n % 4 != 0 || n <= PS_SINE_FEW) {
        add_product(b, (ps_sine_product){.kind = PS_SINES_ODD,
                                         .level = level,
                                         .in = first + step,
                                         .in_step = step,
                                         .terms = n / 2,
                                         .out = out_step,
                                         .out_step = 2 * out_step,
                                         .results = n / 2});
        return;
    }
    add_odd(b, level + 1, first, 2 * step, n / 2, out_step);
    add_product(b, (ps_sine_product){.kind = PS_SINES_ODD_ODD,
                                     .level = level,
                                     .in = first + step,
                                     .in_step = 2 * step,
                                     .terms = n / 4,
                                     .out = out_step,
                                     .out_step = 2 * out_step,
                                     .results = n / 4,
                                     .mirror = (n - 1) * out_step});
}

void
ps_sine_plan_of(int64_t n, ps_sine_plan *plan)
{
    builder b = {.plan = plan};
    int64_t first = 0, step = 1, out_step = 1;
    int level = 0;

    memset(b.table, -1, sizeof(b.table));
    plan->n = n;
    plan->entries = 0;
    plan->folds = plan->products = 0;
    for (; n % 2 == 0 && n > PS_SINE_FEW; n /= 2, out_step *= 2, level++) {
        plan->fold[plan->folds++] = (ps_sine_fold){first, step, n};
        add_odd(&b, level, first, step, n, out_step);
        first += step * n; /* difference j is in row n - j */
        step = -step;
    }
    add_product(&b, (ps_sine_product){.kind = PS_SINES_ALL,
                                      .level = level,
                                      .in = first + step,
                                      .in_step = step,
                                      .terms = n - 1,
                                      .out = out_step,
                                      .out_step = out_step,
                                      .results = n - 1});
}

/* The place in PS_TABLE_SINES of entry (m, t) of the matrix of a product. */
static int64_t
place_of(const ps_sine_product *p, int64_t n, int backward, int64_t m, int64_t t)
{
    const int64_t half = n / 2;
    const int64_t w = (p->kind == PS_SINES_ALL ? m + 1 : 2 * m + 1) << p->level;
    const int64_t j = p->kind == PS_SINES_ODD_ODD ? 2 * t + 1 : t + 1;
    const int64_t parity = w % 2 == 0, row = (w - 1 - parity) / 2;

    return ((2 * backward + parity) * half + (backward ? j - 1 : row)) * half +
           (backward ? row : j - 1);
}

#define PACK(name, real)                                                                \
    void name(const ps_sine_plan *plan, const real *table, int backward, real *entries) \
    {                                                                                   \
        for (int k = 0; k < plan->products; k++) {                                      \
            const ps_sine_product *const p = &plan->product[k];                         \
            const int64_t terms = p->terms;                                             \
            const int64_t groups = (p->results + PS_SINE_ROWS - 1) / PS_SINE_ROWS;      \
                                                                                        \
            for (int64_t m = 0; m < groups * PS_SINE_ROWS; m++) {                       \
                real *const to = entries + p->table +                                   \
                                 m / PS_SINE_ROWS * PS_SINE_ROWS * terms +              \
                                 m % PS_SINE_ROWS;                                      \
                                                                                        \
                for (int64_t t = 0; t < terms; t++) {                                   \
                    to[t * PS_SINE_ROWS] =                                              \
                        m < p->results ? table[place_of(p, plan->n, backward, m, t)]    \
                                       : 0;                                             \
                }                                                                       \
            }                                                                           \
        }                                                                               \
    }
PACK(ps_sine_pack_f32, float)
PACK(ps_sine_pack_f64, double)
