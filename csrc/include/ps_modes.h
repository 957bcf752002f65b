/* ps_modes.h - products with the eigenvectors of the rows of an axis. */
#ifndef PS_MODES_H
#define PS_MODES_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most rows of a product: those of a panel stay in a first-level cache. */
enum { PS_MODES_MOST = 256 };

/* The axes of a field: two of a batch, that of the vectors, and one of further vectors. */
enum { PS_MODES_OUTER, PS_MODES_MIDDLE, PS_MODES_ROW, PS_MODES_COLUMN, PS_MODES_AXES };

/* With y the n values of a vector and y' the same in reverse order, h = ceil(n/2) and
 * g = floor(n/2), forward
 *
 *   target[:h] = even (y + y')[:h],  target[h:] = odd (y - y')[:g]
 *
 * with the h x h matrix even and the g x g matrix odd; backward, with e = even y[:h] and
 * o = odd y[h:],
 *
 *   target[:g] = e + o,  target[n-g:] = (e - o)', and for odd n the last value of e between.
 *
 * odd null: target = even y with the n x n matrix even. Matrices are in C order. target is
 * source, with the same strides, or does not overlap it. Strides in elements. The bits do
 * not depend on the threads and the instruction set. No workspace. */
typedef struct {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    int32_t is_backward;
    int64_t size[PS_MODES_AXES];
    const void *even, *odd;
    const void *source;
    void *target;
    int64_t source_stride[PS_MODES_AXES], target_stride[PS_MODES_AXES];
} ps_modes;

/* PS_BAD_ARGUMENT if a size is out of range, or a matrix is missing. */
ps_status ps_modes_check(const ps_modes *p);

#ifdef __cplusplus
}
#endif
#endif
