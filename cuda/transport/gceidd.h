/* gceidd.h - GCEIDD of the CUDA backend: one sweep, and the kernels that perform it.
 *
 * Everything enqueues on a stream. A sweep reads u and writes v, which are different
 * fields. It does nothing if `grown` contains an earlier step.
 */
#ifndef PS_CUDA_TRANSPORT_GCEIDD_H
#define PS_CUDA_TRANSPORT_GCEIDD_H

#include "ps_gceidd.h"
#include "runtime/engine.h"

namespace pysolvers::transport {

typedef struct {
    const ps_gceidd *g;
    int axis;                /* PS_GCEIDD_X or PS_GCEIDD_Y: the axis of the lines */
    int64_t step;            /* number of the step in the call */
    const void *u, *s1, *s2; /* s1 and s2: half levels before u, for MU */
    void *v;
    int64_t table_pitch; /* of a row of the table, see ps_cuda_gceidd_tabulate() */
    /* on the device: the first step that has grown, or PS_CUDA_NOT_GROWN */
    int32_t *grown;
    int32_t *arrivals; /* on the device, 0: ps_cuda_gceidd_arrivals_bytes() */
} ps_cuda_gceidd_sweep;

enum { PS_CUDA_NOT_GROWN = INT32_MAX };

/* x / strips is the upper half of x (2^64 / strips, rounded up) for x < strips^2 if
 * strips^3 < 2^64. */
enum { PS_CUDA_GCEIDD_MOST_STRIPS = 1 << 21 };

/* Whether the numbers of strips and the strides of tables fit 32 bits, which the
 * kernels require. */
bool ps_cuda_gceidd_can_be_swept(const ps_gceidd *g);

/* Strips of up to 32 cells in one kernel, one strip per thread. `table`, if it has any
 * bytes, contains the numbers that all strips of a line have in common, in rows of
 * sweep->table_pitch lines. It is to be computed before the first sweep along the axis,
 * and again when velocity or diffusion change. */
bool ps_cuda_gceidd_strips_fit(const ps_gceidd *g, int axis);
size_t ps_cuda_gceidd_table_bytes(const ps_gceidd *g, int axis);
ps_status ps_cuda_gceidd_prepare_strips(const ps_gceidd *g, int axis); /* once per call */
ps_status ps_cuda_gceidd_tabulate(const ps_cuda_gceidd_sweep *sweep, void *table,
                                  cudaStream_t stream);
ps_status ps_cuda_gceidd_strips(const ps_cuda_gceidd_sweep *sweep, const void *table,
                                cudaStream_t stream);

/* Longer strips of lines with constant coefficients in one kernel, by the recurrences of the
 * ratio algebra, with a table as above: strips of up to 768 cells, along x of lines of up to
 * some 13000 nodes. The arrivals are those of the blocks at the interfaces; a sweep leaves
 * them 0. */
bool ps_cuda_gceidd_ratio_fits(const ps_gceidd *g, int axis);
size_t ps_cuda_gceidd_arrivals_bytes(const ps_gceidd *g, int axis);
ps_status ps_cuda_gceidd_prepare_ratio(const ps_gceidd *g, int axis); /* once per call */
ps_status ps_cuda_gceidd_tabulate_ratio(const ps_cuda_gceidd_sweep *sweep, void *table,
                                        cudaStream_t stream);
ps_status ps_cuda_gceidd_ratio(const ps_cuda_gceidd_sweep *sweep, const void *table,
                               cudaStream_t stream);

/* Lines of up to about 4096 rows in one kernel by the partition method, with strips of
 * any length. */
bool ps_cuda_gceidd_lines_fit(const ps_gceidd *g, int axis);
ps_status ps_cuda_gceidd_prepare_lines(const ps_gceidd *g, int axis); /* once per call */
ps_status ps_cuda_gceidd_lines(const ps_cuda_gceidd_sweep *sweep, cudaStream_t stream);

/* Four kernels for strips of any length: prediction, rows into arrays, solution,
 * correction. `arrays` has ps_cuda_gceidd_arrays_bytes() bytes. */
size_t ps_cuda_gceidd_arrays_bytes(const ps_gceidd *g);
/* Whether a block has the shared memory that the stages of 3S need. */
bool ps_cuda_gceidd_stages_fit(const ps_gceidd *g);
const char *ps_cuda_gceidd_stage_name(const ps_gceidd *g); /* along x, a static text */
/* Occupancy of the kernels of the parts along an axis. */
ps_status ps_cuda_gceidd_occupancy(const ps_gceidd *g, int axis, double *part);
ps_status ps_cuda_gceidd_part(const ps_cuda_gceidd_sweep *sweep, ps_gceidd_part part,
                              void *arrays, cudaStream_t stream);

} // namespace pysolvers::transport

#endif
