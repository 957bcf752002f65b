/* heat_check.c - checks of a ps_heat, for all backends. */
#include <math.h>

#include "ps_heat.h"

enum { SMALLEST_BLOCK = 32, LARGEST_BLOCK = 512 };

static int64_t
unknowns(const ps_heat *h)
{
    return h->nodes[0] * h->nodes[1] * h->nodes[2];
}

/* Whether the values of a table are the same at all time levels. */
static int
is_steady(const ps_heat_table *table)
{
    return table->data == NULL || table->level_step == 0;
}

static int
check_table(const ps_heat_table *table)
{
    return (table->node_step == 0 || table->node_step == 1) && table->level_step >= 0;
}

static int
check_side(const ps_heat_side *side)
{
    return (unsigned)side->kind < PS_HEAT_SIDE_COUNT && isfinite(side->exchange) &&
           side->exchange >= 0 && check_table(&side->level) && check_table(&side->sweep);
}

static int
check_axis(const ps_heat *h, int axis)
{
    const ps_heat_side *const side = h->side[axis];
    const int fluxes = side[0].kind == PS_HEAT_FLUX && side[1].kind == PS_HEAT_FLUX;

    return check_side(&side[0]) && check_side(&side[1]) &&
           (side[0].kind == PS_HEAT_PERIODIC) == (side[1].kind == PS_HEAT_PERIODIC) &&
           h->nodes[axis] >= (fluxes ? 2 : 3) && h->nodes[axis] < INT32_MAX &&
           isfinite(h->ratio[axis]) && h->ratio[axis] > 0;
}

/* Restrictions of the scheme and the kernels of the paper (Wei et al. 2013). */
static int
check_paper(const ps_heat *h)
{
    if (h->axes != 2 || h->k != NULL || h->source.data != NULL) {
        return 0;
    }
    for (int axis = 0; axis < 2; axis++) {
        for (int end = 0; end < 2; end++) {
            const ps_heat_side *const side = &h->side[axis][end];

            if (side->kind != PS_HEAT_VALUE || !is_steady(&side->level) ||
                !is_steady(&side->sweep)) {
                return 0;
            }
        }
    }
    return 1;
}

static int
check_choices(const ps_heat *h)
{
    if (!ps_is_real(h->dtype) || (unsigned)h->scheme >= PS_HEAT_SCHEME_COUNT ||
        (unsigned)h->kernels >= PS_HEAT_KERNELS_COUNT ||
        (unsigned)h->memory >= PS_HEAT_MEMORY_COUNT) {
        return 0;
    }
    if (h->axes != 2 && (h->axes != PS_HEAT_AXES || h->scheme != PS_HEAT_DOUGLAS_GUNN)) {
        return 0;
    }
    if (h->kernels == PS_HEAT_KERNELS_PAPER &&
        (h->scheme == PS_HEAT_DOUGLAS_GUNN || h->mapping < 1 || h->mapping > 4 ||
         (h->block != 0 && (h->block < SMALLEST_BLOCK || h->block > LARGEST_BLOCK)))) {
        return 0;
    }
    const int paper = h->kernels == PS_HEAT_KERNELS_PAPER || h->scheme == PS_HEAT_WEI2013;
    return !paper || check_paper(h);
}

static int
are_apart(const void *a, const void *b, size_t bytes)
{
    const char *const p = a, *const q = b;

    return p == NULL || q == NULL || p + bytes <= q || q + bytes <= p;
}

ps_status
ps_heat_check(const ps_heat *h, int64_t count)
{
    if (h == NULL || h->t == NULL || h->w == NULL || count < 0 || h->before < 0 ||
        !check_choices(h) || (h->axes == 2 && h->nodes[2] != 1) ||
        !check_table(&h->source) || (h->kept != NULL && h->kept_as == NULL)) {
        return PS_BAD_ARGUMENT;
    }
    for (int axis = 0; axis < h->axes; axis++) {
        if (!check_axis(h, axis)) {
            return PS_BAD_ARGUMENT;
        }
    }
    const size_t bytes = (size_t)(unknowns(h) * ps_dtype_size(h->dtype));
    return are_apart(h->t, h->w, bytes) && are_apart(h->t, h->k, bytes) &&
                   are_apart(h->w, h->k, bytes)
               ? PS_OK
               : PS_BAD_LAYOUT;
}
