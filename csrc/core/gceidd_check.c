/* gceidd_check.c - checks of a ps_gceidd, for all backends. */
#include <math.h>

#include "ps_gceidd.h"

/* Largest number of cells along an axis: the size of a field in bytes stays below 2^63.
 */
enum { MOST_CELLS = 1 << 29 };

static int
positive(double value)
{
    return isfinite(value) && value > 0;
}

static int
options_are_legal(const ps_gceidd *g)
{
    return (g->dtype == PS_F32 || g->dtype == PS_F64) &&
           (unsigned)g->scheme < PS_GCEIDD_SCHEME_COUNT &&
           (unsigned)g->upwind < PS_GCEIDD_UPWIND_COUNT &&
           (unsigned)g->predictor < PS_GCEIDD_PREDICTOR_COUNT &&
           (unsigned)g->foot < PS_GCEIDD_FOOT_COUNT &&
           (unsigned)g->kernels < PS_GCEIDD_KERNELS_COUNT &&
           (unsigned)g->strategy < PS_GCEIDD_STRATEGY_COUNT;
}

static int
grid_is_legal(const ps_gceidd *g)
{
    for (int axis = 0; axis < PS_GCEIDD_AXES; axis++) {
        const int64_t cells = g->cells[axis], strips = g->strips[axis];

        if (strips < 1 || cells > MOST_CELLS || cells / strips < PS_GCEIDD_LEAST_STRIP ||
            !positive(g->spacing[axis])) {
            return 0;
        }
    }
    return positive(g->dt) && g->bound > 0;
}

static int
data_are_there(const ps_gceidd *g)
{
    if (g->terms < 0 || g->terms > PS_GCEIDD_TERMS) {
        return 0;
    }
    for (int k = 0; k < g->terms; k++) {
        if (g->source[k].field.data == NULL) {
            return 0;
        }
    }
    for (int side = 0; side < PS_GCEIDD_SIDE_COUNT; side++) {
        const ps_gceidd_edge *const edge = &g->edge[side];

        if ((unsigned)edge->kind >= PS_GCEIDD_KIND_COUNT || edge->data.data == NULL) {
            return 0;
        }
    }
    return g->velocity[PS_GCEIDD_X].data != NULL &&
           g->velocity[PS_GCEIDD_Y].data != NULL &&
           g->diffusion[PS_GCEIDD_X].data != NULL &&
           g->diffusion[PS_GCEIDD_Y].data != NULL;
}

ps_status
ps_gceidd_check(const ps_gceidd *g)
{
    if (g == NULL || !options_are_legal(g) || !grid_is_legal(g) || !data_are_there(g)) {
        return PS_BAD_ARGUMENT;
    }
    const char *const fields[] = {g->u, g->older[0], g->older[1]};
    const int count = g->scheme == PS_GCEIDD_MU ? 3 : 1;
    const int64_t bytes = (g->cells[PS_GCEIDD_X] + 1) * (g->cells[PS_GCEIDD_Y] + 1) *
                          ps_dtype_size(g->dtype);

    for (int k = 0; k < count; k++) {
        if (fields[k] == NULL) {
            return PS_BAD_ARGUMENT;
        }
        for (int other = 0; other < k; other++) {
            if (fields[k] < fields[other] + bytes && fields[other] < fields[k] + bytes) {
                return PS_BAD_LAYOUT;
            }
        }
    }
    return PS_OK;
}
