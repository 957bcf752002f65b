/* ps_lmsor.h - red-black relaxation with local parameters for
 *
 *   u_xx + u_yy - f u_x - g u_y + s = 0
 *
 * on a rectangle with given boundary values or periodic axes: LMSOR (Boukas and Missirlis 1998), LSOR and
 * SOR. The spacings are h along x and k along y; D = 2 (h^2 + k^2).
 */
#ifndef PS_LMSOR_H
#define PS_LMSOR_H

#include "ps_stop.h"

/* Kernels 1, 2 and 3 (Cotronis et al.) relax one colour after the other; they differ in
 * the coefficients that they store. "auto" computes several iterations in one pass over
 * the field. "serial" is the single-threaded code of the same authors: one array with
 * interleaved colours. All give the same bits. */
#define PS_LMSOR_KERNEL_LIST(X) \
    X(PS_LMSOR_AUTO, "auto")    \
    X(PS_LMSOR_1, "1")          \
    X(PS_LMSOR_2, "2")          \
    X(PS_LMSOR_3, "3")          \
    X(PS_LMSOR_SERIAL, "serial")

/* How kernel 3 computes omega; see below. */
#define PS_RELAXATION_LIST(X)                 \
    X(PS_RELAXATION_LMSOR, "lmsor")           \
    X(PS_RELAXATION_LSOR, "lsor")             \
    X(PS_RELAXATION_LMSOR_2012, "lmsor-2012") \
    X(PS_RELAXATION_CONSTANT, "constant")

#define PS_NAME_(name, text) name,
typedef enum { PS_LMSOR_KERNEL_LIST(PS_NAME_) PS_LMSOR_KERNELS } ps_lmsor_kernel;
typedef enum { PS_RELAXATION_LIST(PS_NAME_) PS_RELAXATIONS } ps_relaxation;
#undef PS_NAME_

/* Rows of a 1-D table, for problems with f(x) and g(y). In a table over x, l r is the
 * product of the west and the east coefficient (over y: of north and south):
 *
 *   skew    as in struct ps_lmsor
 *   mu_max  2 sqrt|l r| cos(pi/(n+1)), n = number of interior nodes of a line
 *   mu_min  2 sqrt|l r| cos(pi n/(2n+2))
 *   sign    of l r: -1, 0 or 1
 *   gain    1 / (1 - mu_max^(2/3)) if the sign is 1 */
typedef enum {
    PS_TABLE_SKEW,
    PS_TABLE_MU_MAX,
    PS_TABLE_MU_MIN,
    PS_TABLE_SIGN,
    PS_TABLE_GAIN,
    PS_TABLE_ROWS
} ps_table_row;

/* Node (i, j), 0 <= i <= nx+1 and 0 <= j <= ny+1 (boundary included), has the colour
 * c = (i + j) % 2, 0 red and 1 black. It is stored at
 *
 *   field[(c*(ny+2) + j)*pitch + i/2]      of a field,
 *   table[(row*2 + i%2)*pitch + i/2]       of a table over x,
 *   table[row*(ny+2) + j]                  of a table over y;
 *
 * For the kernel serial, fields have one layout for both colours: field[j*2*pitch + i].
 * Padding elements are finite, are never changed and do not influence the result. An
 * iteration relaxes the red interior nodes, then the black interior nodes:
 *
 *   J = ((west u_W + east u_E) + (north u_N + south u_S)) + source
 *   u = u + omega (J - u)
 *
 * in this order of operations, each operation rounded (no fused multiply-add), in the
 * dtype of the fields. The residual is J - u. Each kernel reads:
 *
 *   1             omega, west, east, north, south
 *   2, serial     omega, skew_x, skew_y:  west = cx + skew_x, east = cx - skew_x,
 *                 south = cy + skew_y, north = cy - skew_y
 *   3             x_table, y_table: skews as in 2, rounded to the dtype; omega see below
 *   auto          omega and the tables, or omega, skew_x and skew_y if tables are null
 *
 * cx = k^2/D, cy = h^2/D, skew_x = cx h f/2, skew_y = cy k g/2, source = (h^2 k^2/D) s.
 *
 * Kernel 3 computes omega in double and rounds it to the dtype. M is the sum of both
 * mu_max, m the sum of both mu_min; s = -1 if no sign is negative (real node), s = 1 if
 * no sign is positive (imaginary node):
 *
 *   omega = 2 / (d + sqrt(a))
 *   lmsor       a = (1 + s (M M)) (1 + s (m m)),  d = 1 - M m red, 1 + M m black
 *   lmsor-2012  as lmsor, but a = (1 - M) (1 - m) at real nodes
 *   lsor        a = 1 + s (M M),  d = 1
 *   mixed node, mu_max of the positive sign is mu_R, of the negative sign mu_I:
 *               a = (1 - mu_R mu_R) + (mu_I mu_I) gain_R,  d = 1, for all three above
 *   constant    omega = omega_constant
 */
struct ps_lmsor {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    ps_lmsor_kernel kernel;
    int64_t nx, ny;    /* interior nodes */
    int64_t pitch;     /* a multiple of 16, at least (nx+3)/2 */
    uint32_t periodic; /* bits of ps_stop.h; a device has 0 only */
    double cx, cy;
    void *u;
    const void *omega, *west, *east, *north, *south, *skew_x, *skew_y;
    const void *source;              /* null: none */
    const double *x_table, *y_table; /* PS_TABLE_ROWS rows */
    ps_relaxation relaxation;        /* of kernel 3 */
    double omega_constant;
    ps_stop stop;
};

struct ps_lmsor_report {
    ps_relax_report relax;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Check all that the struct alone determines, for all backends. */
ps_status ps_lmsor_check(const ps_lmsor *l);

#ifdef __cplusplus
}
#endif

#endif
