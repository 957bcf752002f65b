/* reduction.h - cyclic reduction, what its files offer each other on the host.
 *
 * reduction.cu makes the plan; one module a dtype carries it out.
 */
#ifndef PS_CUDA_LINES_REDUCTION_REDUCTION_H
#define PS_CUDA_LINES_REDUCTION_REDUCTION_H

#include "runtime/engine.h"

namespace pysolvers::reduction {

/* The variant of pcr: the mapping, 0 to 4; PS_CUDA_PCR_WARPS times the warps of a block,
 * which then has one system; whether the right-hand sides come by way of the read-only
 * cache, as they must not where x is rhs. */
enum { PS_CUDA_PCR_WARPS = 8, PS_CUDA_PCR_READ_ONLY = 256 };

/* How a block solves systems in shared memory. */
typedef struct {
    int32_t rows;    /* of the longest system */
    int32_t levels;  /* of cr, before pcr */
    int32_t live;    /* rows left for pcr: rows >> levels */
    int32_t steps;   /* of pcr at most; if couplings are left, Thomas ends it */
    int32_t staged;  /* pcr writes the solution by way of an array of its own */
    int32_t lanes;   /* threads a system */
    int32_t systems; /* a block */
    int32_t pitch;   /* numbers of shared memory a system */
} ps_cuda_on_chip;

/* A whole solve: `global` steps of pcr or levels of cr through the workspace until
 * the systems fit into shared memory, then on_chip. A periodic system is bordered:
 * rows counts all but its last row, sides its right-hand sides. */
typedef struct {
    int32_t rows, sides, global;
    bool by_cr;     /* the global part: levels of cr, or else steps of pcr */
    bool read_only; /* load right-hand sides as what no one writes */
    ps_cuda_on_chip on_chip;
    const char *kernel;
} ps_cuda_reduction_plan;

/* Limits of one dtype, and its solve. */
typedef struct {
    size_t element;        /* bytes of a number */
    int32_t threads;       /* of a block at most */
    int32_t rows_a_thread; /* that pcr keeps in registers */
    cudaError_t (*solve)(const ps_tridiag *t, const ps_cuda_reduction_plan *plan,
                         const ps_exec *exec);
} ps_cuda_reduction_type;

extern const ps_cuda_reduction_type ps_cuda_reduction_f32, ps_cuda_reduction_f64,
    ps_cuda_reduction_c64, ps_cuda_reduction_c128;

/* Numbers of one system kept in the workspace after `step` global steps or levels,
 * step >= 1: the diagonals and the right-hand sides. */
static inline int64_t
ps_cuda_reduction_kept(const ps_cuda_reduction_plan *plan, int step)
{
    const int64_t rows = plan->by_cr ? plan->rows >> step : plan->rows;

    return rows * (3 + plan->sides);
}

} // namespace pysolvers::reduction

#endif
