/* colours.h - common checks of the fields of red-black relaxations. */
#ifndef PS_CORE_COLOURS_H
#define PS_CORE_COLOURS_H

#include "pysolvers.h"

/* Whether the dtype and the grid are legal and the byte offsets of a field fit int64. */
int ps_colours_legal(ps_dtype dtype, int64_t nx, int64_t ny, int64_t pitch);

/* Whether the bits name axes with an even number of nodes. */
int ps_colours_periodic(uint32_t periodic, int64_t nx, int64_t ny);

/* Whether `other` is null, or [to, to + bytes) and [other, other + other_bytes) are
 * disjoint. */
int ps_colours_apart(const void *to, int64_t bytes, const void *other,
                     int64_t other_bytes);

#endif
