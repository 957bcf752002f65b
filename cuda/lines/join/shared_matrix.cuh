/* shared_matrix.cuh - the matrix that all systems of a batch share, its rows, and the
 * batch.
 */
#ifndef PS_CUDA_LINES_JOIN_SHARED_MATRIX_CUH
#define PS_CUDA_LINES_JOIN_SHARED_MATRIX_CUH

#include "device/operand.cuh"
#include "lines/join/factor.cuh"

namespace pysolvers::join {

/* A matrix, or a store that ps_cuda_shared_keep() has filled. */
template <typename Number> struct SharedMatrix {
    Input<Number> lower, diag, upper; /* batch strides are not read */
    bool periodic, transposed, conjugated;
    const StoredNote *note; /* if not null, the store is used */
};

/* The rows of a matrix or of its transpose. Row i of the transpose consists of element
 * i - 1 of upper, element i of diag and element i + 1 of lower. */
template <typename Number> struct SharedRows {
    const Number *lower, *diag, *upper;
    int64_t lower_step, diag_step, upper_step;
    int32_t rows, wrap; /* wrap: rows if transposed, else 0; for the corner entries */
    bool periodic;

    __device__ __forceinline__ SharedRows(const SharedMatrix<Number> &a, int32_t count)
        : lower(a.transposed ? a.upper.data - a.upper.row : a.lower.data),
          diag(a.diag.data),
          upper(a.transposed ? a.lower.data + a.lower.row : a.upper.data),
          lower_step(a.transposed ? a.upper.row : a.lower.row), diag_step(a.diag.row),
          upper_step(a.transposed ? a.lower.row : a.upper.row), rows(count),
          wrap(a.transposed ? count : 0), periodic(a.periodic)
    {
    }

    /* Row `at` if it exists. The function does not branch, so that many loads can be in
     * flight. */
    __device__ __forceinline__ Row<Number> row(int32_t at, bool wanted) const
    {
        const bool there = wanted && at < rows;
        const int64_t before = at == 0 ? wrap : at;
        const int64_t behind = at == rows - 1 ? at - wrap : at;
        Row<Number> row = {Number(0), Number(0), Number(0), Number(0)};

        if (there) {
            row.diag = diag[at * diag_step];
        }
        if (there && (periodic || at > 0)) {
            row.lower = lower[before * lower_step];
        }
        if (there && (periodic || at < rows - 1)) {
            row.upper = upper[behind * upper_step];
        }
        return row;
    }
};

/* A batch as lines of systems: the axis `lanes` runs within a tile. */
typedef struct {
    int64_t lanes, lines;
    int64_t lane_info, line_info;
    ps_stride rhs, x; /* inner: along lanes; outer: along lines */
} ps_cuda_shared_batch;

ps_cuda_shared_batch ps_cuda_shared_batch_of(const ps_tridiag *t);

} // namespace pysolvers::join

#endif
