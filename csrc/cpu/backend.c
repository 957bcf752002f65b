/* backend.c - the table of functions of the CPU backend.
 *
 * All calls pass through this table or that of numbers.c, which set the floating-point mode;
 * the entries without PS_IN_DEFAULT_MODE compute with integers only. */
#include "flow/cavity.h"
#include "flow/cylinder.h"
#include "flow/staggered.h"
#include "heat/diffusion.h"
#include "heat/heat.h"
#include "lines/factor/factor.h"
#include "relaxation/lmsor.h"
#include "runtime/copy.h"
#include "runtime/fp_mode.h"
#include "runtime/isa.h"
#include "runtime/threads.h"
#include "spline/spline.h"
#include "transport/gceidd.h"
#include "products.h"
#include "spikes.h"
#include "step.h"
#include "tridiag.h"

PS_IN_DEFAULT_MODE(tridiag_solve, ps_cpu_tridiag_solve,
                   (const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
                    ps_report *report),
                   (t, options, exec, report))
PS_IN_DEFAULT_MODE(spikes_solve, ps_cpu_spikes_solve,
                   (const ps_spikes *s, const ps_options *options, const ps_exec *exec,
                    ps_report *report),
                   (s, options, exec, report))
PS_IN_DEFAULT_MODE(factor_make, ps_cpu_factor_make,
                   (const ps_factor *f, const ps_tridiag *t, const ps_exec *exec,
                    ps_report *report),
                   (f, t, exec, report))
PS_IN_DEFAULT_MODE(factor_solve, ps_cpu_factor_solve,
                   (const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec),
                   (f, b, exec))
PS_IN_DEFAULT_MODE(product, ps_cpu_product, (const ps_product *p, const ps_exec *exec),
                   (p, exec))
PS_IN_DEFAULT_MODE(products, ps_cpu_products, (const ps_products *p, const ps_exec *exec),
                   (p, exec))
PS_IN_DEFAULT_MODE(step_solve, ps_cpu_step_solve,
                   (const ps_step *s, ps_pivot pivot, const ps_exec *exec,
                    ps_report *report),
                   (s, pivot, exec, report))
PS_IN_DEFAULT_MODE(factor_step, ps_cpu_factor_step,
                   (const ps_factor *f, const ps_factor_step *s, const ps_exec *exec),
                   (f, s, exec))
PS_IN_DEFAULT_MODE(cavity_work, ps_cavity_work,
                   (const ps_cavity *c, const ps_options *options, const ps_exec *exec,
                    size_t *bytes),
                   (c, options, exec, bytes))
PS_IN_DEFAULT_MODE(cavity_iterate, ps_cavity_iterate,
                   (const ps_cavity *c, int64_t count, const ps_options *options,
                    const ps_exec *exec, ps_cavity_report *report),
                   (c, count, options, exec, report))
PS_IN_DEFAULT_MODE(staggered_work, ps_staggered_work,
                   (const ps_staggered *s, const ps_exec *exec, size_t *bytes),
                   (s, exec, bytes))
PS_IN_DEFAULT_MODE(staggered_step, ps_staggered_step,
                   (const ps_staggered *s, int64_t count, const ps_exec *exec,
                    ps_staggered_report *report),
                   (s, count, exec, report))
PS_IN_DEFAULT_MODE(cylinder_work, ps_cpu_cylinder_work,
                   (const ps_cylinder *c, const ps_exec *exec, size_t *bytes),
                   (c, exec, bytes))
PS_IN_DEFAULT_MODE(cylinder_step, ps_cpu_cylinder_step,
                   (const ps_cylinder *c, int64_t count, const ps_exec *exec,
                    ps_cylinder_report *report),
                   (c, count, exec, report))
PS_IN_DEFAULT_MODE(lmsor_work, ps_cpu_lmsor_work,
                   (const ps_lmsor *l, const ps_exec *exec, size_t *bytes),
                   (l, exec, bytes))
PS_IN_DEFAULT_MODE(lmsor_iterate, ps_cpu_lmsor_iterate,
                   (const ps_lmsor *l, int64_t count, const ps_exec *exec,
                    ps_lmsor_report *report),
                   (l, count, exec, report))
PS_IN_DEFAULT_MODE(laplace_work, ps_cpu_laplace_work,
                   (const ps_laplace *l, const ps_exec *exec, size_t *bytes),
                   (l, exec, bytes))
PS_IN_DEFAULT_MODE(laplace_iterate, ps_cpu_laplace_iterate,
                   (const ps_laplace *l, int64_t count, const ps_exec *exec,
                    ps_laplace_report *report),
                   (l, count, exec, report))
PS_IN_DEFAULT_MODE(gceidd_work, ps_gceidd_work,
                   (const ps_gceidd *g, const ps_exec *exec, size_t *bytes),
                   (g, exec, bytes))
PS_IN_DEFAULT_MODE(gceidd_step, ps_gceidd_step,
                   (const ps_gceidd *g, int64_t count, const ps_exec *exec,
                    ps_gceidd_report *report),
                   (g, count, exec, report))
PS_IN_DEFAULT_MODE(heat_work, ps_heat_work,
                   (const ps_heat *h, const ps_exec *exec, size_t *bytes),
                   (h, exec, bytes))
PS_IN_DEFAULT_MODE(heat_step, ps_heat_step,
                   (const ps_heat *h, int64_t count, const ps_exec *exec,
                    ps_heat_report *report),
                   (h, count, exec, report))
PS_IN_DEFAULT_MODE(diffusion_apply, ps_cpu_diffusion_apply,
                   (const ps_diffusion *d, void *out, const ps_exec *exec),
                   (d, out, exec))
PS_IN_DEFAULT_MODE(diffusion_solve, ps_cpu_diffusion_solve,
                   (const ps_diffusion *d, const ps_exec *exec,
                    ps_diffusion_report *report),
                   (d, exec, report))
PS_IN_DEFAULT_MODE(spline_rows, ps_cpu_spline_rows,
                   (const ps_spline_rows *r, const ps_exec *exec), (r, exec))
PS_IN_DEFAULT_MODE(spline_pieces, ps_cpu_spline_pieces,
                   (const ps_spline_pieces *p, const ps_exec *exec), (p, exec))
PS_IN_DEFAULT_MODE(spline_points, ps_cpu_spline_points,
                   (const ps_spline_points *p, const ps_exec *exec), (p, exec))

static void
in_default_fp_mode(void (*body)(void *self), void *self)
{
    const ps_fp_mode mode = ps_fp_mode_enter();

    body(self);
    ps_fp_mode_leave(mode);
}

static const char *
describe(void)
{
    return ps_isa_get()->name;
}

static const ps_backend cpu = {
    .name = "cpu",
    .memory = PS_HOST,
    .tridiag_work = ps_cpu_tridiag_work,
    .tridiag_solve = tridiag_solve,
    .spikes_work = ps_cpu_spikes_work,
    .spikes_solve = spikes_solve,
    .factor_store = ps_cpu_factor_store,
    .factor_make_work = ps_cpu_factor_make_work,
    .factor_make = factor_make,
    .factor_work = ps_cpu_factor_work,
    .factor_solve = factor_solve,
    .product = product,
    .products = products,
    .step_work = ps_cpu_step_work,
    .step_solve = step_solve,
    .factor_step_work = ps_cpu_factor_step_work,
    .factor_step = factor_step,
    .cavity_work = cavity_work,
    .cavity_iterate = cavity_iterate,
    .staggered_work = staggered_work,
    .staggered_step = staggered_step,
    .cylinder_work = cylinder_work,
    .cylinder_step = cylinder_step,
    .lmsor_work = lmsor_work,
    .lmsor_iterate = lmsor_iterate,
    .laplace_work = laplace_work,
    .laplace_iterate = laplace_iterate,
    .gceidd_work = gceidd_work,
    .gceidd_step = gceidd_step,
    .heat_work = heat_work,
    .heat_step = heat_step,
    .diffusion_apply = diffusion_apply,
    .diffusion_work = ps_cpu_diffusion_work,
    .diffusion_solve = diffusion_solve,
    .spline_rows = spline_rows,
    .spline_pieces = spline_pieces,
    .spline_points = spline_points,
    .copy = ps_cpu_copy,
    .describe = describe,
    .default_threads = ps_default_threads,
    .in_default_fp_mode = in_default_fp_mode,
};

const ps_backend *
ps_backend_get(void)
{
    return &cpu;
}
