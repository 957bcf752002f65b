/* streams.h - whether solutions are stored past the caches. */
#ifndef PS_CPU_LINES_STREAMS_H
#define PS_CPU_LINES_STREAMS_H

#include "pysolvers.h"

/* Whether x of a batch is stored with non-temporal stores: it has more than PS_STREAM_BYTES bytes, or
 * PS_STREAM_OWN_BYTES if each of several systems has a matrix of its own, and, where systems are
 * adjacent in memory, the rows of every tile are aligned vectors. `shift`: lanes that the first tile of
 * each run lacks; `joined`: systems of several outer indices form one run. A cache line that two groups
 * store in parts, past the caches, takes several accesses to memory: rows of x at other addresses than
 * multiples of a vector, or of a number of systems that is none of the lanes, took 1.6 to 3.6 times as
 * long as with ordinary stores (float64, 100 to 20000 rows, AVX2). */
int ps_is_streamed(const ps_tridiag *t, int lanes, int64_t shift, int joined);

#endif
