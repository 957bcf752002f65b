/* modes_check.c - checks of ps_modes, for all backends. */
#include "ps_modes.h"

ps_status
ps_modes_check(const ps_modes *p)
{
    if (p == NULL || !ps_is_real(p->dtype) || p->even == NULL ||
        p->size[PS_MODES_ROW] < 1 || p->size[PS_MODES_ROW] > PS_MODES_MOST) {
        return PS_BAD_ARGUMENT;
    }
    for (int k = 0; k < PS_MODES_AXES; k++) {
        if (p->size[k] < 0) {
            return PS_BAD_ARGUMENT;
        }
    }
    return PS_OK;
}
