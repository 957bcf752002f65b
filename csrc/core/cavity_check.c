/* cavity_check.c - checks of a ps_cavity, for all backends. */
#include <math.h>

#include "ps_cavity.h"

static int
positive(double value)
{
    return isfinite(value) && value > 0;
}

ps_status
ps_cavity_check(const ps_cavity *c)
{
    if (c == NULL || c->psi == NULL || c->omega == NULL) {
        return PS_BAD_ARGUMENT;
    }
    if (c->nodes < 5 || c->nodes > INT32_MAX - 1 || c->iteration < 0) {
        return PS_BAD_ARGUMENT;
    }
    if ((unsigned)c->scheme >= PS_SCHEME_COUNT || (unsigned)c->wall >= PS_WALL_COUNT ||
        (unsigned)c->direction >= PS_DIRECTION_COUNT ||
        c->stages >> PS_STAGE_COUNT != 0) {
        return PS_BAD_ARGUMENT;
    }
    if (!positive(c->viscosity) || !isfinite(c->lid)) {
        return PS_BAD_ARGUMENT;
    }
    if (c->scheme == PS_SCHEME_ADI && (!positive(c->step) || c->psi_sweeps < 1)) {
        return PS_BAD_ARGUMENT;
    }
    const int64_t nodes = c->nodes * c->nodes;
    return c->psi + nodes <= c->omega || c->omega + nodes <= c->psi ? PS_OK
                                                                    : PS_BAD_LAYOUT;
}
