/* products.h - the derivatives of solves with respect to their matrices. */
#ifndef PS_CPU_PRODUCTS_H
#define PS_CPU_PRODUCTS_H

#include "pysolvers.h"

/* An entry of the backend table; here g may be upper, too. */
ps_status ps_cpu_products(const ps_products *p, const ps_exec *exec);

#endif
