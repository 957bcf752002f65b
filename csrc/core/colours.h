/* colours.h - what the checks of fields split by colour share. */
#ifndef PS_CORE_COLOURS_H
#define PS_CORE_COLOURS_H

#include "pysolvers.h"

/* Whether the grid is legal, and a field small enough to be addressed. */
int ps_colours_legal(ps_dtype dtype, int64_t nx, int64_t ny, int64_t pitch);

/* Whether `bytes` bytes at `to` share none with `other_bytes` at `other`, or `other` is
 * null. */
int ps_colours_apart(const void *to, int64_t bytes, const void *other,
                     int64_t other_bytes);

#endif
