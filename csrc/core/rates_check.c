/* rates_check.c - checks of ps_rates, for all backends. */
#include "ps_rates.h"

ps_status
ps_rates_check(const ps_rates *r)
{
    if (r == NULL || !ps_is_real(r->dtype) || r->space < 1 || r->space > PS_RATES_SPACE ||
        r->u == NULL) {
        return PS_BAD_ARGUMENT;
    }
    for (int k = 0; k < PS_RATES_AXES; k++) {
        if (r->begin[k] < 0 || r->count[k] < 0 ||
            r->count[k] > r->size[k] - r->begin[k]) {
            return PS_BAD_ARGUMENT;
        }
    }
    return PS_OK;
}
