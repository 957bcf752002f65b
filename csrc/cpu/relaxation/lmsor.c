/* lmsor.c - LMSOR, LSOR and SOR: the parameters of a row, for each kernel.
 *
 * Memory traffic per node and iteration: 8 words in kernel 1, 6 in kernel 2, 3 in
 * kernel 3; auto reads 2 or 4 words and writes 1 in a pass of several iterations.
 */
#include "relaxation/lmsor.h"

#include "relaxation/relax.h"
#include "relaxation/relax_serial.h"
#include "runtime/isa.h"
#include "runtime/workspace.h"

/* The data of the rows: skew is the row skew of x_table in the dtype of the fields, as
 * two rows by the parity of i. */
typedef struct {
    const ps_lmsor *l;
    void *skew;
} problem;

/* The row at `offset` bytes in a field. */
static const void *
field_row(const void *field, size_t offset)
{
    return field == NULL ? NULL : (const char *)field + offset;
}

static const double *
table_row(const ps_lmsor *l, ps_table_row row, int parity)
{
    return l->x_table + (2 * (int64_t)row + parity) * l->pitch;
}

static double
table_value(const ps_lmsor *l, ps_table_row row, int64_t j)
{
    return l->y_table[(int64_t)row * (l->ny + 2) + j];
}

static void
describe_full(const void *self, int colour, int64_t j, size_t offset, void *scratch,
              ps_relax_row *row)
{
    const ps_lmsor *const l = ((const problem *)self)->l;
    (void)colour;
    (void)j;
    (void)scratch;

    row->omega = field_row(l->omega, offset);
    row->source = field_row(l->source, offset);
    row->coefficient[0] = field_row(l->west, offset);
    row->coefficient[1] = field_row(l->east, offset);
    row->coefficient[2] = field_row(l->north, offset);
    row->coefficient[3] = field_row(l->south, offset);
}

static void
describe_skew(const void *self, int colour, int64_t j, size_t offset, void *scratch,
              ps_relax_row *row)
{
    const ps_lmsor *const l = ((const problem *)self)->l;
    (void)colour;
    (void)j;
    (void)scratch;

    row->cx = l->cx;
    row->cy = l->cy;
    row->omega = field_row(l->omega, offset);
    row->source = field_row(l->source, offset);
    row->coefficient[0] = field_row(l->skew_x, offset);
    row->coefficient[1] = field_row(l->skew_y, offset);
}

static void
describe_tables(const void *self, int colour, int64_t j, size_t offset, void *scratch,
                ps_relax_row *row)
{
    const problem *const p = self;
    const ps_lmsor *const l = p->l;
    (void)colour;
    (void)scratch;

    row->cx = l->cx;
    row->cy = l->cy;
    row->skew_y = table_value(l, PS_TABLE_SKEW, j);
    row->omega = field_row(l->omega, offset);
    row->source = field_row(l->source, offset);
    row->coefficient[0] =
        (const char *)p->skew + row->parity * l->pitch * (l->dtype == PS_F32 ? 4 : 8);
}

/* Kernel 3: compute omega of the row in scratch memory. */
static void
describe_computed(const void *self, int colour, int64_t j, size_t offset, void *scratch,
                  ps_relax_row *row)
{
    const ps_lmsor *const l = ((const problem *)self)->l;
    const ps_omega_row omega = {
        .mu_max = table_row(l, PS_TABLE_MU_MAX, row->parity),
        .mu_min = table_row(l, PS_TABLE_MU_MIN, row->parity),
        .sign = table_row(l, PS_TABLE_SIGN, row->parity),
        .gain = table_row(l, PS_TABLE_GAIN, row->parity),
        .row_mu_max = table_value(l, PS_TABLE_MU_MAX, j),
        .row_mu_min = table_value(l, PS_TABLE_MU_MIN, j),
        .row_sign = table_value(l, PS_TABLE_SIGN, j),
        .row_gain = table_value(l, PS_TABLE_GAIN, j),
        .constant = l->omega_constant,
        .relaxation = l->relaxation,
        .colour = colour,
        .count = row->last,
    };

    describe_tables(self, colour, j, offset, scratch, row);
    ps_relax_kernels_get(l->dtype)->omega(&omega, scratch);
    row->omega = scratch;
}

static size_t
skew_bytes(const ps_lmsor *l)
{
    return ps_aligned((size_t)(2 * l->pitch * ps_dtype_size(l->dtype)));
}

static void
round_skew(const ps_lmsor *l, void *skew)
{
    for (int64_t m = 0; m < 2 * l->pitch; m++) {
        const double value = l->x_table[2 * PS_TABLE_SKEW * l->pitch + m];

        if (l->dtype == PS_F32) {
            ((float *)skew)[m] = (float)value;
        }
        else {
            ((double *)skew)[m] = value;
        }
    }
}

static int
uses_tables(const ps_lmsor *l)
{
    const int has_tables = l->x_table != NULL && l->y_table != NULL;

    return l->kernel == PS_LMSOR_3 || (l->kernel == PS_LMSOR_AUTO && has_tables);
}

static ps_relax
relaxation_of(const problem *p)
{
    const ps_lmsor *const l = p->l;
    const ps_relax_kernels *const kernels = ps_relax_kernels_get(l->dtype);
    ps_relax r = {
        .dtype = l->dtype,
        .nx = l->nx,
        .ny = l->ny,
        .pitch = l->pitch,
        .field = l->u,
        .stop = &l->stop,
        .kernel = ps_isa_get()->name,
        .row = kernels->row[PS_ROW_SKEW],
        .describe = describe_skew,
        .self = p,
        .blocked = l->kernel == PS_LMSOR_AUTO && l->periodic == 0,
        .periodic = l->periodic,
        .row_words = 4 + (l->source != NULL),
    };

    if (l->kernel == PS_LMSOR_1) {
        r.row = kernels->row[PS_ROW_FULL];
        r.describe = describe_full;
    }
    else if (uses_tables(l)) {
        r.row = kernels->row[PS_ROW_TABLES];
        r.describe = l->kernel == PS_LMSOR_3 ? describe_computed : describe_tables;
        r.row_words = 2 + (l->source != NULL);
    }
    else if (l->kernel == PS_LMSOR_SERIAL) {
        r.row = ps_relax_serial_skew(l->dtype);
        r.interleaved = 1;
        r.kernel = "serial";
    }
    return r;
}

ps_status
ps_cpu_lmsor_work(const ps_lmsor *l, const ps_exec *exec, size_t *bytes)
{
    const problem p = {l, NULL};
    const ps_status status = ps_lmsor_check(l);

    if (status != PS_OK) {
        return status;
    }
    const ps_relax r = relaxation_of(&p);
    *bytes = skew_bytes(l) + ps_relax_work(&r, exec);
    return PS_OK;
}

ps_status
ps_cpu_lmsor_iterate(const ps_lmsor *l, int64_t count, const ps_exec *exec,
                     ps_lmsor_report *report)
{
    size_t bytes;
    const ps_status status = ps_cpu_lmsor_work(l, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (exec->work_bytes < bytes) {
        return PS_WORK_TOO_SMALL;
    }
    const problem p = {l, exec->work};
    const ps_relax r = relaxation_of(&p);
    ps_exec rest = *exec;

    rest.work = (char *)exec->work + skew_bytes(l);
    rest.work_bytes -= skew_bytes(l);
    if (uses_tables(l)) {
        round_skew(l, p.skew);
    }
    return ps_relax_iterate(&r, count, &rest, &report->relax);
}
