/* reduction.h - cyclic reduction: plans, and the functions of each dtype.
 *
 * reduction.cu makes the plan; reduction_solve.cuh executes it. reduction_dtypes.cu is
 * compiled once per dtype.
 */
#ifndef PS_CUDA_LINES_REDUCTION_REDUCTION_H
#define PS_CUDA_LINES_REDUCTION_REDUCTION_H

#include "runtime/texture.cuh"

namespace pysolvers::reduction {

/* The variant of pcr: the mapping, 0 to 4, plus PS_CUDA_PCR_WARPS times the warps of a
 * block, which then has one system. */
enum { PS_CUDA_PCR_WARPS = 8, PS_CUDA_PCR_VARIANTS = 256 };

/* The operands of a batch of real systems as textures; x is not rhs. */
enum { OF_LOWER, OF_DIAG, OF_UPPER, OF_RHS, OPERANDS };
struct OperandTexels {
    runtime::Texels of[OPERANDS];
};

/* The solution of systems in shared memory. */
typedef struct {
    int32_t rows;    /* of the longest system */
    int32_t levels;  /* of cr, before pcr */
    int32_t live;    /* rows left for pcr: rows >> levels */
    int32_t steps;   /* largest number of steps of pcr; Thomas solves the rows that are
                        still coupled */
    int32_t staged;  /* pcr writes the solution through an additional array */
    int32_t lanes;   /* threads per system */
    int32_t systems; /* per block */
    int32_t pitch;   /* numbers of shared memory per system */
} ps_cuda_on_chip;

/* A whole solve: `global` steps of pcr or levels of cr through the workspace until the
 * systems fit shared memory, then on_chip. A periodic system is bordered: `rows` is the
 * number of rows without the last one, `sides` the number of right-hand sides. */
typedef struct {
    int32_t rows, sides, global;
    bool by_cr; /* the global part consists of levels of cr, otherwise of steps of pcr */
    bool chunked; /* one block does all that, chunk after chunk of its system */
    const OperandTexels *texels; /* null, or what reads the operands */
    ps_cuda_on_chip on_chip;
    const char *kernel;
} ps_cuda_reduction_plan;

/* The limits of a dtype, and its solve. */
typedef struct {
    size_t element;        /* bytes of a number */
    int32_t threads;       /* largest number per block */
    int32_t rows_a_thread; /* that pcr keeps in registers */
    ps_status (*solve)(const ps_tridiag *t, const ps_cuda_reduction_plan *plan,
                       const ps_exec *exec);
} ps_cuda_reduction_type;

template <typename Number> ps_cuda_reduction_type reduction_type();

/* As ps_cuda_reduction.solve, with operands that are read as textures. */
ps_status reduction_solve_texels(const ps_tridiag *t, const ps_options *options,
                                 const ps_exec *exec, const OperandTexels *texels);

/* Numbers of one system in the workspace after `step` global steps or levels, step >=
 * 1: the diagonals and the right-hand sides. */
static inline int64_t
ps_cuda_reduction_kept(const ps_cuda_reduction_plan *plan, int step)
{
    const int64_t rows = plan->by_cr ? plan->rows >> step : plan->rows;

    return rows * (3 + plan->sides);
}

} // namespace pysolvers::reduction

#endif
