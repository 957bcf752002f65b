/* differences_check.c - checks of the struct of ps_differences.h, for all backends. */
#include "ps_differences.h"

static int
fits(const ps_differences *d, const ps_factor *f)
{
    return f == NULL ||
           (f->dtype == d->dtype && f->rows == d->rows && f->outer * f->inner == 1);
}

ps_status
ps_differences_check(const ps_differences *d, ps_difference_factors f)
{
    const int64_t least = 2 * PS_DIFFERENCE_ENDS + 1;

    if (d == NULL || d->dtype < 0 || d->dtype >= PS_DTYPE_COUNT || d->outer < 0 ||
        d->inner < 0 || d->rows < least || d->rows >= INT32_MAX ||
        (d->flags & ~(uint32_t)PS_PERIODIC) != 0) {
        return PS_BAD_ARGUMENT;
    }
    for (int k = 0; k < PS_DIFFERENCE_ENDS; k++) {
        const int32_t most = k == 0 ? PS_DIFFERENCE_POINTS : PS_DIFFERENCE_SECOND;

        if (d->points[k] < 1 || d->points[k] > most || d->points[k] > d->rows) {
            return PS_BAD_ARGUMENT;
        }
    }
    if (d->outer * d->inner > 0 && (d->f.data == NULL || d->x.data == NULL)) {
        return PS_BAD_ARGUMENT;
    }
    if (d->outer * d->inner > 0 && d->f.data == d->x.data) {
        return PS_BAD_LAYOUT;
    }
    return fits(d, f.first) && fits(d, f.second) ? PS_OK : PS_BAD_ARGUMENT;
}
