/* lmsor_check.c - checks of a ps_lmsor, for all backends. */
#include <math.h>

#include "colours.h"
#include "ps_lmsor.h"

static int
has_operands(const ps_lmsor *l)
{
    const int stored = l->west && l->east && l->north && l->south;
    const int skew = l->skew_x && l->skew_y, tables = l->x_table && l->y_table;

    switch (l->kernel) {
    case PS_LMSOR_1:
        return l->omega && stored;
    case PS_LMSOR_3:
        return tables;
    case PS_LMSOR_AUTO:
        return l->omega && (skew || tables);
    default:
        return l->omega && skew;
    }
}

/* Whether u shares no memory with an operand. */
static int
is_apart(const ps_lmsor *l)
{
    const void *const fields[] = {l->omega, l->west,   l->east,   l->north,
                                  l->south, l->skew_x, l->skew_y, l->source};
    const int64_t bytes = 2 * (l->ny + 2) * l->pitch * ps_dtype_size(l->dtype);
    const int64_t word = (int64_t)sizeof(double);
    int apart =
        ps_colours_apart(l->u, bytes, l->x_table, PS_TABLE_ROWS * 2 * l->pitch * word) &&
        ps_colours_apart(l->u, bytes, l->y_table, PS_TABLE_ROWS * (l->ny + 2) * word);

    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
        apart = apart && ps_colours_apart(l->u, bytes, fields[k], bytes);
    }
    return apart;
}

ps_status
ps_lmsor_check(const ps_lmsor *l)
{
    if (l == NULL || l->u == NULL ||
        !ps_colours_legal(l->dtype, l->nx, l->ny, l->pitch) ||
        !ps_colours_periodic(l->periodic, l->nx, l->ny)) {
        return PS_BAD_ARGUMENT;
    }
    if ((unsigned)l->kernel >= PS_LMSOR_KERNELS ||
        (unsigned)l->relaxation >= PS_RELAXATIONS || !isfinite(l->cx) ||
        !isfinite(l->cy) || !isfinite(l->omega_constant) || !has_operands(l)) {
        return PS_BAD_ARGUMENT;
    }
    const ps_status status = ps_stop_check(&l->stop, l->ny);

    if (status != PS_OK) {
        return status;
    }
    return is_apart(l) ? PS_OK : PS_BAD_LAYOUT;
}
