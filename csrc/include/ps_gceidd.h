/* ps_gceidd.h - convection and diffusion by corrected explicit-implicit domain
 * decomposition: the contract of gceidd_step().
 *
 *   u_t = (a_x u_x - b_x u)_x + (a_y u_y - b_y u)_y + f
 *
 * on a rectangle. Each side prescribes values (Dirichlet), outward normal derivatives
 * (Neumann) or exchange (Robin), or an axis is periodic. A step consists of a sweep along x and a sweep along y. A sweep divides its
 * lines into strips, predicts the values at the interfaces explicitly, solves the strips
 * implicitly, and corrects the interfaces by interpolation. The stability of the explicit
 * prediction limits the step: about a dt/h^2 < 4, and CFL < 3 if feet are extrapolated.
 * Source: Foadaddini, Zolfaghari, Mahmoodi Darian and Saadatfar (2022).
 */
#ifndef PS_GCEIDD_H
#define PS_GCEIDD_H

#include "pysolvers.h"

/* A line has the nodes i = 0..n with spacing h. U is the field before and V the field
 * after the sweep. a' and b' at i+1/2 are the means of both nodes; beyond an end they are
 * the values of the end node. D U = (a'_{i+1/2} (U_{i+1} - U_i) - a'_{i-1/2} (U_i -
 * U_{i-1}))/h^2; q = dt (b'_{i+1/2} - b'_{i-1/2})/h. f is the source of the step; each
 * sweep adds half of it. z+ and z- are max(z, 0) and min(z, 0). B_i is U at the foot
 * x_i - b_i dt, see below.
 *
 *            prediction at an interface           implicit rows
 *   CP       P_i = (1-q) B_i + dt (D U + f/2)     upwind
 *   CFD      as CP                                characteristics
 *   MU       from previous half levels            upwind
 *
 *   upwind, a* from the list below:
 *     -dt (a*_{i-1/2}/h^2 + b'_{i-1/2}+/h) V_{i-1}
 *     + (1 + dt (a*_{i-1/2} + a*_{i+1/2})/h^2 + dt (b'_{i+1/2}+ - b'_{i-1/2}-)/h) V_i
 *     -dt (a*_{i+1/2}/h^2 - b'_{i+1/2}-/h) V_{i+1}  =  U_i + dt f/2
 *   characteristics:
 *     -dt a'_{i-1/2}/h^2 V_{i-1} + (1 + q + dt (a'_{i-1/2} + a'_{i+1/2})/h^2) V_i
 *     -dt a'_{i+1/2}/h^2 V_{i+1}  =  B_i + dt f/2
 *
 * The sum of the coefficients of a row is 1 + q in both. Backends eliminate with this sum
 * instead of the diagonal (row-sum form), so that the error of a sweep is a few rounding
 * errors for any dt, and a constant is kept without an error where the scheme keeps it.
 * PS_GCEIDD_KERNELS_PAPER has the arithmetic of the paper.
 *
 * Known values in the rows are P at the interfaces and the values of Dirichlet sides at
 * the ends. At an end with the outward derivative g the value beyond the end is
 * V_inside + 2 h g; at one with exchange, of the coefficient c and the ambient value w, it
 * is V_inside + 2 h c (w - V_end). The correction after the solve is
 *
 *   V_i = 2/3 (V_{i+1} + V_{i-1}) - 1/6 (V_{i+2} + V_{i-2})   at the interfaces.
 *
 * Lines on a Dirichlet side are not swept: the sweep along x keeps their old values, and
 * the sweep along y reads these values and then replaces them. Lines on a Neumann side
 * are swept as interior lines. At a corner of two Dirichlet sides, west or east
 * determines the value.
 *
 * Along a periodic axis node n is node 0 once more, with the same values and data, and the
 * neighbour of node 0 before it is n-1. Feet beyond an end are at the other end. In
 * several strips node 0 is an interface, too: it is predicted and corrected as the others.
 * One strip is the cyclic system of all nodes, solved three times with a known value of
 * node 0: twice for what its row then lacks, which is linear in this value, and with the
 * value with which it lacks nothing. */
#define PS_GCEIDD_SCHEME_LIST(X) \
    X(PS_GCEIDD_CP, "cp")        \
    X(PS_GCEIDD_CFD, "cfd")      \
    X(PS_GCEIDD_MU, "mu")

/* a* = a' / (1 + h |b'| / (2 a')) (0 where a' is 0), or a' as it is. */
#define PS_GCEIDD_UPWIND_LIST(X)             \
    X(PS_GCEIDD_UPWIND_MODIFIED, "modified") \
    X(PS_GCEIDD_UPWIND_PLAIN, "plain")

/* P of MU: U + (U - S1), or U + (S1 - S2); S1 and S2 are the two half levels before U, S1
 * the newer one. */
#define PS_GCEIDD_PREDICTOR_LIST(X)         \
    X(PS_GCEIDD_PREDICTOR_NEWEST, "newest") \
    X(PS_GCEIDD_PREDICTOR_PRINTED, "printed")

/* With s = i - b_i dt/h and k = min(max(floor(s), 0), n-1), B_i = U_k + (s-k) (U_{k+1} -
 * U_k). "clamp" first limits s to [0, n]; "extrapolate" does not. */
#define PS_GCEIDD_FOOT_LIST(X)       \
    X(PS_GCEIDD_FOOT_CLAMP, "clamp") \
    X(PS_GCEIDD_FOOT_EXTRAPOLATE, "extrapolate")

/* Kernels of a device; the host ignores the choice. "fused" runs a sweep in one kernel,
 * "paper" in the four kernels of the paper, whose solves along x use shared memory in
 * three stages (3S) or not (naive). */
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
    X(PS_GCEIDD_NEUMANN, "neumann")     \
    X(PS_GCEIDD_ROBIN, "robin")         \
    X(PS_GCEIDD_PERIODIC, "periodic")

/* Parts of a sweep. The time of a fused sweep is reported as its solve. */
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
enum { PS_GCEIDD_ENDS = 2 };
enum { PS_GCEIDD_TERMS = 2, PS_GCEIDD_OLDER = 2, PS_GCEIDD_LEAST_STRIP = 3 };

/* Values of dtype in the memory of the backend: step k of the call, k from 0, and node
 * (i, j) have data[k*step + j*y + i*x]. Strides count elements; a zero stride means one
 * value along that index. Values for the end of step k have the index k. The values of a
 * side vary along the side only: the stride of the other axis is not read. */
typedef struct {
    const void *data;
    int64_t step, y, x;
} ps_gceidd_data;

/* A term of f = sum of factor[k] * field over the terms, where k is the step. `factor` is
 * in host memory; null means 1. */
typedef struct {
    ps_gceidd_data field;
    const double *factor;
} ps_gceidd_term;

/* Boundary condition of a side: values of u, outward derivatives, or ambient values with
 * the coefficient `exchange`, not negative, which is null for the other kinds. The data of
 * a periodic axis are not read. A device has Dirichlet and Neumann sides only. */
typedef struct {
    ps_gceidd_kind kind;
    ps_gceidd_data data, exchange;
} ps_gceidd_edge;

/* Interface k = 1 .. strips-1 along an axis of n cells is node k n / strips, rounded
 * down. Fields have the type dtype; node (i, j) is element j*(nx+1) + i. Fields do not
 * overlap. `older` holds the half levels before u, the newest first; only MU reads and
 * updates them. Each strip has at least PS_GCEIDD_LEAST_STRIP cells.
 *
 * The first step begins from `before`, which is not changed, or, if it is null, from u.
 * MU has no `before`.
 *
 * A grid that is part of a larger one can shrink along y where its nodes become wrong:
 * after each step it loses the outer lost[0] strips at south and lost[1] at north. The
 * sides are then at the new ends, with the same values. Nodes outside are not read
 * any more, and their values after the call mean nothing. Along y, a grid that shrinks
 * has strips of equal length, but for the one at south, which can have one cell less. One
 * strip is left for the last step of a call. */
struct ps_gceidd {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    ps_gceidd_scheme scheme;
    ps_gceidd_upwind upwind;
    ps_gceidd_predictor predictor;
    ps_gceidd_foot foot;
    ps_gceidd_kernels kernels;
    ps_gceidd_strategy strategy;
    /* The stages of 3S: naive up to few_strips strips per multiprocessor; shared memory
     * for strips of fewer than short_strip cells; for others, and with more strips,
     * `throttle` bytes of shared memory per block limit the resident blocks. */
    int32_t few_strips, short_strip, throttle;
    int64_t cells[PS_GCEIDD_AXES], strips[PS_GCEIDD_AXES];
    int64_t lost[PS_GCEIDD_ENDS];
    double spacing[PS_GCEIDD_AXES];
    double dt;
    double lowest, highest; /* range of u: lowest <= highest, may be infinite */
    ps_gceidd_data velocity[PS_GCEIDD_AXES], diffusion[PS_GCEIDD_AXES];
    int32_t terms; /* 0 to PS_GCEIDD_TERMS */
    ps_gceidd_term source[PS_GCEIDD_TERMS];
    ps_gceidd_edge edge[PS_GCEIDD_SIDE_COUNT];
    const void *before;
    void *u, *older[PS_GCEIDD_OLDER];
};

/* What was done. A call ends after the first step in which lowest <= u <= highest does
 * not hold at all nodes of the lines that are swept along y, end nodes included. `grown`
 * is then 1, `steps` includes that step, and u is the field after it. The limits are
 * rounded to the dtype. A device backend waits for the end of the call, measures the
 * parts of the last step, and divides the total time in the same proportions. */
struct ps_gceidd_report {
    int64_t steps; /* fewer than `count` if grown or interrupted */
    int32_t grown;
    int32_t threads; /* host threads used; 0 on a device */
    double seconds[PS_GCEIDD_AXES][PS_GCEIDD_PART_COUNT];
    /* Of the paper's kernels on a device: resident threads of a multiprocessor over their
     * largest number; 0 otherwise. */
    double occupancy[PS_GCEIDD_AXES][PS_GCEIDD_PART_COUNT];
    const char *kernel; /* instruction set or kernels, a static text */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Check all that the struct alone determines, for all backends. */
ps_status ps_gceidd_check(const ps_gceidd *g);

/* Check the number of steps of a call, for all backends. */
ps_status ps_gceidd_check_count(const ps_gceidd *g, int64_t count);

/* The grid in step k of a call, k from 0, and what belongs to it, without `before`. */
ps_gceidd ps_gceidd_in_step(const ps_gceidd *g, int64_t k);

#ifdef __cplusplus
}
#endif
#endif
