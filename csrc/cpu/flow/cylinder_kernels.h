/* cylinder_kernels.h - a step of the cylinder in progress, and the kernels of one dtype
 * and one instruction set.
 */
#ifndef PS_CPU_CYLINDER_KERNELS_H
#define PS_CPU_CYLINDER_KERNELS_H

#include "flow/cylinder_sines.h"
#include "ps_cylinder.h"

/* Lines of a sweep; with diffusion d and convection c, which is dt times the velocity
 * along the lines over twice the spacing, their rows are
 *
 *   -(d + c) x_{i-1} + (1 + 2 d) x_i - (d - c) x_{i+1} = rhs
 *
 * with the row of the identity at nodes of the body. HALF: the half steps; their right
 * side is computed from omega along x and read from `half` along y, and along x `half`
 * becomes 2 x - rhs. STEADY: the factors of the steady step. PSI: half a cycle of Peaceman
 * and Rachford for psi, d = 1, c = 0, from `from` to `to`. */
typedef enum {
    PS_CYLINDER_HALF_X,
    PS_CYLINDER_HALF_Y,
    PS_CYLINDER_STEADY_X,
    PS_CYLINDER_STEADY_Y,
    PS_CYLINDER_PSI_X,
    PS_CYLINDER_PSI_Y
} ps_cylinder_lines;

/* The largest absolute values of two quantities in a part of the field; NaN if one of the
 * values is not finite. */
typedef struct {
    double first, second;
} ps_cylinder_pair;

/* A step: the fields and the parts of the workspace. Fields are [ny][nx]; the new psi and
 * omega replace psi_old and omega_old. Waves are [column][pitch], wave k at k. */
typedef struct {
    const ps_cylinder *c;
    void *psi, *psi_old, *omega, *omega_old;
    void *half;          /* field: between half steps, and between sweeps for psi */
    void *outlet;        /* [ny]: psi at the outlet after the step, unless unknown */
    void *waves;         /* right sides of the lines of waves, and their solutions */
    void *body;          /* [column of the body][pitch]: solutions there, and charges */
    void *ends, *decays; /* [2][pitch] and [pitch]: see cylinder_waves.inc */
    int64_t pitch;
    const ps_sine_plan *plan;
    const void *forward, *backward; /* the matrices of the plan */
    void *panels;                   /* for each thread, two panels of `pitch` rows */
    ps_cylinder_pair *pairs;        /* for each row of the field, or panel of columns */
    double *psi_0;                  /* [surface nodes]: psi without charges */
    double *charged;                /* what the charges add to the right sides */
    double dt_old;                  /* length of the step before this one */
    double *history;                /* row of this step */
    int64_t last;                   /* column of the last unknown psi */
    double value, circulation, rate;
    double shift; /* what psi="lines" adds to psi on the body after the iteration */
} ps_cylinder_run;

/* A sweep: `lines` lines of `rows` unknowns, those of the nodes from 1 on. `along` and
 * `across` are the offsets to the next node of a line and to the next line. */
typedef struct {
    ps_cylinder_lines kind;
    int64_t rows, lines, along, across;
    int64_t nx, ny;
    ps_node_range body_rows, body_columns;
    const void *psi, *psi_old, *omega;
    void *half, *new_omega;    /* new_omega has omega one step before at walls and body */
    double along_x, along_y;   /* nu dt/h^2, with the length of the (half) step */
    double swirl;              /* dt/(4 hx hy) */
    double share;              /* dt/(2 dt_old) of the whole step */
    double shift, cross, area; /* of PSI: r h^2, h^2/(spacing across)^2, h^2 */
    const void *from;
    void *to;
} ps_cylinder_sweep;

/* Parts [begin, end) of a loop are tiles of `lanes` lines, rows of the field, or panels of
 * PS_SINE_BYTES of columns. */
typedef struct {
    int lanes;
    int team; /* tiles along y that are solved together; tiles along x are solved alone */

    /* Workspace of a thread in numbers, and solution. */
    int64_t (*kept)(const ps_cylinder_sweep *s);
    void (*solve)(const ps_cylinder_sweep *s, int64_t begin, int64_t end, void *kept);

    /* psi and omega at the outlet, and the rate of change of the circulation. */
    void (*outlet)(ps_cylinder_run *r);
    double (*rate)(const ps_cylinder_run *r);
    void (*close_outlet)(const ps_cylinder_run *r); /* of a steady step */

    /* psi by transforms: the tables, once for a call; the waves, their lines in groups of
     * PS_WAVES without charges, what the charges are and add, the lines with them, and psi
     * with its bounds, one pair for each panel. */
    void (*pack)(const ps_cylinder_run *r, void *forward, void *backward);
    void (*to_waves)(const ps_cylinder_run *r, int64_t begin, int64_t end, int thread);
    void (*add_ends)(const ps_cylinder_run *r);
    void (*body_waves)(const ps_cylinder_run *r, int64_t begin, int64_t end);
    void (*surface)(const ps_cylinder_run *r);
    double (*box_sum)(const ps_cylinder_run *r);
    void (*add_charges)(const ps_cylinder_run *r);
    void (*all_waves)(const ps_cylinder_run *r, int64_t begin, int64_t end);
    void (*from_waves)(const ps_cylinder_run *r, int64_t begin, int64_t end, int thread);

    /* psi by sweeps: the estimate and the boundary of `half`; the residual and omega, one
     * pair for each row; the circulation; the end, with the bounds. */
    void (*estimate)(const ps_cylinder_run *r, int64_t begin, int64_t end);
    void (*residual)(const ps_cylinder_run *r, int64_t begin, int64_t end);
    double (*flux)(const ps_cylinder_run *r);
    double (*body_value)(const ps_cylinder_run *r);
    void (*finish)(const ps_cylinder_run *r, int64_t begin, int64_t end);

    /* omega on walls and body; velocities at the probes; forces. */
    void (*walls)(const ps_cylinder_run *r);
    void (*probes)(const ps_cylinder_run *r);
    void (*forces)(const ps_cylinder_run *r);
} ps_cylinder_kernels;

extern const ps_cylinder_kernels ps_cylinder_f32_baseline, ps_cylinder_f32_avx2,
    ps_cylinder_f32_avx512, ps_cylinder_f64_baseline, ps_cylinder_f64_avx2,
    ps_cylinder_f64_avx512;

#endif
