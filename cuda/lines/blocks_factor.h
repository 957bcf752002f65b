/* blocks_factor.h - what the entries of factors of block tridiagonal matrices and their
 * kernels share.
 */
#ifndef PS_CUDA_LINES_BLOCKS_FACTOR_H
#define PS_CUDA_LINES_BLOCKS_FACTOR_H

#include "lines/blocks.h"

namespace pysolvers::lines {

static constexpr int factor_threads = 64, factor_levels = 20;

/* Blocks of a multiprocessor, at least, of kernels of teams: 168 and 128 registers, 128 in float32,
 * where six blocks take 1.04 of the time of factors of blocks of 4. The function for
 * blocks without a safe inverse by cofactors would take 255. With eight in place of six, numbers of
 * float64 spill: 1.15 of the time of the likelihood of benchmarks/gaussian_process.py (H200). */
template <typename Real> static constexpr int factor_blocks = sizeof(Real) == 4 ? 8 : 6;
static constexpr int inverse_blocks = 8;

/* Chunks, or matrices that are not divided, whose numbers in the store alternate. With those of a warp
 * of teams, 8 for blocks of 4, solves take 1.16 of the time in float64 and 1.33 in float32. */
static constexpr int factor_step = 32;

/* Rows of a chunk of the first level and of the others; the last one remains for the next level.
 * Levels with few chunks take as long as one chunk. */
static constexpr int32_t factor_chunk = 16, factor_chunk_below = 4;

/* The rows of one level: those of the matrices, or the last ones of the chunks of the level
 * before. The last level is not divided. */
struct FactorLevel {
    int32_t rows, chunks; /* of a matrix */
    int32_t chunk;        /* rows of a chunk */
    int64_t first;        /* number of the store with which its factors begin */
};

struct FactorShape {
    FactorLevel level[factor_levels];
    int32_t levels, side; /* of a block */
    int32_t scalars;      /* scalar rows of five diagonals, or 0 */
    int64_t matrices, numbers;

    /* Numbers of the rows of all levels but the first, `words` for a row. */
    int64_t below(int64_t words) const
    {
        int64_t rows = 0;

        for (int l = 1; l < levels; l++) {
            rows += level[l].rows;
        }
        return rows * words;
    }
};

/* What the pivots of a chunk, and of the chunks whose last rows it has, say of a matrix. */
struct FactorSum {
    double log, sign; /* of the determinant */
    int32_t bad;      /* 0, or 1 + the first block row whose pivot is bad */
    int32_t is_left;  /* a row is not dominant */
};

/* A task at one level. Systems are those of right-hand sides, or the matrices. */
template <typename Real> struct FactorJob {
    BlocksJob<Real> rows; /* of this level: outer * inner systems */
    BlockOperand<Real> more,
        more_rhs; /* are added to diag and to rhs if they are there */
    FactorShape shape;
    int32_t level, trans;
    Real *store;
    FactorSum *sums; /* of the chunks, or of the matrices */
    const FactorSum *sums_before;
    Real *next; /* of the next level, [system][row]: four blocks lower, diag, upper, more;
                 * or two columns rhs, more; or one column x; or three blocks of the inverse
                 */
    Real *next_rhs;        /* of a solve, in the first direction: two columns rhs, more */
    bool are_side_by_side; /* of a solve: systems, not chunks, are neighbours */
    BlockOperand<Real> inverse[3];
    /* the matrix of a system is outer_step * j * matrices + inner_step * k */
    int64_t inner, factor_inner;
    int32_t outer_step, inner_step;
};

enum FactorPart { FACTOR_MATRIX, FACTOR_DOWN, FACTOR_UP, FACTOR_INVERSE };

/* blocks_factor_reals.cu: a task at job.level; both directions at the last level. */
template <typename Real>
ps_status launch_factor(const FactorJob<Real> &job, FactorPart part, cudaStream_t stream);

/* blocks_divided_reals.cu: one direction of a solve at job.level, FACTOR_DOWN or FACTOR_UP. */
template <typename Real>
ps_status launch_divided(const FactorJob<Real> &job, FactorPart part,
                         cudaStream_t stream);

/* blocks_factor.cu */
ps_status ps_cuda_blocks_store(const ps_blocks *b, size_t *bytes);
ps_status ps_cuda_blocks_factor_work(const ps_blocks *b, size_t *bytes);
ps_status ps_cuda_blocks_factor_run(const ps_blocks *b, void *work, cudaStream_t stream);
/* Of a solve of few long systems; 0 if there are too many for each multiprocessor, or short ones. */
static constexpr int64_t most_divided_systems = 60;
size_t divided_bytes(const ps_blocks &b, const ps_cuda_device &device);
template <typename Real>
ps_status solve_divided(const ps_blocks &b, const BlocksJob<Real> &rows, void *work,
                        cudaStream_t stream);

} // namespace pysolvers::lines

#endif
