/* ps_heat.h - heat conduction by alternating directions: a part of the contract.
 *
 *   T_t = d/dx (k T_x) + d/dy (k T_y) [+ d/dz (k T_z)] + q
 *
 * K_x T = -(r_+ (T_E - T) + r_- (T_W - T)), r_+- = ratio k_+-, where k_+- is the harmonic
 * mean of k at the two nodes; K_y and K_z are analogous. A_x = 1 + K_x/2 and
 * B_x = 1 - K_x/2, and the same for y and z.
 */
#ifndef PS_HEAT_H
#define PS_HEAT_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* peaceman-rachford, two axes:
 *   A_x T* = B_y T + q,   A_y T+ = B_x T* + q,   q = dt/2 times the source.
 *   w holds B_y T. The sweep along x reads w, adds q, solves for T* and stores
 *   2 T* - w = B_x T* + q, where w is the value before q was added. The sweep along y
 *   reads w, solves for T+ and stores 2 T+ - w = B_y T+.
 * douglas-gunn, two or three axes, q = dt times the source:
 *   A_x D1 = q - (K_x + K_y + K_z) T,  A_y D2 = D1,  A_z D3 = D2,  T+ = T + D3
 * wei2013, two axes (Wei, Jang, Zhang and Jia, ICCS 2013; it is no time integrator):
 *   (1 + 2 r_x + 2 r_y) T* - r_x (T*_W + T*_E) = T + r_y (T_N + T_S), then the same with
 *   x and y exchanged. */
#define PS_HEAT_SCHEME_LIST(X)              \
    X(PS_HEAT_PR, "peaceman-rachford")      \
    X(PS_HEAT_DOUGLAS_GUNN, "douglas-gunn") \
    X(PS_HEAT_WEI2013, "wei2013")

/* The boundary condition of a side of the box, at the nodes of the side. */
#define PS_HEAT_SIDE_LIST(X)  \
    X(PS_HEAT_VALUE, "value") \
    X(PS_HEAT_FLUX, "flux")   \
    X(PS_HEAT_PERIODIC, "periodic")

/* Kernels of a device: "fused" reads one word and writes one word per node and sweep;
 * "wei2013" runs the kernels of the paper, which store coefficients and right-hand sides
 * in memory. */
#define PS_HEAT_KERNELS_LIST(X)       \
    X(PS_HEAT_KERNELS_FUSED, "fused") \
    X(PS_HEAT_KERNELS_PAPER, "wei2013")

/* Memory access of the paper's kernels to the columns. */
#define PS_HEAT_MEMORY_LIST(X)      \
    X(PS_HEAT_BASELINE, "baseline") \
    X(PS_HEAT_TEXTURE, "texture")   \
    X(PS_HEAT_TRANSPOSE, "transpose")

/* Stages of a step: computing w or a right-hand side, sweeps, transpositions; and, once
 * per call, boundary nodes and the largest value. */
#define PS_HEAT_STAGE_LIST(X)           \
    X(PS_HEAT_STAGE_RHS, "rhs")         \
    X(PS_HEAT_STAGE_X, "x")             \
    X(PS_HEAT_STAGE_Y, "y")             \
    X(PS_HEAT_STAGE_Z, "z")             \
    X(PS_HEAT_STAGE_MOVES, "transpose") \
    X(PS_HEAT_STAGE_END, "end")

#define PS_NAME_(name, text) name,
typedef enum { PS_HEAT_SCHEME_LIST(PS_NAME_) PS_HEAT_SCHEME_COUNT } ps_heat_scheme;
typedef enum { PS_HEAT_SIDE_LIST(PS_NAME_) PS_HEAT_SIDE_COUNT } ps_heat_side_kind;
typedef enum { PS_HEAT_KERNELS_LIST(PS_NAME_) PS_HEAT_KERNELS_COUNT } ps_heat_kernels;
typedef enum { PS_HEAT_MEMORY_LIST(PS_NAME_) PS_HEAT_MEMORY_COUNT } ps_heat_memory;
typedef enum { PS_HEAT_STAGE_LIST(PS_NAME_) PS_HEAT_STAGE_COUNT } ps_heat_stage;
#undef PS_NAME_

enum { PS_HEAT_AXES = 3 }; /* x, y, z */

/* Values of dtype: node p at time level s is data[s*level_step + p*node_step]; a null
 * pointer means zeros. node_step is 0 or 1. */
typedef struct {
    const void *data;
    int64_t level_step, node_step;
} ps_heat_table;

/* One side. The index p numbers the nodes of the side in the order of the field (the
 * first of the remaining axes x, y, z is the fastest), edges and corners included.
 *
 * value: T is given at the nodes. `level` is T after s steps of the call, s = 0 .. count.
 *   `sweep` is the boundary value of the sweep along this axis in step s = 0 .. count-1:
 *   T* or T+, for Douglas-Gunn D1, D2 or D3.
 * flux: the nodes are unknowns of half cells with K T = 2 r (T - T_inner) + exchange T,
 *   exchange = 2 dt/spacing times the Robin coefficient, or 0. `level` is the inflow
 *   2 dt/spacing (flux + coefficient T_inf) after s steps, a term to be added to -K T.
 *   `sweep` is added to the right-hand side of the sweep of step s along this axis but
 *   not to the w of the formula 2 T - w: the sweep stores B T + sweep.
 * periodic: nodes nodes-1 and 0 are adjacent; both sides of the axis are periodic. */
typedef struct {
    ps_heat_side_kind kind;
    double exchange;
    ps_heat_table level, sweep;
} ps_heat_side;

/* Node (i, j, k) is element [(k*nodes[1] + j)*nodes[0] + i] of t, w and k. nodes counts
 * all nodes, boundary included: at least 3, or at least 2 if both sides are fluxes.
 * nodes[2] is 1 with two axes.
 *
 * Peaceman-Rachford: w is state, B_y T plus half of `level` on the flux sides of y. If
 * `fresh` is set, the call first computes w from t. w does not depend on how the steps
 * are divided into calls, and is undefined at nodes of value sides. The other schemes use
 * w as scratch. t is written once per call, after the last step, boundary nodes included
 * (at edges and corners the side of the later axis determines T). w, the sources and the
 * tables at value nodes do not influence t. t and w do not overlap each other or an
 * input. */
struct ps_heat {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    ps_heat_scheme scheme;
    int32_t axes; /* 2 or 3 */
    int64_t nodes[PS_HEAT_AXES];
    double ratio[PS_HEAT_AXES]; /* dt/spacing^2, times k where that is a number */
    ps_heat_side side[PS_HEAT_AXES][2];
    ps_heat_table source; /* level s, node as in t: the term q of step s */
    const void *k;        /* at the nodes, positive; null: 1 */
    void *t, *w;
    int32_t fresh;
    int32_t timed; /* measure the stages; a device backend then waits */
    int32_t
        goes_on; /* before t is read, more steps of the same sides follow: its boundary
                        nodes may stay as they are */
    int64_t
        before; /* steps of earlier calls: a backend may add in an order that alternates
                        from step to step */
    double *largest; /* null, or in the backend's memory: max |t| at the end, not finite
                        if any t is not finite */
    void *kept; /* null, or heat_kept() bytes that the caller keeps from call to call */
    int64_t *kept_as; /* what they contain; in the memory of the host: see heat_kept() */

    ps_heat_kernels kernels; /* of a device; the rest is for PS_HEAT_KERNELS_PAPER */
    ps_heat_memory memory;
    int32_t mapping; /* 1 to 4: C1 to C4 */
    int32_t block;   /* threads per block, 32 to 512; 0: the default */
};

/* What was done. */
struct ps_heat_report {
    int64_t
        steps; /* complete steps, those of t and w; fewer than `count` if interrupted */
    int32_t threads;
    const char *kernel; /* a static text */
    double seconds[PS_HEAT_STAGE_COUNT];
};

/* Values of a node of the cut axis, of `count` nodes from node `first` on: that of node first + i
 * of line p is data[i] with node_step 0, data[i*plane + p] with 1. */
typedef struct {
    const void *data;
    int64_t first, count, node_step;
} ps_heat_spike;

/* What other ranks change of T where the lines along the slowest axis are cut, after a step of
 * the kernels on the nodes of a rank and of one node of each neighbour, the nodes beyond the cuts.
 * Node i of line p is t[i*plane + p]. A negative node is none.
 *
 * heat_cut(c, 0): ends[2 rank + e] = before[e] - t[end[e]]
 * heat_cut(c, 1), when `ends` has those of all ranks: for the cuts k = 0 and 1
 *   change_k = sum of weights[k][j] ends[j] over j, from[k] <= j < to[k]; weights of 0 are skipped
 *   outer[k] += change_k,   t[beyond[k]] = outer[k],   t[first_k + i] += spike_k[i] change_k
 * and then before[e] = t[end[e]]. */
struct ps_heat_cut {
    ps_dtype dtype;
    int64_t plane; /* lines */
    int32_t rank, ranks;
    int64_t end[2], beyond[2];
    int32_t from[2],
        to[2]; /* the first of the weights that are not 0, and after the last */
    void *t, *before, *ends,
        *outer;          /* of the last three 2, 2*ranks and 2 numbers a line */
    const void *weights; /* [2][2*ranks][plane] */
    ps_heat_spike spike[2];
};

/* Check all that the struct alone determines, for all backends. The scheme and the
 * kernels of the paper require two axes, constant k, no source and sides of kind value
 * that do not depend on time. */
ps_status ps_heat_check(const ps_heat *h, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
