/* clock.c - the time of day, for the seconds of the stages of a call. */
#include "runtime/clock.h"

#include <time.h>

double
ps_clock_now(void)
{
    struct timespec t;

    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
