/* ps_gceidd.h - convection and diffusion by corrected explicit-implicit domain
 * decomposition: the contract of gceidd_step().
 *
 *   u_t = (a_x u_x - b_x u)_x + (a_y u_y - b_y u)_y + f
 *
 * on a rectangle, a side of which carries values (Dirichlet) or outward normal
 * derivatives (Neumann). A step is a sweep along x and a sweep along y. A sweep cuts
 * its lines into strips, predicts the values at the interfaces explicitly, solves the
 * strips implicitly, and corrects the interfaces by interpolation. Stable while the
 * explicit part is: about a dt/h^2 < 4, and CFL < 3 where feet are extrapolated.
 * Foadaddini, Zolfaghari, Mahmoodi Darian and Saadatfar 2022.
 */
#ifndef PS_GCEIDD_H
#define PS_GCEIDD_H

#include "pysolvers.h"

/* Line of nodes i = 0..n with spacing h; U before and V after the sweep; a' and b'
 * halfway between two nodes are the means of both, beyond an end the end's; D U =
 * (a'_{i+1/2} (U_{i+1} - U_i) - a'_{i-1/2} (U_i - U_{i-1}))/h^2; q = dt (b'_{i+1/2} -
 * b'_{i-1/2})/h; f is the source of the step, half of which goes into each sweep; z+ and
 * z- are max(z, 0) and min(z, 0); B_i is U at the foot x_i - b_i dt, see below.
 *
 *            prediction at an interface           implicit rows
 *   CP       P_i = (1-q) B_i + dt (D U + f/2)     upwind
 *   CFD      as CP                                characteristics
 *   MU       from earlier half levels             upwind
 *
 *   upwind, a* from the list below:
 *     -dt (a*_{i-1/2}/h^2 + b'_{i-1/2}+/h) V_{i-1}
 *     + (1 + dt (a*_{i-1/2} + a*_{i+1/2})/h^2 + dt (b'_{i+1/2}+ - b'_{i-1/2}-)/h) V_i
 *     -dt (a*_{i+1/2}/h^2 - b'_{i+1/2}-/h) V_{i+1}  =  U_i + dt f/2
 *   characteristics:
 *     -dt a'_{i-1/2}/h^2 V_{i-1} + (1 + q + dt (a'_{i-1/2} + a'_{i+1/2})/h^2) V_i
 *     -dt a'_{i+1/2}/h^2 V_{i+1}  =  B_i + dt f/2
 *
 * Known in the rows: P at the interfaces, values of Dirichlet sides at the ends. At an
 * end with the outward derivative g the node beyond is V_inside + 2 h g. Then
 *
 *   V_i = 2/3 (V_{i+1} + V_{i-1}) - 1/6 (V_{i+2} + V_{i-2})   at the interfaces.
 *
 * Lines that lie on a Dirichlet side are not swept: the sweep along x leaves their
 * old values, which the sweep along y reads and then replaces. Lines on a Neumann side
 * are ordinary. Where two Dirichlet sides meet, west or east has the corner. */
#define PS_GCEIDD_SCHEME_LIST(X) \
    X(PS_GCEIDD_CP, "cp")        \
    X(PS_GCEIDD_CFD, "cfd")      \
    X(PS_GCEIDD_MU, "mu")

/* a* = a' / (1 + h |b'| / (2 a')) (0 where a' is 0), or a' as it is. */
#define PS_GCEIDD_UPWIND_LIST(X)             \
    X(PS_GCEIDD_UPWIND_MODIFIED, "modified") \
    X(PS_GCEIDD_UPWIND_PLAIN, "plain")

/* P of MU: U + (U - S1), or U + (S1 - S2): S1 and S2 are the half levels before U. */
#define PS_GCEIDD_PREDICTOR_LIST(X)         \
    X(PS_GCEIDD_PREDICTOR_NEWEST, "newest") \
    X(PS_GCEIDD_PREDICTOR_PRINTED, "printed")

/* With s = i - b_i dt/h, k = min(max(floor(s), 0), n-1): B_i = U_k + (s-k) (U_{k+1} -
 * U_k), where s is brought into [0, n] before (clamp) or stays (extrapolate). */
#define PS_GCEIDD_FOOT_LIST(X)       \
    X(PS_GCEIDD_FOOT_CLAMP, "clamp") \
    X(PS_GCEIDD_FOOT_EXTRAPOLATE, "extrapolate")

/* Kernels of a device; the host has its own. A sweep in one kernel, or the paper's
 * four, of which the solves along x use shared memory in three stages (3S) or not. */
#define PS_GCEIDD_KERNELS_LIST(X)       \
    X(PS_GCEIDD_KERNELS_FUSED, "fused") \
    X(PS_GCEIDD_KERNELS_PAPER, "paper")
#define PS_GCEIDD_STRATEGY_LIST(X) \
    X(PS_GCEIDD_STRATEGY_3S, "3s") \
    X(PS_GCEIDD_STRATEGY_NAIVE, "naive")

/* x = 0, x = nx hx, y = 0, y = ny hy. */
#define PS_GCEIDD_SIDE_LIST(X)  \
    X(PS_GCEIDD_WEST, "west")   \
    X(PS_GCEIDD_EAST, "east")   \
    X(PS_GCEIDD_SOUTH, "south") \
    X(PS_GCEIDD_NORTH, "north")
#define PS_GCEIDD_KIND_LIST(X)          \
    X(PS_GCEIDD_DIRICHLET, "dirichlet") \
    X(PS_GCEIDD_NEUMANN, "neumann")

/* Parts of a sweep; the time of a fused sweep is that of its solve. */
#define PS_GCEIDD_PART_LIST(X)      \
    X(PS_GCEIDD_PREDICT, "predict") \
    X(PS_GCEIDD_ROWS, "rows")       \
    X(PS_GCEIDD_SOLVE, "solve")     \
    X(PS_GCEIDD_CORRECT, "correct")

#define PS_NAME_(name, text) name,
typedef enum { PS_GCEIDD_SCHEME_LIST(PS_NAME_) PS_GCEIDD_SCHEME_COUNT } ps_gceidd_scheme;
typedef enum { PS_GCEIDD_UPWIND_LIST(PS_NAME_) PS_GCEIDD_UPWIND_COUNT } ps_gceidd_upwind;
typedef enum {
    PS_GCEIDD_PREDICTOR_LIST(PS_NAME_) PS_GCEIDD_PREDICTOR_COUNT
} ps_gceidd_predictor;
typedef enum { PS_GCEIDD_FOOT_LIST(PS_NAME_) PS_GCEIDD_FOOT_COUNT } ps_gceidd_foot;
typedef enum {
    PS_GCEIDD_KERNELS_LIST(PS_NAME_) PS_GCEIDD_KERNELS_COUNT
} ps_gceidd_kernels;
typedef enum {
    PS_GCEIDD_STRATEGY_LIST(PS_NAME_) PS_GCEIDD_STRATEGY_COUNT
} ps_gceidd_strategy;
typedef enum { PS_GCEIDD_SIDE_LIST(PS_NAME_) PS_GCEIDD_SIDE_COUNT } ps_gceidd_side;
typedef enum { PS_GCEIDD_KIND_LIST(PS_NAME_) PS_GCEIDD_KIND_COUNT } ps_gceidd_kind;
typedef enum { PS_GCEIDD_PART_LIST(PS_NAME_) PS_GCEIDD_PART_COUNT } ps_gceidd_part;
#undef PS_NAME_

enum { PS_GCEIDD_X, PS_GCEIDD_Y, PS_GCEIDD_AXES };
enum { PS_GCEIDD_TERMS = 2, PS_GCEIDD_OLDER = 2, PS_GCEIDD_LEAST_STRIP = 3 };

/* Numbers of dtype in the memory of the backend: in step k of the call, k from 0, and
 * at node (i, j), data[k*step + j*y + i*x]. Strides count elements; 0 is one number all
 * along. What holds for the end of a step stands at its k. A side has numbers
 * along itself only: the other stride is not read. */
typedef struct {
    const void *data;
    int64_t step, y, x;
} ps_gceidd_data;

/* f = sum of factor[k] * field, k the step: `factor` lies on the host, or is null for
 * 1. */
typedef struct {
    ps_gceidd_data field;
    const double *factor;
} ps_gceidd_term;

/* Values of u, or outward derivatives. */
typedef struct {
    ps_gceidd_kind kind;
    ps_gceidd_data data;
} ps_gceidd_edge;

/* Interface k = 1 .. strips-1 along an axis of n cells lies at node k n / strips,
 * rounded down. Fields are of dtype, at [j*(nx+1) + i], and do not overlap. `older` are
 * the half levels before u, the newest first, of MU alone: a call reads and renews
 * them. Each strip has PS_GCEIDD_LEAST_STRIP cells or more. */
struct ps_gceidd {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    ps_gceidd_scheme scheme;
    ps_gceidd_upwind upwind;
    ps_gceidd_predictor predictor;
    ps_gceidd_foot foot;
    ps_gceidd_kernels kernels;
    ps_gceidd_strategy strategy;
    int64_t cells[PS_GCEIDD_AXES], strips[PS_GCEIDD_AXES];
    double spacing[PS_GCEIDD_AXES];
    double dt;
    double bound; /* of |u|: positive, may be infinite */
    ps_gceidd_data velocity[PS_GCEIDD_AXES], diffusion[PS_GCEIDD_AXES];
    int32_t terms; /* 0 to PS_GCEIDD_TERMS */
    ps_gceidd_term source[PS_GCEIDD_TERMS];
    ps_gceidd_edge edge[PS_GCEIDD_SIDE_COUNT];
    void *u, *older[PS_GCEIDD_OLDER];
};

/* What was done. A call ends with the first step after which some |u| on a line that is
 * swept along y, its ends included, is not at most `bound`: `grown` is 1 then, and that
 * step is the last of `steps`. Its u is kept. A device backend waits for its end, and
 * measures the parts of the last step: its shares stand for those of all. */
struct ps_gceidd_report {
    int64_t steps; /* fewer than asked for when grown or interrupted */
    int32_t grown;
    int32_t threads; /* host threads used; 0 on a device */
    double seconds[PS_GCEIDD_AXES][PS_GCEIDD_PART_COUNT];
    const char *kernel; /* instruction set or kernels, a static text */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Everything that can be told from the struct alone, for all backends. */
ps_status ps_gceidd_check(const ps_gceidd *g);

#ifdef __cplusplus
}
#endif
#endif
