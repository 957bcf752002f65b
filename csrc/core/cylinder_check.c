/* cylinder_check.c - checks of a ps_cylinder, for all backends. */
#include <math.h>

#include "ps_cylinder.h"

static int
positive(double value)
{
    return isfinite(value) && value > 0;
}

/* Whether a range has `margin` nodes of the grid on both sides. */
static int
is_within(ps_node_range range, int64_t nodes, int64_t margin)
{
    return margin <= range.first && range.first < range.last &&
           range.last < nodes - margin;
}

ps_status
ps_cylinder_check(const ps_cylinder *c)
{
    if (c == NULL || !ps_is_real(c->dtype)) {
        return PS_BAD_ARGUMENT;
    }
    if (c->ny < 17 || (c->ny - 1) % 16 != 0 || c->nx < 8 || c->ny > INT32_MAX / c->nx) {
        return PS_BAD_ARGUMENT;
    }
    if (!positive(c->hx) || !positive(c->hy) || !positive(c->viscosity) ||
        !positive(c->dt) || !positive(c->dt_old)) {
        return PS_BAD_ARGUMENT;
    }
    if (!is_within(c->rows, c->ny, 3) || !is_within(c->columns, c->nx, 3) ||
        !is_within(c->box_rows, c->ny, 1) || !is_within(c->box_columns, c->nx, 1)) {
        return PS_BAD_ARGUMENT;
    }
    if (c->surface_nodes < 1 || c->probes < 0 || c->force_nodes < 1 || c->steps < 0) {
        return PS_BAD_ARGUMENT;
    }
    if (c->psi == NULL || c->psi_old == NULL || c->omega == NULL ||
        c->omega_old == NULL || c->scalars == NULL || c->history == NULL) {
        return PS_BAD_ARGUMENT;
    }
    if (!(c->psi_tol >= 0) || c->shift_count < 0 || c->shift_count > PS_CYLINDER_SHIFTS ||
        (c->psi_tol > 0 && (c->shift_count == 0 || c->unit_circulation == 0))) {
        return PS_BAD_ARGUMENT;
    }
    if (c->block != 0 && c->block != 32 && c->block != 64 && c->block != 128 &&
        c->block != 256) {
        return PS_BAD_ARGUMENT;
    }
    for (int k = 0; k < PS_CYLINDER_TABLES; k++) {
        const int is_of_probes = k == PS_TABLE_PROBE_NODES || k == PS_TABLE_PROBE_WEIGHTS;
        const int is_of_lines = k == PS_TABLE_UNIT_PSI;

        if (c->tables[k] == NULL && !(is_of_probes && c->probes == 0) &&
            !(is_of_lines && c->psi_tol == 0)) {
            return PS_BAD_ARGUMENT;
        }
    }
    return PS_OK;
}
