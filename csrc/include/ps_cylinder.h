/* ps_cylinder.h - time steps of the flow around a square cylinder in a channel, in stream
 * function and vorticity.
 *
 *   omega_t + u omega_x + v omega_y = nu (omega_xx + omega_yy)
 *   psi_xx + psi_yy = -omega,   u = psi_y,  v = -psi_x
 *
 * on a grid of ny x nx nodes. The schemes and the formulas of the walls, of the outlet
 * and of the circulation are those of pysolvers/flow/cylinder/_steps.py, the solution of
 * the equation of psi is that of _body_poisson.py.
 */
#ifndef PS_CYLINDER_H
#define PS_CYLINDER_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PS_CYLINDER_STAGE_LIST(X)       \
    X(PS_CYLINDER_STAGE_OMEGA, "omega") \
    X(PS_CYLINDER_STAGE_PSI, "psi")     \
    X(PS_CYLINDER_STAGE_WALLS, "walls") \
    X(PS_CYLINDER_STAGE_FORCES, "forces")

/* Numbers that are computed once. n is ny - 1 and half n / 2; row and column count from
 * the first node of the body; surface nodes are those of the body that have a neighbour
 * in the flow, `count` of them. */
/* The list has comments inside. */
/* clang-format off */
#define PS_CYLINDER_TABLE_LIST(X)                                                        \
    /* of the dtype, [direction][parity][half][half]: the sine transform of even and odd \
     * parts of a column. Forward, entry (m, t) of parity 0 is                           \
     * hx^2 sin(pi (2m+1)(t+1)/n), of parity 1 hx^2 sin(pi (2m+2)(t+1)/n); backward,     \
     * entry (t, m) is 2/n times these sines. */                                         \
    X(PS_TABLE_SINES, "sines")                                                           \
    /* [ny]: r < 1 with r + 1/r = 2 + 4 hx^2/hy^2 sin^2(pi k/(2n)) for wave k: by how    \
     * much its harmonic functions decay from column to column */                        \
    X(PS_TABLE_DECAYS, "decays")                                                         \
    /* [rows of the body][ny]: 2/n sin(pi j k/n) for wave k */                           \
    X(PS_TABLE_BODY_SINES, "body_sines")                                                 \
    /* int32 [count][2]: row and column of the surface nodes */                          \
    X(PS_TABLE_SURFACE, "surface")                                                       \
    /* [2 ny + 2 columns of the body][count]: what a missing psi of 1 at a surface node  \
     * adds to the right side of the waves in the first and in the last column of the    \
     * body, and of the nodes of the lower and of the upper face; times hx^2 */          \
    X(PS_TABLE_RESPONSE, "response")                                                     \
    /* [count]: the charges that raise psi on the body by 1 */                           \
    X(PS_TABLE_UNIT, "unit")                                                             \
    /* of the dtype, [ny][nx]: psi for psi_tol > 0 that is harmonic, 1 on the body and 0 \
     * on the boundary; otherwise null */                                                \
    X(PS_TABLE_UNIT_PSI, "unit_psi")                                                     \
    /* int32 [4 directions][4 corners][probes], and weights [u, v][4 corners][probes] */ \
    X(PS_TABLE_PROBE_NODES, "probe_nodes")                                               \
    X(PS_TABLE_PROBE_WEIGHTS, "probe_weights")                                           \
    /* int32 [nodes], and weights [6 results][7 quantities][nodes]: cylinder.h */        \
    X(PS_TABLE_FORCE_NODES, "force_nodes")                                               \
    X(PS_TABLE_FORCE_WEIGHTS, "force_weights")
/* clang-format on */

/* Entries of a row of the history, before u and v of all probes. Those of the forces are
 * written after every fourth step since time 0. */
#define PS_CYLINDER_COLUMN_LIST(X)                                          \
    X(PS_COLUMN_LARGEST, "largest") /* absolute value of psi */             \
    X(PS_COLUMN_CHANGE, "change")   /* largest change of psi in the step */ \
    X(PS_COLUMN_VALUE, "value")     /* psi on the body */                   \
    X(PS_COLUMN_CIRCULATION, "circulation")                                 \
    X(PS_COLUMN_DRAG, "drag")                                               \
    X(PS_COLUMN_LIFT, "lift")                                               \
    X(PS_COLUMN_SURFACE_DRAG, "surface_drag")                               \
    X(PS_COLUMN_SURFACE_LIFT, "surface_lift")                               \
    X(PS_COLUMN_BOX_GAP, "box_gap")                                         \
    X(PS_COLUMN_SURFACE_GAP, "surface_gap")

#define PS_NAME_(name, text) name,
typedef enum { PS_CYLINDER_STAGE_LIST(PS_NAME_) PS_CYLINDER_STAGES } ps_cylinder_stage;
typedef enum { PS_CYLINDER_TABLE_LIST(PS_NAME_) PS_CYLINDER_TABLES } ps_cylinder_table;
typedef enum { PS_CYLINDER_COLUMN_LIST(PS_NAME_) PS_CYLINDER_COLUMNS } ps_cylinder_column;
#undef PS_NAME_

enum {
    PS_FORCES_EVERY = 4,
    PS_FORCE_RESULTS = 6,
    PS_FORCE_QUANTITIES = 7,
    PS_CYLINDER_SHIFTS = 32
};

/* Nodes first to last, both included. */
typedef struct {
    int64_t first, last;
} ps_node_range;

/* Fields are [ny][nx]. After an odd number of steps the current fields are in psi_old and
 * omega_old, and those one step before in psi and omega. */
struct ps_cylinder {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    int32_t steady; /* backward Euler in delta form, psi = 0 on the body */
    int32_t free;   /* psi on the body from the circulation, otherwise 0 */
    int32_t thomas; /* a device solves each line by one thread, with coefficients in
                       memory; otherwise by the partition method in shared memory */
    int32_t block;  /* threads of a block then: 32, 64, 128, 256, or 0 for its choice */
    int64_t ny, nx; /* ny - 1 is a multiple of 16 */
    double hx, hy, viscosity;
    double dt, dt_old;      /* of the steps, and of the last step before the call */
    double wall[3], weight; /* omega_w += weight (formula - omega_w), with the formula
                               (wall[0] (psi_1 - psi_w) + wall[1] (psi_2 - psi_w)) / h^2
                               + wall[2] omega_1 */
    ps_node_range rows, columns;         /* of the body */
    ps_node_range box_rows, box_columns; /* of the box of the circulation */
    int64_t steps;                       /* since time 0, before the call */
    int64_t surface_nodes, probes, force_nodes;
    double unit_sum; /* of the table `unit` */
    double psi_tol;  /* 0: psi from transforms; otherwise sweeps of lines, until the
                        residual  is below psi_tol times the largest omega */
    double unit_circulation; /* of the table `unit_psi` */
    int32_t shift_count;
    double shifts[PS_CYLINDER_SHIFTS]; /* parameters of a cycle of sweeps */
    void *psi, *psi_old, *omega, *omega_old;
    double *scalars; /* psi on the body, circulation and its rate of
                        change one step before; NaN if unknown */
    const void *tables[PS_CYLINDER_TABLES];
    double *history; /* [count][PS_CYLINDER_COLUMNS + 2 probes] */
};

struct ps_cylinder_report {
    int64_t steps;   /* completed */
    int32_t threads; /* host threads used; 0 on a device */
    double seconds[PS_CYLINDER_STAGES];
};

/* Check all that the struct alone determines. */
ps_status ps_cylinder_check(const ps_cylinder *c);

#ifdef __cplusplus
}
#endif
#endif
