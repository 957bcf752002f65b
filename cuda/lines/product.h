/* product.h - products with tridiagonal matrices, and residuals. */
#ifndef PS_CUDA_LINES_PRODUCT_H
#define PS_CUDA_LINES_PRODUCT_H

#include "lines/row_walk.h"
#include "ps_step.h"
#include "runtime/engine.h"

namespace pysolvers::lines {

/* out = scale (A x) + weight b; with has_sums, of row sums. */
template <typename Number> struct ProductJob {
    RowWalk<Number> walk; /* added: b */
    Walked<Number> out;
    double scale, weight;
    bool has_sums;
};

/* product.cuh: enqueue a job. */
template <typename Number>
ps_status launch_product(const ProductJob<Number> &job, bool is_extended,
                         cudaStream_t stream);

ps_status ps_cuda_product(const ps_product *p, const ps_exec *exec);

} // namespace pysolvers::lines

#endif
