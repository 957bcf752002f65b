/* shared.h - solves with one matrix for all systems: 2 words per unknown.
 *
 * shared_plan.cu chooses a plan; shared.cuh has the kernels, which shared_dtypes.cu
 * compiles once per dtype. The matrix is eliminated by every block for itself, while its
 * first tiles are loaded, or once by ps_cuda_shared_keep() into a store. Systems along a
 * strided axis use shared_panels.h if that is faster.
 */
#ifndef PS_CUDA_LINES_SHARED_SHARED_H
#define PS_CUDA_LINES_SHARED_SHARED_H

#include "device/operand.cuh"
#include "lines/join/shared_matrix.cuh"
#include "lines/shared/shared_tile.cuh"
#include "ps_differences.h"
#include "runtime/engine.h"

namespace pysolvers::shared {

using namespace device;
using namespace join;

/* The most rows of a thread with usual and with short chunks, odd so that neighbours use different
 * banks; the largest number of threads of a block; a system has at most 2^steps + 1 warps. */
template <typename Number> struct SharedLimits {
    static constexpr int rows = sizeof(Number) == 16 ? 9 : 17;
    static constexpr int short_rows = number_traits<Number>::is_complex ? rows : 13;
    static constexpr int threads = sizeof(Number) == 4 ? 512 : 256;
    static constexpr int steps = sizeof(Number) == 4 ? 4 : 3;
    /* kept words of a thread with a chunk of `chunk` rows */
    static constexpr int words(int chunk)
    {
        return (3 * chunk - 2) + (6 + 2 * 5) + 2;
    }
    /* of a lane, for the level of the warps */
    static constexpr int level_words = 6 + 2 * steps;
};

/* The threads that copy: the block copies the whole tile; each warp copies the rows on
 * which it works; or one lane of each warp copies them in bulk. */
typedef enum { COPY_BY_BLOCK, COPY_BY_WARP, COPY_IN_BULK } ps_cuda_shared_copies;

/* The distribution of systems. A team solves a system. It consists of `warps` warps, or
 * of `width` lanes of one warp; each thread has a chunk of the rows. */
typedef struct {
    int32_t rows, width, warps;
    int32_t chunk;  /* rows of a thread */
    int32_t teams;  /* per block */
    int32_t rounds; /* systems of a tile that a team solves one after the other */
    int32_t pitch;  /* elements between the systems of a tile */
    int32_t front;  /* zeros before each system, included in the pitch */
    int32_t stages; /* number of tiles in shared memory */
    int32_t tile_bytes, exchange_bytes;
    ps_cuda_shared_copies copies;
} ps_cuda_shared_shape;

/* The shape, the division of lines into tiles, and the blocks that process them. */
typedef struct {
    ps_cuda_shared_shape shape;
    ps_cuda_route rhs, x;
    int64_t lines, lanes; /* lines of `lanes` systems */
    int64_t tiles;        /* per line */
    int32_t slots;        /* systems per tile */
    int32_t takers;       /* what processes a tile: 1 for the block, or its crews */
    bool skewed;     /* bulk copies of systems that begin anywhere between 16 bytes */
    bool work_queue; /* crews draw their tiles from a counter; otherwise equal shares */
    /* index of a system in info: steps along lines and lanes */
    int64_t line_info, lane_info;
    int64_t blocks;
    int threads;
    size_t shared_bytes;
} ps_cuda_shared_plan;

template <typename Number> struct SharedJob : ps_cuda_shared_plan {
    SharedMatrix<Number> matrix;
    int32_t *info;  /* null, or one entry per system */
    uint8_t *marks; /* null, or 1 for each system if the matrix is not dominant; then
                       nothing is solved */
    uint32_t *work_queue; /* number of tiles that were drawn; null without a work queue */
};

/* The right-hand sides are those in memory: a source of tiles, as SharedSidesOfDifferences in
 * shared_differences.cuh. */
struct SharedSides {
    __device__ __forceinline__ const void *begin() const
    {
        return nullptr;
    }

    template <int ROWS, typename Place, typename Number, typename Skews>
    __device__ __forceinline__ void make(const void *, const ps_cuda_shared_shape &,
                                         const Place &, Number *, int,
                                         const Skews &) const
    {
    }
};

/* shared.cuh: enqueue a job; eliminate a matrix into a store. */
template <typename Number, typename Source>
ps_status shared_launch(const SharedJob<Number> &job, const Source &source,
                        cudaStream_t stream);
template <typename Number>
ps_status shared_keep(const SharedMatrix<Number> &matrix,
                      const ps_cuda_shared_shape &shape, void *store, int32_t *info,
                      uint8_t *mark, cudaStream_t stream);

/* shared_plan.cu: whether one block can hold a system of `rows` rows, and the bytes of
 * its eliminated matrix; the team for it; a batch, and a plan for it. */
bool ps_cuda_shared_block_fits(ps_dtype dtype, int64_t rows, size_t *store);
ps_cuda_shared_shape ps_cuda_shared_team(ps_dtype dtype, int64_t rows);
ps_cuda_shared_plan ps_cuda_shared_plan_of(const ps_tridiag *t,
                                           const ps_cuda_device *device);

/* Whether one block can hold a system of `rows` rows; then `store` gets the bytes of
 * the eliminated matrix: for tiles, followed by those for panels. */
bool ps_cuda_shared_fits(ps_dtype dtype, int64_t rows, size_t *store);

/* Eliminate the matrix of `t`, or its transpose, into `store`. Writes *t->info, and in
 * *mark whether the matrix is not dominant; both may be null. */
ps_status ps_cuda_shared_keep(const ps_tridiag *t, bool transposed, void *store,
                              uint8_t *mark, cudaStream_t stream);

/* Solve for the right-hand sides of `t` with its matrix, or with a store if that is not
 * null; the matrix is conjugated if `conjugated` is set. With PS_PIVOT_AUTO a matrix
 * that is not dominant is solved with row exchanges; its marks are at the begin of the
 * workspace. */
ps_status ps_cuda_shared_work(const ps_tridiag *t, bool has_store, ps_pivot pivot,
                              size_t *bytes);
ps_status ps_cuda_shared_solve(const ps_tridiag *t, const void *store, bool conjugated,
                               ps_pivot pivot, const ps_exec *exec);

/* Solve with a store for real right-hand sides that are the differences of t->rhs, which x does
 * not overlap: PS_UNSUPPORTED if a tile has more systems than the source can serve. */
ps_status ps_cuda_shared_differences_work(const ps_tridiag *t, size_t *bytes);
ps_status ps_cuda_shared_differences(const ps_tridiag *t, const ps_differences &d,
                                     const void *store, const ps_exec *exec);

} // namespace pysolvers::shared

#endif
