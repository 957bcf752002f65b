/* heat_sweep.h - one sweep of the heat solver: what is solved, and where it goes.
 *
 * A sweep solves the lines along one axis, a band of neighbouring lines at a time, one
 * SIMD lane a line. The kernels are compiled for each instruction set, isa/heat_*.c.
 */
#ifndef PS_CPU_HEAT_SWEEP_H
#define PS_CPU_HEAT_SWEEP_H

#include "ps_heat.h"

/* Lanes of a band in bytes, of every instruction set: along x few lines at a time, whose
 * rows stay in cache; along the other axes as much as the memory likes to move at once.
 */
enum { PS_HEAT_ALONG_BYTES = 256, PS_HEAT_ACROSS_BYTES = 512 };

/* Right sides of a sweep: as they lie in `from`, or a stencil of it. */
typedef enum { PS_HEAT_FROM_MEMORY, PS_HEAT_FROM_DG, PS_HEAT_FROM_WEI } ps_heat_rhs;

/* Words of a matrix that all lines share, tables of `rows` values. With u_i what lines
 * down to row i say of x_i, x_{i+1} apart,
 *
 *   u_i = multiplier u_{i-1} + weight d_i,   x_i = upper x_{i+1} + share u_i
 *
 * where u and x beyond the ends are the values given there. With 1 as the sum of a row,
 * multiplier and weight add up to 1, and upper and share, in float32, too, so that all
 * may be told as what it differs from one number by. If periodic, x_i has `far` x_last
 * added and the last row, which has no multiplier and no upper, `bottom` u_i to d_last.
 */
enum {
    PS_HEAT_MULTIPLIER,
    PS_HEAT_WEIGHT,
    PS_HEAT_UPPER,
    PS_HEAT_SHARE,
    PS_HEAT_BOTTOM,
    PS_HEAT_FAR,
    PS_HEAT_TABLES
};

/* Row i of a line is 1 + theta (r_- + r_+) on the diagonal and -theta r_-, -theta r_+
 * beside it. Lines are told by their nodes along the two other axes, of which `inner`
 * is nearer to x. */
typedef struct {
    const ps_heat *h;
    int axis;
    int64_t step;        /* of the call */
    int64_t rows, first; /* unknowns of a line, and the node of the first */
    int64_t inner_first, inner_end, outer_first, outer_end;
    int64_t stride, inner_stride, outer_stride; /* between nodes */
    int64_t inner_nodes;
    int64_t inner_start; /* where bands are counted from: at most inner_first */
    int64_t lead; /* rows that the first chunk of a line has less than the others */
    int width;    /* lanes of a band */
    double theta;
    const void *tables; /* PS_HEAT_TABLES of `rows` values of dtype; k must be null */
    ps_heat_rhs rhs;
    const void *from;
    void *reflect; /* null, or `from`: becomes 2 x - from */
    void *to;      /* null, or becomes x */
    int increment; /* `to` becomes to + x */
} ps_heat_sweep;

typedef struct {
    size_t (*scratch)(const ps_heat_sweep *s);
    /* Solve band `index` of the sweep. */
    void (*band)(const ps_heat_sweep *s, int64_t index, void *scratch);
    /* to = B_y t of the unknowns of row j, k of the field, as ps_heat says of w. */
    void (*half)(const ps_heat *h, int64_t j, int64_t k, void *to);
    /* Largest magnitude among `count` values; NaN if any is not finite. */
    double (*largest)(const void *values, int64_t count);
} ps_heat_kernels_of_type;

/* Indexed by PS_F32 and PS_F64. */
typedef struct {
    ps_heat_kernels_of_type type[PS_F64 + 1];
} ps_heat_isa;

extern const ps_heat_isa ps_heat_isa_baseline;
#ifdef PS_HAVE_AVX2
extern const ps_heat_isa ps_heat_isa_avx2;
#endif
#ifdef PS_HAVE_AVX512
extern const ps_heat_isa ps_heat_isa_avx512;
#endif

/* The lines along an axis of h, with the half-implicit matrix and without fields and
 * tables. */
ps_heat_sweep ps_heat_sweep_along(const ps_heat *h, int axis);

/* Bands in a row of lines that are neighbours along the inner axis, and in all. Bands
 * along y and z, and chunks along x, begin where memory is aligned. */
int64_t ps_heat_run_bands(const ps_heat_sweep *s);
int64_t ps_heat_bands(const ps_heat_sweep *s);

/* Write the tables of a sweep whose k is 1. */
void ps_heat_make_tables(const ps_heat_sweep *s, void *tables);

#endif
