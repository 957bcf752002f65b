/* laplace_check.c - checks of a ps_laplace, for all backends. */
#include <math.h>

#include "colours.h"
#include "ps_laplace.h"

enum { TABLE_ROWS = 3 };

ps_status
ps_laplace_check(const ps_laplace *l)
{
    if (l == NULL || l->t == NULL || l->diag == NULL || l->gain == NULL ||
        !ps_colours_legal(l->dtype, l->nx, l->ny, l->pitch) ||
        !ps_colours_periodic(l->periodic, l->nx, l->ny)) {
        return PS_BAD_ARGUMENT;
    }
    if ((unsigned)l->variant >= PS_LAPLACE_VARIANTS || !isfinite(l->ax) ||
        !isfinite(l->ay)) {
        return PS_BAD_ARGUMENT;
    }
    if ((unsigned)l->coefficients >= PS_LAPLACE_COEFFICIENT_COUNT ||
        (l->coefficients != PS_LAPLACE_TABLES && l->variant == PS_LAPLACE_AUTO)) {
        return PS_BAD_ARGUMENT;
    }
    const ps_status status = ps_stop_check(&l->stop, l->ny);

    if (status != PS_OK) {
        return status;
    }
    const int64_t row = 2 * l->pitch * ps_dtype_size(l->dtype);
    const int64_t bytes = (l->ny + 2) * row;

    return ps_colours_apart(l->t, bytes, l->source, bytes) &&
                   ps_colours_apart(l->t, bytes, l->diag, TABLE_ROWS * row) &&
                   ps_colours_apart(l->t, bytes, l->gain, TABLE_ROWS * row)
               ? PS_OK
               : PS_BAD_LAYOUT;
}
