/* clock.h - the time of day, for the seconds of the stages of a call. */
#ifndef PS_CPU_CLOCK_H
#define PS_CPU_CLOCK_H

/* Seconds since a fixed date. */
double ps_clock_now(void);

#endif
