/* gceidd.cu - steps of GCEIDD on the GPU.
 *
 * A step is a sweep along x and one along y, each from one field to another: u and a
 * field of the workspace alternate; with MU also the two earlier half levels. Sweeps
 * are fused (gceidd_strips.cuh, gceidd_ratio.cu, gceidd_lines.cu) if the lines fit, otherwise they
 * consist of the four kernels of the paper (gceidd_paper.cu). A sweep is launched for
 * the grid of its step; the kernels are those of the grid of the first step. Steps follow
 * each other on the stream. The first step whose result is out of range is recorded on
 * the device, and later kernels do nothing. The host is at most two groups of steps ahead
 * of the device, so that a call can be interrupted.
 */
#include <algorithm>
#include <utility>

#include "runtime/backend.h"
#include "runtime/events.cuh"
#include "transport/gceidd.h"

namespace pysolvers::transport {

using namespace runtime;

namespace {

enum { FIELDS = 4, SPARE = 3 };

/* Events: the start, the last step, the parts of its sweeps, the end. */
enum {
    MARK_BEGIN,
    MARK_LAST,
    MARK_END = MARK_LAST + PS_GCEIDD_AXES * PS_GCEIDD_PART_COUNT,
    MARK_COUNT
};
using Marks = Events<MARK_COUNT>;

/* A call in progress. field[0] is the newest half level; with MU, 1 and 2 are those
 * before it; SPARE receives the next one. */
struct Run {
    const ps_gceidd *g;
    const ps_exec *exec;
    ps_gceidd_report *report;
    cudaStream_t stream;
    void *field[FIELDS];
    int32_t *grown, *arrivals;
    void *table[PS_GCEIDD_AXES];
    void *arrays;
};

enum Method { BY_STRIPS, BY_RATIO, BY_LINES, BY_PARTS };

Method
method_along(const ps_gceidd *g, int axis)
{
    if (g->kernels == PS_GCEIDD_KERNELS_PAPER) {
        return BY_PARTS;
    }
    return ps_cuda_gceidd_strips_fit(g, axis)   ? BY_STRIPS
           : ps_cuda_gceidd_ratio_fits(g, axis) ? BY_RATIO
           : ps_cuda_gceidd_lines_fit(g, axis)  ? BY_LINES
                                                : BY_PARTS;
}

size_t
field_bytes(const ps_gceidd *g)
{
    const int64_t nodes = (g->cells[PS_GCEIDD_X] + 1) * (g->cells[PS_GCEIDD_Y] + 1);

    return static_cast<size_t>(nodes * ps_dtype_size(g->dtype));
}

/* The arrivals of both axes are in one place. */
size_t
arrivals_bytes(const ps_gceidd *g)
{
    size_t most = 0;

    for (int axis = 0; axis < PS_GCEIDD_AXES; axis++) {
        if (method_along(g, axis) == BY_RATIO) {
            most = std::max(most, ps_cuda_gceidd_arrivals_bytes(g, axis));
        }
    }
    return ps_cuda_padded(most);
}

const char *
kernels_of(const ps_gceidd *g)
{
    const Method x = method_along(g, PS_GCEIDD_X), y = method_along(g, PS_GCEIDD_Y);

    if (x != y) {
        return "mixed";
    }
    return x == BY_STRIPS  ? "strips fused"
           : x == BY_RATIO ? "ratio fused"
           : x == BY_LINES ? "partition fused"
                           : ps_cuda_gceidd_stage_name(g);
}

Run
start(const ps_gceidd *g, const ps_exec *exec, ps_gceidd_report *report)
{
    char *const base = static_cast<char *>(exec->work);
    const size_t field = ps_cuda_padded(field_bytes(g));
    Run r = {};

    r.g = g;
    r.exec = exec;
    r.report = report;
    r.stream = ps_cuda_stream(exec);
    r.field[0] = g->u;
    r.field[1] = g->older[0];
    r.field[2] = g->older[1];
    r.field[SPARE] = base;
    r.grown = reinterpret_cast<int32_t *>(base + field);
    r.arrivals =
        reinterpret_cast<int32_t *>(base + field + ps_cuda_padded(sizeof(int32_t)));
    r.table[PS_GCEIDD_X] = reinterpret_cast<char *>(r.arrivals) + arrivals_bytes(g);
    r.table[PS_GCEIDD_Y] = static_cast<char *>(r.table[PS_GCEIDD_X]) +
                           ps_cuda_gceidd_table_bytes(g, PS_GCEIDD_X);
    r.arrays = static_cast<char *>(r.table[PS_GCEIDD_Y]) +
               ps_cuda_gceidd_table_bytes(g, PS_GCEIDD_Y);
    return r;
}

ps_status
prepare(const ps_gceidd *g, int axis)
{
    const Method method = method_along(g, axis);

    return method == BY_STRIPS  ? ps_cuda_gceidd_prepare_strips(g, axis)
           : method == BY_RATIO ? ps_cuda_gceidd_prepare_ratio(g, axis)
           : method == BY_LINES ? ps_cuda_gceidd_prepare_lines(g, axis)
                                : PS_OK;
}

ps_status
record_part(const Run &r, const Marks *marks, int axis, int part)
{
    return marks == nullptr
               ? PS_OK
               : marks->record(MARK_LAST + 1 + axis * PS_GCEIDD_PART_COUNT + part,
                               r.stream);
}

/* Whether the coefficients of a sweep along `axis` change in every step. */
bool
changes(const ps_gceidd *g, int axis)
{
    return g->velocity[axis].step != 0 || g->diffusion[axis].step != 0;
}

/* The numbers of the lines of a sweep, in the table of those of the first step. */
void *
table_of_sweep(const Run &r, const ps_cuda_gceidd_sweep &sweep)
{
    const int64_t row = (r.g->cells[PS_GCEIDD_X] + 1) * ps_dtype_size(r.g->dtype);
    const int64_t bytes =
        static_cast<const char *>(sweep.g->u) - static_cast<const char *>(r.g->u);
    const int64_t lost = sweep.axis == PS_GCEIDD_X ? bytes / row : 0;

    return static_cast<char *>(r.table[sweep.axis]) + lost * ps_dtype_size(r.g->dtype);
}

ps_status
renew_table(const Run &r, const ps_cuda_gceidd_sweep &sweep)
{
    const bool is_due = sweep.step == 0 || changes(r.g, sweep.axis);

    if (!is_due || ps_cuda_gceidd_table_bytes(r.g, sweep.axis) == 0) {
        return PS_OK;
    }
    const Method method = method_along(r.g, sweep.axis);
    void *const table = table_of_sweep(r, sweep);

    return method == BY_STRIPS  ? ps_cuda_gceidd_tabulate(&sweep, table, r.stream)
           : method == BY_RATIO ? ps_cuda_gceidd_tabulate_ratio(&sweep, table, r.stream)
                                : PS_OK;
}

/* A fused sweep is counted as the part "solve". */
ps_status
make_parts(const Run &r, const ps_cuda_gceidd_sweep &sweep, const Marks *marks)
{
    const Method method = method_along(r.g, sweep.axis);
    ps_status status = renew_table(r, sweep);

    for (int part = 0; status == PS_OK && part < PS_GCEIDD_PART_COUNT; part++) {
        if (method == BY_PARTS) {
            status = ps_cuda_gceidd_part(&sweep, static_cast<ps_gceidd_part>(part),
                                         r.arrays, r.stream);
        }
        else if (part == PS_GCEIDD_SOLVE) {
            const void *const table = table_of_sweep(r, sweep);

            status = method == BY_STRIPS  ? ps_cuda_gceidd_strips(&sweep, table, r.stream)
                     : method == BY_RATIO ? ps_cuda_gceidd_ratio(&sweep, table, r.stream)
                                          : ps_cuda_gceidd_lines(&sweep, r.stream);
        }
        status = status == PS_OK ? record_part(r, marks, sweep.axis, part) : status;
    }
    return status;
}

/* After a sweep: its result becomes the newest half level. */
void
rotate_fields(Run &r)
{
    std::swap(r.field[0], r.field[SPARE]);
    if (r.g->scheme == PS_GCEIDD_MU) {
        std::swap(r.field[1], r.field[SPARE]);
        std::swap(r.field[2], r.field[SPARE]);
    }
}

ps_status
make_sweep(Run &r, const ps_gceidd &grid, int axis, int64_t step, const Marks *marks)
{
    const int64_t first = static_cast<char *>(grid.u) - static_cast<const char *>(r.g->u);
    const auto at = [&](int k) { return static_cast<char *>(r.field[k]) + first; };
    const ps_cuda_gceidd_sweep sweep = {
        &grid,   axis,      step,      at(0),
        at(1),   at(2),     at(SPARE), r.g->cells[1 - axis] + 1,
        r.grown, r.arrivals};
    const ps_status status = make_parts(r, sweep, marks);

    rotate_fields(r);
    if (r.field[SPARE] == r.g->before) { /* is only read */
        r.field[SPARE] = r.g->u;
    }
    return status;
}

/* Enqueue a step. `marks` is null except for the last one. */
ps_status
make_step(Run &r, int64_t step, const Marks *marks)
{
    const ps_gceidd grid = ps_gceidd_in_step(r.g, step);
    ps_status status = marks != nullptr ? marks->record(MARK_LAST, r.stream) : PS_OK;

    for (int axis = 0; status == PS_OK && axis < PS_GCEIDD_AXES; axis++) {
        status = make_sweep(r, grid, axis, step, marks);
    }
    return status;
}

/* Steps of a group of make_in_groups(): some milliseconds. With groups of one step of 0.14 ms a host with
 * busy processors enqueued them too late: 3000^2 nodes took 220 to 410 us a step in place of 145 (H200). */
int64_t
group_size(const ps_gceidd *g)
{
    const int64_t size = (int64_t(1) << 32) / static_cast<int64_t>(field_bytes(g));

    return size < 1 ? 1 : size > 64 ? 64 : size;
}

ps_status
make_steps(Run &r, int64_t count, const Marks &marks)
{
    return make_in_groups(
        count, group_size(r.g), *r.exec, &r.report->steps,
        [&](int64_t k) { return make_step(r, k, k == count - 1 ? &marks : nullptr); });
}

ps_status
copy_field(const Run &r, void *to, const void *from)
{
    return ps_cuda_status(
        cudaMemcpyAsync(to, from, field_bytes(r.g), cudaMemcpyDeviceToDevice, r.stream));
}

/* Only the first `steps` steps were made: assign the fields accordingly. */
void
keep_first_steps(Run &r, int64_t steps)
{
    const Run first = start(r.g, r.exec, r.report);

    for (int k = 0; k < FIELDS; k++) {
        r.field[k] = first.field[k];
    }
    for (int64_t k = 0; k < steps * PS_GCEIDD_AXES % FIELDS; k++) {
        rotate_fields(r);
    }
    r.report->steps = steps;
    r.report->grown = 1;
}

/* Copy the state to the fields of the caller. */
ps_status
copy_back(Run &r)
{
    void *const returned[SPARE] = {r.g->u, r.g->older[0], r.g->older[1]};
    ps_status status = PS_OK;

    for (int k = 0; status == PS_OK && k < SPARE; k++) {
        if (r.field[k] == returned[k]) {
            continue;
        }
        for (int other = k + 1; status == PS_OK && other < SPARE; other++) {
            if (r.field[other] == returned[k]) {
                status = copy_field(r, r.field[SPARE], returned[k]);
                r.field[other] = r.field[SPARE];
            }
        }
        status = status == PS_OK ? copy_field(r, returned[k], r.field[k]) : status;
        r.field[SPARE] = r.field[k];
        r.field[k] = returned[k];
    }
    return status;
}

/* Distribute the time of all steps in the proportions of the last step. */
void
report_seconds(const Run &r, const Marks &marks)
{
    const double last = marks.seconds(MARK_LAST, MARK_END);
    const double all = marks.seconds(MARK_BEGIN, MARK_END);
    int from = MARK_LAST;

    for (int axis = 0; axis < PS_GCEIDD_AXES && last > 0; axis++) {
        for (int part = 0; part < PS_GCEIDD_PART_COUNT; part++, from++) {
            r.report->seconds[axis][part] = all * marks.seconds(from, from + 1) / last;
        }
    }
}

/* After steps that ended with `status`: read whether one has grown, copy the fields to
 * the host, and wait for the device in any case. */
ps_status
finish(Run &r, ps_status status, const Marks &marks)
{
    const int64_t asked = r.report->steps;
    int32_t grown = PS_CUDA_NOT_GROWN;
    ps_status ended = ps_cuda_status(cudaMemcpyAsync(&grown, r.grown, sizeof(grown),
                                                     cudaMemcpyDeviceToHost, r.stream));

    ended = ended == PS_OK ? ps_cuda_status(cudaStreamSynchronize(r.stream)) : ended;
    if (ended == PS_OK && grown < asked) {
        keep_first_steps(r, int64_t(grown) + 1);
    }
    if (status == PS_OK && ended == PS_OK && asked > 0) {
        report_seconds(r, marks);
    }
    if (r.report->steps == 0 && r.g->before != nullptr) {
        r.field[0] = const_cast<void *>(r.g->before);
    }
    const ps_status returned = copy_back(r);

    ended = ended == PS_OK ? returned : ended;
    ended = ended == PS_OK ? ps_cuda_status(cudaStreamSynchronize(r.stream)) : ended;
    return status == PS_OK || (status == PS_INTERRUPTED && ended != PS_OK) ? ended
                                                                           : status;
}

} // namespace

ps_status
ps_cuda_gceidd_work(const ps_gceidd *g, const ps_exec *exec, size_t *bytes)
{
    ps_status status = ps_gceidd_check(g);
    (void)exec;

    for (int side = 0; status == PS_OK && side < PS_GCEIDD_SIDE_COUNT; side++) {
        if (g->edge[side].kind != PS_GCEIDD_DIRICHLET &&
            g->edge[side].kind != PS_GCEIDD_NEUMANN) {
            status = PS_UNSUPPORTED;
        }
    }

    if (status == PS_OK &&
        (!ps_cuda_gceidd_can_be_swept(g) ||
         (method_along(g, PS_GCEIDD_X) == BY_PARTS && !ps_cuda_gceidd_stages_fit(g)))) {
        status = PS_UNSUPPORTED;
    }
    if (status == PS_OK) {
        *bytes = ps_cuda_padded(field_bytes(g)) + ps_cuda_padded(sizeof(int32_t)) +
                 arrivals_bytes(g) + ps_cuda_gceidd_table_bytes(g, PS_GCEIDD_X) +
                 ps_cuda_gceidd_table_bytes(g, PS_GCEIDD_Y);
        if (method_along(g, PS_GCEIDD_X) == BY_PARTS ||
            method_along(g, PS_GCEIDD_Y) == BY_PARTS) {
            *bytes += ps_cuda_gceidd_arrays_bytes(g);
        }
    }
    return status;
}

ps_status
ps_cuda_gceidd_step(const ps_gceidd *g, int64_t count, const ps_exec *exec,
                    ps_gceidd_report *report)
{
    const int32_t none = PS_CUDA_NOT_GROWN;
    size_t bytes = 0;
    ps_status status = ps_cuda_gceidd_work(g, exec, &bytes);

    if (status != PS_OK) {
        return status;
    }
    if (ps_gceidd_check_count(g, count) != PS_OK || count >= PS_CUDA_NOT_GROWN) {
        return PS_BAD_ARGUMENT;
    }
    if (exec->work_bytes < bytes) {
        return PS_WORK_TOO_SMALL;
    }
    *report = {};
    report->kernel = kernels_of(g);
    const Marks marks(cudaEventDefault);
    Run r = start(g, exec, report);

    if (g->before != nullptr) {
        r.field[0] = const_cast<void *>(g->before);
    }
    for (int axis = 0; status == PS_OK && axis < PS_GCEIDD_AXES; axis++) {
        status = prepare(g, axis);
        if (status == PS_OK && g->kernels == PS_GCEIDD_KERNELS_PAPER) {
            status = ps_cuda_gceidd_occupancy(g, axis, report->occupancy[axis]);
        }
    }
    if (status != PS_OK) {
        return status;
    }
    status = ps_cuda_status(
        cudaMemcpyAsync(r.grown, &none, sizeof(none), cudaMemcpyHostToDevice, r.stream));
    if (status == PS_OK) {
        status =
            ps_cuda_status(cudaMemsetAsync(r.arrivals, 0, arrivals_bytes(g), r.stream));
    }
    if (status == PS_OK) {
        status = marks.record(MARK_BEGIN, r.stream);
    }
    if (status == PS_OK) {
        status = make_steps(r, count, marks);
    }
    return finish(r, status, marks);
}

} // namespace pysolvers::transport
