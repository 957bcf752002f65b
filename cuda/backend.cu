/* backend.cu - the table of functions of the CUDA backend. Each entry makes the device
 * of its call current and passes the call on.
 */
#include "lines/layout.h"
#include "lines/product.h"
#include "lines/products.h"
#include "ps_api.h"
#include "runtime/backend.h"
#include "runtime/device.h"
#include "runtime/memory.h"

namespace pysolvers {

using namespace flow;
using namespace heat;
using namespace lines;
using namespace relaxation;
using namespace runtime;
using namespace spline;
using namespace transforms;
using namespace transport;

static ps_status
tridiag_work(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
             size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_tridiag_work(t, options, exec, bytes); });
}

static ps_status
tridiag_solve(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
              ps_report *report)
{
    return on_device(exec,
                     [=] { return ps_cuda_tridiag_solve(t, options, exec, report); });
}

static ps_status
part_mailbox(const ps_part *p, size_t *bytes)
{
    return ps_cuda_part_mailbox(p, bytes);
}

static ps_status
part_check(const ps_part *p, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_part_check(p); });
}

static ps_status
part_solve(const ps_part *p, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_part_solve(p, exec); });
}

static ps_status
factor_store(const ps_factor *f, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_factor_store(f, exec, bytes); });
}

static ps_status
factor_make_work(const ps_factor *f, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_factor_make_work(f, exec, bytes); });
}

static ps_status
factor_make(const ps_factor *f, const ps_tridiag *t, const ps_exec *exec,
            ps_report *report)
{
    return on_device(exec, [=] { return ps_cuda_factor_make(f, t, exec, report); });
}

static ps_status
factor_work(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec,
            size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_factor_work(f, b, exec, bytes); });
}

static ps_status
factor_solve(const ps_factor *f, const ps_factor_rhs *b, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_factor_solve(f, b, exec); });
}

static ps_status
product(const ps_product *p, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_product(p, exec); });
}

static ps_status
step_work(const ps_step *s, ps_pivot pivot, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_step_work(s, pivot, exec, bytes); });
}

static ps_status
step_solve(const ps_step *s, ps_pivot pivot, const ps_exec *exec, ps_report *report)
{
    return on_device(exec, [=] { return ps_cuda_step_solve(s, pivot, exec, report); });
}

static ps_status
masked_rows(const ps_step *s, double outside, const ps_output to[3], const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_masked_rows(s, outside, to, exec); });
}

static ps_status
factor_step_work(const ps_factor *f, const ps_factor_step *s, const ps_exec *exec,
                 size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_factor_step_work(f, s, exec, bytes); });
}

static ps_status
factor_step(const ps_factor *f, const ps_factor_step *s, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_factor_step(f, s, exec); });
}

static ps_status
cavity_work(const ps_cavity *c, const ps_options *options, const ps_exec *exec,
            size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_cavity_work(c, options, exec, bytes); });
}

static ps_status
cavity_iterate(const ps_cavity *c, int64_t count, const ps_options *options,
               const ps_exec *exec, ps_cavity_report *report)
{
    return on_device(
        exec, [=] { return ps_cuda_cavity_iterate(c, count, options, exec, report); });
}

static ps_status
staggered_work(const ps_staggered *s, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_staggered_work(s, exec, bytes); });
}

static ps_status
staggered_step(const ps_staggered *s, int64_t count, const ps_exec *exec,
               ps_staggered_report *report)
{
    return on_device(exec,
                     [=] { return ps_cuda_staggered_step(s, count, exec, report); });
}

static ps_status
heat_work(const ps_heat *h, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_heat_work(h, exec, bytes); });
}

static ps_status
heat_step(const ps_heat *h, int64_t count, const ps_exec *exec, ps_heat_report *report)
{
    return on_device(exec, [=] { return ps_cuda_heat_step(h, count, exec, report); });
}

static ps_status
heat_kept(const ps_heat *h, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_heat_kept(h, bytes); });
}

static ps_status
heat_cut(const ps_heat_cut *c, int32_t applies, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_heat_cut(c, applies != 0, exec); });
}

static ps_status
diffusion_apply(const ps_diffusion *d, void *out, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_diffusion_apply(d, out, exec); });
}

static ps_status
diffusion_work(const ps_diffusion *d, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_diffusion_work(d, exec, bytes); });
}

static ps_status
diffusion_solve(const ps_diffusion *d, const ps_exec *exec, ps_diffusion_report *report)
{
    return on_device(exec, [=] { return ps_cuda_diffusion_solve(d, exec, report); });
}

static ps_status
diffusion_centre_work(const ps_diffusion *d, const ps_exec *, size_t *bytes)
{
    return ps_cuda_diffusion_centre_work(d, bytes);
}

static ps_status
diffusion_centre(const ps_diffusion *d, double mean, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_diffusion_centre(d, mean, exec); });
}

static ps_status
gceidd_work(const ps_gceidd *g, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_gceidd_work(g, exec, bytes); });
}

static ps_status
gceidd_step(const ps_gceidd *g, int64_t count, const ps_exec *exec,
            ps_gceidd_report *report)
{
    return on_device(exec, [=] { return ps_cuda_gceidd_step(g, count, exec, report); });
}

static ps_status
lmsor_work(const ps_lmsor *l, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_lmsor_work(l, bytes); });
}

static ps_status
lmsor_iterate(const ps_lmsor *l, int64_t count, const ps_exec *exec,
              ps_lmsor_report *report)
{
    return on_device(exec, [=] { return ps_cuda_lmsor_iterate(l, count, exec, report); });
}

static ps_status
laplace_work(const ps_laplace *l, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_laplace_work(l, bytes); });
}

static ps_status
laplace_iterate(const ps_laplace *l, int64_t count, const ps_exec *exec,
                ps_laplace_report *report)
{
    return on_device(exec,
                     [=] { return ps_cuda_laplace_iterate(l, count, exec, report); });
}

static ps_status
copy(void *to, const void *from, size_t bytes, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_copy(to, from, bytes, exec); });
}

static ps_status
allocate(size_t bytes, const ps_exec *exec, void **data)
{
    return on_device(exec, [=] { return ps_cuda_allocate(bytes, exec, data); });
}

static ps_status
release(void *data, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_release(data, exec); });
}

static ps_status
reserve(size_t bytes, const ps_exec *exec, void **data)
{
    return on_device(exec, [=] { return ps_cuda_reserve(bytes, data); });
}

static ps_status
discard(void *data, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_discard(data); });
}

/* Does not initialise a device that was not used. */
static ps_status
trim(const ps_exec *exec)
{
    return ps_cuda_has_pool(exec) ? on_device(exec, [=] { return ps_cuda_trim(exec); })
                                  : PS_OK;
}

static ps_status
reach(int32_t other, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_reach(other); });
}

static ps_status
share(void *data, void *name, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_share(data, name); });
}

static ps_status
open_shared(const void *name, void **data, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_open_shared(name, data); });
}

static ps_status
close_shared(void *data, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_close_shared(data); });
}

static ps_status
upload(void *to, const void *from, size_t bytes, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_upload(to, from, bytes, exec); });
}

static ps_status
download(void *to, const void *from, size_t bytes, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_download(to, from, bytes, exec); });
}

static ps_status
answer(const ps_exec *exec, void **data)
{
    *data = nullptr;
    return on_device(exec, [=] { return ps_cuda_answer(data); });
}

static ps_status
relayout(const ps_relayout *r, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_relayout(r, exec); });
}

static ps_status
blank(const ps_blank *b, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_blank(b, exec); });
}

static ps_status
accumulate(const ps_relayout *r, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_accumulate(r, exec); });
}

static ps_status
products(const ps_products *p, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_products(p, exec); });
}

static ps_status
transform_load(const ps_transform *t, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_transform_load(t, exec); });
}

static ps_status
transform_store(const ps_transform *t, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_transform_store(t, exec); });
}

static ps_status
centre(const ps_centre *c, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_centre(c, exec); });
}

static ps_status
waves_fit(ps_dtype dtype, int64_t planes, const ps_exec *exec, int32_t *fit)
{
    return on_device(exec, [=] { return ps_cuda_waves_fit(dtype, planes, fit); });
}

static ps_status
waves_load(const ps_waves *w, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_waves_load(w, exec); });
}

static ps_status
waves_store(const ps_waves *w, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_waves_store(w, exec); });
}

static ps_status
wave_lines(const ps_wave_lines *l, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_wave_lines(l, exec); });
}

static ps_status
cylinder_work(const ps_cylinder *c, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_cylinder_work(c, exec, bytes); });
}

static ps_status
cylinder_step(const ps_cylinder *c, int64_t count, const ps_exec *exec,
              ps_cylinder_report *report)
{
    return on_device(exec, [=] { return ps_cuda_cylinder_step(c, count, exec, report); });
}

static ps_status
spline_rows(const ps_spline_rows *r, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_spline_rows(r, exec); });
}

static ps_status
spline_slopes_work(const ps_spline_rows *r, const ps_exec *exec, size_t *bytes)
{
    return on_device(exec, [=] { return ps_cuda_spline_slopes_work(r, exec, bytes); });
}

static ps_status
spline_slopes(const ps_spline_rows *r, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_spline_slopes(r, exec); });
}

static ps_status
spline_pieces(const ps_spline_pieces *p, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_spline_pieces(p, exec); });
}

static ps_status
spline_points(const ps_spline_points *p, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_spline_points(p, exec); });
}

static ps_status
wait(const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_wait(exec); });
}

static ps_status
order(void *first, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_order(first, exec); });
}

static ps_status
mark(const ps_exec *exec, void **mark)
{
    return on_device(exec, [=] { return ps_cuda_mark(exec, mark); });
}

static ps_status
mark_passed(void *mark, const ps_exec *exec, int32_t *passed)
{
    *passed = 1; /* also if the state of the event cannot be queried */
    return on_device(exec, [=] { return ps_cuda_mark_passed(mark, passed); });
}

static ps_status
mark_end(void *mark, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_mark_end(mark); });
}

static ps_status
capture(const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_capture(exec); });
}

static ps_status
capture_end(const ps_exec *exec, void **graph)
{
    *graph = nullptr;
    return on_device(exec, [=] { return ps_cuda_capture_end(exec, graph); });
}

static ps_status
graph_launch(void *graph, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_graph_launch(graph, exec); });
}

static ps_status
graph_end(void *graph, const ps_exec *exec)
{
    return on_device(exec, [=] { return ps_cuda_graph_end(graph); });
}

static int32_t
default_threads(void)
{
    return 0;
}

static constexpr ps_backend
make_table()
{
    ps_backend b = {};

    b.name = "cuda";
    b.memory = PS_DEVICE;
    b.tridiag_work = tridiag_work;
    b.tridiag_solve = tridiag_solve;
    b.part_mailbox = part_mailbox;
    b.part_check = part_check;
    b.part_solve = part_solve;
    b.factor_store = factor_store;
    b.factor_make_work = factor_make_work;
    b.factor_make = factor_make;
    b.factor_work = factor_work;
    b.factor_solve = factor_solve;
    b.product = product;
    b.step_work = step_work;
    b.step_solve = step_solve;
    b.masked_rows = masked_rows;
    b.factor_step_work = factor_step_work;
    b.factor_step = factor_step;
    b.cavity_work = cavity_work;
    b.cavity_iterate = cavity_iterate;
    b.staggered_work = staggered_work;
    b.staggered_step = staggered_step;
    b.heat_work = heat_work;
    b.heat_step = heat_step;
    b.heat_kept = heat_kept;
    b.heat_cut = heat_cut;
    b.gceidd_work = gceidd_work;
    b.gceidd_step = gceidd_step;
    b.lmsor_work = lmsor_work;
    b.lmsor_iterate = lmsor_iterate;
    b.laplace_work = laplace_work;
    b.laplace_iterate = laplace_iterate;
    b.diffusion_apply = diffusion_apply;
    b.diffusion_work = diffusion_work;
    b.diffusion_solve = diffusion_solve;
    b.diffusion_centre_work = diffusion_centre_work;
    b.diffusion_centre = diffusion_centre;
    b.spline_rows = spline_rows;
    b.spline_slopes_work = spline_slopes_work;
    b.spline_slopes = spline_slopes;
    b.spline_pieces = spline_pieces;
    b.spline_points = spline_points;
    b.copy = copy;
    b.allocate = allocate;
    b.release = release;
    b.reserve = reserve;
    b.discard = discard;
    b.reach = reach;
    b.share = share;
    b.open_shared = open_shared;
    b.close_shared = close_shared;
    b.trim = trim;
    b.upload = upload;
    b.download = download;
    b.answer = answer;
    b.answer_end = ps_cuda_answer_end;
    b.relayout = relayout;
    b.blank = blank;
    b.accumulate = accumulate;
    b.products = products;
    b.transform_load = transform_load;
    b.transform_store = transform_store;
    b.centre = centre;
    b.waves_fit = waves_fit;
    b.waves_load = waves_load;
    b.waves_store = waves_store;
    b.wave_lines = wave_lines;
    b.cylinder_work = cylinder_work;
    b.cylinder_step = cylinder_step;
    b.wait = wait;
    b.order = order;
    b.mark = mark;
    b.mark_passed = mark_passed;
    b.mark_end = mark_end;
    b.capture = capture;
    b.capture_end = capture_end;
    b.graph_launch = graph_launch;
    b.graph_end = graph_end;
    b.unavailable = ps_cuda_unavailable;
    b.devices = ps_cuda_devices;
    b.describe = ps_cuda_describe;
    b.default_threads = default_threads;
    return b;
}

static constexpr ps_backend cuda = make_table();

} // namespace pysolvers

const ps_backend *
ps_backend_get(void)
{
    return &pysolvers::cuda;
}

const void *
ps_c_api(void)
{
    return nullptr;
}
