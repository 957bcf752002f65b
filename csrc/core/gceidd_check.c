/* gceidd_check.c - checks of a ps_gceidd, and its grid in a step, for all backends. */
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
    return ps_is_real(g->dtype) && (unsigned)g->scheme < PS_GCEIDD_SCHEME_COUNT &&
           (unsigned)g->upwind < PS_GCEIDD_UPWIND_COUNT &&
           (unsigned)g->predictor < PS_GCEIDD_PREDICTOR_COUNT &&
           (unsigned)g->foot < PS_GCEIDD_FOOT_COUNT &&
           (unsigned)g->kernels < PS_GCEIDD_KERNELS_COUNT &&
           (unsigned)g->strategy < PS_GCEIDD_STRATEGY_COUNT && g->few_strips >= 0 &&
           g->short_strip >= 0 && g->throttle >= 0;
}

/* The strips that are left must be those of a grid of their own. */
static int
losses_are_legal(const ps_gceidd *g)
{
    const int64_t *const lost = g->lost, strips = g->strips[PS_GCEIDD_Y];
    const int64_t rest = g->cells[PS_GCEIDD_Y] % strips;

    return lost[0] >= 0 && lost[1] >= 0 && lost[0] < strips && lost[1] < strips &&
           (lost[0] + lost[1] == 0 || rest == 0 || rest == strips - 1);
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
    return positive(g->dt) && g->lowest <= g->highest && losses_are_legal(g);
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

        if ((unsigned)edge->kind >= PS_GCEIDD_KIND_COUNT || edge->data.data == NULL ||
            (edge->kind == PS_GCEIDD_ROBIN) != (edge->exchange.data != NULL)) {
            return 0;
        }
    }
    for (int side = 0; side < PS_GCEIDD_SIDE_COUNT; side += 2) {
        if ((g->edge[side].kind == PS_GCEIDD_PERIODIC) !=
            (g->edge[side + 1].kind == PS_GCEIDD_PERIODIC)) {
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
    const int is_mu = g->scheme == PS_GCEIDD_MU, has_before = g->before != NULL;
    const char *const fields[] = {g->u, is_mu ? g->older[0] : g->before, g->older[1]};
    const int count = is_mu ? 3 : 1 + has_before;
    const int64_t bytes = (g->cells[PS_GCEIDD_X] + 1) * (g->cells[PS_GCEIDD_Y] + 1) *
                          ps_dtype_size(g->dtype);

    if (is_mu && has_before) {
        return PS_BAD_ARGUMENT;
    }
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

ps_status
ps_gceidd_check_count(const ps_gceidd *g, int64_t count)
{
    const int64_t lost = g->lost[0] + g->lost[1];

    return count < 0 || (lost > 0 && count > 0 &&
                         count - 1 > (g->strips[PS_GCEIDD_Y] - 1) / lost)
               ? PS_BAD_ARGUMENT
               : PS_OK;
}

/* Values from line `line` along y on. */
static ps_gceidd_data
data_from(ps_gceidd_data data, int64_t line, int64_t size)
{
    data.data = (const char *)data.data + line * data.y * size;
    return data;
}

ps_gceidd
ps_gceidd_in_step(const ps_gceidd *g, int64_t k)
{
    const int64_t size = ps_dtype_size(g->dtype);
    const int64_t cells = g->cells[PS_GCEIDD_Y], strips = g->strips[PS_GCEIDD_Y];
    const int64_t first = k * g->lost[0], last = strips - k * g->lost[1];
    const int64_t line = first * cells / strips, end = last * cells / strips;
    const int64_t bytes = line * (g->cells[PS_GCEIDD_X] + 1) * size;
    ps_gceidd now = *g;

    now.before = NULL;
    now.cells[PS_GCEIDD_Y] = end - line;
    now.strips[PS_GCEIDD_Y] = last - first;
    for (int axis = 0; axis < PS_GCEIDD_AXES; axis++) {
        now.velocity[axis] = data_from(g->velocity[axis], line, size);
        now.diffusion[axis] = data_from(g->diffusion[axis], line, size);
    }
    for (int term = 0; term < g->terms; term++) {
        now.source[term].field = data_from(g->source[term].field, line, size);
    }
    for (int side = PS_GCEIDD_WEST; side <= PS_GCEIDD_EAST; side++) {
        now.edge[side].data = data_from(g->edge[side].data, line, size);
        if (g->edge[side].kind == PS_GCEIDD_ROBIN) {
            now.edge[side].exchange = data_from(g->edge[side].exchange, line, size);
        }
    }
    now.u = (char *)g->u + bytes;
    for (int n = 0; n < PS_GCEIDD_OLDER && g->older[n] != NULL; n++) {
        now.older[n] = (char *)g->older[n] + bytes;
    }
    return now;
}
