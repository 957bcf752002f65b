/* stop_check.c - checks of a ps_stop, for all backends. */
#include <math.h>

#include "ps_stop.h"

/* Whether the counted rows are all rows, or rows of the interior. */
static int
has_legal_rows(const ps_stop *stop, int64_t ny)
{
    if (stop->rows == 0) {
        return stop->first_row == 0;
    }
    return stop->first_row >= 1 && stop->first_row <= ny && stop->rows > 0 &&
           stop->rows <= ny - stop->first_row + 1;
}

ps_status
ps_stop_check(const ps_stop *stop, int64_t ny)
{
    if ((unsigned)stop->criterion >= PS_CRITERION_COUNT ||
        (unsigned)stop->norm >= PS_NORM_COUNT || stop->every < 0 ||
        isnan(stop->tolerance) || !has_legal_rows(stop, ny)) {
        return PS_BAD_ARGUMENT;
    }
    return PS_OK;
}
