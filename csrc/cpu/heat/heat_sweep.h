/* heat_sweep.h - one sweep of the heat solver: equations, sources and targets.
 *
 * A sweep solves the lines along one axis, one band of adjacent lines at a time, with one
 * line per SIMD lane. isa/heat_*.c compile the kernels for each dtype and instruction
 * set.
 */
#ifndef PS_CPU_HEAT_SWEEP_H
#define PS_CPU_HEAT_SWEEP_H

#include "ps_heat.h"
#include "runtime/tuning.h"

/* Right-hand sides of a sweep: the values of `from`, or a stencil of them. */
typedef enum { PS_HEAT_FROM_MEMORY, PS_HEAT_FROM_DG, PS_HEAT_FROM_WEI } ps_heat_rhs;

/* Words of a matrix that all lines share (lines/ratio.h): tables of `rows` values of m, f;
 * c, p; what the last row of periodic lines adds of u_i to its right-hand side; e. u and x
 * beyond the ends are the boundary values. */
enum {
    PS_HEAT_MULTIPLIER,
    PS_HEAT_WEIGHT,
    PS_HEAT_UPPER,
    PS_HEAT_SHARE,
    PS_HEAT_BOTTOM,
    PS_HEAT_FAR,
    PS_HEAT_TABLES
};

/* A sweep. Row i of a line has the diagonal 1 + theta (r_- + r_+) and the off-diagonals
 * -theta r_-, -theta r_+. A line is identified by its nodes along the two other axes; of
 * these, `inner` is the one nearer to x. */
typedef struct {
    const ps_heat *h;
    int axis;
    int64_t step;        /* index of the time step in the call */
    int64_t rows, first; /* unknowns per line, and the node of the first unknown */
    int64_t inner_first, inner_end, outer_first, outer_end;
    int64_t stride, inner_stride, outer_stride; /* between nodes */
    int64_t inner_nodes;
    int64_t inner_start; /* start of band 0: at most inner_first */
    int64_t lead;        /* rows that the first chunk of a line lacks, for alignment */
    int width;           /* lanes of a band */
    double theta;
    const void *tables; /* PS_HEAT_TABLES of `rows` values of dtype; k must be null */
    ps_heat_rhs rhs;
    const void *from;
    void *reflect; /* null, or `from`: is set to 2 x - from */
    void *to;      /* null, or is set to x */
    int increment; /* add x to `to` */
} ps_heat_sweep;

/* The kernels of one dtype and one instruction set. */
typedef struct {
    /* Write the tables of a sweep whose k is 1. */
    void (*tables)(const ps_heat_sweep *s, void *tables);
    size_t (*scratch)(const ps_heat_sweep *s);
    /* Solve band `index` of the sweep. */
    void (*band)(const ps_heat_sweep *s, int64_t index, void *scratch);
    /* to = B_y t at the unknowns of row (j, k) of the field, see w of ps_heat. */
    void (*half)(const ps_heat *h, int64_t j, int64_t k, void *to);
    /* Largest magnitude among `count` values; NaN if any is not finite. */
    double (*largest)(const void *values, int64_t count);
} ps_heat_kernel_table;

extern const ps_heat_kernel_table ps_heat_f32_baseline, ps_heat_f32_avx2,
    ps_heat_f32_avx512, ps_heat_f64_baseline, ps_heat_f64_avx2, ps_heat_f64_avx512;

/* The sweep along an axis of h, with theta = 1/2 and without fields and tables. */
ps_heat_sweep ps_heat_sweep_along(const ps_heat *h, int axis);

/* Number of bands per row of lines along the inner axis, and total number of bands. Bands
 * of sweeps along y and z, and chunks of sweeps along x, start at aligned addresses. */
int64_t ps_heat_run_bands(const ps_heat_sweep *s);
int64_t ps_heat_bands(const ps_heat_sweep *s);

#endif
