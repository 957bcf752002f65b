/* product_dtypes.cu - the kernels of product.cuh, compiled once per dtype. */
#include "lines/product.cuh"

namespace pysolvers::lines {

template ps_status launch_product(const ProductJob<PS_NUMBER> &, bool, cudaStream_t);

} // namespace pysolvers::lines
