/* ps_laplace.h - red-black SOR for heat conduction in a plate, by finite volumes.
 *
 *   a_P T_P = a_W T_W + a_E T_E + a_S T_S + a_N T_N + S_u,
 *   a_P = a_W + a_E + a_S + a_N - S_P
 */
#ifndef PS_LAPLACE_H
#define PS_LAPLACE_H

#include "ps_stop.h"

/* naive and coalesced keep one array, colours interleaved; the threads of a warp lie
 * across the rows in naive and along them in coalesced. split keeps an array a colour.
 * With these three the number of every cell that is measured goes to the host; shared
 * makes one number a block, atomic one in all. auto makes several iterations in one pass
 * over the field. All give the same bits. A backend without threads in warps runs naive
 * on one thread, split on all, and has no coalesced, shared and atomic. */
#define PS_LAPLACE_VARIANT_LIST(X)       \
    X(PS_LAPLACE_AUTO, "auto")           \
    X(PS_LAPLACE_NAIVE, "naive")         \
    X(PS_LAPLACE_COALESCED, "coalesced") \
    X(PS_LAPLACE_SPLIT, "split")         \
    X(PS_LAPLACE_SHARED, "shared")       \
    X(PS_LAPLACE_ATOMIC, "atomic")

#define PS_NAME_(name, text) name,
typedef enum { PS_LAPLACE_VARIANT_LIST(PS_NAME_) PS_LAPLACE_VARIANTS } ps_laplace_variant;
#undef PS_NAME_

/* Cells (i, j), 1 <= i <= nx and 1 <= j <= ny, and a frame of ghosts around them. Fields
 * have the layout of struct ps_lmsor; that of its kernel serial in naive and coalesced. A
 * ghost holds S_u / ax (west and east) or S_u / ay (south and north) of the wall between
 * it and its cell, so that cells at walls need no case of their own. An iteration relaxes
 * the red cells, i + j even, then the black ones:
 *
 *   r = ((ax (T_W + T_E) + ay (T_N + T_S)) + source) - diag T
 *   T = T + gain r
 *
 * in this order, each operation rounded (no fused ones), in the dtype of the fields; r is
 * the residual. diag = a_P and gain = omega/a_P have three rows over x, for j = 1, for
 * 1 < j < ny and for j = ny (the first if ny = 1), and lie at
 *
 *   table[(row*2 + i%2)*pitch + i/2],      in naive and coalesced table[row*2*pitch + i].
 */
struct ps_laplace {
    ps_dtype dtype; /* PS_F32 or PS_F64 */
    ps_laplace_variant variant;
    int64_t nx, ny; /* cells */
    int64_t pitch;  /* a multiple of 16, at least (nx+3)/2 */
    double ax, ay;  /* a_W = a_E and a_S = a_N away from walls; rounded to the dtype */
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

/* Everything that can be told from the struct alone, for all backends. */
ps_status ps_laplace_check(const ps_laplace *l);

#ifdef __cplusplus
}
#endif

#endif
