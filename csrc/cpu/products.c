/* products.c - the derivatives of a batch of solves with respect to the diagonals.
 *
 * With A x = b and g = A^{-T} (cotangent of x), the cotangents of the diagonals are
 *
 *   lower[i] = -g[i] x[i-1],  diag[i] = -g[i] x[i],  upper[i] = -g[i] x[i+1]
 *
 * (Giles 2008). One pass reads two arrays and writes three: 5 words and 3 operations per
 * unknown; of a step it reads four, 7 words. A system is a run of rows * inner numbers, in
 * which the neighbours of a number are `inner` numbers away; the memory limits the pass, with
 * any instruction set. Results stored past the caches, from buffers, took 1.1 to 1.7 of the
 * time (16 and 36 MB each, 32 MB of cache).
 */
#include "products.h"

#include "runtime/integers.h"
#include "runtime/threads.h"
#include "runtime/tuning.h"

#define NAME(name) name##_f32
#define REAL float
#define PARTS 1
#define STEP 0
#include "products.inc"

#define NAME(name) name##_f64
#define REAL double
#define PARTS 1
#define STEP 0
#include "products.inc"

#define NAME(name) name##_c64
#define REAL float
#define PARTS 2
#define STEP 0
#include "products.inc"

#define NAME(name) name##_c128
#define REAL double
#define PARTS 2
#define STEP 0
#include "products.inc"

#define NAME(name) name##_step_f32
#define REAL float
#define PARTS 1
#define STEP 1
#include "products.inc"

#define NAME(name) name##_step_f64
#define REAL double
#define PARTS 1
#define STEP 1
#include "products.inc"

ps_status
ps_cpu_products(const ps_products *p, const ps_exec *exec)
{
    static const ps_body bodies[] = {all_f32, all_f64, all_c64, all_c128};
    static const ps_body of_steps[PS_DTYPE_COUNT] = {all_step_f32, all_step_f64};
    const ps_body *const kind = p->u != NULL ? of_steps : bodies;
    ps_products its = *p;
    const int64_t count = p->rows * p->inner * p->outer;

    if (p->dtype < 0 || p->dtype >= PS_DTYPE_COUNT || p->rows < 1 || p->inner < 0 ||
        p->outer < 0 || kind[p->dtype] == NULL) {
        return PS_BAD_ARGUMENT;
    }
    if (count > 0) {
        ps_parallel_for(ps_thread_count_for(exec, count),
                        (count + PS_PRODUCTS_PART - 1) / PS_PRODUCTS_PART, kind[p->dtype],
                        &its);
    }
    return PS_OK;
}
