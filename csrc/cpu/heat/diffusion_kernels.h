/* diffusion_kernels.h - the operations of ps_diffusion.h on one row of nodes along axis
 * 0.
 *
 * A row is the unknown nodes (j, k) of a level. isa/heat_*.c compile the kernels for each
 * instruction set. Sums have eight partial sums in double, element i in number i mod 8.
 */
#ifndef PS_CPU_DIFFUSION_KERNELS_H
#define PS_CPU_DIFFUSION_KERNELS_H

#include "ps_diffusion.h"

/* The kernels of conjugate gradients, between fields in the dtype of the system and, in
 * that of the levels, those that enter and leave the V-cycle. */
typedef struct {
    /* sums[0] = the sum of v^2 with volumes, sums[1] = the sum of v^2. */
    void (*sums)(const ps_diffusion *d, int64_t j, int64_t k, const void *v,
                 double sums[2]);
    /* to = scale r, of `count` elements. */
    void (*enter)(const void *r, double scale, void *to, int64_t count);
    /* With z = scale from: sums[0] = the sum of r z, sums[1] = the sum of z^2 with
     * volumes. */
    void (*leave)(const ps_diffusion *d, int64_t j, int64_t k, const void *from,
                  double scale, const void *r, double sums[2]);
    /* p = scale from + beta p, of `count` elements; p is not read if beta is 0. */
    void (*direct)(void *p, const void *from, double scale, double beta, int64_t count);
    /* x += alpha p, r -= alpha q, to = scale r; sums[0] = the sum of x^2 with volumes,
     * sums[1] = the sum of r^2. */
    void (*advance)(const ps_diffusion *d, int64_t j, int64_t k, double alpha,
                    double scale, void *x, void *r, const void *p, const void *q,
                    void *to, double sums[2]);
} ps_conjugate_kernels;

/* The kernels of a level, or of the system, in its dtype, for one instruction set. */
typedef struct {
    /* out = rhs - A x, or A x if rhs is null; the sum of x out. No operand is `out`. */
    double (*apply)(const ps_diffusion *d, const ps_diffusion_level *l, int64_t j,
                    int64_t k, const void *x, const void *rhs, void *out);
    /* x += t, of `count` elements. */
    void (*add)(void *x, const void *t, int64_t count);
    /* x += factor t, of `count` elements. */
    void (*move)(void *x, double factor, const void *t, int64_t count);
    /* The sum of u v over `count` elements. */
    double (*product)(const void *u, const void *v, int64_t count);
    /* Restrict or interpolate along axis 0, from a row of n nodes or to it; the other one
     * has `coarse` nodes. The interpolation adds if `adds` is set. */
    void (*restrict_row)(const void *fine, const void *weight, int64_t n, int64_t coarse,
                         int periodic, void *out);
    void (*interpolate_row)(const void *from, const void *weight, int64_t n,
                            int64_t coarse, int adds, void *fine);
    /* The same for nodes along axis 0 of lines along another axis: out = a, plus
     * (1 - below) b and above c if these are not null. */
    void (*gather)(const void *a, const void *b, const void *below, const void *c,
                   const void *above, int64_t count, void *out);
    /* out = (or +=) weight a + (1 - weight) b, or a if b is null. */
    void (*mean)(const void *a, const void *b, const void *weight, int64_t count,
                 int adds, void *out);
    /* By the dtype of the levels, for a system of this dtype. */
    const ps_conjugate_kernels *conjugate[PS_F64 + 1];
} ps_diffusion_kernels;

extern const ps_diffusion_kernels ps_diffusion_f32_baseline, ps_diffusion_f32_avx2,
    ps_diffusion_f32_avx512, ps_diffusion_f64_baseline, ps_diffusion_f64_avx2,
    ps_diffusion_f64_avx512;

/* Number of interpolated nodes along an axis of n nodes, of which `coarse` are kept. */
static inline int64_t
ps_interpolated(int64_t n, int64_t coarse)
{
    return n - coarse;
}

#endif
