/* reduction.cu - the choice of kernels of cyclic reduction for a batch.
 *
 * Systems that fit the shared memory of a block are solved there, several short systems
 * per block. Longer systems are first reduced through the workspace by many blocks. The
 * variants of pcr are the mappings of Wei et al. (2013): C1 one block per system, five
 * shared arrays; C2 several blocks, five arrays; C3 one block, four arrays, the
 * solution is stored directly; C4 several blocks, four arrays. With C1 and C3 the block
 * of a system that is longer than a block holds makes the first steps through the
 * workspace, chunk after chunk (reduction_chunks.cuh). The variant of cr-pcr is the number
 * of rows at which cr ends; that of pcr-thomas is the number of steps of pcr in a block.
 */
#include <algorithm>

#include "device/number.cuh"
#include "lines/methods.h"
#include "lines/reduction/reduction.h"
#include "runtime/math.cuh"

namespace pysolvers::reduction {

using namespace device;
using namespace runtime;

static constexpr int32_t most_pcr_rows = 1024;
static constexpr int32_t most_steps = 31, least_steps = 5, thomas_rows = 32;
static constexpr int64_t split_rows = 512; /* rows per block of a system with C2 and C4 */
static constexpr int32_t least_threads = 128, cr_rows_a_thread = 8;
static constexpr int32_t plain_shared_bytes = 48 * 1024; /* without the opt-in */
static constexpr int32_t reserved_shared_bytes = 1024;   /* upper bound, per block */

static ps_status
find_type(ps_dtype dtype, ps_cuda_reduction_type *type)
{
    return with_number(dtype, [&](auto zero) {
        *type = reduction_type<decltype(zero)>();
        return PS_OK;
    });
}

static int32_t
mapping_of(const ps_options *options)
{
    return options->variant % PS_CUDA_PCR_WARPS;
}

/* Threads of a block of pcr if the variant requests them, or 0. */
static int32_t
threads_of(const ps_options *options)
{
    return options->method == PS_PCR ? options->variant / PS_CUDA_PCR_WARPS * 32 : 0;
}

static bool
variant_is_legal(const ps_options *options)
{
    switch (options->method) {
    case PS_CR:
        return options->variant == 0;
    case PS_PCR:
        return mapping_of(options) <= 4 && options->variant < PS_CUDA_PCR_VARIANTS;
    case PS_CR_PCR:
        return options->variant <= most_pcr_rows;
    default:
        return options->variant <= most_steps;
    }
}

/* Rows at which cr ends and pcr begins; three levels of cr by default. */
static int32_t
pcr_rows_of(const ps_options *options, int32_t rows)
{
    switch (options->method) {
    case PS_CR:
        return 1;
    case PS_CR_PCR:
        return options->variant > 0 ? options->variant
                                    : std::min(std::max(rows / 8, 32), most_pcr_rows);
    default:
        return rows;
    }
}

/* Steps of pcr before Thomas: so many that a warp of systems with few rows each is
 * left. */
static int32_t
steps_of(const ps_options *options, int32_t rows)
{
    int32_t steps = least_steps;

    if (options->method != PS_PCR_THOMAS) {
        return most_steps;
    }
    if (options->variant > 0) {
        return options->variant;
    }
    while (rows >> steps > thomas_rows) {
        steps++;
    }
    return steps;
}

/* Threads of a system: one for each group of rows of pcr in registers, or for 8 rows of
 * cr; whole warps, or one thread per row. */
static int32_t
lanes_of(const ps_cuda_on_chip *p, const ps_cuda_reduction_type *type)
{
    const int32_t for_pcr = divided_up(p->live, type->rows_a_thread);
    const int32_t for_cr = p->levels > 0 ? divided_up(p->rows, cr_rows_a_thread) : 1;
    const int32_t wanted = std::max(for_pcr, std::min(for_cr, type->threads));

    return std::min(p->rows, divided_up(wanted, 32) * 32);
}

static size_t
shared_bytes(const ps_cuda_on_chip *p, const ps_cuda_reduction_type *type)
{
    return type->element * static_cast<size_t>(p->pitch) *
           static_cast<size_t>(p->systems);
}

/* Plan systems of `rows` rows in shared memory; false if they do not fit. */
static bool
plan_on_chip(ps_cuda_on_chip *p, const ps_options *options, int64_t rows, int32_t sides,
             const ps_cuda_reduction_type *type, int32_t limit)
{
    const int64_t most = static_cast<int64_t>(limit) / (3 + sides);
    const size_t shared_most = static_cast<size_t>(std::min(limit, plain_shared_bytes));

    if (rows * static_cast<int64_t>(type->element) > most) {
        return false;
    }
    *p = {};
    p->rows = static_cast<int32_t>(rows);
    p->live = p->rows;
    while (p->live > pcr_rows_of(options, p->rows)) {
        p->levels++;
        p->live = p->rows >> p->levels;
    }
    p->steps = steps_of(options, p->rows);
    p->staged = options->method == PS_PCR &&
                (mapping_of(options) == 1 || mapping_of(options) == 2);
    p->pitch = (3 + sides) * p->live + (p->levels > 0 ? (3 + sides) * p->rows : 0) +
               (p->staged ? sides * p->rows : 0);
    p->lanes = lanes_of(p, type);
    p->systems = p->lanes < least_threads ? least_threads / p->lanes : 1;
    if (threads_of(options) > 0) {
        p->lanes = std::min(p->rows, threads_of(options));
        p->systems = 1;
    }
    while (p->systems > 1 && shared_bytes(p, type) > shared_most) {
        p->systems /= 2;
    }
    return p->lanes <= type->threads && p->live <= p->lanes * type->rows_a_thread &&
           shared_bytes(p, type) <= static_cast<size_t>(limit);
}

/* Plan the systems after `global` steps; false if more steps are needed. */
static bool
part_fits(ps_cuda_reduction_plan *plan, const ps_options *options,
          const ps_cuda_reduction_type *type, int32_t limit)
{
    const int64_t parts = int64_t{1} << plan->global;
    const int64_t rows = plan->by_cr ? plan->rows / parts : divided_up(plan->rows, parts);
    const bool split = options->method == PS_PCR &&
                       (mapping_of(options) == 2 || mapping_of(options) == 4);

    if (split && rows > 1 && (plan->global == 0 || rows > split_rows)) {
        return false;
    }
    return plan_on_chip(&plan->on_chip, options, rows, plan->sides, type, limit);
}

/* Shared memory that a block may use. Levels of cr leave most threads idle, so a
 * multiprocessor with a single block is slower than one level more through global
 * memory. */
static int32_t
shared_limit_of(const ps_cuda_device *device, bool by_cr)
{
    const int32_t half = device->shared_bytes_processor / 2 - reserved_shared_bytes;

    return by_cr ? std::min(device->shared_bytes, half) : device->shared_bytes;
}

static const char *
kernel_name(const ps_options *options, const ps_cuda_reduction_plan *plan)
{
    const char *const names[][2] = {
        {"pcr C3", plan->chunked ? "pcr C3 in chunks" : "pcr C4"},
        {"pcr C1", plan->chunked ? "pcr C1 in chunks" : "pcr C2"},
        {"cr on chip", "cr from memory"},
        {"cr-pcr on chip", "cr-pcr from memory"},
        {"pcr-thomas on chip", "pcr-thomas from memory"}};
    const int which = options->method == PS_PCR      ? plan->on_chip.staged
                      : options->method == PS_CR     ? 2
                      : options->method == PS_CR_PCR ? 3
                                                     : 4;

    return names[which][plan->global > 0];
}

static ps_status
make_plan(ps_cuda_reduction_plan *plan, const ps_tridiag *t, const ps_options *options)
{
    const ps_cuda_device *const device = ps_cuda_device_get();
    ps_cuda_reduction_type type;
    const bool periodic = (t->flags & PS_PERIODIC) != 0;

    if (device == nullptr) {
        return PS_DEVICE_FAILURE;
    }
    if (find_type(t->dtype, &type) != PS_OK || !variant_is_legal(options)) {
        return PS_BAD_ARGUMENT;
    }
    *plan = {};
    plan->rows = static_cast<int32_t>(t->rows - periodic);
    plan->sides = 1 + periodic;
    plan->by_cr = options->method == PS_CR || options->method == PS_CR_PCR;
    const int32_t limit = shared_limit_of(device, plan->by_cr);
    while (plan->rows > 0 && !part_fits(plan, options, &type, limit)) {
        plan->global++;
    }
    plan->chunked = plan->global > 0 && options->method == PS_PCR &&
                    (mapping_of(options) == 1 || mapping_of(options) == 3);
    plan->kernel = kernel_name(options, plan);
    return PS_OK;
}

static ps_status
reduction_work(const ps_tridiag *t, const ps_options *options, size_t *bytes)
{
    ps_cuda_reduction_plan plan;
    const ps_status status = make_plan(&plan, t, options);
    int64_t numbers;

    if (status != PS_OK) {
        return status;
    }
    numbers = plan.sides == 2 ? plan.rows : 0;
    for (int step = 1; step <= plan.global && (plan.by_cr || step <= 2); step++) {
        numbers += ps_cuda_reduction_kept(&plan, step);
    }
    *bytes = static_cast<size_t>(numbers * t->outer * t->inner * ps_dtype_size(t->dtype));
    return PS_OK;
}

static ps_status
solve(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
      const OperandTexels *texels, ps_report *report)
{
    ps_cuda_reduction_plan plan;
    ps_cuda_reduction_type type;
    ps_status status = make_plan(&plan, t, options);

    if (status == PS_OK) {
        status = find_type(t->dtype, &type);
    }
    if (status != PS_OK) {
        return status;
    }
    plan.texels = texels;
    report->kernel = plan.kernel;
    return type.solve(t, &plan, exec);
}

static ps_status
reduction_solve(const ps_tridiag *t, const ps_options *options, const ps_exec *exec,
                ps_report *report)
{
    return solve(t, options, exec, nullptr, report);
}

ps_status
reduction_solve_texels(const ps_tridiag *t, const ps_options *options,
                       const ps_exec *exec, const OperandTexels *texels)
{
    ps_report report = {};

    return solve(t, options, exec, texels, &report);
}

const ps_cuda_method ps_cuda_reduction = {reduction_work, reduction_solve};

} // namespace pysolvers::reduction
