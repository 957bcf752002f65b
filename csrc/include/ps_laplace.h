/* ps_laplace.h - red-black SOR for heat conduction in a plate, by finite volumes.
 *
 *   a_P T_P = a_W T_W + a_E T_E + a_S T_S + a_N T_N + S_u,
 *   a_P = a_W + a_E + a_S + a_N - S_P
 */
#ifndef PS_LAPLACE_H
#define PS_LAPLACE_H

#include "ps_stop.h"

/* "naive" and "coalesced" store one array with interleaved colours; consecutive threads
 * of a warp have consecutive rows in naive and consecutive cells of a row in coalesced.
 * "split" stores one array per colour. These three copy the measured quantity of every
 * cell to the host; "shared" reduces it to one number per block, "atomic" to one number.
 * "auto" computes several iterations in one pass over the field. All give the same bits.
 * The host runs naive on one thread and split on all threads, and does not offer
 * coalesced, shared and atomic. */
#define PS_LAPLACE_VARIANT_LIST(X)       \
    X(PS_LAPLACE_AUTO, "auto")           \
    X(PS_LAPLACE_NAIVE, "naive")         \
    X(PS_LAPLACE_COALESCED, "coalesced") \
    X(PS_LAPLACE_SPLIT, "split")         \
    X(PS_LAPLACE_SHARED, "shared")       \
    X(PS_LAPLACE_ATOMIC, "atomic")

/* Coefficients of a device, for the variants other than auto: the tables and the
 * constants of the struct, or six arrays a_P, a_W, a_E, a_S, a_N and b of all cells, which
 * the call makes of them, in global memory or as textures. With arrays
 * r = ((a_W T_W + a_E T_E) + (a_N T_N + a_S T_S)) + b - a_P T, where a coefficient of a
 * ghost cell is 0 and b contains its S_u: the residual differs by rounding. */
#define PS_LAPLACE_COEFFICIENT_LIST(X) \
    X(PS_LAPLACE_TABLES, "tables")     \
    X(PS_LAPLACE_ARRAYS, "arrays")     \
    X(PS_LAPLACE_TEXTURE, "texture")

#define PS_NAME_(name, text) name,
typedef enum { PS_LAPLACE_VARIANT_LIST(PS_NAME_) PS_LAPLACE_VARIANTS } ps_laplace_variant;
typedef enum {
    PS_LAPLACE_COEFFICIENT_LIST(PS_NAME_) PS_LAPLACE_COEFFICIENT_COUNT
} ps_laplace_coefficients;
#undef PS_NAME_

/* The cells are (i, j), 1 <= i <= nx and 1 <= j <= ny, surrounded by ghost cells. Fields
 * have the layout of struct ps_lmsor; in naive and coalesced the layout of its kernel
 * serial. A ghost cell holds S_u / ax (west and east) or S_u / ay (south and north) of
 * the wall between the ghost cell and its neighbour, so that one formula serves all
 * cells. An iteration relaxes the red cells, i + j even, then the black cells:
 *
 *   r = ((ax (T_W + T_E) + ay (T_N + T_S)) + source) - diag T
 *   T = T + gain r
 *
 * in this order of operations, each operation rounded (no fused multiply-add), in the
 * dtype of the fields; r is the residual. diag = a_P and gain = omega/a_P are tables of
 * three rows over x: row 0 for j = 1, row 1 for 1 < j < ny, row 2 for j = ny (row 0 if
 * ny = 1). They are stored at
 *
 *   table[(row*2 + i%2)*pitch + i/2],      in naive and coalesced table[row*2*pitch + i].
 */
struct ps_laplace {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    ps_laplace_variant variant;
    ps_laplace_coefficients coefficients; /* a host has tables only */
    int64_t nx, ny;                       /* cells */
    int64_t pitch;                        /* a multiple of 16, at least (nx+3)/2 */
    uint32_t periodic;                    /* bits of ps_stop.h; a device has 0 only */
    double ax, ay; /* a_W = a_E and a_S = a_N away from walls; rounded to the dtype */
    void *t;
    const void *diag, *gain;
    const void *source; /* null, or a field: the source of a cell times its volume */
    ps_stop stop;
};

struct ps_laplace_report {
    ps_relax_report relax;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Check all that the struct alone determines, for all backends. */
ps_status ps_laplace_check(const ps_laplace *l);

#ifdef __cplusplus
}
#endif

#endif
