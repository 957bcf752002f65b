/* cylinder.h - the steps of the flow around a cylinder of the CUDA backend.
 *
 * A step is nine kernels, and a tenth one for the forces, on one stream:
 *
 *   first half step     lines along x (cylinder_lines.cu); other blocks: the flux of
 *                       vorticity into the box around the body, and the outlet
 *   second half step    lines along y: the new omega
 *   transform           omega to waves along y (cylinder_transform.cu)
 *   lines of waves      lines along x (cylinder_waves.cu), of which only the columns of
 *                       the body are kept
 *   surface             psi without charges on the body, sums of omega over the box
 *   charges             psi on the body, the charges on its surface, the circulation
 *   lines of waves      with the charges
 *   transform           back: the new psi, its largest value and change
 *   walls               omega on walls and body; other blocks: velocity at the probes
 *   forces              after every fourth step
 *
 * Words moved per node: 4 in each half step, 2 and 3 in the transforms, 1 and 2 in the
 * lines of waves; 16 in all. The fewest are 11: three fields (omega, psi, psi one step
 * before) are read and two written, and each of the three changes between passes along x
 * and along y writes a field and reads it again. Operations per node: 2 ny for both
 * transforms, about 110 otherwise. The fields of such grids stay in the L2 cache, and a
 * step is bounded by instructions and latency: the blocks of a kernel are launched while
 * the one before it runs, and read only tables until it has ended.
 */
#ifndef PS_CUDA_FLOW_CYLINDER_H
#define PS_CUDA_FLOW_CYLINDER_H

#include "ps_cylinder.h"
#include "runtime/engine.h"

namespace pysolvers::flow {

/* Numbers of a step on the device. */
enum {
    STEP_VALUE,       /* psi on the body after the step */
    STEP_CIRCULATION, /* after the step */
    STEP_RATE,        /* of the circulation, before the step */
    STEP_SHIFT,       /* what psi='lines' adds to psi on the body after the iteration */
    STEP_NUMBERS
};

/* A call in progress: the fields of the next step and the parts of the workspace. */
struct CylinderRun {
    const ps_cylinder *c;
    cudaStream_t stream;
    void *psi, *psi_old, *omega, *omega_old;
    void *half;    /* field: between the half steps; solutions of the lines of waves */
    void *waves;   /* field: right sides of the lines of waves */
    void *outlet;  /* [ny]: psi at the outlet after the step */
    double *lines; /* [columns of the body][ny]: solutions of the lines of waves there */
    double *psi_0; /* [surface nodes]: psi without charges */
    double *boxed; /* [rows of the box]: sums of omega outside the body */
    double *charged;   /* what the charges add to the right sides: PS_TABLE_RESPONSE */
    double *numbers;   /* STEP_NUMBERS */
    double *sums;      /* of the forces, for each block */
    unsigned *arrived; /* blocks of the forces that have ended */
    void *pta;         /* the arrays of cylinder_pta.cuh, if c->thomas */
    double dt_old;     /* length of the step before this one */
    double *history;   /* row of this step */
    int64_t step;      /* number of this step, from 1 on */
};

/* Whether the lines of the grid fit into the shared memory of a block. */
int ps_cuda_cylinder_fits(const ps_cylinder *c);
/* Once per call, before the steps. */
ps_status ps_cuda_cylinder_prepare(const ps_cylinder *c);
ps_status ps_cuda_cylinder_prepare_body(const ps_cylinder *c);
ps_status ps_cuda_cylinder_prepare_transform(const ps_cylinder *c);
ps_status ps_cuda_cylinder_prepare_waves(const ps_cylinder *c);

/* The kernels of a step in this order. */
ps_status ps_cuda_cylinder_omega(const CylinderRun &r);
ps_status ps_cuda_cylinder_to_waves(const CylinderRun &r);
ps_status ps_cuda_cylinder_lines(const CylinderRun &r, bool with_charges);
ps_status ps_cuda_cylinder_charges(const CylinderRun &r);
ps_status ps_cuda_cylinder_from_waves(const CylinderRun &r);
/* Instead of the five before: sweeps of lines (cylinder_psi_lines.cu). Waits for the
 * stream. */
ps_status ps_cuda_cylinder_prepare_lines(const ps_cylinder *c);
ps_status ps_cuda_cylinder_psi_lines(const CylinderRun &r);
ps_status ps_cuda_cylinder_walls(const CylinderRun &r);

/* Coefficients of the force between this step and the one before. Quantities at a node,
 * with means and differences of both levels: the derivatives of the total pressure along
 * x and y, the fluxes of momentum along x and y without it, the shear, psi_t and omega;
 * the results are sums of them with the weights of the table (flow/cylinder/_forces.py).
 */
ps_status ps_cuda_cylinder_forces(const CylinderRun &r);
enum { force_blocks = 16 };

} // namespace pysolvers::flow

#endif
