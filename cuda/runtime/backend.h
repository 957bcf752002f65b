/* backend.h - the functions of the CUDA backend that its table contains. The device of
 * `exec` is current when they are called.
 */
#ifndef PS_CUDA_RUNTIME_BACKEND_H
#define PS_CUDA_RUNTIME_BACKEND_H

#include "ps_cylinder.h"
#include "ps_part.h"
#include "ps_spline.h"
#include "ps_step.h"
#include "ps_transform.h"

namespace pysolvers {

/* tridiag.cu */
ps_status ps_cuda_tridiag_work(const ps_tridiag *t, const ps_options *options,
                               const ps_exec *exec, size_t *bytes);
ps_status ps_cuda_tridiag_solve(const ps_tridiag *t, const ps_options *options,
                                const ps_exec *exec, ps_report *report);

/* lines/partition/part.cu */
ps_status ps_cuda_part_mailbox(const ps_part *p, size_t *bytes);
ps_status ps_cuda_part_check(const ps_part *p);
ps_status ps_cuda_part_solve(const ps_part *p, const ps_exec *exec);

/* factor.cu */
ps_status ps_cuda_factor_store(const ps_factor *f, const ps_exec *exec, size_t *bytes);
ps_status ps_cuda_factor_make_work(const ps_factor *f, const ps_exec *exec,
                                   size_t *bytes);
ps_status ps_cuda_factor_make(const ps_factor *f, const ps_tridiag *t,
                              const ps_exec *exec, ps_report *report);
ps_status ps_cuda_factor_work(const ps_factor *f, const ps_factor_rhs *b,
                              const ps_exec *exec, size_t *bytes);
ps_status ps_cuda_factor_solve(const ps_factor *f, const ps_factor_rhs *b,
                               const ps_exec *exec);
/* step.cu */
ps_status ps_cuda_step_work(const ps_step *s, ps_pivot pivot, const ps_exec *exec,
                            size_t *bytes);
ps_status ps_cuda_step_solve(const ps_step *s, ps_pivot pivot, const ps_exec *exec,
                             ps_report *report);
ps_status ps_cuda_masked_rows(const ps_step *s, double outside, const ps_output to[3],
                              const ps_exec *exec);
ps_status ps_cuda_factor_step_work(const ps_factor *f, const ps_factor_step *s,
                                   const ps_exec *exec, size_t *bytes);
ps_status ps_cuda_factor_step(const ps_factor *f, const ps_factor_step *s,
                              const ps_exec *exec);

/* The matrices of a store as operands, without right-hand side and x. In row-sum form
 * each diagonal is an array without gaps, aligned to 16 bytes, and so is its end. */
ps_tridiag ps_cuda_factor_matrices(const ps_factor *f);

} // namespace pysolvers

namespace pysolvers::flow {

/* cavity.cu */
ps_status ps_cuda_cavity_work(const ps_cavity *c, const ps_options *options,
                              const ps_exec *exec, size_t *bytes);
ps_status ps_cuda_cavity_iterate(const ps_cavity *c, int64_t count,
                                 const ps_options *options, const ps_exec *exec,
                                 ps_cavity_report *report);

/* cylinder.cu */
ps_status ps_cuda_cylinder_work(const ps_cylinder *c, const ps_exec *exec, size_t *bytes);
ps_status ps_cuda_cylinder_step(const ps_cylinder *c, int64_t count, const ps_exec *exec,
                                ps_cylinder_report *report);

/* staggered.cu */
ps_status ps_cuda_staggered_work(const ps_staggered *s, const ps_exec *exec,
                                 size_t *bytes);
ps_status ps_cuda_staggered_step(const ps_staggered *s, int64_t count,
                                 const ps_exec *exec, ps_staggered_report *report);

} // namespace pysolvers::flow

namespace pysolvers::transport {

/* gceidd.cu */
ps_status ps_cuda_gceidd_work(const ps_gceidd *g, const ps_exec *exec, size_t *bytes);
ps_status ps_cuda_gceidd_step(const ps_gceidd *g, int64_t count, const ps_exec *exec,
                              ps_gceidd_report *report);

} // namespace pysolvers::transport

namespace pysolvers::heat {

/* heat.cu */
ps_status ps_cuda_heat_work(const ps_heat *h, const ps_exec *exec, size_t *bytes);
ps_status ps_cuda_heat_kept(const ps_heat *h, size_t *bytes);
ps_status ps_cuda_heat_step(const ps_heat *h, int64_t count, const ps_exec *exec,
                            ps_heat_report *report);

/* heat_cut.cu */
ps_status ps_cuda_heat_cut(const ps_heat_cut *c, bool applies, const ps_exec *exec);

/* diffusion.cu */
ps_status ps_cuda_diffusion_apply(const ps_diffusion *d, void *out, const ps_exec *exec);
ps_status ps_cuda_diffusion_work(const ps_diffusion *d, const ps_exec *exec,
                                 size_t *bytes);
ps_status ps_cuda_diffusion_solve(const ps_diffusion *d, const ps_exec *exec,
                                  ps_diffusion_report *report);
ps_status ps_cuda_diffusion_centre_work(const ps_diffusion *d, size_t *bytes);
ps_status ps_cuda_diffusion_centre(const ps_diffusion *d, double mean,
                                   const ps_exec *exec);

} // namespace pysolvers::heat

namespace pysolvers::relaxation {

/* lmsor.cu */
ps_status ps_cuda_lmsor_work(const ps_lmsor *l, size_t *bytes);
ps_status ps_cuda_lmsor_iterate(const ps_lmsor *l, int64_t count, const ps_exec *exec,
                                ps_lmsor_report *report);

/* laplace.cu */
ps_status ps_cuda_laplace_work(const ps_laplace *l, size_t *bytes);
ps_status ps_cuda_laplace_iterate(const ps_laplace *l, int64_t count, const ps_exec *exec,
                                  ps_laplace_report *report);
/* Enqueue `count` iterations, with the variant "auto" and without a measure. */
ps_status ps_cuda_laplace_enqueue(const ps_laplace *l, int64_t count, const ps_exec *exec,
                                  const char **kernel);

} // namespace pysolvers::relaxation

namespace pysolvers::spline {

/* spline.cu */
ps_status ps_cuda_spline_rows(const ps_spline_rows *r, const ps_exec *exec);
ps_status ps_cuda_spline_slopes_work(const ps_spline_rows *r, const ps_exec *exec,
                                     size_t *bytes);
ps_status ps_cuda_spline_slopes(const ps_spline_rows *r, const ps_exec *exec);
ps_status ps_cuda_spline_pieces(const ps_spline_pieces *p, const ps_exec *exec);
ps_status ps_cuda_spline_points(const ps_spline_points *p, const ps_exec *exec);

} // namespace pysolvers::spline

namespace pysolvers::transforms {

/* transform.cu */
ps_status ps_cuda_transform_load(const ps_transform *t, const ps_exec *exec);
ps_status ps_cuda_transform_store(const ps_transform *t, const ps_exec *exec);

/* waves.cu */
ps_status ps_cuda_waves_load(const ps_waves *w, const ps_exec *exec);
ps_status ps_cuda_waves_store(const ps_waves *w, const ps_exec *exec);

/* wave_lines.cu */
ps_status ps_cuda_waves_fit(ps_dtype dtype, int64_t planes, int32_t *fit);
ps_status ps_cuda_wave_lines(const ps_wave_lines *l, const ps_exec *exec);

/* field.cu */
ps_status ps_cuda_accumulate(const ps_relayout *r, const ps_exec *exec);
ps_status ps_cuda_centre(const ps_centre *c, const ps_exec *exec);

} // namespace pysolvers::transforms

#endif
