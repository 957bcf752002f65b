/* products.h - the products by which the solution of a system depends on its matrix. */
#ifndef PS_CUDA_LINES_PRODUCTS_H
#define PS_CUDA_LINES_PRODUCTS_H

#include "pysolvers.h"

namespace pysolvers::lines {

ps_status ps_cuda_products(const ps_products *p, const ps_exec *exec);

} // namespace pysolvers::lines

#endif
