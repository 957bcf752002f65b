/* stop_check.c - checks of a ps_stop, for all backends. */
#include <math.h>

#include "ps_stop.h"

ps_status
ps_stop_check(const ps_stop *stop)
{
    if ((unsigned)stop->criterion >= PS_CRITERION_COUNT ||
        (unsigned)stop->norm >= PS_NORM_COUNT || stop->every < 0 ||
        isnan(stop->tolerance)) {
        return PS_BAD_ARGUMENT;
    }
    return PS_OK;
}
