/* ps_blocks.h - block tridiagonal systems, and systems of five diagonals. */
#ifndef PS_BLOCKS_H
#define PS_BLOCKS_H

#include "pysolvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a block, at most. */
enum { PS_MOST_SIDE = 32 };

/* Blocks of a side of so many rows have kernels without row exchanges across blocks;
 * others are solved as bands, with partial pivoting. */
enum { PS_FAST_SIDE = 4 };

/* What blocks_run() does:
 *   PS_BLOCKS_SOLVE    solve: reads matrix and rhs, writes x
 *   PS_BLOCKS_FACTOR   factor: reads matrix, writes store
 *   PS_BLOCKS_APPLY    solve by factors: reads store and rhs, writes x
 *   PS_BLOCKS_LOGDET   the logarithms of the absolute values of the determinants and
 *                      their signs, by factors: reads store, writes logdet and sign
 *   PS_BLOCKS_INVERSE  the blocks of the inverse in the places of the blocks of the
 *                      matrix, by factors without row exchanges across blocks, not
 *                      periodic: reads store, writes inverse */
#define PS_BLOCKS_LIST(X)         \
    X(PS_BLOCKS_SOLVE, "solve")   \
    X(PS_BLOCKS_FACTOR, "factor") \
    X(PS_BLOCKS_APPLY, "apply")   \
    X(PS_BLOCKS_LOGDET, "logdet") \
    X(PS_BLOCKS_INVERSE, "inverse")

#define PS_NAME_(name, text) name,
typedef enum { PS_BLOCKS_LIST(PS_NAME_) PS_BLOCKS_TASKS } ps_blocks_task;
#undef PS_NAME_

/* A diagonal of blocks: entry (p, q) of the block in row i of system (j, k) is
 * data[i*row + j*outer + k*inner + p*down + q*across]; for an input, strides of the batch
 * can be 0. */
typedef struct {
    void *data;
    ps_stride stride;
    int64_t down, across;
} ps_block_diagonal;

/* outer * inner systems of `rows` block rows of `side` scalar rows:
 *
 *   lower[i] x[i-1] + diag[i] x[i] + upper[i] x[i+1] = rhs[i],  0 <= i < rows
 *
 * lower[0] and upper[rows-1] are not read. Or, with side = 0, scalar rows
 *
 *   sum over d = -2 .. 2 of bands[2 + d][i] x[i+d] = rhs[i],  0 <= i < rows
 *
 * where entries that would multiply unknowns outside are not read. Row i of an operand is
 * at data + i*row also where rows before it are not read, which need not exist.
 *
 * rhs and x are blocks of one column (across is not read), or scalars for side 0 (nor is
 * down); x may be rhs (same data, same strides), other overlaps are not detected. pivot:
 * PS_PIVOT_NEVER, elimination of block rows in order, with row exchanges inside blocks;
 * PS_PIVOT_ALWAYS, partial pivoting of scalar rows; PS_PIVOT_AUTO, the latter in the
 * systems that are not diagonally dominant by blocks, or by scalar rows. A factor with
 * PS_PIVOT_AUTO is one with PS_PIVOT_NEVER, and ps_report.pivoted the number of matrices that need the other one. If
 * side > PS_FAST_SIDE, all are PS_PIVOT_ALWAYS. Systems with side = 0 are solved as
 * blocks of two scalar rows.
 *
 * If `definite`, the matrices are symmetric, a pivot is bad also if it is not positive
 * definite, and rows are not exchanged but inside the blocks of PS_PIVOT_NEVER; not with
 * PS_PIVOT_AUTO. Of a symmetric matrix all pivots are positive definite if it is.
 *
 * dtype: PS_F32 or PS_F64. trans, outer_step and inner_step: of PS_BLOCKS_APPLY, as of a
 * ps_factor_rhs, but inner_step = 0 needs factor_inner = 1. PS_BLOCKS_LOGDET and
 * PS_BLOCKS_INVERSE are of all matrices of the factor. info: null, or for each system 0 or
 * 1 + the row of the first bad pivot, a block row unless side is 0, where it can be the
 * row after that; the rest as of a ps_tridiag. */
typedef struct {
    ps_blocks_task task;
    ps_dtype dtype;
    ps_pivot pivot;
    ps_trans trans;
    int32_t side, definite;
    int64_t rows, outer, inner;
    ps_block_diagonal lower, diag, upper;
    ps_input bands[5];
    ps_block_diagonal rhs, x;
    /* lower, diag, upper, or null data: blocks, also for side 0, where they have two rows,
     * of which the first one is not of the matrix if `rows` is odd */
    ps_block_diagonal inverse[3];
    double *logdet, *sign;
    int32_t *info;
    void *store; /* aligned to 64 bytes */
    size_t store_bytes;
    int64_t factor_outer, factor_inner; /* matrices in store */
    int32_t outer_step, inner_step;
    /* null data, or of PS_BLOCKS_SOLVE of definite matrices with side 0 on a host: the matrices
     * are diag(weight) + scale bands, with one scale for each system, and the right-hand sides
     * weight rhs, 0 where the weight is 0. info is -1 where a weight is negative or not
     * finite. */
    ps_input weight, scale;
} ps_blocks;

ps_status ps_blocks_check(const ps_blocks *b);

#ifdef __cplusplus
}
#endif
#endif
